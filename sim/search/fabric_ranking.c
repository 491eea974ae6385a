/* fabric_ranking.c - ranks the best plans again on a fabric whose links are shared, each plan in several placements. */
#include "sim/search/fabric_ranking.h"

#include <stdlib.h>

#include "model/base/memory.h"

static void network_seen(void *context, struct network_flow *network, const struct step_result *result)
{
    struct flow_outcome *outcome = context;
    struct hot_link hottest;
    struct link_usage *usage = memory_new(fabric_links(network_flow_fabric(network)), sizeof *usage);

    (void)result;
    network_flow_usage(network, usage);
    outcome->contended = network_flow_hottest(network, usage, 1, &hottest) > 0 ? hottest.contended : 0;
    free(usage);
}

static void placement_simulate(const struct fabric_ranking *ranking, const struct layout *layout, enum placement placement,
                               struct flow_outcome *outcome, struct diags *diags)
{
    const struct setting *setting = ranking->setting;
    struct network_flow_options options = ranking->network;
    int *gpus = memory_new((size_t)setting->gpus, sizeof *gpus);
    const struct step_options how = {.all_ranks = true,
                                     .detail = DETAIL_CHUNK,
                                     .flow = &options,
                                     .fold_flow = true,
                                     .seen = network_seen,
                                     .seen_context = outcome};

    placement_fill(placement, layout, options.fabric, options.seed, gpus);
    options.placement = gpus;
    outcome->simulated = step_simulate(layout, setting, &how, &outcome->step, NULL, NULL, diags) == STATUS_OK;
    free(gpus);
}

static void row_choose(struct flow_row *row)
{
    row->best = -1;
    for (int p = 0; p < N_PLACEMENTS; p++)
        if (row->placements[p].simulated &&
            (row->best < 0 || row->placements[p].step.step < row->placements[row->best].step.step))
            row->best = p;
}

/* By the time of the best placement; those without one last; then as they were. */
static bool row_before(const struct flow_row *a, const struct flow_row *b)
{
    if ((a->best < 0) != (b->best < 0))
        return a->best >= 0;
    return a->best >= 0 && a->placements[a->best].step.step < b->placements[b->best].step.step;
}

static void rows_sort(struct flow_row *rows, int n)
{
    for (int i = 1; i < n; i++) {
        struct flow_row row = rows[i];
        int at = i;
        for (; at > 0 && row_before(&row, &rows[at - 1]); at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

void fabric_rank(const struct fabric_ranking *ranking, struct flow_row *rows, int n, struct diags *diags)
{
    for (int i = 0; i < n; i++) {
        struct flow_row *row = &rows[i];
        for (int p = 0; p < N_PLACEMENTS; p++)
            if (ranking->placed[p])
                placement_simulate(ranking, &row->plan.plan.layout, (enum placement)p, &row->placements[p], diags);
        row_choose(row);
        watch_tell(&ranking->watch, i + 1, n);
    }
    rows_sort(rows, n);
}
