/* policy_optimum.c - find the policy with the cheapest trained token. */
#include "sim/search/policy_optimum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

/* Mean time between interruptions as drawn, and what the closed forms make of it. */
static void closed_forms(const struct policy_search *search, struct policy_optimum *o)
{
    o->between_s = policy_time_between(search);
    o->interval = best_interval_of(&search->run->options->checkpoint, o->between_s);
}

/* Work that counts per node paid for, of each replica of the candidate that was run last: of its mean the price is the inverse.
 */
static void take_worths(const struct policy_search *search, double *worths)
{
    double nodes = search->run->options->nodes, share = nodes / (nodes + search->run->options->recovery.spares);
    for (int64_t i = 0; i < search->n; i++)
        worths[i] = outcome_goodput(&search->outcomes[i]) * share;
}

/* What is worth more than others, replica by replica, in percent of their mean. */
static struct estimate worth_gain(const double *worths, const double *others, int64_t n)
{
    double *gain = memory_new((size_t)n, sizeof *gain), mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += others[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        gain[i] = 100 * (worths[i] - others[i]) / fmax(mean, 1e-9);
    struct estimate estimate = estimate_of(gain, (size_t)n);
    free(gain);
    return estimate;
}

bool gain_is_clear(struct estimate gain, int64_t n)
{
    return gain.mean > (n > 1 ? gain.half_width : 0);
}

/* Lever i of `best` back where it was before; of the kind of checkpoint the interval stays, which is a lever of its own. */
static bool without_change(const struct policy_optimum *o, const struct policy_state *best, int i, struct policy_state *state)
{
    char before[512], now[512];
    policy_lever_format(&policy_levers[i], &o->before, before, sizeof before);
    policy_lever_format(&policy_levers[i], best, now, sizeof now);
    *state = *best;
    policy_lever_take(&policy_levers[i], state, &o->before);
    for (int j = 0; j < N_POLICY_LEVERS; j++)
        if (policy_levers[i].value == VALUE_KIND && policy_levers[j].value == VALUE_NANOS && o->used[j])
            policy_lever_take(&policy_levers[j], state, best);
    return strcmp(before, now) != 0;
}

/* From the last lever, which does least, to the first. */
static void undo_noise(struct policy_search *search, struct policy_optimum *o)
{
    double *worths = memory_new((size_t)search->n, sizeof *worths), *others = memory_new((size_t)search->n, sizeof *others);
    struct policy_state best = o->found, state;
    policy_state_apply(&best, search->run);
    policy_price(search);
    take_worths(search, worths);
    for (int i = N_POLICY_LEVERS - 1; i >= 0 && search->status == STATUS_OK; i--) {
        if (!o->used[i] || !without_change(o, &best, i, &state))
            continue;
        policy_state_apply(&state, search->run);
        policy_price(search);
        take_worths(search, others);
        o->kept[i] = worth_gain(worths, others, search->n);
        if (gain_is_clear(o->kept[i], search->n))
            continue;
        o->undone[i] = true;
        best = state;
        memcpy(worths, others, (size_t)search->n * sizeof *worths);
    }
    if (best.policy.hot_spares > best.recovery.spares && best.policy.hot_spares != o->before.policy.hot_spares)
        best.policy.hot_spares = best.recovery.spares; /* no more are hot anyway */
    policy_state_apply(&best, search->run);
    free(worths);
    free(others);
}

/* What each lever brings when nothing else moves. */
static void try_alone(struct policy_search *search, struct policy_optimum *o)
{
    double *worths = memory_new((size_t)search->n, sizeof *worths), *start = memory_new((size_t)search->n, sizeof *start);
    double nodes = search->run->options->nodes;
    for (int64_t i = 0; i < search->n; i++)
        start[i] = search->base[i] / 100 * nodes / (nodes + o->before.recovery.spares);
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        if (!o->used[i])
            continue;
        struct policy_state state = o->before;
        policy_lever_take(&policy_levers[i], &state, &o->best);
        policy_state_apply(&state, search->run);
        o->alone[i].price = policy_price(search);
        o->alone[i].gain = policy_gain(search);
        take_worths(search, worths);
        o->alone[i].separated = gain_is_clear(worth_gain(worths, start, search->n), search->n);
        o->alone[i].harms = gain_is_clear(worth_gain(start, worths, search->n), search->n);
    }
    free(worths);
    free(start);
}

void policy_optimise(struct policy_search *search, struct policy_optimum *o)
{
    policy_state_take(search->run, &o->before);
    o->price_start = policy_price(search);
    o->start = policy_goodput(search);
    o->done_start = policy_end_s(search);
    policy_set_base(search);
    for (int round = 0; round < (o->n_used > 1 ? 2 : 1); round++)
        for (int i = 0; i < N_POLICY_LEVERS && search->status == STATUS_OK; i++)
            if (o->used[i])
                policy_levers[i].improve(search);
    policy_state_take(search->run, &o->found);
    undo_noise(search, o);
    o->price_end = policy_price(search);
    if (o->price_end > o->price_start) { /* nothing is better than what there was */
        policy_state_apply(&o->before, search->run);
        memset(o->kept, 0, sizeof o->kept);
        o->price_end = policy_price(search);
    }
    policy_state_take(search->run, &o->best);
    o->end = policy_goodput(search);
    o->done = policy_end_s(search);
    o->gain = policy_gain(search);
    closed_forms(search, o);
    try_alone(search, o);
    policy_state_apply(&o->best, search->run);
}
