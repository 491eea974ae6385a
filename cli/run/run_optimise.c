/*
 * The best policy: --optimise makes a trained token cheapest (run_search.h), by one lever (run_levers.h) after the other, in two
 * rounds where there are several. The best of many candidates on the same luck is always a little better than what there was, if
 * only by that luck: so a lever whose change, undone alone, costs nothing that the replicas tell apart from nothing goes back to
 * where it was. Afterwards every lever is put to its best place alone, which says which change helps most.
 * Young's optimum sqrt(2 w M) and Daly's refinement stand beside, and how long a checkpoint is on its way: no interval below
 * that is any good.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_levers.h"
#include "model/base/append.h"
#include "model/base/memory.h"

/* --- all together --- */

struct optimum {
    bool used[N_RUN_LEVERS];
    int n_used;
    bool undone[N_RUN_LEVERS];          /* its change is worth nothing that is told apart from nothing */
    struct estimate kept[N_RUN_LEVERS]; /* how much dearer a token is, percent, with the change undone and the others left */
    struct search_state found;          /* the cheapest, before anything was undone */
    double between_s;                   /* interruptions, at the best */
    struct best_interval interval;
    struct search_state before, best;
    struct estimate start, end, gain; /* of goodput */
    struct estimate done_start, done; /* of the time when the budget of tokens is trained; nothing without one */
    double price_start, price_end;
    struct {
        struct estimate gain; /* of goodput, alone */
        bool separated;       /* a token is cheaper by more than half of the interval */
        bool harms;           /* it is dearer by more than that */
        double price;
    } alone[N_RUN_LEVERS];
};

/* Mean time between interruptions as drawn, and what the closed forms make of it. */
static void closed_forms(const struct search *search, struct optimum *o)
{
    o->between_s = search_time_between(search);
    o->interval = best_interval_of(&search->s->options.checkpoint, o->between_s);
}

static enum status check_levers(struct invocation *call, const struct run_session *s, struct optimum *o)
{
    int n = 0;
    const char *const *what = option_list(call, "optimise", &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < N_RUN_LEVERS; j++) {
            bool all = strcmp(what[i], "all") == 0;
            if (!all && strcmp(what[i], run_levers[j].name) != 0)
                continue;
            const char *why = run_levers[j].refuse(s);
            if (why && !all)
                diag_error(&call->diags, PLACE_NONE, "--optimise %s: %s", run_levers[j].name, why);
            o->n_used += !why && !o->used[j];
            o->used[j] |= !why;
        }
    if (!s->has_model && !s->has_policy && option_given(call, "replicas"))
        diag_error(&call->diags, PLACE_NONE, "--replicas: a trace replayed by fixed rules is the same every time; leave it out");
    return diags_status(&call->diags) == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

/* Work that counts per node paid for, of each replica of the candidate that was run last: of its mean the price is the inverse.
 */
static void take_worths(const struct search *search, double *worths)
{
    double nodes = search->s->options.nodes, share = nodes / (nodes + search->s->options.recovery.spares);
    for (int64_t i = 0; i < search->n; i++)
        worths[i] = outcome_goodput(&search->outcomes[i]) * share;
}

/* What is worth more than others, replica by replica, in percent of their mean. */
static struct estimate worth_gain(const double *worths, const double *others, int64_t n)
{
    double *gain = memory_new((size_t)n, sizeof *gain), mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += others[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        gain[i] = 100 * (worths[i] - others[i]) / fmax(mean, 1e-9);
    struct estimate estimate = estimate_of(gain, (size_t)n);
    free(gain);
    return estimate;
}

/* Is the mean further from nothing than half of its 95 % interval? */
static bool is_gain(struct estimate gain, int64_t n)
{
    return gain.mean > (n > 1 ? gain.half_width : 0);
}

/* Lever i of `best` back where it was before; of the kind of checkpoint the interval stays, which is a lever of its own. */
static bool without_change(const struct optimum *o, const struct search_state *best, int i, struct search_state *state)
{
    char before[512], now[512];
    run_lever_format(&run_levers[i], &o->before, before, sizeof before);
    run_lever_format(&run_levers[i], best, now, sizeof now);
    *state = *best;
    run_lever_take(&run_levers[i], state, &o->before);
    for (int j = 0; j < N_RUN_LEVERS; j++)
        if (run_levers[i].value == VALUE_KIND && run_levers[j].value == VALUE_NANOS && o->used[j])
            run_lever_take(&run_levers[j], state, best);
    return strcmp(before, now) != 0;
}

/* From the last lever, which does least, to the first. */
static void undo_noise(struct search *search, struct optimum *o)
{
    double *worths = memory_new((size_t)search->n, sizeof *worths), *others = memory_new((size_t)search->n, sizeof *others);
    struct search_state best = o->found, state;
    search_state_apply(&best, search->s);
    search_price(search);
    take_worths(search, worths);
    for (int i = N_RUN_LEVERS - 1; i >= 0 && search->status == STATUS_OK; i--) {
        if (!o->used[i] || !without_change(o, &best, i, &state))
            continue;
        search_state_apply(&state, search->s);
        search_price(search);
        take_worths(search, others);
        o->kept[i] = worth_gain(worths, others, search->n);
        if (is_gain(o->kept[i], search->n))
            continue;
        o->undone[i] = true;
        best = state;
        memcpy(worths, others, (size_t)search->n * sizeof *worths);
    }
    if (best.policy.hot_spares > best.recovery.spares && best.policy.hot_spares != o->before.policy.hot_spares)
        best.policy.hot_spares = best.recovery.spares; /* no more are hot anyway */
    search_state_apply(&best, search->s);
    free(worths);
    free(others);
}

/* What each lever brings when nothing else moves. */
static void try_alone(struct search *search, struct optimum *o)
{
    double *worths = memory_new((size_t)search->n, sizeof *worths), *start = memory_new((size_t)search->n, sizeof *start);
    double nodes = search->s->options.nodes;
    for (int64_t i = 0; i < search->n; i++)
        start[i] = search->base[i] / 100 * nodes / (nodes + o->before.recovery.spares);
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        if (!o->used[i])
            continue;
        struct search_state state = o->before;
        run_lever_take(&run_levers[i], &state, &o->best);
        search_state_apply(&state, search->s);
        o->alone[i].price = search_price(search);
        o->alone[i].gain = search_gain(search);
        take_worths(search, worths);
        o->alone[i].separated = is_gain(worth_gain(worths, start, search->n), search->n);
        o->alone[i].harms = is_gain(worth_gain(start, worths, search->n), search->n);
    }
    free(worths);
    free(start);
}

static void optimise(struct search *search, struct optimum *o)
{
    search_state_take(search->s, &o->before);
    o->price_start = search_price(search);
    o->start = search_goodput(search);
    o->done_start = search_end_s(search);
    search_set_base(search);
    for (int round = 0; round < (o->n_used > 1 ? 2 : 1); round++)
        for (int i = 0; i < N_RUN_LEVERS && search->status == STATUS_OK; i++)
            if (o->used[i])
                run_levers[i].improve(search);
    search_state_take(search->s, &o->found);
    undo_noise(search, o);
    o->price_end = search_price(search);
    if (o->price_end > o->price_start) { /* nothing is better than what there was */
        search_state_apply(&o->before, search->s);
        memset(o->kept, 0, sizeof o->kept);
        o->price_end = search_price(search);
    }
    search_state_take(search->s, &o->best);
    o->end = search_goodput(search);
    o->done = search_end_s(search);
    o->gain = search_gain(search);
    closed_forms(search, o);
    try_alone(search, o);
    search_state_apply(&o->best, search->s);
}

/* --- the report --- */

static double cheaper_pct(const struct optimum *o, double price)
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

static void lever_rows(struct table *table, const struct optimum *o)
{
    char before[512], best[512];
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        if (!o->used[i])
            continue;
        run_lever_format(&run_levers[i], &o->before, before, sizeof before);
        run_lever_format(&run_levers[i], &o->best, best, sizeof best);
        if (run_levers[i].value == VALUE_SUITE) {
            format_places(&o->before.policy.tests, &o->before.policy.tests, before, sizeof before);
            format_places(&o->best.policy.tests, &o->before.policy.tests, best, sizeof best);
        }
        optimum_row(table, run_levers[i].title, before, best);
        gain_cells(table, o->alone[i].gain, cheaper_pct(o, o->alone[i].price));
    }
}

/* The lever that does most alone, -1: none does anything, or there is only one. */
static int most_helpful(const struct optimum *o)
{
    int most = -1;
    for (int i = 0; i < N_RUN_LEVERS && o->n_used > 1; i++)
        if (o->used[i] && o->alone[i].separated && o->alone[i].price < (most < 0 ? o->price_start : o->alone[most].price))
            most = i;
    return most;
}

/* Money per million tokens, when there is a price. */
static void write_cost(struct table *table, const struct search *search, const struct optimum *o)
{
    char before[64], after[64];
    double best = run_token_cost(search->s, o->end.mean);
    if (best <= 0)
        return;
    snprintf(before, sizeof before, "%.4g", best * o->price_start / o->price_end);
    snprintf(after, sizeof after, "%.4g", best);
    optimum_row(table, "cost per M tokens", before, after);
    no_cells(table, 2);
    table_cell(table, "%+.3f", cheaper_pct(o, o->price_end));
}

/* When training ends, where a budget of tokens says so: the median, and what one run in twenty exceeds. */
static void write_end(struct table *table, const struct search *search, const struct optimum *o)
{
    static const char *const titles[] = {"training ends, median", "training ends, p95"};
    const double before[] = {o->done_start.median, o->done_start.p95}, best[] = {o->done.median, o->done.p95};
    for (int i = 0; search->s->options.goal > 0 && i < 2; i++) {
        char texts[2][32];
        optimum_row(table, titles[i], end_text(before[i], texts[0], sizeof texts[0]),
                    end_text(best[i], texts[1], sizeof texts[1]));
        no_cells(table, 3);
    }
}

/* What the search found, and these replicas do not tell apart from what there was. */
static void write_undone(FILE *out, const struct optimum *o)
{
    char found[512];
    int n = 0;
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        if (!o->undone[i])
            continue;
        if (run_levers[i].value == VALUE_SUITE)
            format_places(&o->found.policy.tests, &o->before.policy.tests, found, sizeof found);
        else
            run_lever_format(&run_levers[i], &o->found, found, sizeof found);
        fprintf(out, "%s%s (%s)", n++ ? ", " : "\nleft as it was, for the replicas tell no gain from none: ", run_levers[i].title,
                found);
    }
    if (n > 0)
        fputc('\n', out);
}

/* Changes that only the others beside them make worth anything that is told apart from nothing: the gain that speaks for them. */
static void write_kept(FILE *out, const struct optimum *o, int64_t n, bool harms)
{
    int told = 0;
    const char *head = harms ? "\nworth it with the other changes, but harmful alone: "
                             : "\nworth it with the other changes, alone not told from none: ";
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        if (!o->used[i] || o->alone[i].separated || o->alone[i].harms != harms || !is_gain(o->kept[i], n))
            continue;
        fprintf(out, "%s%s (without it a token is %.3f +- %.3f %% dearer)", told++ ? ", " : head, run_levers[i].title,
                o->kept[i].mean, o->kept[i].half_width);
    }
    if (told > 0)
        fputc('\n', out);
}

/* Another kind of checkpoint comes at an interval of its own. */
static void write_shared_interval(FILE *out, const struct optimum *o)
{
    int kind = -1, interval = -1;
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        kind = o->used[i] && run_levers[i].value == VALUE_KIND ? i : kind;
        interval = o->used[i] && run_levers[i].value == VALUE_NANOS ? i : interval;
    }
    if (kind >= 0 && interval >= 0 && strcmp(o->before.kind, o->best.kind) != 0)
        fprintf(out, "\nthe row of %s is at the best interval already; that of %s keeps the kind that there was\n",
                run_levers[kind].title, run_levers[interval].title);
}

/* What Young and Daly do not know of. */
static void write_lag(FILE *out, const struct optimum *o)
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
static void write_legend(FILE *out, const struct search *search, const struct optimum *o)
{
    int most = most_helpful(o);
    fputs("(a lever's gain is what it brings alone; goodput's is of all together; +- and ci95: half of a 95 % interval)\n", out);
    for (int i = 0; i < N_RUN_LEVERS; i++)
        for (int j = 0; o->used[i] && run_levers[i].value == VALUE_SUITE && j < o->before.policy.tests.n; j++)
            fprintf(out, "%s%d %s", j ? ", " : "\ntests: ", j + 1, o->before.policy.tests.items[j].name);
    write_lag(out, o);
    write_undone(out, o);
    write_kept(out, o, search->n, false);
    write_kept(out, o, search->n, true);
    write_shared_interval(out, o);
    if (most >= 0)
        fprintf(out, "\n%s helps most: alone it makes a token %.3g %% cheaper\n", run_levers[most].title,
                cheaper_pct(o, o->alone[most].price));
    fprintf(out, "\n%" PRId64 " replicas of the same luck for each of %d candidates\n", search->n, search->evaluations);
}

static void write_optimum(struct invocation *call, const struct search *search, const struct optimum *o)
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
    write_cost(&table, search, o);
    write_end(&table, search, o);
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
        run_assumptions_write(&search->s->report, call->out);
}

static json_t *levers_json(const struct optimum *o)
{
    char before[512], best[512];
    json_t *list = json_array();
    for (int i = 0; i < N_RUN_LEVERS; i++) {
        if (!o->used[i])
            continue;
        run_lever_format(&run_levers[i], &o->before, before, sizeof before);
        run_lever_format(&run_levers[i], &o->best, best, sizeof best);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:f, s:f}", "name", run_levers[i].name,
                                              "before", before, "best", best, "left_as_it_was", o->undone[i], "goodput_gain",
                                              o->alone[i].gain.mean / 100, "goodput_gain_ci95", o->alone[i].gain.half_width / 100,
                                              "token_cheaper_pct", cheaper_pct(o, o->alone[i].price), "undone_dearer_pct",
                                              o->kept[i].mean, "undone_dearer_pct_ci95", o->kept[i].half_width));
    }
    return list;
}

static enum status write_optimum_json(struct invocation *call, const struct search *search, const struct optimum *o)
{
    char *config = experiment_to_json(&search->s->experiment);
    json_t *root = result_create(call, config);
    free(config);
    json_object_set_new(root, "optimum",
                        json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:i, s:o}", "checkpoint_interval_s",
                                  nanos_to_seconds(o->best.checkpoint.interval), "spares", o->best.recovery.spares, "goodput",
                                  o->end.mean / 100, "goodput_ci95", o->end.half_width / 100, "goodput_before",
                                  o->start.mean / 100, "token_cheaper_pct", cheaper_pct(o, o->price_end), "young_s",
                                  o->interval.young_s, "daly_s", o->interval.daly_s, "mttf_s", o->between_s,
                                  "checkpoint_interval_before_s", nanos_to_seconds(o->before.checkpoint.interval), "replicas",
                                  (json_int_t)search->n, "evaluations", search->evaluations, "levers", levers_json(o)));
    json_object_set_new(root, "assumptions", run_assumptions_json(&search->s->report));
    if (search->s->options.goal > 0) {
        json_object_set_new(json_object_get(root, "optimum"), "end_s", estimate_json(o->done));
        json_object_set_new(json_object_get(root, "optimum"), "end_before_s", estimate_json(o->done_start));
    }
    return result_write(call, root);
}

enum status run_optimise(struct invocation *call, struct run_session *s)
{
    struct optimum *o = memory_new(1, sizeof *o);
    struct search search;
    enum status status = check_levers(call, s, o);
    if (status == STATUS_OK) {
        status = search_open(&search, call, s, "optimise");
        if (status == STATUS_OK) {
            optimise(&search, o);
            status = search.status;
        }
        if (status == STATUS_OK)
            status = call->format == FORMAT_JSON ? write_optimum_json(call, &search, o) : STATUS_OK;
        if (status == STATUS_OK && call->format != FORMAT_JSON)
            write_optimum(call, &search, o);
        search_close(&search);
    }
    free(o);
    return status;
}
