#include "cli/plan_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/expectation.h"
#include "cli/layout_json.h"
#include "cli/oversubscribed.h"
#include "cli/packed.h"
#include "cli/result.h"
#include "cli/routing.h"
#include "cli/table.h"
#include "cli/trained.h"
#include "model/cost/footprint.h"
#include "model/cost/host_memory.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* --- JSON --- */

/* Of the memory of a GPU. */
double plan_use(const struct ranked_plan *ranked, const struct setting *setting)
{
    return ranked->plan.estimate.memory_bytes / footprint_capacity(setting->cluster);
}

double plan_host_bytes(const struct ranked_plan *ranked, const struct setting *setting)
{
    struct footprint footprint;
    footprint_peak(&ranked->plan.layout, setting, &footprint, NULL);
    return footprint.host;
}

struct plan_rates ranked_rates(const struct ranked_plan *ranked, const struct setting *setting)
{
    return plan_rates_of(&ranked->plan.layout, setting, ranked_step_s(ranked));
}

json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting)
{
    const struct plan *plan = &ranked->plan;
    const struct plan_rates rates = ranked_rates(ranked, setting);
    double step_s = ranked_step_s(ranked);
    json_t *json = json_object();
    json_object_set_new(json, "layout", layout_json(&plan->layout));
    json_object_set_new(json, "features", features_json(plan->layout.features));
    json_object_set_new(json, "step_time_s", json_real(step_s));
    json_object_set_new(json, "likely", expectation_json(&plan->layout, setting, step_s));
    json_object_set_new(json, "mfu_pct", json_real(100 * ranked_mfu(ranked, setting)));
    plan_rates_json(&rates, json);
    json_object_set_new(json, "memory_gib", json_real(plan->estimate.memory_bytes / GIB));
    json_object_set_new(json, "memory_pct", json_real(100 * plan_use(ranked, setting)));
    json_object_set_new(json, "out_of_memory", expectation_memory_json(&plan->layout, setting, plan_use(ranked, setting)));
    if (!offload_is_none(&plan->layout.offload))
        json_object_set_new(json, "host_memory_gib", json_real(plan_host_bytes(ranked, setting) / GIB));
    json_object_set_new(json, "simulated", json_boolean(ranked->simulated));
    json_object_set_new(json, "closed_form_s", json_real(plan->estimate.step_s));
    json_object_set_new(json, "exposed_comm_s", json_real(ranked_exposed_s(ranked)));
    json_object_set_new(json, "breakdown", cost_by_class_json(ranked_breakdown(ranked)));
    return json;
}

static json_t *count_json(uint64_t count)
{
    return json_integer((json_int_t)count);
}

static json_t *rejected_json(const struct search_counts *counts)
{
    json_t *json = json_object();
    for (int i = 0; i < N_LAYOUT_REASONS; i++)
        if (counts->rejected[i] > 0)
            json_object_set_new(json, layout_reason_key((enum layout_reason)i), count_json(counts->rejected[i]));
    json_object_set_new(json, "memory", count_json(counts->legal - counts->fit));
    return json;
}

static enum status report_json(const struct plan_outcome *outcome, struct invocation *call)
{
    const struct search_counts *counts = &outcome->found.search.counts;
    char *config = experiment_to_json(outcome->experiment);
    json_t *json = result_create(call, config);
    free(config);
    trained_json(outcome->setting, outcome->setting->job->features, json);
    packed_json(outcome->setting, outcome->setting->job->features, json);
    json_object_set_new(json, "layouts_in_space", count_json(counts->in_space));
    json_object_set_new(json, "layouts_ruled_out", count_json(counts->ruled_out));
    json_object_set_new(json, "layouts_examined", count_json(counts->examined));
    json_object_set_new(json, "layouts_legal", count_json(counts->legal));
    json_object_set_new(json, "layouts_fit", count_json(counts->fit));
    json_object_set_new(json, "capacity_gib", json_real(footprint_capacity(outcome->setting->cluster) / GIB));
    json_object_set_new(json, "limit_gib", json_real(outcome->found.search.limit_bytes / GIB));
    json_t *plans = json_array();
    for (int i = 0; i < outcome->n_shown; i++)
        json_array_append_new(plans, plan_json(&outcome->found.plans[i], outcome->setting));
    json_object_set_new(json, "plans", plans);
    if (outcome->safer.wanted)
        json_object_set_new(json, "safer", safer_plan_json(&outcome->safer, outcome->setting));
    plan_flow_json(&outcome->flow, outcome->setting, json);
    json_object_set_new(json, "rejected", rejected_json(counts));
    if (outcome->explained)
        json_object_set_new(json, "explanation", explanation_json(&outcome->explanation, outcome->setting));
    json_object_set_new(json, "search_seconds", json_real(outcome->found.search_s));
    json_object_set_new(json, "seconds", json_real(outcome->total_s));
    return result_write(call, json);
}

/* --- CSV --- */

void plan_columns_csv(struct table *table)
{
    static const struct {
        const char *title, *unit;
    } columns[] = {{"tp", NULL},
                   {"pp", NULL},
                   {"vpp", NULL},
                   {"cp", NULL},
                   {"dp", NULL},
                   {"ep", NULL},
                   {"zero", NULL},
                   {"micro batch", NULL},
                   {"recompute", NULL},
                   {"schedule", NULL},
                   {"sequence parallel", NULL},
                   {"features", NULL},
                   {"step time", "s"},
                   {"mfu", "%"},
                   {"memory", "gib"},
                   {"memory", "%"},
                   {"exposed comm", "s"},
                   {"bubble", "s"},
                   {"closed form", "s"},
                   {"simulated", NULL},
                   {"out of memory", "%"},
                   {"offload", NULL},
                   {"shard", NULL},
                   {"host memory", "gib"},
                   {"cp comm", NULL}};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(table, columns[i].title, columns[i].unit, ALIGN_LEFT);
    plan_rates_columns(table);
}

void plan_cells_csv(struct table *table, const struct ranked_plan *ranked, const struct plan_rates *rates, double use,
                    double host_bytes)
{
    const struct layout *l = &ranked->plan.layout;
    const int numbers[] = {l->tp, l->pp, l->vpp, l->cp, l->dp, l->ep, l->zero, l->micro_batch};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        table_cell(table, "%d", numbers[i]);
    char recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], features[FEATURES_TEXT], comm[CP_COMM_TEXT];
    table_cell(table, "%s", recompute_format(l->recompute, recompute, sizeof recompute));
    table_cell(table, "%s", schedule_name(l->schedule));
    table_cell(table, "%d", l->sequence_parallel);
    table_cell(table, "%s", features_text(l->features, " ", features, sizeof features));
    const double values[] = {ranked_step_s(ranked),
                             100 * rates->mfu,
                             ranked->plan.estimate.memory_bytes / GIB,
                             100 * use,
                             ranked_exposed_s(ranked),
                             ranked_breakdown(ranked)->s[CLASS_BUBBLE],
                             ranked->plan.estimate.step_s};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        table_cell(table, "%.12g", values[i]);
    table_cell(table, "%d", ranked->simulated);
    table_cell(table, "%.12g", 100 * memory_record_share(use));
    table_cell(table, "%s", offload_format(&l->offload, offload, sizeof offload));
    table_cell(table, "%d", l->shard);
    table_cell(table, "%.12g", host_bytes / GIB);
    table_cell(table, "%s", cp_comm_format(l->cp_comm, comm, sizeof comm));
    plan_rates_cells(rates, table);
}

static void budget_cells(const struct plan_rates *rates, struct table *table)
{
    table_cell(table, "%.12g", rates->days);
    table_cell(table, "%.12g", rates->gpu_hours);
}

static void report_csv(const struct plan_outcome *outcome, const struct invocation *call)
{
    struct table table = {0};
    table_column(&table, "rank", NULL, ALIGN_LEFT);
    plan_columns_csv(&table);
    plan_flow_columns(&outcome->flow, &table);
    bool budgeted = outcome->setting->job->tokens > 0;
    if (budgeted) {
        table_column(&table, "days", NULL, ALIGN_LEFT);
        table_column(&table, "gpu_hours", NULL, ALIGN_LEFT);
    }
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct ranked_plan *plan = &outcome->found.plans[i];
        const struct plan_rates rates = ranked_rates(plan, outcome->setting);
        table_cell(&table, "%d", i + 1);
        plan_cells_csv(&table, plan, &rates, plan_use(plan, outcome->setting), plan_host_bytes(plan, outcome->setting));
        plan_flow_cells(&outcome->flow, i, &table);
        if (budgeted)
            budget_cells(&rates, &table);
    }
    table_write(&table, call);
    table_free(&table);
}

/* --- text --- */

void plan_features_write(const struct job *job, FILE *out)
{
    char text[FEATURES_TEXT];
    fprintf(out, "features allowed: %s\n", job->features ? features_text(job->features, ", ", text, sizeof text) : "none");
}

void plan_job_write(const struct setting *s, FILE *out)
{
    char gpus[32], batch[32];
    fprintf(out, "%s on %s x %s (%s), batch %s x %lld tokens%s, %s\n", s->model->name,
            grouped((int64_t)s->gpus, gpus, sizeof gpus), s->cluster->gpu.name, s->cluster->name,
            grouped((int64_t)s->job->global_batch, batch, sizeof batch), (long long)s->job->seq_len,
            s->job->global_batch == s->gpus && s->gpus > 1 ? " (one sequence per GPU)" : "", precision_name(s->job->precision));
    plan_features_write(s->job, out);
    trained_write(s, s->job->features, out);
    routing_write(s, out);
    packed_write(s, s->job->features, out);
}

static void write_heading(const struct plan_outcome *outcome, FILE *out)
{
    const struct setting *s = outcome->setting;
    const struct search_counts *counts = &outcome->found.search.counts;
    char examined[32], legal[32], fit[32], ruled_out[32];
    plan_job_write(s, out);
    fprintf(out, "%s layout%s examined in %.2f s: %s legal, %s fit in %.1f GiB",
            grouped((int64_t)counts->examined, examined, sizeof examined), plural((int64_t)counts->examined),
            outcome->found.search_s, grouped((int64_t)counts->legal, legal, sizeof legal),
            grouped((int64_t)counts->fit, fit, sizeof fit), outcome->found.search.limit_bytes / GIB);
    if (s->job->memory_margin > 0)
        fprintf(out, " of %.1f", footprint_capacity(s->cluster) / GIB);
    if (counts->ruled_out > 0)
        fprintf(out, "; %s more ruled out by tp", grouped((int64_t)counts->ruled_out, ruled_out, sizeof ruled_out));
    fputs("\n\n", out);
}

/* Which of the three overlaps are on: "tp pp dp". */
static const char *overlap_text(feature_set features, char *buffer, size_t size)
{
    static const struct {
        feature_set any;
        const char *text;
    } kinds[] = {{FEATURE_BIT(TP_OVERLAP), "tp"},
                 {FEATURE_BIT(ASYNC_TP), "async-tp"},
                 {FEATURE_BIT(PP_OVERLAP), "pp"},
                 {FEATURE_BIT(DP_OVERLAP), "dp"}};
    int used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (features & kinds[i].any)
            used += snprintf(buffer + used, size - (size_t)used, "%s%s", used > 0 ? "+" : "", kinds[i].text);
    return used > 0 ? buffer : "-";
}

/* Of a job that leaves the choice. */
static bool chooses_loss(const struct plan_outcome *outcome)
{
    return outcome->setting->job->features & FEATURES_LINEAR_LOSS;
}

static const char *loss_text(feature_set features)
{
    return features & FEATURE_BIT(CUT_LOSS)            ? "cut"
           : features & FEATURE_BIT(FUSED_LINEAR_LOSS) ? "linear"
           : features & FEATURE_BIT(FUSED_LOSS)        ? "fused"
           : features & FEATURE_BIT(EAGER_LOSS)        ? "eager"
                                                       : "plain";
}

/* Does the convention of MFU make a difference to a plan shown? */
static bool any_rates_differ(const struct plan_outcome *outcome)
{
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct plan_rates rates = ranked_rates(&outcome->found.plans[i], outcome->setting);
        if (plan_rates_differ(&rates))
            return true;
    }
    return false;
}

static void plan_columns(struct table *table, bool experts, bool exchanging, bool offloading, bool losing, bool differing)
{
    static const char *const numbers[] = {"rank", "tp", "cp", "pp", "vpp", "dp", "ep", "mb", "zero", "sp"};
    static const struct {
        const char *title, *unit;
    } measures[] = {{"step", "s"},    {"MFU", "%"},    {"memory", "GiB"},    {"used", "%"}, {"OOM", "%"},
                    {"exposed", "%"}, {"bubble", "%"}, {"closed form", "s"}, {"off", "%"}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (experts || strcmp(numbers[i], "ep") != 0)
            table_column(table, numbers[i], NULL, ALIGN_RIGHT);
    if (exchanging)
        table_column(table, "cp comm", NULL, ALIGN_LEFT);
    table_column(table, "recompute", NULL, ALIGN_LEFT);
    if (offloading)
        table_column(table, "offload", NULL, ALIGN_LEFT);
    table_column(table, "schedule", NULL, ALIGN_LEFT);
    table_column(table, "overlap", NULL, ALIGN_LEFT);
    if (losing)
        table_column(table, "loss", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        table_column(table, measures[i].title, measures[i].unit, ALIGN_RIGHT);
        if (differing && strcmp(measures[i].title, "MFU") == 0)
            table_column(table, "causal", "%", ALIGN_RIGHT);
        if (offloading && strcmp(measures[i].title, "memory") == 0)
            table_column(table, "host", "GiB", ALIGN_RIGHT);
    }
}

bool plan_is_uneven(const struct layout *layout, const struct setting *setting)
{
    return layout->pp > 1 && !layers_divide(setting->model, layout_virtual_stages(layout));
}

/* Does one of the plans shown? */
static bool any_offloads(const struct plan_outcome *outcome)
{
    for (int i = 0; i < outcome->n_shown; i++)
        if (!offload_is_none(&outcome->found.plans[i].plan.layout.offload))
            return true;
    return false;
}

/* Does context parallelism of one exchange otherwise than around a ring? */
static bool any_exchanges_otherwise(const struct plan_outcome *outcome)
{
    for (int i = 0; i < outcome->n_shown; i++)
        if (outcome->found.plans[i].plan.layout.cp_comm != CP_RING)
            return true;
    return false;
}

/* The ZeRO stage, and behind it among how many of the replicas: "3", "3/8". */
static void sharding_cell(struct table *table, const struct layout *l)
{
    if (l->shard)
        table_cell(table, "%d/%d", l->zero, l->shard);
    else
        table_cell(table, "%d", l->zero);
}

static void plan_row(struct table *table, const struct ranked_plan *ranked, int rank, const struct plan_outcome *outcome)
{
    const struct layout *l = &ranked->plan.layout;
    const struct setting *setting = outcome->setting;
    double step_s = ranked_step_s(ranked), closed_s = ranked->plan.estimate.step_s;
    double use = plan_use(ranked, setting), share = memory_record_share(use);
    char overlap[48], recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT];
    table_cell(table, "%d", rank);
    table_cell(table, "%d%s", l->tp, l->tp > setting->cluster->nvlink_domain ? "*" : "");
    const int numbers[] = {l->cp, l->pp, l->vpp, l->dp, l->ep, l->micro_batch};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (setting->model->moe.experts > 0 || i != 4)
            table_cell(table, "%d%s", numbers[i], i == 2 && plan_is_uneven(l, setting) ? "~" : "");
    sharding_cell(table, l);
    table_cell(table, "%d", l->sequence_parallel);
    if (any_exchanges_otherwise(outcome))
        table_cell(table, "%s", l->cp > 1 ? cp_comm_format(l->cp_comm, comm, sizeof comm) : "-");
    table_cell(table, "%s", recompute_brief(l->recompute, recompute, sizeof recompute));
    if (any_offloads(outcome))
        table_cell(table, "%s", offload_format(&l->offload, offload, sizeof offload));
    table_cell(table, "%s", schedule_name(l->schedule));
    table_cell(table, "%s", overlap_text(l->features, overlap, sizeof overlap));
    if (chooses_loss(outcome))
        table_cell(table, "%s", loss_text(l->features));
    table_tint(table, rank == 1 ? TINT_GOOD : TINT_NONE);
    table_cell(table, step_s < 1 ? "%.4f" : "%.3f", step_s);
    table_cell(table, "%.1f", 100 * ranked_mfu(ranked, setting));
    if (outcome->rates_differ)
        table_cell(table, "%.1f", 100 * ranked_rates(ranked, setting).mfu_causal);
    table_cell(table, "%.1f", ranked->plan.estimate.memory_bytes / GIB);
    if (any_offloads(outcome))
        table_cell(table, "%.1f", plan_host_bytes(ranked, setting) / GIB);
    table_cell(table, "%.0f", 100 * use);
    table_tint(table, share > SHARE_WITH_MARGIN ? TINT_WARN : TINT_NONE);
    table_cell(table, "%.0f", 100 * share);
    table_cell(table, "%.1f", 100 * ranked_exposed_s(ranked) / step_s);
    table_cell(table, "%.1f", 100 * ranked_breakdown(ranked)->s[CLASS_BUBBLE] / step_s);
    table_cell(table, closed_s < 1 ? "%.4f" : "%.3f", closed_s);
    if (ranked->simulated)
        table_cell(table, "%+.1f", 100 * (closed_s / step_s - 1));
    else
        table_cell(table, "-");
}

static void write_plans(const struct plan_outcome *outcome, const struct invocation *call)
{
    struct table table = {0};
    bool across = false, uneven = false;
    int n_simulated = 0;
    plan_columns(&table, outcome->setting->model->moe.experts > 0, any_exchanges_otherwise(outcome), any_offloads(outcome),
                 chooses_loss(outcome), outcome->rates_differ);
    for (int i = 0; i < outcome->n_shown; i++) {
        plan_row(&table, &outcome->found.plans[i], i + 1, outcome);
        across |= outcome->found.plans[i].plan.layout.tp > outcome->setting->cluster->nvlink_domain;
        uneven |= plan_is_uneven(&outcome->found.plans[i].plan.layout, outcome->setting);
        n_simulated += outcome->found.plans[i].simulated;
    }
    table_write(&table, call);
    table_free(&table);
    if (n_simulated < outcome->n_shown)
        fprintf(call->out, "Rows without a value under 'off' were not simulated; their times are the closed form's.\n");
    if (across)
        fprintf(call->out, "* tensor parallelism beyond the NVLink domain of %d GPUs\n",
                outcome->setting->cluster->nvlink_domain);
    if (uneven)
        fputs(UNEVEN_NOTE, call->out);
}

/* How long runs of the first plan's kind took for such predictions. */
static void write_expectation(const struct plan_outcome *outcome, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    const struct layout *layout = &outcome->found.plans[0].plan.layout;
    const struct track_record *record = track_record_of(run_kind_of(layout, outcome->setting->model));
    fprintf(out, "Expect %.2f to %.2f times the predicted step, as ", record->low, record->high);
    expectation_write_runs(layout, outcome->setting, out);
    fputs(".\n", out);
}

/* What the column MFU counts, and the first plan in the units of others. */
static void write_rates(const struct plan_outcome *outcome, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    double placed_s = plan_flow_step_s(&outcome->flow, 0);
    const struct plan_rates rates = placed_s > 0 ? plan_rates_of(&outcome->found.plans[0].plan.layout, outcome->setting, placed_s)
                                                 : ranked_rates(&outcome->found.plans[0], outcome->setting);
    fprintf(out, "MFU counts attention in full%s.\nThe first plan%s: ",
            outcome->rates_differ ? ", 'causal' only the half that a causal mask leaves" : "",
            placed_s > 0 ? " on the fabric, in its best placement" : "");
    plan_rates_write(&rates, out);
    fputs(".\n", out);
    if (rates.days > 0) {
        plan_budget_write(&rates, outcome->setting->job->tokens, out);
        fputs(" of steps alone (msim run adds what failures cost).\n", out);
    }
    if (outcome->setting->job->load.dropped > 0)
        fputs(DROPPED_NOTE, out);
    if (job_masks_documents(outcome->setting->job))
        fputs(PACKED_MFU_NOTE, out);
}

/* What the column OOM means, and how to ask for room where the first plan has little. */
static void write_memory_expectation(const struct plan_outcome *outcome, FILE *out)
{
    if (outcome->n_shown == 0)
        return;
    const struct ranked_plan *first = &outcome->found.plans[0];
    fputs("OOM: the share of runs this full that run out of memory, by ", out);
    expectation_write_outcomes(&first->plan.layout, outcome->setting, out);
    fputs(".\n", out);
    safer_plan_write(&outcome->safer, outcome->found.plans, outcome->n_shown, out);
    if (!outcome->safer.wanted && memory_record_share(plan_use(first, outcome->setting)) > SHARE_WITH_MARGIN)
        fprintf(out, "--memory-margin %.0f%% leaves the plans for which it is at most %.0f %%.\n", 100 * expectation_margin(),
                100 * SHARE_WITH_MARGIN);
}

/* Where ranks sit matters on such a fabric, and the table takes the best for granted. */
static void write_fabric(const struct plan_outcome *outcome, const struct invocation *call)
{
    char narrow[OVERSUBSCRIBED_TEXT];
    if (outcome->n_shown == 0 || option_choice(call, "network") > 0)
        return;
    if (oversubscribed_text(&outcome->found.plans[0].plan.layout, outcome->setting->cluster, narrow, sizeof narrow) > 0)
        fprintf(call->out, "Network: %s.\n", narrow);
}

/* What the column "host" means. */
static void write_host_memory(const struct plan_outcome *outcome, FILE *out)
{
    if (!any_offloads(outcome))
        return;
    double capacity = host_capacity(outcome->setting->cluster, &outcome->found.plans[0].plan.layout);
    fputs("host: what a rank keeps in the memory of its host, ", out);
    if (capacity > 0)
        fprintf(out, "of %.1f GiB that are there for it.\n", capacity / GIB);
    else
        fputs("whose size is unknown (host_memory).\n", out);
}

static void write_rejected(const struct plan_outcome *outcome, const struct invocation *call)
{
    const struct search_counts *counts = &outcome->found.search.counts;
    struct table table = {0};
    char number[32];
    table_column(&table, "layouts", NULL, ALIGN_RIGHT);
    table_column(&table, "why they are out", NULL, ALIGN_LEFT);
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

struct best_plan best_plan_of(const struct plans_found *found, const struct setting *setting)
{
    const struct ranked_plan *first = &found->plans[0];
    double step_s = ranked_step_s(first);
    return (struct best_plan){
        .ranked = *first,
        .uneven = plan_is_uneven(&first->plan.layout, setting),
        .step_s = step_s,
        .mfu = ranked_mfu(first, setting),
        .use = plan_use(first, setting),
        .tokens_per_s = (double)setting->job->global_batch * (double)setting->job->seq_len / step_s,
        .host_bytes = plan_host_bytes(first, setting),
        .rates = ranked_rates(first, setting),
        .json = plan_json(first, setting),
    };
}

enum status plan_report(struct plan_outcome *outcome, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return report_json(outcome, call);
    if (call->format == FORMAT_CSV && !outcome->explained) {
        report_csv(outcome, call);
        return STATUS_OK;
    }
    if (outcome->explained) {
        explanation_write(&outcome->explanation, outcome->found.plans, outcome->found.search.n_plans, outcome->setting, call);
        return STATUS_OK;
    }
    outcome->rates_differ = any_rates_differ(outcome);
    write_heading(outcome, call->out);
    write_plans(outcome, call);
    write_rates(outcome, call->out);
    write_expectation(outcome, call->out);
    write_memory_expectation(outcome, call->out);
    write_host_memory(outcome, call->out);
    write_fabric(outcome, call);
    plan_flow_write(&outcome->flow, call);
    write_rejected(outcome, call);
    return STATUS_OK;
}
