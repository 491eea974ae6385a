/* The report of the best policy (sim/search/policy_optimum.h), for --optimise. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_many.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "sim/search/policy_optimum.h"

/* --- the levers --- */

static const char *refusal_text(enum lever_refusal refusal)
{
    switch (refusal) {
    case LEVER_FREE: return NULL;
    case LEVER_CHECKPOINTS_COST_NOTHING:
        return "checkpoints cost nothing here, so the shortest interval is best; add --checkpoint-block, or --checkpoint "
               "two-stage";
    case LEVER_COST_UNKNOWN: return "the cost of a checkpoint depends on the layout; remove --step-time";
    case LEVER_WITHOUT_POLICY: return "it is part of a recovery policy; add --policy";
    case LEVER_WITHOUT_PAUSES: return "the policy has no pause_rate, so the shortest timeout would always be best";
    case LEVER_WITHOUT_TRAFFIC: return "the policy does not watch traffic";
    case LEVER_WITHOUT_STALLS: return "the policy has no stall_rate, so the shortest window would always be best";
    }
    return NULL;
}

static enum status check_levers(struct invocation *call, const struct run_parts *run, struct policy_optimum *o)
{
    int n = 0;
    const char *const *what = option_list(call, "optimise", &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < N_POLICY_LEVERS; j++) {
            bool all = strcmp(what[i], "all") == 0;
            if (!all && strcmp(what[i], policy_levers[j].name) != 0)
                continue;
            const char *why = refusal_text(policy_levers[j].refuse(run));
            if (why && !all)
                diag_error(&call->diags, PLACE_NONE, "--optimise %s: %s", policy_levers[j].name, why);
            o->n_used += !why && !o->used[j];
            o->used[j] |= !why;
        }
    if (!run->has_model && !run->has_policy && option_given(call, "replicas"))
        diag_error(&call->diags, PLACE_NONE,
                   "--replicas: a replayed trace with fixed times gives the same result every time; remove --replicas");
    return diags_status(&call->diags) == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

/* --- the report --- */

static double cheaper_pct(const struct policy_optimum *o, double price)
{
    return o->price_start > 0 ? 100 * (1 - price / o->price_start) : 0;
}

static void optimum_row(struct table *table, const char *what, const char *before, const char *after)
{
    table_cell(table, "%s", what);
    table_cell(table, "%s", before);
    table_cell(table, "%s", after);
}

static void gain_cells(struct table *table, struct estimate gain, double cheaper)
{
    table_cell(table, "%+.3f", gain.mean);
    table_cell(table, "%.3f", gain.half_width);
    table_cell(table, "%+.3f", cheaper);
}

/* The cells of a row that a quantity does not fill. */
static void no_cells(struct table *table, int n)
{
    for (; n > 0; n--)
        table_cell(table, "%s", "");
}

static void plain_row(struct table *table, const char *what, double seconds)
{
    char text[64];
    quantity_format(seconds, DIM_TIME, text, sizeof text);
    optimum_row(table, what, "", seconds > 0 && isfinite(seconds) ? text : "-");
    no_cells(table, 3);
}

static char *end_text(double seconds, char *text, size_t size)
{
    snprintf(text, size, "-");
    return isfinite(seconds) ? days_text(seconds / 86400, text, size) : text;
}

/* A mean with its interval, which a program would have to take apart again. */
static char *format_mean(const struct invocation *call, struct estimate estimate, char *text, size_t size)
{
    snprintf(text, size, call->format == FORMAT_CSV ? "%.3f" : "%.3f +- %.3f", estimate.mean, estimate.half_width);
    return text;
}

/* A suite by the places that its tests had before. */
static void format_places(const struct diagnostic_suite *suite, const struct diagnostic_suite *before, char *text, size_t size)
{
    snprintf(text, size, "%s", suite->n ? "" : "none");
    for (int i = 0; i < suite->n; i++) {
        int place = 0;
        while (place < before->n && memcmp(&before->items[place], &suite->items[i], sizeof suite->items[i]) != 0)
            place++;
        text_append(text, size, "%s%d", i ? " > " : "", place + 1);
    }
}

static void lever_rows(struct table *table, const struct policy_optimum *o)
{
    char before[512], best[512];
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        if (!o->used[i])
            continue;
        policy_lever_format(&policy_levers[i], &o->before, before, sizeof before);
        policy_lever_format(&policy_levers[i], &o->best, best, sizeof best);
        if (policy_levers[i].value == VALUE_SUITE) {
            format_places(&o->before.policy.tests, &o->before.policy.tests, before, sizeof before);
            format_places(&o->best.policy.tests, &o->before.policy.tests, best, sizeof best);
        }
        optimum_row(table, policy_levers[i].title, before, best);
        gain_cells(table, o->alone[i].gain, cheaper_pct(o, o->alone[i].price));
    }
}

/* The lever that does most alone, -1: none does anything, or there is only one. */
static int most_helpful(const struct policy_optimum *o)
{
    int most = -1;
    for (int i = 0; i < N_POLICY_LEVERS && o->n_used > 1; i++)
        if (o->used[i] && o->alone[i].separated && o->alone[i].price < (most < 0 ? o->price_start : o->alone[most].price))
            most = i;
    return most;
}

/* Money per million tokens, when there is a price. */
static void write_cost(struct table *table, const struct run_session *s, const struct policy_optimum *o)
{
    char before[64], after[64];
    double best = run_token_cost(s, o->end.mean);
    if (best <= 0)
        return;
    snprintf(before, sizeof before, "%.4g", best * o->price_start / o->price_end);
    snprintf(after, sizeof after, "%.4g", best);
    optimum_row(table, "cost per M tokens", before, after);
    no_cells(table, 2);
    table_cell(table, "%+.3f", cheaper_pct(o, o->price_end));
}

/* When training ends, where a budget of tokens says so: the median, and what one run in twenty exceeds. */
static void write_end(struct table *table, const struct run_session *s, const struct policy_optimum *o)
{
    static const char *const titles[] = {"training ends, median", "training ends, p95"};
    const double before[] = {o->done_start.median, o->done_start.p95}, best[] = {o->done.median, o->done.p95};
    for (int i = 0; s->options.goal > 0 && i < 2; i++) {
        char texts[2][32];
        optimum_row(table, titles[i], end_text(before[i], texts[0], sizeof texts[0]),
                    end_text(best[i], texts[1], sizeof texts[1]));
        no_cells(table, 3);
    }
}

/* Changes that the search found, but whose gain these replicas cannot distinguish from none. */
static void write_undone(FILE *out, const struct policy_optimum *o)
{
    char found[512];
    int n = 0;
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        if (!o->undone[i])
            continue;
        if (policy_levers[i].value == VALUE_SUITE)
            format_places(&o->found.policy.tests, &o->before.policy.tests, found, sizeof found);
        else
            policy_lever_format(&policy_levers[i], &o->found, found, sizeof found);
        fprintf(out, "%s%s (%s)",
                n++ ? ", " : "\nunchanged, because the replicas show no significant gain: ", policy_levers[i].title, found);
    }
    if (n > 0)
        fputc('\n', out);
}

/* Changes with a significant gain only in combination with the others: prints that gain. */
static void write_kept(FILE *out, const struct policy_optimum *o, int64_t n, bool harms)
{
    int told = 0;
    const char *head = harms ? "\nuseful with the other changes, but harmful alone: "
                             : "\nuseful with the other changes, not significant alone: ";
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        if (!o->used[i] || o->alone[i].separated || o->alone[i].harms != harms || !gain_is_clear(o->kept[i], n))
            continue;
        fprintf(out, "%s%s (without it a token is %.3f +- %.3f %% dearer)", told++ ? ", " : head, policy_levers[i].title,
                o->kept[i].mean, o->kept[i].half_width);
    }
    if (told > 0)
        fputc('\n', out);
}

/* Another kind of checkpoint comes at an interval of its own. */
static void write_shared_interval(FILE *out, const struct policy_optimum *o)
{
    int kind = -1, interval = -1;
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        kind = o->used[i] && policy_levers[i].value == VALUE_KIND ? i : kind;
        interval = o->used[i] && policy_levers[i].value == VALUE_NANOS ? i : interval;
    }
    if (kind >= 0 && interval >= 0 && strcmp(o->before.kind, o->best.kind) != 0)
        fprintf(out, "\nthe row of %s is at the best interval already; that of %s keeps the kind that there was\n",
                policy_levers[kind].title, policy_levers[interval].title);
}

/* What Young and Daly do not know of. */
static void write_lag(FILE *out, const struct policy_optimum *o)
{
    double lag_s = nanos_to_seconds(checkpoint_lag(&o->best.checkpoint));
    char lag[32];
    if (o->interval.daly_s > 0 && o->interval.daly_s < lag_s && o->interval.best_s >= lag_s)
        fprintf(
            out,
            "\nYoung's and Daly's intervals are below the %s after which a checkpoint is safe: training would wait for it, so "
            "none below that is better\n",
            quantity_format(lag_s, DIM_TIME, lag, sizeof lag));
}

/* Below the table: what its numbers stand for. */
static void write_legend(FILE *out, const struct policy_search *search, const struct policy_optimum *o)
{
    int most = most_helpful(o);
    fputs("(a lever's gain is what it brings alone; goodput's is of all together; +- and ci95: half of a 95 % interval)\n", out);
    for (int i = 0; i < N_POLICY_LEVERS; i++)
        for (int j = 0; o->used[i] && policy_levers[i].value == VALUE_SUITE && j < o->before.policy.tests.n; j++)
            fprintf(out, "%s%d %s", j ? ", " : "\ntests: ", j + 1, o->before.policy.tests.items[j].name);
    write_lag(out, o);
    write_undone(out, o);
    write_kept(out, o, search->n, false);
    write_kept(out, o, search->n, true);
    write_shared_interval(out, o);
    if (most >= 0)
        fprintf(out, "\n%s helps most: this change alone makes a token %.3g %% cheaper\n", policy_levers[most].title,
                cheaper_pct(o, o->alone[most].price));
    fprintf(out, "\n%" PRId64 " replicas, with the same random faults, for each of %d candidates\n", search->n,
            search->evaluations);
}

static void write_optimum(struct invocation *call, const struct run_session *s, const struct policy_search *search,
                          const struct policy_optimum *o)
{
    char before[64], after[64];
    struct table table = {0};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    table_column(&table, "before", NULL, ALIGN_RIGHT);
    table_column(&table, "best", NULL, ALIGN_RIGHT);
    table_column(&table, "goodput gain", "points", ALIGN_RIGHT);
    table_column(&table, "ci95", "points", ALIGN_RIGHT);
    table_column(&table, "token cheaper", "%", ALIGN_RIGHT);
    lever_rows(&table, o);
    optimum_row(&table, "goodput [%]", format_mean(call, o->start, before, sizeof before),
                format_mean(call, o->end, after, sizeof after));
    gain_cells(&table, o->gain, cheaper_pct(o, o->price_end));
    write_cost(&table, s, o);
    write_end(&table, s, o);
    plain_row(&table, "Young's interval", o->interval.young_s);
    plain_row(&table, "Daly's interval", o->interval.daly_s);
    if (checkpoint_lag(&o->best.checkpoint) > 0)
        plain_row(&table, "until a checkpoint is safe", nanos_to_seconds(checkpoint_lag(&o->best.checkpoint)));
    plain_row(&table, "time between interruptions", o->between_s);
    table_write(&table, call);
    table_free(&table);
    if (call->format == FORMAT_TEXT)
        write_legend(call->out, search, o);
    if (call->format == FORMAT_TEXT)
        run_assumptions_write(&s->report, call->out);
}

/* --- JSON --- */

/* One lever of a search. */
struct searched_lever {
    const struct policy_optimum *optimum;
    int i;
};

static struct value lever_state(const struct searched_lever *s, const struct policy_state *state)
{
    char text[512];
    policy_lever_format(&policy_levers[s->i], state, text, sizeof text);
    return as_text(text);
}

#define POLICY_LEVER_ROWS(ROW)                                                                                                   \
    ROW(searched_lever, name, as_text(policy_levers[s->i].name), "", JSON, "what is changed")                                    \
    ROW(searched_lever, before, lever_state(s, &s->optimum->before), "", JSON, "its value before the search")                    \
    ROW(searched_lever, best, lever_state(s, &s->optimum->best), "", JSON, "its best value")                                     \
    ROW(searched_lever, left_as_it_was, as_flag(s->optimum->undone[s->i]), "", JSON,                                             \
        "whether the replicas show no significant gain from another value")                                                      \
    ROW(searched_lever, goodput_gain, as_real(s->optimum->alone[s->i].gain.mean / 100), "", JSON,                                \
        "increase of the goodput by this change alone")                                                                          \
    ROW(searched_lever, goodput_gain_ci95, as_real(s->optimum->alone[s->i].gain.half_width / 100), "", JSON,                     \
        "half of its 95 % interval")                                                                                             \
    ROW(searched_lever, token_cheaper_pct, as_real(cheaper_pct(s->optimum, s->optimum->alone[s->i].price)), "%", JSON,           \
        "decrease of the cost of a token by this change alone")                                                                  \
    ROW(searched_lever, undone_dearer_pct, as_real(s->optimum->kept[s->i].mean), "%", JSON,                                      \
        "increase of the cost of a token without this change, the others kept")                                                  \
    ROW(searched_lever, undone_dearer_pct_ci95, as_real(s->optimum->kept[s->i].half_width), "%", JSON,                           \
        "half of its 95 % interval")
RESULT_ROWS(policy_lever_rows, POLICY_LEVER_ROWS)

static json_t *levers_json(const struct policy_optimum *o)
{
    json_t *list = json_array();
    for (int i = 0; i < N_POLICY_LEVERS; i++)
        if (o->used[i])
            json_array_append_new(list, rows_object(policy_lever_rows, &(struct searched_lever){o, i}));
    return list;
}

/* The result of a search. */
struct searched {
    const struct policy_search *search;
    const struct policy_optimum *o;
    bool ends; /* there is a budget of tokens */
};

static struct value interval_of(const struct policy_state *state)
{
    return as_real(nanos_to_seconds(state->checkpoint.interval));
}

#define OPTIMUM_ROWS(ROW)                                                                                                        \
    ROW(searched, checkpoint_interval_s, interval_of(&s->o->best), "s", JSON, "best interval between checkpoints")               \
    ROW(searched, spares, as_count(s->o->best.recovery.spares), "", JSON, "best number of spare nodes")                          \
    ROW(searched, goodput, as_real(s->o->end.mean / 100), "", JSON, "mean goodput with the best policy")                         \
    ROW(searched, goodput_ci95, as_real(s->o->end.half_width / 100), "", JSON, "half of its 95 % interval")                      \
    ROW(searched, goodput_before, as_real(s->o->start.mean / 100), "", JSON, "mean goodput before the search")                   \
    ROW(searched, token_cheaper_pct, as_real(cheaper_pct(s->o, s->o->price_end)), "%", JSON, "decrease of the cost of a token")  \
    ROW(searched, young_s, as_real(s->o->interval.young_s), "s", JSON, "Young's interval")                                       \
    ROW(searched, daly_s, as_real(s->o->interval.daly_s), "s", JSON, "Daly's interval")                                          \
    ROW(searched, mttf_s, as_real(s->o->between_s), "s", JSON, "mean time between interruptions")                                \
    ROW(searched, checkpoint_interval_before_s, interval_of(&s->o->before), "s", JSON, "interval before the search")             \
    ROW(searched, replicas, as_count(s->search->n), "", JSON, "replicas of each candidate")                                      \
    ROW(searched, evaluations, as_count(s->search->evaluations), "", JSON, "candidates")                                         \
    ROW(searched, levers, as_json(levers_json(s->o)), "", JSON, "each thing that was changed")                                   \
    ROW(searched, end_s, as_json(s->ends ? estimate_json(s->o->done) : NULL), "s", JSON, "when the budget of tokens is trained") \
    ROW(searched, end_before_s, as_json(s->ends ? estimate_json(s->o->done_start) : NULL), "s", JSON,                            \
        "the same before the search")
RESULT_ROWS(optimum_rows, OPTIMUM_ROWS)

static enum status write_optimum_json(struct invocation *call, const struct run_session *s, const struct policy_search *search,
                                      const struct policy_optimum *o)
{
    char *config = experiment_to_json(&s->experiment);
    json_t *root = result_create(call, config);
    free(config);
    json_object_set_new(root, "optimum", rows_object(optimum_rows, &(struct searched){search, o, s->options.goal > 0}));
    json_object_set_new(root, "assumptions", run_assumptions_json(&s->report));
    return result_write(call, root);
}

/* What the search calls to try another kind of checkpoint. */
struct kind_setting {
    struct invocation *call;
    struct run_session *s;
};

static enum status set_kind(void *context, const char *kind)
{
    const struct kind_setting *setting = context;
    return run_set_checkpoint(setting->call, setting->s, kind);
}

static enum status search_and_report(struct invocation *call, struct run_session *s, struct campaign *campaign,
                                     struct policy_optimum *o)
{
    const struct run_parts run = run_parts_of(s);
    struct kind_setting kinds = {call, s};
    struct policy_search search = {.run = &run,
                                   .n = s->has_model || s->has_policy ? run_replica_count(call, SEARCH_REPLICAS) : 1,
                                   .campaign = campaign,
                                   .diags = &call->diags,
                                   .set_kind = set_kind,
                                   .context = &kinds};
    policy_search_open(&search);
    policy_optimise(&search, o);
    enum status status = search.status;
    if (status == STATUS_OK && call->format == FORMAT_JSON)
        status = write_optimum_json(call, s, &search, o);
    else if (status == STATUS_OK)
        write_optimum(call, s, &search, o);
    policy_search_close(&search);
    return status;
}

enum status run_optimise(struct invocation *call, struct run_session *s)
{
    struct policy_optimum *o = memory_new(1, sizeof *o);
    const struct run_parts run = run_parts_of(s);
    enum status status = check_levers(call, &run, o);
    if (status == STATUS_OK) {
        struct progress progress;
        struct campaign campaign = run_campaign(call, 0, &progress);
        status = campaign_open(&campaign, &run, option_text(call, "resume"), "optimise", &call->diags);
        status = outcomes_share(&campaign.processes, NULL, 1, 0, status);
        if (status == STATUS_OK)
            status = search_and_report(call, s, &campaign, o);
        progress_end(&progress);
        campaign_close(&campaign);
    }
    free(o);
    return status;
}
