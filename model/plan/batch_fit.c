/* batch_fit.c - batches and the numbers of replicas that divide them. */
#include "model/plan/batch_fit.h"

#include <stdlib.h>

#include "model/base/append.h"
#include "model/base/number_text.h"
#include "model/spec/job.h"

enum { DIVISORS_MOST = 512 }; /* no number up to 16 million has more than 504, which 14,414,400 has */

struct divisors {
    int items[DIVISORS_MOST];
    int n;
};

static struct divisors divisors_of(int number)
{
    struct divisors d = {.n = 0};
    for (int i = 1; (int64_t)i * i <= number; i++)
        if (number % i == 0) {
            d.items[d.n++] = i;
            if (i != number / i)
                d.items[d.n++] = number / i;
        }
    return d;
}

/* How many of them, none above `most`, divide a batch. */
static int divide(const struct divisors *d, int64_t most, int64_t batch)
{
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += d->items[i] <= most && batch % d->items[i] == 0;
    return n;
}

static void consider(struct batch_fit *fit, const struct divisors *d, int64_t batch, int64_t other)
{
    int64_t range = batch / 8 > 1 ? batch / 8 : 1, apart = llabs(other - batch);
    if (other < 1 || other > JOB_SEQUENCES_MAX || apart > range)
        return;
    int left = divide(d, batch, other);
    int64_t best = fit->better ? llabs(fit->better - batch) : 0;
    if (left > fit->better_left || (left == fit->better_left && fit->better && apart < best)) {
        fit->better = other;
        fit->better_left = left;
    }
}

struct batch_fit batch_fit_of(int gpus, int64_t batch)
{
    const struct divisors d = divisors_of(gpus);
    struct batch_fit fit = {.left = divide(&d, batch, batch)};
    fit.better_left = fit.left;
    for (int i = 0; i < d.n; i++)
        fit.sizes += d.items[i] <= batch;
    /* What most of them divide is a multiple of their least common multiple, which is a divisor of the GPUs too. */
    for (int i = 0; i < d.n; i++) {
        int64_t below = batch / d.items[i] * d.items[i];
        consider(&fit, &d, batch, below);
        consider(&fit, &d, batch, below + d.items[i]);
    }
    return fit;
}

void batch_fit_warn(int gpus, const struct job *job, const struct space_limits *limits, struct diags *diags)
{
    const struct batch_fit fit = batch_fit_of(gpus, job->global_batch);
    char text[512], number[32];
    if (limits->dimensions[SPACE_DP].n > 0 || !batch_fits_badly(&fit))
        return;
    snprintf(text, sizeof text, "a batch of %lld sequences allows only %d of the %d numbers of replicas that %s GPUs could have",
             (long long)job->global_batch, fit.left, fit.sizes, grouped(gpus, number, sizeof number));
    if (fit.better) {
        double tokens = (double)fit.better * (double)job->seq_len;
        text_append(text, sizeof text, ": %lld sequences would allow %d; use --global-batch %lld", (long long)fit.better,
                    fit.better_left, (long long)fit.better);
        if (tokens <= JOB_TOKENS_MAX)
            text_append(text, sizeof text, ", --batch-tokens %.0f", tokens);
        text_append(text, sizeof text, " or --set job.global_batch=%lld", (long long)fit.better);
    }
    diag_warning(diags, PLACE_NONE, "%s", text);
}
