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

static bool has_best(const struct flow_row *row)
{
    return row->best >= 0;
}

static const struct flow_outcome *best_of(const struct flow_row *row)
{
    static const struct flow_outcome none;
    return has_best(row) ? &row->placements[row->best] : &none;
}

#define PLACEMENT_ROWS(ROW)                                                                                                      \
    ROW(flow_outcome, step_time_s, as_real(s->step.step_time_s), "s", JSON, "duration of a step")                                \
    ROW(flow_outcome, mfu_pct, as_real(100 * s->step.mfu), "%", JSON, "MFU, attention counted in full")                          \
    ROW(flow_outcome, worst_link_contended_s, as_real((double)s->contended * 1e-9), "s", JSON,                                   \
        "time that the busiest link is shared")                                                                                  \
    ROW(flow_outcome, ranks_simulated, as_count(s->step.actors), "", JSON, "ranks that the simulation has")
RESULT_ROWS(placement_rows, PLACEMENT_ROWS)

static json_t *placements_json(const struct flow_row *row)
{
    json_t *placements = json_object();
    for (int p = 0; p < N_PLACEMENTS; p++)
        if (row->placements[p].simulated)
            json_object_set_new(placements, placement_name((enum placement)p), rows_object(placement_rows, &row->placements[p]));
    return placements;
}

static struct value best_name(const struct flow_row *row)
{
    return known_if(has_best(row), as_text(has_best(row) ? placement_name((enum placement)row->best) : NULL));
}

static struct value if_best(const struct flow_row *row, double number)
{
    return known_if(has_best(row), as_real(number));
}

#define FLOW_ROWS(ROW)                                                                                                           \
    ROW(flow_row, layout, as_json(layout_json(&s->plan.plan.layout)), "", JSON, "dimensions of the layout")                      \
    ROW(flow_row, empty_fabric_s, as_real(ranked_step_s(&s->plan)), "s", JSON, "duration of a step on an empty fabric",          \
        .title = "empty fabric", .show = "%.4f")                                                                                 \
    ROW(flow_row, best_placement, best_name(s), "", JSON | CSV, "placement with the shortest step", .column = "placement",       \
        .title = "best", .show = "%s")                                                                                           \
    ROW(flow_row, flow_step_time_s, if_best(s, best_of(s)->step.step_time_s), "s", CSV, "duration of a step in it",              \
        TWELVE_DIGITS)                                                                                                           \
    ROW(flow_row, costs_pct, if_best(s, 100 * (best_of(s)->step.step_time_s / ranked_step_s(&s->plan) - 1)), "%", TEXT,          \
        "extra time compared with an empty fabric", .title = "costs", .show = "%+.2f")                                           \
    ROW(flow_row, mfu_pct, if_best(s, 100 * best_of(s)->step.mfu), "%", TEXT, "MFU in it", .title = "MFU", .show = "%.1f")       \
    ROW(flow_row, worst_link_ms, if_best(s, (double)best_of(s)->contended * 1e-6), "ms", TEXT,                                   \
        "time that its busiest link is shared", .title = "worst link held", .show = "%.1f")                                      \
    ROW(flow_row, placements, as_json(placements_json(s)), "", JSON, "results by placement")
RESULT_ROWS(flow_rows, FLOW_ROWS)

static const enum layout_dimension shown[] = {DIMENSION_TP, DIMENSION_CP, DIMENSION_PP,         DIMENSION_VPP,
                                              DIMENSION_DP, DIMENSION_EP, DIMENSION_MICRO_BATCH};

static const char *const of_empty[] = {"empty_fabric_s", NULL};
static const char *const of_best[] = {"best_placement", "costs_pct", "mfu_pct", "worst_link_ms", NULL};
static const char *const in_csv[] = {"flow_step_time_s", "best_placement", NULL};

static void columns(const struct plan_flow *flow, struct table *table)
{
    struct result_row picked[MAX_PICKED];
    table_column(table, "rank", NULL, ALIGN_RIGHT);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        table_column(table, layout_dimensions[shown[i]].word, NULL, ALIGN_RIGHT);
    rows_columns(rows_pick(flow_rows, of_empty, picked), NULL, table);
    for (int p = 0; p < N_PLACEMENTS; p++)
        if (flow->placed[p])
            table_column(table, placement_name((enum placement)p), "s", ALIGN_RIGHT);
    rows_columns(rows_pick(flow_rows, of_best, picked), NULL, table);
}

static void row_write(const struct plan_flow *flow, int rank, struct table *table)
{
    const struct flow_row *row = &flow->rows[rank];
    struct result_row picked[MAX_PICKED];

    table_cell(table, "%d", rank + 1);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        table_cell(table, "%d", dimension_number(&row->plan.plan.layout, shown[i]));
    rows_cells(rows_pick(flow_rows, of_empty, picked), row, table);
    for (int p = 0; p < N_PLACEMENTS; p++) {
        if (!flow->placed[p])
            continue;
        table_tint(table, p == row->best ? TINT_GOOD : TINT_NONE);
        if (row->placements[p].simulated)
            table_cell(table, "%.4f", row->placements[p].step.step_time_s);
        else
            table_cell(table, "-");
    }
    rows_cells(rows_pick(flow_rows, of_best, picked), row, table);
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
    return i < flow->n_rows ? best_of(&flow->rows[i])->step.step_time_s : 0;
}

void plan_flow_csv_heading(const struct plan_flow *flow, FILE *out)
{
    struct result_row picked[MAX_PICKED];
    if (flow->n_rows > 0)
        rows_csv_heading(rows_pick(flow_rows, in_csv, picked), NULL, false, out);
}

void plan_flow_csv_cells(const struct plan_flow *flow, int i, FILE *out)
{
    struct result_row picked[MAX_PICKED];
    if (flow->n_rows > 0)
        rows_csv_cells(rows_pick(flow_rows, in_csv, picked), i < flow->n_rows ? &flow->rows[i] : NULL, false, out);
}

json_t *plan_flow_json(const struct plan_flow *flow, const struct setting *setting)
{
    json_t *rows = flow->n_rows > 0 ? json_array() : NULL;
    for (int i = 0; i < flow->n_rows; i++) {
        json_t *object = rows_object(flow_rows, &flow->rows[i]);
        const struct step_rates rates = step_rates_of(&flow->rows[i].plan.plan.layout, setting, plan_flow_step_s(flow, i));
        if (has_best(&flow->rows[i]))
            rows_json(rate_rows, &rates, object);
        json_array_append_new(rows, object);
    }
    return rows;
}
