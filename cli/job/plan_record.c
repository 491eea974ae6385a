/* One plan as rows, as `msim plan`, its sweeps and its levers write it. */
#include "cli/job/plan_record.h"

#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "model/base/append.h"
#include "model/base/units.h"
#include "model/cost/step/track_record.h"
#include "model/layout/dimension_value.h"

struct shown_plan shown_plan_of(const struct ranked_plan *ranked, const struct setting *setting)
{
    const struct layout *layout = &ranked->plan.layout;
    double step_s = ranked_step_s(ranked);
    return (struct shown_plan){.ranked = ranked,
                               .setting = setting,
                               .layout = layout,
                               .rates = step_rates_of(layout, setting, step_s),
                               .step_s = step_s,
                               .use = plan_use(ranked, setting),
                               .uneven = plan_is_uneven(layout, setting)};
}

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

/* --- rows --- */

static bool crosses(const struct shown_plan *s)
{
    return s->layout->tp > s->setting->cluster->nvlink_domain;
}

static struct value layout_value(const struct shown_plan *s)
{
    char text[LAYOUT_TEXT];
    return shown_as(as_json(layout_json(s->layout)), "%s%s%s", layout_brief(s->layout, text, sizeof text),
                    s->rank > 0 && crosses(s) ? " *" : "", s->uneven ? " ~" : "");
}

static struct value features_value(feature_set features)
{
    char text[FEATURES_TEXT];
    return shown_as(as_json(features_json(features)), "%s", features_text(features, " ", text, sizeof text));
}

static struct value seconds(double number)
{
    return shown_as(as_real(number), number < 1 ? "%.4f" : "%.3f", number);
}

static struct value dimension(const struct shown_plan *s, enum layout_dimension dimension)
{
    char text[DIMENSION_TEXT];
    return as_text(dimension_text(s->layout, dimension, text));
}

/* A number, with a mark where a note below the table explains it. */
static struct value marked(int number, bool marks, const char *mark)
{
    return shown_as(as_count(number), "%d%s", number, marks ? mark : "");
}

/* The ZeRO stage, and behind it among how many of the replicas: "3", "3/8". */
static struct value sharding(const struct layout *l)
{
    return l->shard ? shown_as(as_count(l->zero), "%d/%d", l->zero, l->shard) : as_count(l->zero);
}

static struct value comm_value(const struct shown_plan *s)
{
    char text[CP_COMM_TEXT];
    return shown_as(as_text(cp_comm_format(s->layout->cp_comm, text, sizeof text)), "%s", s->layout->cp > 1 ? text : "-");
}

static struct value recompute_value(const struct layout *l)
{
    char text[RECOMPUTE_TEXT];
    return as_text(recompute_brief(l->recompute, text, sizeof text));
}

/* Which of the overlaps are on: "tp+pp+dp". */
static struct value overlap_value(feature_set features)
{
    static const struct {
        enum feature feature;
        const char *text;
    } kinds[] = {
        {FEATURE_TP_OVERLAP, "tp"}, {FEATURE_ASYNC_TP, "async-tp"}, {FEATURE_PP_OVERLAP, "pp"}, {FEATURE_DP_OVERLAP, "dp"}};
    char text[48] = "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (features >> kinds[i].feature & 1)
            text_append(text, sizeof text, "%s%s", *text ? "+" : "", kinds[i].text);
    return as_text(*text ? text : "-");
}

static struct value loss_value(feature_set features)
{
    return as_text(features & FEATURE_BIT(CUT_LOSS)            ? "cut"
                   : features & FEATURE_BIT(FUSED_LINEAR_LOSS) ? "linear"
                   : features & FEATURE_BIT(FUSED_LOSS)        ? "fused"
                   : features & FEATURE_BIT(EAGER_LOSS)        ? "eager"
                                                               : "plain");
}

static struct value oom_value(const struct shown_plan *s)
{
    double share = memory_record_share(s->use);
    return tinted(as_real(100 * share), share > SHARE_WITH_MARGIN ? TINT_WARN : TINT_NONE);
}

static struct value host_value(const struct shown_plan *s)
{
    return in_json_if(!offload_is_none(&s->layout->offload), as_real(plan_host_bytes(s->ranked, s->setting) / GIB));
}

static double bubble_s(const struct shown_plan *s)
{
    return ranked_breakdown(s->ranked)->s[CLASS_BUBBLE];
}

static struct value step_value(const struct shown_plan *s)
{
    return tinted(seconds(s->step_s), s->rank == 1 ? TINT_GOOD : TINT_NONE);
}

#define DETAIL .view = VIEW_ALL /* the usual table has the layout as one text */
#define PLAN_ROWS(ROW)                                                                                                           \
    ROW(shown_plan, rank, as_count(s->rank), "", CSV, "place in the table", .show = "%.0f")                                      \
    ROW(shown_plan, layout, layout_value(s), "", JSON, "dimensions of the layout", .show = "%s", .view = VIEW_USUAL)             \
    ROW(shown_plan, tp, marked(s->layout->tp, crosses(s), "*"), "", TEXT, "tensor parallelism", .show = "%.0f", DETAIL)          \
    ROW(shown_plan, cp, as_count(s->layout->cp), "", TEXT, "context parallelism", .show = "%.0f", DETAIL)                        \
    ROW(shown_plan, pp, as_count(s->layout->pp), "", TEXT, "pipeline stages", .show = "%.0f", DETAIL)                            \
    ROW(shown_plan, vpp, marked(s->layout->vpp, s->uneven, "~"), "", TEXT, "model chunks per stage", .show = "%.0f", DETAIL)     \
    ROW(shown_plan, dp, as_count(s->layout->dp), "", TEXT, "data parallelism", .show = "%.0f", DETAIL)                           \
    ROW(shown_plan, ep, as_count(s->layout->ep), "", TEXT, "expert parallelism", .show = "%.0f", DETAIL)                         \
    ROW(shown_plan, mb, as_count(s->layout->micro_batch), "", TEXT, "sequences per micro-batch", .show = "%.0f", DETAIL)         \
    ROW(shown_plan, zero, sharding(s->layout), "", TEXT, "ZeRO stage / replicas that share", .show = "%.0f", DETAIL)             \
    ROW(shown_plan, sp, as_count(s->layout->sequence_parallel), "", TEXT, "sequence parallelism", .show = "%.0f", DETAIL)        \
    ROW(shown_plan, cp_comm, comm_value(s), "", CSV, "exchange of context parallelism", .title = "cp comm", .show = "%s",        \
        DETAIL)                                                                                                                  \
    ROW(shown_plan, recompute, recompute_value(s->layout), "", TEXT, "modules that are recomputed", .show = "%s", DETAIL)        \
    ROW(shown_plan, offload, dimension(s, DIMENSION_OFFLOAD), "", CSV, "what is kept in host memory", .show = "%s", DETAIL)      \
    ROW(shown_plan, shard, dimension(s, DIMENSION_SHARD), "", CSV, "replicas among which ZeRO shards; 0: all")                   \
    ROW(shown_plan, schedule, as_text(schedule_name(s->layout->schedule)), "", TEXT, "pipeline schedule", .show = "%s", DETAIL)  \
    ROW(shown_plan, overlap, overlap_value(s->layout->features), "", TEXT, "exchanges that overlap with work", .show = "%s")     \
    ROW(shown_plan, loss, loss_value(s->layout->features), "", TEXT, "kernels of the loss", .show = "%s")                        \
    ROW(shown_plan, features, features_value(s->layout->features), "", JSON | CSV, "software features that the layout uses")     \
    ROW(shown_plan, step_time_s, step_value(s), "s", JSON | CSV, "duration of a step", TWELVE_DIGITS, .title = "step",           \
        .show = "%.3f")                                                                                                          \
    ROW(shown_plan, likely, as_json(expectation_json(s->layout, s->setting, s->step_s)), "", JSON,                               \
        "80 % interval of the step time, by published runs")                                                                     \
    ROW(shown_plan, mfu_pct, as_real(100 * ranked_mfu(s->ranked, s->setting)), "%", JSON | CSV,                                  \
        "MFU, attention counted in full", TWELVE_DIGITS, .title = "MFU", .show = "%.1f")                                         \
    RATE_ROWS_OF(ROW, shown_plan, &s->rates)                                                                                     \
    ROW(shown_plan, memory_gib, as_real(s->ranked->plan.estimate.memory_bytes / GIB), "GiB", JSON | CSV,                         \
        "memory of the fullest rank", TWELVE_DIGITS, .title = "memory", .show = "%.1f")                                          \
    ROW(shown_plan, memory_pct, as_real(100 * s->use), "%", JSON | CSV, "share of the GPU's memory", TWELVE_DIGITS,              \
        .title = "used", .show = "%.0f")                                                                                         \
    ROW(shown_plan, out_of_memory, as_json(expectation_memory_json(s->layout, s->setting, s->use)), "", JSON,                    \
        "published runs that are as full")                                                                                       \
    ROW(shown_plan, out_of_memory_pct, oom_value(s), "%", CSV, "share of published runs as full that ran out of memory",         \
        TWELVE_DIGITS, .title = "OOM", .show = "%.0f")                                                                           \
    ROW(shown_plan, host_memory_gib, host_value(s), "GiB", JSON | CSV, "host memory per rank", TWELVE_DIGITS, .title = "host",   \
        .show = "%.1f")                                                                                                          \
    ROW(shown_plan, exposed_pct, as_real(100 * ranked_exposed_s(s->ranked) / s->step_s), "%", TEXT,                              \
        "share of the step that waits for exchanges", .title = "exposed", .show = "%.1f")                                        \
    ROW(shown_plan, bubble_pct, as_real(100 * bubble_s(s) / s->step_s), "%", TEXT,                                               \
        "share of the step that waits for other stages", .title = "bubble", .show = "%.1f")                                      \
    ROW(shown_plan, simulated, as_flag(s->ranked->simulated), "", JSON | CSV, "whether the time is simulated")                   \
    ROW(shown_plan, closed_form_s, seconds(s->ranked->plan.estimate.step_s), "s", JSON | CSV, "the same by the closed form",     \
        TWELVE_DIGITS, .title = "closed form", .show = "%.3f", DETAIL)                                                           \
    ROW(shown_plan, closed_form_off_pct,                                                                                         \
        known_if(s->ranked->simulated, as_real(100 * (s->ranked->plan.estimate.step_s / s->step_s - 1))), "%", TEXT,             \
        "error of the closed form", .title = "off", .show = "%+.1f", DETAIL)                                                     \
    ROW(shown_plan, exposed_comm_s, as_real(ranked_exposed_s(s->ranked)), "s", JSON | CSV, "time that waits for exchanges",      \
        TWELVE_DIGITS)                                                                                                           \
    ROW(shown_plan, bubble_s, as_real(bubble_s(s)), "s", CSV, "time that waits for other pipeline stages", TWELVE_DIGITS)        \
    ROW(shown_plan, breakdown, as_classes(ranked_breakdown(s->ranked)), "s", JSON, "time by class of work")
RESULT_ROWS(plan_rows, PLAN_ROWS)

json_t *plan_json(const struct ranked_plan *ranked, const struct setting *setting)
{
    const struct shown_plan plan = shown_plan_of(ranked, setting);
    return rows_object(plan_rows, &plan);
}

/* Behind the columns of the layout. */
static const char *const measures[] = {"features",
                                       "step_time_s",
                                       "mfu_pct",
                                       "memory_gib",
                                       "memory_pct",
                                       "exposed_comm_s",
                                       "bubble_s",
                                       "closed_form_s",
                                       "simulated",
                                       "out_of_memory_pct",
                                       "offload",
                                       "shard",
                                       "host_memory_gib",
                                       "cp_comm",
                                       "mfu_causal_pct",
                                       "tflops_per_gpu",
                                       "tokens_per_s_per_gpu",
                                       NULL};

void plan_csv_heading(bool first, FILE *out)
{
    struct result_row picked[MAX_PICKED];
    layout_csv_heading(first, out);
    rows_csv_heading(rows_pick(plan_rows, measures, picked), NULL, false, out);
}

void plan_csv_cells(const struct shown_plan *plan, bool first, FILE *out)
{
    struct result_row picked[MAX_PICKED];
    layout_csv_cells(plan ? plan->layout : NULL, first, out);
    rows_csv_cells(rows_pick(plan_rows, measures, picked), plan, false, out);
}
