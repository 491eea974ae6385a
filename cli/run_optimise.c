/*
 * The best policy: --optimise makes a trained token cheapest (run_search.h), by one lever after the other, in two rounds where
 * there are several. How each lever is searched:
 *
 *   times      Brent's method on the logarithm (GSL), from a bracket that a coarse grid gives
 *   counts     doubling, then halving around the best
 *   kinds      all of them
 *   the suite  leave out one test, or swap two neighbours, as long as that helps
 *
 * Afterwards every lever is put to its best place alone, which says which change helps most. Young's optimum sqrt(2 w M) and
 * Daly's refinement stand beside.
 */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/result.h"
#include "cli/run_search.h"
#include "cli/table.h"
#include "model/base/memory.h"

static const struct place nowhere = {0};

/* --- ways to search ----------------------------------------------------------------------------------------------------------
 */

typedef void set_time(struct run_session *s, double seconds);
typedef void set_count(struct run_session *s, int count);

struct time_search {
    struct search *search;
    set_time *set;
};

static double price_of_time(double log_s, void *data)
{
    struct time_search *t = data;
    t->set(t->search->s, exp(log_s));
    return search_price(t->search);
}

/* A coarse grid around `start` gives Brent's method its bracket. */
static bool bracket(struct time_search *t, double start, double x3[3], double f3[3])
{
    enum { SIDE = 6 };
    double x[2 * SIDE + 1], f[2 * SIDE + 1];
    int best = 0;
    for (int i = 0; i <= 2 * SIDE; i++) {
        x[i] = start + 0.6 * (i - SIDE);
        f[i] = price_of_time(x[i], t);
        best = f[i] < f[best] ? i : best;
    }
    x3[1] = x[best];
    if (best == 0 || best == 2 * SIDE)
        return false;
    memcpy(x3, &x[best - 1], 3 * sizeof *x3);
    memcpy(f3, &f[best - 1], 3 * sizeof *f3);
    return f[best] < f[best - 1] && f[best] < f[best + 1];
}

static void best_time(struct search *search, double start_s, set_time *set)
{
    struct time_search t = {.search = search, .set = set};
    double x[3], f[3];
    if (bracket(&t, log(start_s), x, f)) {
        gsl_error_handler_t *before = gsl_set_error_handler_off();
        gsl_function function = {.function = price_of_time, .params = &t};
        gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
        int status = gsl_min_fminimizer_set_with_values(minimizer, &function, x[1], f[1], x[0], f[0], x[2], f[2]);
        for (int i = 0; i < 24 && status == GSL_SUCCESS; i++) {
            status = gsl_min_fminimizer_iterate(minimizer);
            x[1] = gsl_min_fminimizer_x_minimum(minimizer);
            if (gsl_min_fminimizer_x_upper(minimizer) - gsl_min_fminimizer_x_lower(minimizer) < 0.01)
                break;
        }
        gsl_min_fminimizer_free(minimizer);
        gsl_set_error_handler(before);
    }
    set(search->s, exp(x[1]));
}

static double price_of_count(struct search *search, int count, set_count *set)
{
    set(search->s, count);
    return search_price(search);
}

static void best_count(struct search *search, int lowest, int limit, set_count *set)
{
    int best = lowest;
    double least = price_of_count(search, lowest, set);
    for (int count = lowest + 1; count <= limit; count *= 2) {
        double value = price_of_count(search, count, set);
        if (value < least) {
            least = value;
            best = count;
        } else if (count > 4 * (best + 1)) {
            break;
        }
    }
    for (int step = best / 2; step >= 1; step /= 2)
        for (int side = -1; side <= 1; side += 2) {
            int count = best + side * step;
            double value = count >= lowest && count <= limit ? price_of_count(search, count, set) : HUGE_VAL;
            if (value < least) {
                least = value;
                best = count;
            }
        }
    set(search->s, best);
}

/* --- the levers --------------------------------------------------------------------------------------------------------------
 */

static void set_interval(struct run_session *s, double seconds)
{
    s->options.checkpoint.interval = nanos_from_seconds(seconds);
}

static double young_s(const struct search *search)
{
    double failures = 0, w = (double)search->s->options.checkpoint.block / 1e9;
    for (int64_t i = 0; i < search->n; i++)
        failures += (double)search->outcomes[i].interruptions;
    return failures > 0 ? sqrt(2 * w * (double)search->s->options.horizon / 1e9 * (double)search->n / failures) : 0;
}

static void improve_interval(struct search *search)
{
    double young = young_s(search), now = (double)search->s->options.checkpoint.interval / 1e9;
    best_time(search, young > 0 ? young : now, set_interval);
}

static const char *refuse_interval(const struct run_session *s)
{
    return s->options.checkpoint.block > 0 ? NULL
                                           : "checkpoints cost nothing here, so the shortest interval is best; give "
                                             "--checkpoint-block, or --checkpoint two-stage";
}

static void take_interval(struct search_state *to, const struct search_state *from)
{
    to->checkpoint.interval = from->checkpoint.interval;
}

static void format_interval(const struct search_state *state, char *text, size_t size)
{
    quantity_format((double)state->checkpoint.interval / 1e9, DIM_TIME, text, size);
}

static void set_spares(struct run_session *s, int count)
{
    s->options.recovery.spares = count;
}

static void improve_spares(struct search *search)
{
    best_count(search, 0, search->s->options.nodes, set_spares);
}

static void take_spares(struct search_state *to, const struct search_state *from)
{
    to->recovery.spares = from->recovery.spares;
}

static void format_spares(const struct search_state *state, char *text, size_t size)
{
    snprintf(text, size, "%d", state->recovery.spares);
}

/* Each kind at the interval that suits what it blocks. */
static void improve_kind(struct search *search)
{
    static const char *const kinds[] = {"blocking", "two-stage", "memory", "step"};
    struct search_state start, best;
    search_state_take(search->s, &start);
    best = start;
    double least = search_price(search);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && search->status == STATUS_OK; i++) {
        search_state_apply(&start, search->s);
        search->status = run_set_checkpoint(search->call, search->s, kinds[i]);
        double young = young_s(search);
        if (strcmp(kinds[i], "step") != 0 && young > 0)
            set_interval(search->s, young);
        double value = search_price(search);
        if (value < least) {
            least = value;
            search_state_take(search->s, &best);
        }
    }
    search_state_apply(&best, search->s);
}

static const char *refuse_kind(const struct run_session *s)
{
    return s->has_cost ? NULL : "what checkpoints cost follows from the layout; leave --step-time out";
}

static void take_kind(struct search_state *to, const struct search_state *from)
{
    memcpy(to->kind, from->kind, sizeof to->kind);
    to->checkpoint = from->checkpoint;
    to->restart = from->restart;
    to->restart_hot = from->restart_hot;
    to->startup = from->startup;
    to->recovery.restart = from->recovery.restart;
    to->restart_s = from->restart_s;
}

static void format_kind(const struct search_state *state, char *text, size_t size)
{
    char interval[32];
    format_interval(state, interval, sizeof interval);
    snprintf(text, size, "%s, %s", *state->kind ? state->kind : "blocking", interval);
}

static const char *refuse_without_policy(const struct run_session *s)
{
    return s->has_policy ? NULL : "it is part of a recovery policy; give --policy";
}

static void set_heartbeat_timeout(struct run_session *s, double seconds)
{
    s->policy.heartbeat_timeout_s = fmax(seconds, s->policy.heartbeat_s); /* a shorter one would lose healthy nodes */
}

static void improve_heartbeat_timeout(struct search *search)
{
    best_time(search, search->s->policy.heartbeat_timeout_s, set_heartbeat_timeout);
}

static const char *refuse_heartbeat_timeout(const struct run_session *s)
{
    return !s->has_policy             ? refuse_without_policy(s)
           : s->policy.pause_rate > 0 ? NULL
                                      : "the policy has no pause_rate, so nothing speaks against the shortest timeout";
}

static void take_heartbeat_timeout(struct search_state *to, const struct search_state *from)
{
    to->policy.heartbeat_timeout_s = from->policy.heartbeat_timeout_s;
}

static void format_heartbeat_timeout(const struct search_state *state, char *text, size_t size)
{
    quantity_format(state->policy.heartbeat_timeout_s, DIM_TIME, text, size);
}

static void set_traffic_window(struct run_session *s, double seconds)
{
    s->policy.traffic_window_s = seconds;
}

static void improve_traffic_window(struct search *search)
{
    best_time(search, search->s->policy.traffic_window_s, set_traffic_window);
}

static const char *refuse_traffic_window(const struct run_session *s)
{
    return !s->has_policy                    ? refuse_without_policy(s)
           : s->policy.traffic_window_s <= 0 ? "the policy does not watch traffic"
           : s->policy.stall_rate > 0        ? NULL
                                             : "the policy has no stall_rate, so nothing speaks against the shortest window";
}

static void take_traffic_window(struct search_state *to, const struct search_state *from)
{
    to->policy.traffic_window_s = from->policy.traffic_window_s;
}

static void format_traffic_window(const struct search_state *state, char *text, size_t size)
{
    quantity_format(state->policy.traffic_window_s, DIM_TIME, text, size);
}

static void set_hot_spares(struct run_session *s, int count)
{
    s->policy.hot_spares = count;
}

static void improve_hot_spares(struct search *search)
{
    best_count(search, 0, search->s->options.recovery.spares, set_hot_spares);
}

static void take_hot_spares(struct search_state *to, const struct search_state *from)
{
    to->policy.hot_spares = from->policy.hot_spares;
}

static void format_hot_spares(const struct search_state *state, char *text, size_t size)
{
    snprintf(text, size, "%d", state->policy.hot_spares);
}

static void set_attempts(struct run_session *s, int count)
{
    s->policy.attempts = count;
}

static void improve_attempts(struct search *search)
{
    best_count(search, 1, 16, set_attempts);
}

static void take_attempts(struct search_state *to, const struct search_state *from)
{
    to->policy.attempts = from->policy.attempts;
}

static void format_attempts(const struct search_state *state, char *text, size_t size)
{
    snprintf(text, size, "%d", state->policy.attempts);
}

/* Move number `move` of a suite of n tests: leave out test `move`, or swap neighbours. False: there is no such move. */
static bool change_suite(const struct diagnostic_suite *from, int move, struct diagnostic_suite *to)
{
    *to = *from;
    if (move < from->n) {
        memmove(&to->items[move], &to->items[move + 1], (size_t)(from->n - move - 1) * sizeof *to->items);
        to->n--;
        return true;
    }
    int i = move - from->n;
    if (i + 1 >= from->n)
        return false;
    to->items[i] = from->items[i + 1];
    to->items[i + 1] = from->items[i];
    return true;
}

static void improve_tests(struct search *search)
{
    struct diagnostic_suite best = search->s->policy.tests, start;
    double least = search_price(search);
    do {
        start = best;
        for (int move = 0; search->status == STATUS_OK && change_suite(&start, move, &search->s->policy.tests); move++) {
            double value = search_price(search);
            if (value < least) {
                least = value;
                best = search->s->policy.tests;
            }
        }
    } while (memcmp(&best, &start, sizeof best) != 0);
    search->s->policy.tests = best;
}

static void take_tests(struct search_state *to, const struct search_state *from)
{
    to->policy.tests = from->policy.tests;
}

static void format_tests(const struct search_state *state, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < state->policy.tests.n && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? " > " : "", state->policy.tests.items[i].name);
    if (state->policy.tests.n == 0)
        snprintf(text, size, "none");
}

struct lever {
    const char *name, *title;
    const char *(*refuse)(const struct run_session *s); /* why it cannot be searched; NULL: it can */
    void (*improve)(struct search *search);             /* leaves the session at its best */
    void (*take)(struct search_state *to, const struct search_state *from);
    void (*format)(const struct search_state *state, char *text, size_t size);
};

static const char *refuse_never(const struct run_session *s)
{
    (void)s;
    return NULL;
}

/* The kind first: the others' best places depend on it. */
static const struct lever levers[] = {
    {"checkpoint", "checkpoint", refuse_kind, improve_kind, take_kind, format_kind},
    {"spares", "spares", refuse_never, improve_spares, take_spares, format_spares},
    {"checkpoint-interval", "checkpoint interval", refuse_interval, improve_interval, take_interval, format_interval},
    {"hot-spares", "hot spares", refuse_without_policy, improve_hot_spares, take_hot_spares, format_hot_spares},
    {"heartbeat-timeout", "heartbeat timeout", refuse_heartbeat_timeout, improve_heartbeat_timeout, take_heartbeat_timeout,
     format_heartbeat_timeout},
    {"traffic-window", "traffic window", refuse_traffic_window, improve_traffic_window, take_traffic_window,
     format_traffic_window},
    {"attempts", "attempts", refuse_without_policy, improve_attempts, take_attempts, format_attempts},
    {"tests", "tests", refuse_without_policy, improve_tests, take_tests, format_tests},
};
enum { N_LEVERS = sizeof levers / sizeof *levers };

/* --- all together ------------------------------------------------------------------------------------------------------------
 */

struct optimum {
    bool used[N_LEVERS];
    int n_used;
    double young_s, daly_s, mttf_s; /* at the best */
    struct search_state before, best;
    struct estimate start, end, gain; /* of goodput */
    double price_start, price_end;
    struct {
        struct estimate gain; /* of goodput, alone */
        double price;
    } alone[N_LEVERS];
};

/* Mean time between interruptions as drawn, and what the closed forms make of it. */
static void closed_forms(const struct search *search, struct optimum *o)
{
    double failures = 0, w = (double)search->s->options.checkpoint.block / 1e9;
    for (int64_t i = 0; i < search->n; i++)
        failures += (double)search->outcomes[i].interruptions;
    double m = failures > 0 ? (double)search->s->options.horizon / 1e9 * (double)search->n / failures : HUGE_VAL;
    double x = w / (2 * m);
    o->mttf_s = m;
    o->young_s = sqrt(2 * w * m);
    o->daly_s = w < 2 * m ? o->young_s * (1 + sqrt(x) / 3 + x / 9) - w : m;
}

static enum status check_levers(struct invocation *call, const struct run_session *s, struct optimum *o)
{
    int n = 0;
    const char *const *what = option_list(call, "optimise", &n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < N_LEVERS; j++) {
            bool all = strcmp(what[i], "all") == 0;
            if (!all && strcmp(what[i], levers[j].name) != 0)
                continue;
            const char *why = levers[j].refuse(s);
            if (why && !all)
                diag_error(&call->diags, nowhere, "--optimise %s: %s", levers[j].name, why);
            o->n_used += !why && !o->used[j];
            o->used[j] |= !why;
        }
    if (!s->has_model && !s->has_policy && option_given(call, "replicas"))
        diag_error(&call->diags, nowhere, "--replicas: a trace replayed by fixed rules is the same every time; leave it out");
    return diags_status(&call->diags) == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

/* What each lever brings when nothing else moves. */
static void try_alone(struct search *search, struct optimum *o)
{
    for (int i = 0; i < N_LEVERS; i++) {
        if (!o->used[i])
            continue;
        struct search_state state = o->before;
        levers[i].take(&state, &o->best);
        search_state_apply(&state, search->s);
        o->alone[i].price = search_price(search);
        o->alone[i].gain = search_gain(search);
    }
}

static void optimise(struct search *search, struct optimum *o)
{
    search_state_take(search->s, &o->before);
    o->price_start = search_price(search);
    o->start = search_goodput(search);
    search_set_base(search);
    for (int round = 0; round < (o->n_used > 1 ? 2 : 1); round++)
        for (int i = 0; i < N_LEVERS && search->status == STATUS_OK; i++)
            if (o->used[i])
                levers[i].improve(search);
    o->price_end = search_price(search);
    if (o->price_end > o->price_start) { /* nothing is better than what there was */
        search_state_apply(&o->before, search->s);
        o->price_end = search_price(search);
    }
    search_state_take(search->s, &o->best);
    o->end = search_goodput(search);
    o->gain = search_gain(search);
    closed_forms(search, o);
    try_alone(search, o);
    search_state_apply(&o->best, search->s);
}

/* --- the report --------------------------------------------------------------------------------------------------------------
 */

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
    table_cell(table, "%+.3f +- %.3f", gain.mean, gain.half_width);
    table_cell(table, "%+.3f", cheaper);
}

static void plain_row(struct table *table, const char *what, double seconds)
{
    char text[64];
    quantity_format(seconds, DIM_TIME, text, sizeof text);
    optimum_row(table, what, "", text);
    table_cell(table, "%s", "");
    table_cell(table, "%s", "");
}

/* A suite by the places that its tests had before. */
static void format_places(const struct diagnostic_suite *suite, const struct diagnostic_suite *before, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", suite->n ? "" : "none");
    for (int i = 0; i < suite->n && n < size; i++) {
        int place = 0;
        while (place < before->n && memcmp(&before->items[place], &suite->items[i], sizeof suite->items[i]) != 0)
            place++;
        n += (size_t)snprintf(text + n, size - n, "%s%d", i ? " > " : "", place + 1);
    }
}

static void lever_rows(struct table *table, const struct optimum *o)
{
    char before[512], best[512];
    for (int i = 0; i < N_LEVERS; i++) {
        if (!o->used[i])
            continue;
        levers[i].format(&o->before, before, sizeof before);
        levers[i].format(&o->best, best, sizeof best);
        if (levers[i].format == format_tests) {
            format_places(&o->before.policy.tests, &o->before.policy.tests, before, sizeof before);
            format_places(&o->best.policy.tests, &o->before.policy.tests, best, sizeof best);
        }
        optimum_row(table, levers[i].title, before, best);
        gain_cells(table, o->alone[i].gain, cheaper_pct(o, o->alone[i].price));
    }
}

/* The lever that does most alone, -1: none does anything, or there is only one. */
static int most_helpful(const struct optimum *o)
{
    int most = -1;
    for (int i = 0; i < N_LEVERS && o->n_used > 1; i++)
        if (o->used[i] && o->alone[i].price < (most < 0 ? o->price_start : o->alone[most].price))
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
    table_cell(table, "%s", "");
    table_cell(table, "%+.3f", cheaper_pct(o, o->price_end));
}

/* Below the table: what its numbers stand for. */
static void write_legend(FILE *out, const struct search *search, const struct optimum *o)
{
    int most = most_helpful(o);
    for (int i = 0; i < N_LEVERS; i++)
        for (int j = 0; o->used[i] && levers[i].format == format_tests && j < o->before.policy.tests.n; j++)
            fprintf(out, "%s%d %s", j ? ", " : "\ntests: ", j + 1, o->before.policy.tests.items[j].name);
    if (most >= 0)
        fprintf(out, "\n%s helps most: alone it makes a token %.3g %% cheaper\n", levers[most].title,
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
    table_column(&table, "alone: goodput", "points", ALIGN_RIGHT);
    table_column(&table, "a token cheaper by", "%", ALIGN_RIGHT);
    lever_rows(&table, o);
    snprintf(before, sizeof before, "%.3f +- %.3f", o->start.mean, o->start.half_width);
    snprintf(after, sizeof after, "%.3f +- %.3f", o->end.mean, o->end.half_width);
    optimum_row(&table, "goodput [%]", before, after);
    gain_cells(&table, o->gain, cheaper_pct(o, o->price_end));
    write_cost(&table, search, o);
    plain_row(&table, "Young's interval", o->young_s);
    plain_row(&table, "Daly's interval", o->daly_s);
    plain_row(&table, "time between interruptions", o->mttf_s);
    table_write(&table, call);
    table_free(&table);
    if (call->format == FORMAT_TEXT)
        write_legend(call->out, search, o);
}

static json_t *levers_json(const struct optimum *o)
{
    char before[512], best[512];
    json_t *list = json_array();
    for (int i = 0; i < N_LEVERS; i++) {
        if (!o->used[i])
            continue;
        levers[i].format(&o->before, before, sizeof before);
        levers[i].format(&o->best, best, sizeof best);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f}", "name", levers[i].name, "before", before, "best",
                                              best, "goodput_gain", o->alone[i].gain.mean / 100, "goodput_gain_ci95",
                                              o->alone[i].gain.half_width / 100, "token_cheaper_pct",
                                              cheaper_pct(o, o->alone[i].price)));
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
                                  (double)o->best.checkpoint.interval / 1e9, "spares", o->best.recovery.spares, "goodput",
                                  o->end.mean / 100, "goodput_ci95", o->end.half_width / 100, "goodput_before",
                                  o->start.mean / 100, "token_cheaper_pct", cheaper_pct(o, o->price_end), "young_s", o->young_s,
                                  "daly_s", o->daly_s, "mttf_s", o->mttf_s, "checkpoint_interval_before_s",
                                  (double)o->before.checkpoint.interval / 1e9, "replicas", (json_int_t)search->n, "evaluations",
                                  search->evaluations, "levers", levers_json(o)));
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
