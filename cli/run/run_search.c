#include "cli/run/run_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

enum status search_open(struct search *search, struct invocation *call, struct run_session *s, const char *what)
{
    bool lucky = s->has_model || s->has_policy;
    *search = (struct search){.call = call, .s = s, .n = lucky ? run_replica_count(call, SEARCH_REPLICAS) : 1};
    search->outcomes = memory_new((size_t)search->n, sizeof *search->outcomes);
    search->base = memory_new((size_t)search->n, sizeof *search->base);
    enum status status = campaign_open(call, s, what, 0, &search->campaign);
    return run_share(NULL, 1, 0, status);
}

void search_close(struct search *search)
{
    campaign_close(&search->campaign);
    free(search->outcomes);
    free(search->base);
}

static void evaluate(struct search *search)
{
    if (search->status != STATUS_OK)
        return;
    memset(search->outcomes, 0, (size_t)search->n * sizeof *search->outcomes);
    search->evaluations++;
    search->status = run_batch(search->call, search->s, search->n, &search->campaign, search->outcomes);
}

struct estimate search_goodput(const struct search *search)
{
    return run_estimate(search->s, search->outcomes, search->n, outcome_goodput_pct);
}

struct estimate search_end_s(const struct search *search)
{
    return run_estimate(search->s, search->outcomes, search->n, run_end_s);
}

double search_price(struct search *search)
{
    evaluate(search);
    double nodes = search->s->options.nodes;
    return (nodes + search->s->options.recovery.spares) / nodes / fmax(search_goodput(search).mean / 100, 1e-9);
}

void search_set_base(struct search *search)
{
    for (int64_t i = 0; i < search->n; i++)
        search->base[i] = outcome_goodput_pct(search->s, &search->outcomes[i]);
}

struct estimate search_gain(const struct search *search)
{
    double *gain = memory_new((size_t)search->n, sizeof *gain);
    for (int64_t i = 0; i < search->n; i++)
        gain[i] = outcome_goodput_pct(search->s, &search->outcomes[i]) - search->base[i];
    struct estimate estimate = estimate_of(gain, (size_t)search->n);
    free(gain);
    return estimate;
}

/* --- what may change --- */

void search_state_take(const struct run_session *s, struct search_state *state)
{
    *state = (struct search_state){.checkpoint = s->options.checkpoint,
                                   .recovery = s->options.recovery,
                                   .policy = s->policy,
                                   .model = s->model,
                                   .startup = s->startup,
                                   .restart = s->robust.restart,
                                   .restart_hot = s->robust.restart_hot,
                                   .reload = s->robust.reload,
                                   .restart_s = s->experiment.faults.restart_s};
    snprintf(state->kind, sizeof state->kind, "%s", s->experiment.faults.checkpoint);
}

void search_state_apply(const struct search_state *state, struct run_session *s)
{
    s->options.checkpoint = state->checkpoint;
    s->options.recovery = state->recovery;
    s->policy = state->policy;
    s->model = state->model;
    s->startup = state->startup;
    s->robust.restart = state->restart;
    s->robust.restart_hot = state->restart_hot;
    s->robust.reload = state->reload;
    s->experiment.faults.restart_s = state->restart_s;
    snprintf(s->experiment.faults.checkpoint, sizeof s->experiment.faults.checkpoint, "%s", state->kind);
}
