/* What `msim plan` found: a table, JSON or CSV. */
#include "cli/plan/plan_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options/next_command.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "model/base/units.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/host_memory.h"
#include "traces/table/csv.h"

static struct shown_plan plan_at(const struct plan_outcome *outcome, int i)
{
    struct shown_plan plan = shown_plan_of(&outcome->found.plans[i], outcome->setting);
    plan.rank = i + 1;
    return plan;
}

/* --- JSON and CSV --- */

static json_t *plans_json(const struct plan_outcome *outcome)
{
    json_t *plans = json_array();
    for (int i = 0; i < outcome->n_shown; i++)
        json_array_append_new(plans, plan_json(&outcome->found.plans[i], outcome->setting));
    return plans;
}

static json_t *rejected_json(const struct search_counts *counts)
{
    json_t *json = json_object();
    for (int i = 0; i < N_LAYOUT_REASONS; i++)
        if (counts->rejected[i] > 0)
            json_object_set_new(json, layout_reason_key((enum layout_reason)i), json_integer((json_int_t)counts->rejected[i]));
    json_object_set_new(json, "memory", json_integer((json_int_t)(counts->legal - counts->fit)));
    return json;
}

static struct value of_counts(uint64_t count)
{
    return as_count((int64_t)count);
}

static const struct search_counts *counts_of(const struct plan_outcome *outcome)
{
    return &outcome->found.search.counts;
}

/* NULL: there are none. */
static json_t *fuller_json(const struct plan_outcome *outcome)
{
    json_t *plans = outcome->found.n_fuller > 0 ? json_array() : NULL;
    for (int i = 0; i < outcome->found.n_fuller; i++)
        json_array_append_new(plans, plan_json(&outcome->found.fuller[i], outcome->setting));
    return plans;
}

#define SEARCH_ROWS(ROW)                                                                                                         \
    ROW(plan_outcome, layouts_in_space, of_counts(counts_of(s)->in_space), "", JSON, "layouts of the whole space")               \
    ROW(plan_outcome, layouts_ruled_out, of_counts(counts_of(s)->ruled_out), "", JSON, "those ruled out by tp alone")            \
    ROW(plan_outcome, layouts_examined, of_counts(counts_of(s)->examined), "", JSON, "those examined")                           \
    ROW(plan_outcome, layouts_legal, of_counts(counts_of(s)->legal), "", JSON, "those that are legal")                           \
    ROW(plan_outcome, layouts_fit, of_counts(counts_of(s)->fit), "", JSON, "those that fit")                                     \
    ROW(plan_outcome, capacity_gib, as_real(footprint_capacity(s->setting->cluster) / GIB), "GiB", JSON, "memory of a GPU")      \
    ROW(plan_outcome, limit_gib, as_real(s->found.search.limit_bytes / GIB), "GiB", JSON, "the same less the memory margin")     \
    ROW(plan_outcome, plans, as_json(plans_json(s)), "", JSON, "best plans, fastest first")                                      \
    ROW(plan_outcome, safer, as_json(low_oom_plan_json(&s->safer, s->setting)), "", JSON,                                        \
        "fastest plan that rarely runs out of memory, if the first one often does")                                              \
    ROW(plan_outcome, nearly_full, as_json(fuller_json(s)), "", JSON, "plans that are faster than the first and nearly full")    \
    ROW(plan_outcome, fabric, present_if(s->flow.n_rows > 0, as_text(s->flow.fabric)), "", JSON, "fabric of --network flow")     \
    ROW(plan_outcome, routing, present_if(s->flow.n_rows > 0, as_text(s->flow.routing)), "", JSON, "routing on it")              \
    ROW(plan_outcome, flow, as_json(plan_flow_json(&s->flow, s->setting)), "", JSON,                                             \
        "best plans on the fabric, in order of rank")                                                                            \
    ROW(plan_outcome, rejected, as_json(rejected_json(counts_of(s))), "", JSON, "rejected layouts by reason")                    \
    ROW(plan_outcome, explanation, as_json(s->explained ? explanation_json(&s->explanation, s->setting) : NULL), "", JSON,       \
        "the plan of --explain")                                                                                                 \
    ROW(plan_outcome, search_seconds, present_if(s->timing, as_real(s->found.search_s)), "s", JSON,                              \
        "duration of the search (--timing)")                                                                                     \
    ROW(plan_outcome, seconds, present_if(s->timing, as_real(s->total_s)), "s", JSON, "duration of everything (--timing)")
RESULT_ROWS(search_rows, SEARCH_ROWS)

static enum status write_json(const struct plan_outcome *outcome, struct invocation *call)
{
    char *config = experiment_to_json(outcome->experiment);
    json_t *json = result_create(call, config);
    free(config);
    trained_json(outcome->setting, outcome->setting->job->features, json);
    if (job_masks_documents(outcome->setting->job))
        json_object_set_new(json, "documents", packed_json(outcome->setting, outcome->setting->job->features));
    rows_json(search_rows, outcome, json);
    return result_write(call, json);
}

static void write_csv(const struct plan_outcome *outcome, FILE *out)
{
    static const char *const budget[] = {"days", "gpu_hours", NULL};
    struct result_row budget_rows[MAX_PICKED];
    rows_pick(plan_rows, budget, budget_rows);
    csv_write_cell(out, true, "rank");
    plan_csv_heading(false, out);
    plan_flow_csv_heading(&outcome->flow, out);
    const struct shown_plan first = plan_at(outcome, 0);
    rows_csv_heading(budget_rows, &first, false, out);
    fputc('\n', out);
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct shown_plan plan = plan_at(outcome, i);
        csv_write_integer(out, true, plan.rank);
        plan_csv_cells(&plan, false, out);
        plan_flow_csv_cells(&outcome->flow, i, out);
        rows_csv_cells(budget_rows, &plan, false, out);
        fputc('\n', out);
    }
}

/* --- text --- */

static void write_heading(const struct plan_outcome *outcome, FILE *out)
{
    const struct setting *s = outcome->setting;
    const struct search_counts *counts = &outcome->found.search.counts;
    char examined[32], legal[32], fit[32], ruled_out[32], more[64] = "";
    if (counts->ruled_out > 0)
        snprintf(more, sizeof more, "; %s more ruled out by tp",
                 grouped((int64_t)counts->ruled_out, ruled_out, sizeof ruled_out));
    plan_job_write(s, out);
    note_write(out, 2, "%s layout%s examined in %.2f s: %s legal, %s fit in %.1f GiB (%.4g %% memory margin)%s\n",
               grouped((int64_t)counts->examined, examined, sizeof examined), plural((int64_t)counts->examined),
               outcome->found.search_s, grouped((int64_t)counts->legal, legal, sizeof legal),
               grouped((int64_t)counts->fit, fit, sizeof fit), outcome->found.search.limit_bytes / GIB,
               100 * s->job->memory_margin, more);
}

/* What some of the plans shown have: columns and notes. */
struct plan_traits {
    bool experts;
    bool exchanges;    /* of context parallelism other than a ring */
    bool offloads;     /* to the memory of the host */
    bool chooses_loss; /* the job leaves the choice */
    bool rates_differ; /* by the convention of MFU */
    bool crosses;      /* tensor parallelism, NVLink domains */
    bool uneven;       /* plan_is_uneven */
    bool unsimulated;
    bool overlaps_differ;
};

static struct plan_traits traits_of(const struct plan_outcome *outcome)
{
    const struct setting *setting = outcome->setting;
    struct plan_traits some = {.experts = setting->model->moe.experts > 0,
                               .chooses_loss = setting->job->features & FEATURES_LINEAR_LOSS};
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct ranked_plan *ranked = &outcome->found.plans[i];
        const struct layout *layout = &ranked->plan.layout;
        const struct step_rates rates = shown_plan_of(ranked, setting).rates;
        some.exchanges |= layout->cp_comm != CP_RING;
        some.offloads |= !offload_is_none(&layout->offload);
        some.rates_differ |= plan_rates_differ(&rates);
        some.crosses |= layout->tp > setting->cluster->nvlink_domain;
        some.uneven |= plan_is_uneven(layout, setting);
        some.unsimulated |= !ranked->simulated;
        some.overlaps_differ |= layout->features != outcome->found.plans[0].plan.layout.features;
    }
    return some;
}

static const struct result_row *plan_columns(const struct plan_traits *some, struct result_row picked[MAX_PICKED])
{
    const char *const keys[] = {"rank",
                                "layout",
                                "tp",
                                "cp",
                                "pp",
                                "vpp",
                                "dp",
                                some->experts ? "ep" : "",
                                "mb",
                                "zero",
                                "sp",
                                some->exchanges ? "cp_comm" : "",
                                "recompute",
                                some->offloads ? "offload" : "",
                                "schedule",
                                "overlap",
                                some->chooses_loss ? "loss" : "",
                                "step_time_s",
                                "mfu_pct",
                                some->rates_differ ? "mfu_causal_pct" : "",
                                "memory_gib",
                                some->offloads ? "host_memory_gib" : "",
                                "memory_pct",
                                "out_of_memory_pct",
                                "exposed_pct",
                                "bubble_pct",
                                "closed_form_s",
                                "closed_form_off_pct",
                                NULL};
    rows_pick(plan_rows, keys, picked);
    for (struct result_row *row = picked; row->key && !some->overlaps_differ; row++)
        row->view = strcmp(row->key, "overlap") == 0 ? VIEW_ALL : row->view;
    return picked;
}

static void write_plans(const struct plan_outcome *outcome, const struct plan_traits *some, const struct invocation *call)
{
    struct table table = {.all = option_choice(call, "columns") > 0};
    struct result_row picked[MAX_PICKED];
    rows_columns(plan_columns(some, picked), NULL, &table);
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct shown_plan plan = plan_at(outcome, i);
        rows_cells(picked, &plan, &table);
    }
    table_write(&table, call);
    if (some->unsimulated)
        fprintf(call->out, table.all ? "Rows with - under 'off' were not simulated: their times are those of the closed form.\n"
                                     : "Only the first plans were simulated; the other times are those of the closed form.\n");
    if (some->crosses)
        fprintf(call->out, "* tensor parallelism beyond the NVLink domain of %d GPUs\n",
                outcome->setting->cluster->nvlink_domain);
    if (some->uneven)
        note_write(call->out, 2, UNEVEN_NOTE);
    table_free(&table);
}

/* Plans that are faster than the first one, and often run out of memory. */
static void write_fuller(const struct plan_outcome *outcome, const struct invocation *call)
{
    static const char *const keys[] = {"layout", "step_time_s", "mfu_pct", "memory_gib", "memory_pct", "out_of_memory_pct", NULL};
    struct result_row picked[MAX_PICKED];
    struct table table = {0};
    if (outcome->found.n_fuller == 0)
        return;
    fputs("\nFaster, but nearly full:\n", call->out);
    rows_columns(rows_pick(plan_rows, keys, picked), NULL, &table);
    for (int i = 0; i < outcome->found.n_fuller; i++) {
        const struct shown_plan plan = shown_plan_of(&outcome->found.fuller[i], outcome->setting);
        rows_cells(picked, &plan, &table);
    }
    table_write(&table, call);
    table_free(&table);
    fprintf(call->out, "--memory-margin 0 ranks by time alone.\n\n");
}

/* How long runs of the first plan's kind took for such predictions. */
static void write_expectation(const struct plan_outcome *outcome, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    const struct layout *layout = &outcome->found.plans[0].plan.layout;
    const struct track_record *record = track_record_of(run_kind_of(layout, outcome->setting->model));
    char runs[EXPECTATION_TEXT];
    note_write(out, 2, "Expect %.2f to %.2f times the predicted step: %s.", record->low, record->high,
               expectation_runs_text(layout, outcome->setting, runs, sizeof runs));
}

/* What the column MFU counts, and the first plan in the units of others. */
static void write_rates(const struct plan_outcome *outcome, const struct plan_traits *some, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    double placed_s = plan_flow_step_s(&outcome->flow, 0);
    const struct step_rates rates = placed_s > 0 ? step_rates_of(&outcome->found.plans[0].plan.layout, outcome->setting, placed_s)
                                                 : plan_at(outcome, 0).rates;
    fprintf(out,
            "MFU counts attention in full%s.\nPlan 1%s: ", some->rates_differ ? "; 'causal' counts only the causal half" : "",
            placed_s > 0 ? " on the fabric, in its best placement" : "");
    plan_rates_write(&rates, out);
    fputs(".\n", out);
    if (rates.days > 0) {
        plan_budget_write(&rates, outcome->setting->job->tokens, out);
        fputs(" without failures (msim run adds them).\n", out);
    }
    if (outcome->setting->job->load.dropped > 0)
        note_write(out, 2, DROPPED_NOTE);
    if (job_masks_documents(outcome->setting->job))
        note_write(out, 2, PACKED_MFU_NOTE);
}

/* What the column OOM means, and how to ask for room where the first plan has little. */
static void write_memory_expectation(const struct plan_outcome *outcome, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    const struct ranked_plan *first = &outcome->found.plans[0];
    char runs[EXPECTATION_TEXT];
    note_write(out, 2, "OOM: share of runs that fill as much memory and ran out of it (%s).",
               expectation_outcomes_text(&first->plan.layout, outcome->setting, runs, sizeof runs));
    low_oom_plan_write(&outcome->safer, outcome->found.plans, outcome->n_shown, out);
    if (!outcome->safer.wanted && memory_record_share(plan_use(first, outcome->setting)) > SHARE_WITH_MARGIN)
        fprintf(out, "--memory-margin %.0f%% keeps only plans for which it is at most %.0f %%.\n", 100 * memory_record_margin(),
                100 * SHARE_WITH_MARGIN);
}

/* Where ranks sit matters on such a fabric, and the table takes the best for granted. */
static void write_fabric(const struct plan_outcome *outcome, const struct invocation *call)
{
    char narrow[OVERSUBSCRIBED_TEXT];
    if (outcome->n_shown == 0 || option_choice(call, "network") > 0)
        return;
    if (oversubscribed_text(&outcome->found.plans[0].plan.layout, outcome->setting->cluster, narrow, sizeof narrow) > 0)
        note_write(call->out, 2, "Network: %s.", narrow);
}

/* What the column "host" means. */
static void write_host_memory(const struct plan_outcome *outcome, FILE *out)
{
    double capacity = host_capacity(outcome->setting->cluster, &outcome->found.plans[0].plan.layout);
    if (capacity > 0)
        fprintf(out, "host: host memory per rank, of %.1f GiB available.\n", capacity / GIB);
    else
        fputs("host: host memory per rank; its size is unknown (host_memory).\n", out);
}

static void write_rejected(const struct plan_outcome *outcome, const struct invocation *call)
{
    const struct search_counts *counts = &outcome->found.search.counts;
    struct table table = {0};
    char number[32];
    table_column(&table, "rejected", NULL, ALIGN_RIGHT);
    table_column(&table, "reason", NULL, ALIGN_LEFT);
    for (int i = 0; i < N_LAYOUT_REASONS; i++)
        if (counts->rejected[i] > 0) {
            table_cell(&table, "%s", grouped((int64_t)counts->rejected[i], number, sizeof number));
            table_cell(&table, "%s", layout_reason_text((enum layout_reason)i));
        }
    for (int i = 0; i < N_OVERFLOW_CLASSES; i++)
        if (counts->over_memory[i] > 0) {
            table_cell(&table, "%s", grouped((int64_t)counts->over_memory[i], number, sizeof number));
            table_cell(&table, "memory: %s", overflow_class_text((enum overflow_class)i));
        }
    if (table.n_cells > 0) {
        fputc('\n', call->out);
        table_write(&table, call);
    }
    table_free(&table);
}

/* The first plan, simulated with more detail. Its features are part of it. */
static void write_next(const struct plan_outcome *outcome, const struct invocation *call)
{
    if (outcome->n_shown > 0)
        plan_step_write(&outcome->found.plans[0].plan.layout, outcome->setting->job, "", call);
}

static void write_text(const struct plan_outcome *outcome, const struct invocation *call)
{
    const struct plan_traits some = traits_of(outcome);
    write_heading(outcome, call->out);
    write_plans(outcome, &some, call);
    write_fuller(outcome, call);
    write_rates(outcome, &some, call->out);
    write_expectation(outcome, call->out);
    write_memory_expectation(outcome, call->out);
    if (some.offloads)
        write_host_memory(outcome, call->out);
    write_fabric(outcome, call);
    plan_flow_write(&outcome->flow, call);
    write_rejected(outcome, call);
    write_next(outcome, call);
}

enum status plan_report(const struct plan_outcome *outcome, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return write_json(outcome, call);
    if (outcome->explained)
        explanation_write(&outcome->explanation, outcome->found.plans, outcome->found.search.n_plans, outcome->setting, call);
    else if (call->format == FORMAT_CSV)
        write_csv(outcome, call->out);
    else
        write_text(outcome, call);
    return STATUS_OK;
}
