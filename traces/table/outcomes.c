/* outcomes.c - fits the spread of needed memory around its prediction to outcomes. */
#include "traces/table/outcomes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

/* ln of the use, and whether the run failed. */
struct trial {
    double log_use;
    bool failed;
};

static bool tells_of_failures(const struct comparison *items, size_t n, const char *source)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].oom && items[i].use > 0 && strcmp(items[i].source, source) == 0)
            return true;
    return false;
}

static bool is_first_of_source(const struct comparison *items, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(items[i].source, items[at].source) == 0)
            return false;
    return true;
}

/* The caller frees the trials; their number is outcomes->runs. */
static struct trial *collect(const struct comparison *items, size_t n, struct outcomes *outcomes)
{
    struct trial *trials = memory_new(n, sizeof *trials);
    const char *last = NULL; /* source, as items of one mostly stand together */
    bool tells = false;
    for (size_t i = 0; i < n; i++) {
        if (last == NULL || strcmp(items[i].source, last) != 0) {
            last = items[i].source;
            tells = tells_of_failures(items, n, last);
            outcomes->sources += tells && is_first_of_source(items, i);
        }
        if (!tells || items[i].outcome_unknown || items[i].use <= 0)
            continue;
        trials[outcomes->runs++] = (struct trial){.log_use = log(items[i].use), .failed = items[i].oom};
        outcomes->failed += items[i].oom;
    }
    return trials;
}

/* Some run failed at a smaller use than another one had that ran: the likelihood has a maximum. */
static bool overlap(const struct trial *trials, size_t n)
{
    double most_that_ran = -INFINITY, least_that_failed = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (trials[i].failed)
            least_that_failed = fmin(least_that_failed, trials[i].log_use);
        else
            most_that_ran = fmax(most_that_ran, trials[i].log_use);
    return least_that_failed < most_that_ran;
}

/* The logarithm of 1 / (1 + e^-z), and that alone for large -z. */
static double log_logistic(double z)
{
    return z < 0 ? z - log1p(exp(z)) : -log1p(exp(-z));
}

static double likelihood(const struct trial *trials, size_t n, double level, double slope)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double z = level + slope * trials[i].log_use;
        sum += log_logistic(trials[i].failed ? z : -z);
    }
    return sum;
}

/* Newton's step towards the maximum; false where the curvature vanishes. */
static bool newton_step(const struct trial *trials, size_t n, double level, double slope, double step[2])
{
    double gradient[2] = {0}, ll = 0, ls = 0, ss = 0;
    for (size_t i = 0; i < n; i++) {
        double x = trials[i].log_use, share = 1 / (1 + exp(-level - slope * x)), curve = share * (1 - share);
        gradient[0] += trials[i].failed - share;
        gradient[1] += (trials[i].failed - share) * x;
        ll += curve, ls += curve * x, ss += curve * x * x;
    }
    double determinant = ll * ss - ls * ls;
    if (!(determinant > 0))
        return false;
    step[0] = (ss * gradient[0] - ls * gradient[1]) / determinant;
    step[1] = (ll * gradient[1] - ls * gradient[0]) / determinant;
    return true;
}

/* The likelihood is concave, so steps that are halved until they gain reach its maximum. */
static void fit(const struct trial *trials, struct outcomes *outcomes)
{
    enum { STEPS = 200 };
    double level = 0, slope = 0, best = likelihood(trials, outcomes->runs, 0, 0), step[2] = {1, 1};
    for (int i = 0; i < STEPS && hypot(step[0], step[1]) > 1e-12 && newton_step(trials, outcomes->runs, level, slope, step);
         i++) {
        double size = 2, gained;
        do {
            size /= 2;
            gained = likelihood(trials, outcomes->runs, level + size * step[0], slope + size * step[1]) - best;
        } while (gained < 0 && size > 1e-15);
        if (gained < 0)
            break;
        level += size * step[0];
        slope += size * step[1];
        best += gained;
    }
    if (slope > 0) {
        outcomes->median = exp(level / slope);
        outcomes->scale = 1 / slope;
    }
}

struct outcomes outcomes_of(const struct comparison *items, size_t n)
{
    struct outcomes outcomes = {0};
    struct trial *trials = collect(items, n, &outcomes);
    if (outcomes.failed > 0 && overlap(trials, outcomes.runs))
        fit(trials, &outcomes);
    free(trials);
    return outcomes;
}
