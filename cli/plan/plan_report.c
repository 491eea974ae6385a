/* What `msim plan` found, for people. */
#include "cli/plan/plan_report.h"

#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "model/base/units.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/host_memory.h"

/* --- the heading --- */

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

static const char *loss_text(feature_set features)
{
    return features & FEATURE_BIT(CUT_LOSS)            ? "cut"
           : features & FEATURE_BIT(FUSED_LINEAR_LOSS) ? "linear"
           : features & FEATURE_BIT(FUSED_LOSS)        ? "fused"
           : features & FEATURE_BIT(EAGER_LOSS)        ? "eager"
                                                       : "plain";
}

/* What the plans shown have, some of them, beside what every plan has: columns and notes. */
struct plan_traits {
    bool experts;
    bool exchanges;    /* of context parallelism otherwise than around a ring */
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
        const struct step_rates rates = ranked_rates(ranked, setting);
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

static void number_column(struct table *table, const char *title, const char *unit)
{
    table_column(table, title, unit, ALIGN_RIGHT);
}

static void word_column(struct table *table, const char *title)
{
    table_column(table, title, NULL, ALIGN_LEFT);
}

/* A column that only --columns all shows: the usual table has the layout as one text. */
static void detail_column(struct table *table, const char *title, const char *unit, enum align align)
{
    table_column(table, title, unit, align);
    table_column_view(table, VIEW_ALL);
}

static void layout_columns(struct table *table, const struct plan_traits *some)
{
    static const char *const degrees[] = {"tp", "cp", "pp", "vpp", "dp"};
    word_column(table, "layout");
    table_column_view(table, VIEW_USUAL);
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++)
        detail_column(table, degrees[i], NULL, ALIGN_RIGHT);
    if (some->experts)
        detail_column(table, "ep", NULL, ALIGN_RIGHT);
    detail_column(table, "mb", NULL, ALIGN_RIGHT);
    detail_column(table, "zero", NULL, ALIGN_RIGHT);
    detail_column(table, "sp", NULL, ALIGN_RIGHT);
    if (some->exchanges)
        detail_column(table, "cp comm", NULL, ALIGN_LEFT);
    detail_column(table, "recompute", NULL, ALIGN_LEFT);
    if (some->offloads)
        detail_column(table, "offload", NULL, ALIGN_LEFT);
    detail_column(table, "schedule", NULL, ALIGN_LEFT);
    word_column(table, "overlap");
    if (!some->overlaps_differ)
        table_column_view(table, VIEW_ALL);
    if (some->chooses_loss)
        word_column(table, "loss");
}

static void plan_columns(struct table *table, const struct plan_traits *some)
{
    number_column(table, "rank", NULL);
    layout_columns(table, some);
    number_column(table, "step", "s");
    number_column(table, "MFU", "%");
    if (some->rates_differ)
        number_column(table, "causal", "%");
    number_column(table, "memory", "GiB");
    if (some->offloads)
        number_column(table, "host", "GiB");
    number_column(table, "used", "%");
    number_column(table, "OOM", "%");
    number_column(table, "exposed", "%");
    number_column(table, "bubble", "%");
    detail_column(table, "closed form", "s", ALIGN_RIGHT);
    detail_column(table, "off", "%", ALIGN_RIGHT);
}

/* The ZeRO stage, and behind it among how many of the replicas: "3", "3/8". */
static void sharding_cell(struct table *table, const struct layout *l)
{
    if (l->shard)
        table_cell(table, "%d/%d", l->zero, l->shard);
    else
        table_cell(table, "%d", l->zero);
}

static void layout_cells(struct table *table, const struct layout *l, const struct plan_traits *some,
                         const struct setting *setting)
{
    char overlap[48], recompute[RECOMPUTE_TEXT], offload[OFFLOAD_TEXT], comm[CP_COMM_TEXT], brief[LAYOUT_TEXT];
    table_cell(table, "%s%s%s", layout_brief(l, brief, sizeof brief), l->tp > setting->cluster->nvlink_domain ? " *" : "",
               plan_is_uneven(l, setting) ? " ~" : "");
    table_cell(table, "%d%s", l->tp, l->tp > setting->cluster->nvlink_domain ? "*" : "");
    table_cell(table, "%d", l->cp);
    table_cell(table, "%d", l->pp);
    table_cell(table, "%d%s", l->vpp, plan_is_uneven(l, setting) ? "~" : "");
    table_cell(table, "%d", l->dp);
    if (some->experts)
        table_cell(table, "%d", l->ep);
    table_cell(table, "%d", l->micro_batch);
    sharding_cell(table, l);
    table_cell(table, "%d", l->sequence_parallel);
    if (some->exchanges)
        table_cell(table, "%s", l->cp > 1 ? cp_comm_format(l->cp_comm, comm, sizeof comm) : "-");
    table_cell(table, "%s", recompute_brief(l->recompute, recompute, sizeof recompute));
    if (some->offloads)
        table_cell(table, "%s", offload_format(&l->offload, offload, sizeof offload));
    table_cell(table, "%s", schedule_name(l->schedule));
    table_cell(table, "%s", overlap_text(l->features, overlap, sizeof overlap));
    if (some->chooses_loss)
        table_cell(table, "%s", loss_text(l->features));
}

static void measure_cells(struct table *table, const struct ranked_plan *ranked, int rank, const struct plan_traits *some,
                          const struct setting *setting)
{
    double step_s = ranked_step_s(ranked), closed_s = ranked->plan.estimate.step_s;
    double use = plan_use(ranked, setting), share = memory_record_share(use);
    table_tint(table, rank == 1 ? TINT_GOOD : TINT_NONE);
    table_cell(table, step_s < 1 ? "%.4f" : "%.3f", step_s);
    table_cell(table, "%.1f", 100 * ranked_mfu(ranked, setting));
    if (some->rates_differ)
        table_cell(table, "%.1f", 100 * ranked_rates(ranked, setting).mfu_causal);
    table_cell(table, "%.1f", ranked->plan.estimate.memory_bytes / GIB);
    if (some->offloads)
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

static void write_plans(const struct plan_outcome *outcome, const struct plan_traits *some, const struct invocation *call)
{
    struct table table = {.all = option_choice(call, "columns") > 0};
    plan_columns(&table, some);
    for (int i = 0; i < outcome->n_shown; i++) {
        const struct ranked_plan *ranked = &outcome->found.plans[i];
        table_cell(&table, "%d", i + 1);
        layout_cells(&table, &ranked->plan.layout, some, outcome->setting);
        measure_cells(&table, ranked, i + 1, some, outcome->setting);
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
                                                 : ranked_rates(&outcome->found.plans[0], outcome->setting);
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

static void write_text(const struct plan_outcome *outcome, const struct invocation *call)
{
    const struct plan_traits some = traits_of(outcome);
    write_heading(outcome, call->out);
    write_plans(outcome, &some, call);
    write_rates(outcome, &some, call->out);
    write_expectation(outcome, call->out);
    write_memory_expectation(outcome, call->out);
    if (some.offloads)
        write_host_memory(outcome, call->out);
    write_fabric(outcome, call);
    plan_flow_write(&outcome->flow, call);
    write_rejected(outcome, call);
}

enum status plan_report(const struct plan_outcome *outcome, struct invocation *call)
{
    if (call->format == FORMAT_JSON)
        return plan_report_write_json(outcome, call);
    if (outcome->explained)
        explanation_write(&outcome->explanation, outcome->found.plans, outcome->found.search.n_plans, outcome->setting, call);
    else if (call->format == FORMAT_CSV)
        plan_report_write_csv(outcome, call);
    else
        write_text(outcome, call);
    return STATUS_OK;
}
