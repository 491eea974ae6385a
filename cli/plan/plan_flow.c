#include "cli/plan/plan_flow.h"

#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/layout_json.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "model/base/memory.h"
#include "model/layout/dimension_value.h"

/* ---- simulation */

static void rows_rank(struct invocation *call, const struct setting *setting, const struct fabric *fabric, struct plan_flow *flow)
{
    struct progress progress = progress_begin(call, "plans on the fabric");
    const struct router router = fabric_options_router(call, fabric);
    struct fabric_ranking ranking = {.setting = setting,
                                     .network = {.fabric = fabric,
                                                 .routing = router.routing,
                                                 .polarised = router.polarised,
                                                 .rail_aware = router.rail_aware,
                                                 .queue_pairs = fabric_options_queue_pairs(call, setting->cluster),
                                                 .seed = call->seed},
                                     .watch = {progress_update, &progress}};

    memcpy(ranking.placed, flow->placed, sizeof ranking.placed);
    fabric_rank(&ranking, flow->rows, flow->n_rows, &call->diags);
    progress_end(&progress);
}

enum status plan_flow_run(struct invocation *call, const struct setting *setting, struct ranked_plan *plans, int n_plans,
                          struct plan_flow *flow)
{
    int n = (int)option_count(call, "flow-top"), placement = option_choice(call, "placement");
    struct fabric fabric;

    *flow = (struct plan_flow){0};
    if (option_choice(call, "network") != NETWORK_FLOW) {
        fabric_options_note_idle(call, "network", "flow");
        return STATUS_OK;
    }
    enum status status = fabric_options_load(call, setting->cluster, &fabric);
    if (status != STATUS_OK)
        return status;
    if (fabric.n_gpus < setting->gpus) {
        diag_error(&call->diags, PLACE_NONE, "the fabric has %d GPUs, but the job needs %d", fabric.n_gpus, setting->gpus);
        fabric_free(&fabric);
        return STATUS_BAD_INPUT;
    }
    for (int p = 0; p < N_PLACEMENTS; p++)
        flow->placed[p] = placement == N_PLACEMENTS || placement == p;
    flow->n_rows = n < n_plans ? n : n_plans;
    flow->rows = memory_new((size_t)flow->n_rows, sizeof *flow->rows);
    flow->routing = routing_name(fabric_options_router(call, &fabric).routing);
    fabric_format(&fabric, flow->fabric, sizeof flow->fabric);
    for (int i = 0; i < flow->n_rows; i++)
        flow->rows[i].plan = plans[i];
    rows_rank(call, setting, &fabric, flow);
    for (int i = 0; i < flow->n_rows; i++)
        plans[i] = flow->rows[i].plan;
    fabric_free(&fabric);
    return STATUS_OK;
}

void plan_flow_free(struct plan_flow *flow)
{
    free(flow->rows);
    *flow = (struct plan_flow){0};
}

/* ---- reports */

static const enum layout_dimension shown[] = {DIMENSION_TP, DIMENSION_CP, DIMENSION_PP,         DIMENSION_VPP,
                                              DIMENSION_DP, DIMENSION_EP, DIMENSION_MICRO_BATCH};

static void columns(const struct plan_flow *flow, struct table *table)
{
    table_column(table, "rank", NULL, ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        table_column(table, layout_dimensions[shown[i]].word, NULL, ALIGN_RIGHT);
    table_column(table, "empty fabric", "s", ALIGN_RIGHT);
    for (int p = 0; p < N_PLACEMENTS; p++)
        if (flow->placed[p])
            table_column(table, placement_name((enum placement)p), "s", ALIGN_RIGHT);
    table_column(table, "best", NULL, ALIGN_LEFT);
    table_column(table, "costs", "%", ALIGN_RIGHT);
    table_column(table, "MFU", "%", ALIGN_RIGHT);
    table_column(table, "worst link held", "ms", ALIGN_RIGHT);
}

static void row_write(const struct plan_flow *flow, int rank, struct table *table)
{
    const struct flow_row *row = &flow->rows[rank];
    const struct layout *l = &row->plan.plan.layout;

    table_cell(table, "%d", rank + 1);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        table_cell(table, "%d", dimension_number(l, shown[i]));
    table_cell(table, "%.4f", ranked_step_s(&row->plan));
    for (int p = 0; p < N_PLACEMENTS; p++) {
        if (!flow->placed[p])
            continue;
        table_tint(table, p == row->best ? TINT_GOOD : TINT_NONE);
        if (row->placements[p].simulated)
            table_cell(table, "%.4f", row->placements[p].step.step_time_s);
        else
            table_cell(table, "-");
    }
    if (row->best < 0) {
        for (int i = 0; i < 4; i++)
            table_cell(table, "-");
        return;
    }
    const struct flow_outcome *best = &row->placements[row->best];
    table_cell(table, "%s", placement_name((enum placement)row->best));
    table_cell(table, "%+.2f", 100 * (best->step.step_time_s / ranked_step_s(&row->plan) - 1));
    table_cell(table, "%.1f", 100 * best->step.mfu);
    table_cell(table, "%.1f", (double)best->contended * 1e-6);
}

void plan_flow_write(const struct plan_flow *flow, const struct invocation *call)
{
    struct table table = {0};

    if (flow->n_rows == 0)
        return;
    fprintf(call->out, "\non the fabric, routing %s: seconds of the step by placement of the ranks\n", flow->routing);
    columns(flow, &table);
    for (int i = 0; i < flow->n_rows; i++)
        row_write(flow, i, &table);
    table_write(&table, call);
    table_free(&table);
}

double plan_flow_step_s(const struct plan_flow *flow, int i)
{
    int best = i < flow->n_rows ? flow->rows[i].best : -1;

    return best >= 0 ? flow->rows[i].placements[best].step.step_time_s : 0;
}

void plan_flow_columns(const struct plan_flow *flow, struct table *table)
{
    if (flow->n_rows == 0)
        return;
    table_column(table, "flow step time", "s", ALIGN_RIGHT);
    table_column(table, "placement", NULL, ALIGN_LEFT);
}

void plan_flow_cells(const struct plan_flow *flow, int i, struct table *table)
{
    int best = i < flow->n_rows ? flow->rows[i].best : -1;

    if (flow->n_rows == 0)
        return;
    if (best >= 0)
        table_cell(table, "%.12g", flow->rows[i].placements[best].step.step_time_s);
    else
        table_cell(table, "%s", "");
    table_cell(table, "%s", best >= 0 ? placement_name((enum placement)best) : "");
}

void plan_flow_json(const struct plan_flow *flow, const struct setting *setting, json_t *result)
{
    json_t *rows = json_array();

    if (flow->n_rows == 0) {
        json_decref(rows);
        return;
    }
    for (int i = 0; i < flow->n_rows; i++) {
        const struct flow_row *row = &flow->rows[i];
        json_t *placements = json_object(), *object = json_object();
        for (int p = 0; p < N_PLACEMENTS; p++)
            if (row->placements[p].simulated)
                json_object_set_new(placements, placement_name((enum placement)p),
                                    json_pack("{s:f, s:f, s:f, s:i}", "step_time_s", row->placements[p].step.step_time_s,
                                              "mfu_pct", 100 * row->placements[p].step.mfu, "worst_link_contended_s",
                                              (double)row->placements[p].contended * 1e-9, "ranks_simulated",
                                              row->placements[p].step.actors));
        json_object_set_new(object, "layout", layout_json(&row->plan.plan.layout));
        json_object_set_new(object, "empty_fabric_s", json_real(ranked_step_s(&row->plan)));
        json_object_set_new(object, "best_placement",
                            row->best >= 0 ? json_string(placement_name((enum placement)row->best)) : json_null());
        json_object_set_new(object, "placements", placements);
        if (row->best >= 0) {
            const struct step_rates rates = step_rates_of(&row->plan.plan.layout, setting, plan_flow_step_s(flow, i));
            plan_rates_json(&rates, object);
        }
        json_array_append_new(rows, object);
    }
    json_object_set_new(result, "fabric", json_string(flow->fabric));
    json_object_set_new(result, "routing", json_string(flow->routing));
    json_object_set_new(result, "flow", rows);
}
