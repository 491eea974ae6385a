/* policy_levers.c - the levers of a search for the best policy, and how each is searched. */
#include "sim/search/policy_levers.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "sim/weeks/run_closed_form.h"

/* --- ways to search --- */

#define FIELD(member) offsetof(struct policy_state, member)

typedef void set_time(const struct run_parts *run, double seconds);

struct time_search {
    struct policy_search *search;
    set_time *set;
};

static double price_of_time(double log_s, void *data)
{
    struct time_search *t = data;
    t->set(t->search->run, exp(log_s));
    return policy_price(t->search);
}

/* A coarse grid around `start` gives Brent's method its bracket. */
static bool bracket(struct time_search *t, double start, double x3[3], double f3[3])
{
    enum { SIDE = 6 };
    double x[2 * SIDE + 1], f[2 * SIDE + 1];
    int best = 0;
    for (int i = 0; i <= 2 * SIDE; i++) {
        x[i] = start + 0.6 * (i - SIDE);
        f[i] = price_of_time(x[i], t);
        best = f[i] < f[best] ? i : best;
    }
    x3[1] = x[best];
    if (best == 0 || best == 2 * SIDE)
        return false;
    memcpy(x3, &x[best - 1], 3 * sizeof *x3);
    memcpy(f3, &f[best - 1], 3 * sizeof *f3);
    return f[best] < f[best - 1] && f[best] < f[best + 1];
}

static void best_time(struct policy_search *search, double start_s, set_time *set)
{
    struct time_search t = {.search = search, .set = set};
    double x[3], f[3];
    if (bracket(&t, log(start_s), x, f)) {
        gsl_error_handler_t *before = gsl_set_error_handler_off();
        gsl_function function = {.function = price_of_time, .params = &t};
        gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
        int status = gsl_min_fminimizer_set_with_values(minimizer, &function, x[1], f[1], x[0], f[0], x[2], f[2]);
        for (int i = 0; i < 24 && status == GSL_SUCCESS; i++) {
            status = gsl_min_fminimizer_iterate(minimizer);
            x[1] = gsl_min_fminimizer_x_minimum(minimizer);
            if (gsl_min_fminimizer_x_upper(minimizer) - gsl_min_fminimizer_x_lower(minimizer) < 0.01)
                break;
        }
        gsl_min_fminimizer_free(minimizer);
        gsl_set_error_handler(before);
    }
    set(search->run, exp(x[1]));
}

/* `field` is the count's offset in struct policy_state. */
static void set_count(const struct run_parts *run, size_t field, int count)
{
    struct policy_state state;
    policy_state_take(run, &state);
    memcpy((char *)&state + field, &count, sizeof count);
    policy_state_apply(&state, run);
}

static double price_of_count(struct policy_search *search, size_t field, int count)
{
    set_count(search->run, field, count);
    return policy_price(search);
}

static void best_count(struct policy_search *search, size_t field, int lowest, int limit)
{
    int best = lowest;
    double least = price_of_count(search, field, lowest);
    for (int count = lowest + 1; count <= limit; count *= 2) {
        double value = price_of_count(search, field, count);
        if (value < least) {
            least = value;
            best = count;
        } else if (count > 4 * (best + 1)) {
            break;
        }
    }
    for (int step = best / 2; step >= 1; step /= 2)
        for (int side = -1; side <= 1; side += 2) {
            int count = best + side * step;
            double value = count >= lowest && count <= limit ? price_of_count(search, field, count) : HUGE_VAL;
            if (value < least) {
                least = value;
                best = count;
            }
        }
    set_count(search->run, field, best);
}

/* --- the levers --- */

static void set_interval(const struct run_parts *run, double seconds)
{
    run->options->checkpoint.interval = nanos_from_seconds(seconds);
}

/* Where the search for an interval begins; 0: nothing says. */
static double likely_interval_s(const struct policy_search *search)
{
    const struct best_interval best = best_interval_of(&search->run->options->checkpoint, policy_time_between(search));
    return best.young_s > 0 ? fmax(best.young_s, nanos_to_seconds(checkpoint_lag(&search->run->options->checkpoint))) : 0;
}

static void improve_interval(struct policy_search *search)
{
    double young = likely_interval_s(search), now = nanos_to_seconds(search->run->options->checkpoint.interval);
    best_time(search, young > 0 ? young : now, set_interval);
}

static enum lever_refusal refuse_interval(const struct run_parts *run)
{
    return run->options->checkpoint.block > 0 ? LEVER_FREE : LEVER_CHECKPOINTS_COST_NOTHING;
}

static void improve_spares(struct policy_search *search)
{
    best_count(search, FIELD(recovery.spares), 0, search->run->options->nodes);
}

/* Each kind at the interval that suits what it blocks. */
static void improve_kind(struct policy_search *search)
{
    static const char *const kinds[] = {"blocking", "two-stage", "memory", "step"};
    struct policy_state start, best;
    policy_state_take(search->run, &start);
    best = start;
    double least = policy_price(search);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && search->status == STATUS_OK; i++) {
        policy_state_apply(&start, search->run);
        search->status = search->set_kind(search->context, kinds[i]);
        double young = likely_interval_s(search);
        if (strcmp(kinds[i], "step") != 0 && young > 0)
            set_interval(search->run, young);
        double value = policy_price(search);
        if (value < least) {
            least = value;
            policy_state_take(search->run, &best);
        }
    }
    policy_state_apply(&best, search->run);
}

static enum lever_refusal refuse_kind(const struct run_parts *run)
{
    return run->has_cost ? LEVER_FREE : LEVER_COST_UNKNOWN;
}

static enum lever_refusal refuse_without_policy(const struct run_parts *run)
{
    return run->has_policy ? LEVER_FREE : LEVER_WITHOUT_POLICY;
}

static void set_heartbeat_timeout(const struct run_parts *run, double seconds)
{
    run->policy->heartbeat_timeout_s = fmax(seconds, run->policy->heartbeat_s); /* a shorter one would lose healthy nodes */
}

static void improve_heartbeat_timeout(struct policy_search *search)
{
    best_time(search, search->run->policy->heartbeat_timeout_s, set_heartbeat_timeout);
}

static enum lever_refusal refuse_heartbeat_timeout(const struct run_parts *run)
{
    if (!run->has_policy)
        return LEVER_WITHOUT_POLICY;
    return run->policy->pause_rate > 0 ? LEVER_FREE : LEVER_WITHOUT_PAUSES;
}

static void set_traffic_window(const struct run_parts *run, double seconds)
{
    run->policy->traffic_window_s = seconds;
}

static void improve_traffic_window(struct policy_search *search)
{
    best_time(search, search->run->policy->traffic_window_s, set_traffic_window);
}

static enum lever_refusal refuse_traffic_window(const struct run_parts *run)
{
    if (!run->has_policy)
        return LEVER_WITHOUT_POLICY;
    if (run->policy->traffic_window_s <= 0)
        return LEVER_WITHOUT_TRAFFIC;
    return run->policy->stall_rate > 0 ? LEVER_FREE : LEVER_WITHOUT_STALLS;
}

static void improve_hot_spares(struct policy_search *search)
{
    best_count(search, FIELD(policy.hot_spares), 0, search->run->options->recovery.spares);
}

static void improve_attempts(struct policy_search *search)
{
    best_count(search, FIELD(policy.attempts), 1, 16);
}

/* Move number `move` of a suite of n tests: leave out test `move`, or swap neighbours. False: there is no such move. */
static bool change_suite(const struct diagnostic_suite *from, int move, struct diagnostic_suite *to)
{
    *to = *from;
    if (move < from->n) {
        memmove(&to->items[move], &to->items[move + 1], (size_t)(from->n - move - 1) * sizeof *to->items);
        to->n--;
        return true;
    }
    int i = move - from->n;
    if (i + 1 >= from->n)
        return false;
    to->items[i] = from->items[i + 1];
    to->items[i + 1] = from->items[i];
    return true;
}

static void improve_tests(struct policy_search *search)
{
    struct diagnostic_suite best = search->run->policy->tests, start;
    double least = policy_price(search);
    do {
        start = best;
        for (int move = 0; search->status == STATUS_OK && change_suite(&start, move, &search->run->policy->tests); move++) {
            double value = policy_price(search);
            if (value < least) {
                least = value;
                best = search->run->policy->tests;
            }
        }
    } while (best.n != start.n || memcmp(best.items, start.items, sizeof best.items) != 0);
    search->run->policy->tests = best;
}

static enum lever_refusal refuse_never(const struct run_parts *run)
{
    (void)run;
    return LEVER_FREE;
}

const struct policy_lever policy_levers[N_POLICY_LEVERS] = {
    {"checkpoint", "checkpoint", refuse_kind, improve_kind, VALUE_KIND, 0},
    {"spares", "spares", refuse_never, improve_spares, VALUE_COUNT, FIELD(recovery.spares)},
    {"checkpoint-interval", "checkpoint interval", refuse_interval, improve_interval, VALUE_NANOS, FIELD(checkpoint.interval)},
    {"hot-spares", "hot spares", refuse_without_policy, improve_hot_spares, VALUE_COUNT, FIELD(policy.hot_spares)},
    {"heartbeat-timeout", "heartbeat timeout", refuse_heartbeat_timeout, improve_heartbeat_timeout, VALUE_SECONDS,
     FIELD(policy.heartbeat_timeout_s)},
    {"traffic-window", "traffic window", refuse_traffic_window, improve_traffic_window, VALUE_SECONDS,
     FIELD(policy.traffic_window_s)},
    {"attempts", "attempts", refuse_without_policy, improve_attempts, VALUE_COUNT, FIELD(policy.attempts)},
    {"tests", "tests", refuse_without_policy, improve_tests, VALUE_SUITE, FIELD(policy.tests)},
};

/* --- a lever's place --- */

static void take_kind(struct policy_state *to, const struct policy_state *from)
{
    memcpy(to->kind, from->kind, sizeof to->kind);
    to->checkpoint = from->checkpoint;
    to->restart = from->restart;
    to->restart_hot = from->restart_hot;
    to->reload = from->reload;
    to->startup = from->startup;
    to->recovery.restart = from->recovery.restart;
    to->restart_s = from->restart_s;
}

void policy_lever_take(const struct policy_lever *lever, struct policy_state *to, const struct policy_state *from)
{
    static const size_t sizes[] = {[VALUE_NANOS] = sizeof(nanos),
                                   [VALUE_SECONDS] = sizeof(double),
                                   [VALUE_COUNT] = sizeof(int),
                                   [VALUE_SUITE] = sizeof(struct diagnostic_suite)};
    if (lever->value == VALUE_KIND)
        take_kind(to, from);
    else
        memcpy((char *)to + lever->field, (const char *)from + lever->field, sizes[lever->value]);
}

static void format_suite(const struct diagnostic_suite *suite, char *text, size_t size)
{
    snprintf(text, size, "%s", suite->n ? "" : "none");
    for (int i = 0; i < suite->n; i++)
        text_append(text, size, "%s%s", i ? " > " : "", suite->items[i].name);
}

void policy_lever_format(const struct policy_lever *lever, const struct policy_state *state, char *text, size_t size)
{
    const void *field = (const char *)state + lever->field;
    char interval[32];
    switch (lever->value) {
    case VALUE_KIND:
        quantity_format(nanos_to_seconds(state->checkpoint.interval), DIM_TIME, interval, sizeof interval);
        snprintf(text, size, "%s, %s", *state->kind ? state->kind : "blocking", interval);
        return;
    case VALUE_NANOS: quantity_format(nanos_to_seconds(*(const nanos *)field), DIM_TIME, text, size); return;
    case VALUE_SECONDS: quantity_format(*(const double *)field, DIM_TIME, text, size); return;
    case VALUE_COUNT: snprintf(text, size, "%d", *(const int *)field); return;
    case VALUE_SUITE: format_suite(field, text, size); return;
    }
}
