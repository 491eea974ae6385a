/* policy_search.c - the gain from one change of a run. */
#include "sim/search/policy_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/weeks/run_closed_form.h"

void policy_search_open(struct policy_search *search)
{
    search->outcomes = memory_new((size_t)search->n, sizeof *search->outcomes);
    search->base = memory_new((size_t)search->n, sizeof *search->base);
}

void policy_search_close(struct policy_search *search)
{
    free(search->outcomes);
    free(search->base);
}

static void evaluate(struct policy_search *search)
{
    if (search->status != STATUS_OK)
        return;
    memset(search->outcomes, 0, (size_t)search->n * sizeof *search->outcomes);
    search->evaluations++;
    search->status = campaign_run(search->campaign, search->run, search->n, search->outcomes, search->diags);
}

static double goodput_pct(const struct replica_outcome *outcome)
{
    return 100 * outcome_goodput(outcome);
}

struct estimate policy_goodput(const struct policy_search *search)
{
    return outcomes_estimate(search->outcomes, search->n, goodput_pct);
}

struct estimate policy_end_s(const struct policy_search *search)
{
    return outcomes_estimate(search->outcomes, search->n, outcome_end_s);
}

double policy_price(struct policy_search *search)
{
    evaluate(search);
    double nodes = search->run->options->nodes;
    return (nodes + search->run->options->recovery.spares) / nodes / fmax(policy_goodput(search).mean / 100, 1e-9);
}

void policy_set_base(struct policy_search *search)
{
    for (int64_t i = 0; i < search->n; i++)
        search->base[i] = goodput_pct(&search->outcomes[i]);
}

struct estimate policy_gain(const struct policy_search *search)
{
    double *gain = memory_new((size_t)search->n, sizeof *gain);
    for (int64_t i = 0; i < search->n; i++)
        gain[i] = goodput_pct(&search->outcomes[i]) - search->base[i];
    struct estimate estimate = estimate_of(gain, (size_t)search->n);
    free(gain);
    return estimate;
}

double policy_time_between(const struct policy_search *search)
{
    struct run_account all = {0};
    for (int64_t i = 0; i < search->n; i++) {
        all.interruptions += (double)search->outcomes[i].interruptions;
        for (int use = 0; use < N_TIME_USES; use++)
            all.use_s[use] += nanos_to_seconds(search->outcomes[i].use[use]);
    }
    return run_time_between(&all);
}

/* --- what may change --- */

void policy_state_take(const struct run_parts *run, struct policy_state *state)
{
    const struct faults_request *asked = &run->experiment->faults;
    *state = (struct policy_state){.checkpoint = run->options->checkpoint,
                                   .recovery = run->options->recovery,
                                   .policy = *run->policy,
                                   .model = *run->model,
                                   .startup = *run->startup,
                                   .restart = run->robust->restart,
                                   .restart_hot = run->robust->restart_hot,
                                   .reload = run->robust->reload,
                                   .restart_s = asked->restart_s};
    snprintf(state->kind, sizeof state->kind, "%s", asked->checkpoint);
}

void policy_state_apply(const struct policy_state *state, const struct run_parts *run)
{
    struct faults_request *asked = &run->experiment->faults;
    run->options->checkpoint = state->checkpoint;
    run->options->recovery = state->recovery;
    *run->policy = state->policy;
    *run->model = state->model;
    *run->startup = state->startup;
    run->robust->restart = state->restart;
    run->robust->restart_hot = state->restart_hot;
    run->robust->reload = state->reload;
    asked->restart_s = state->restart_s;
    snprintf(asked->checkpoint, sizeof asked->checkpoint, "%s", state->kind);
}
