#include "cli/run/run_levers.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/base/append.h"

/* --- ways to search --- */

#define FIELD(member) offsetof(struct search_state, member)

typedef void set_time(struct run_session *s, double seconds);

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

/* `field` is the count's offset in struct search_state. */
static void set_count(struct run_session *s, size_t field, int count)
{
    struct search_state state;
    search_state_take(s, &state);
    memcpy((char *)&state + field, &count, sizeof count);
    search_state_apply(&state, s);
}

static double price_of_count(struct search *search, size_t field, int count)
{
    set_count(search->s, field, count);
    return search_price(search);
}

static void best_count(struct search *search, size_t field, int lowest, int limit)
{
    int best = lowest;
    double least = price_of_count(search, field, lowest);
    for (int count = lowest + 1; count <= limit; count *= 2) {
        double value = price_of_count(search, field, count);
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
            double value = count >= lowest && count <= limit ? price_of_count(search, field, count) : HUGE_VAL;
            if (value < least) {
                least = value;
                best = count;
            }
        }
    set_count(search->s, field, best);
}

/* --- the levers --- */

static void set_interval(struct run_session *s, double seconds)
{
    s->options.checkpoint.interval = nanos_from_seconds(seconds);
}

double search_time_between(const struct search *search)
{
    struct run_account all = {0};
    for (int64_t i = 0; i < search->n; i++) {
        all.interruptions += (double)search->outcomes[i].interruptions;
        for (int use = 0; use < N_TIME_USES; use++)
            all.use_s[use] += nanos_to_seconds(search->outcomes[i].use[use]);
    }
    return run_time_between(&all);
}

/* Where the search for an interval begins; 0: nothing says. */
static double likely_interval_s(const struct search *search)
{
    const struct best_interval best = best_interval_of(&search->s->options.checkpoint, search_time_between(search));
    return best.young_s > 0 ? fmax(best.young_s, nanos_to_seconds(checkpoint_lag(&search->s->options.checkpoint))) : 0;
}

static void improve_interval(struct search *search)
{
    double young = likely_interval_s(search), now = nanos_to_seconds(search->s->options.checkpoint.interval);
    best_time(search, young > 0 ? young : now, set_interval);
}

static const char *refuse_interval(const struct run_session *s)
{
    return s->options.checkpoint.block > 0 ? NULL
                                           : "checkpoints cost nothing here, so the shortest interval is best; give "
                                             "--checkpoint-block, or --checkpoint two-stage";
}

static void improve_spares(struct search *search)
{
    best_count(search, FIELD(recovery.spares), 0, search->s->options.nodes);
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
        double young = likely_interval_s(search);
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

static void improve_hot_spares(struct search *search)
{
    best_count(search, FIELD(policy.hot_spares), 0, search->s->options.recovery.spares);
}

static void improve_attempts(struct search *search)
{
    best_count(search, FIELD(policy.attempts), 1, 16);
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

static const char *refuse_never(const struct run_session *s)
{
    (void)s;
    return NULL;
}

const struct run_lever run_levers[N_RUN_LEVERS] = {
    {"checkpoint", "checkpoint", refuse_kind, improve_kind, VALUE_KIND, 0},
    {"spares", "spares", refuse_never, improve_spares, VALUE_COUNT, FIELD(recovery.spares)},
    {"checkpoint-interval", "checkpoint interval", refuse_interval, improve_interval, VALUE_NANOS, FIELD(checkpoint.interval)},
    {"hot-spares", "hot spares", refuse_without_policy, improve_hot_spares, VALUE_COUNT, FIELD(policy.hot_spares)},
    {"heartbeat-timeout", "heartbeat timeout", refuse_heartbeat_timeout, improve_heartbeat_timeout, VALUE_SECONDS,
     FIELD(policy.heartbeat_timeout_s)},
    {"traffic-window", "traffic window", refuse_traffic_window, improve_traffic_window, VALUE_SECONDS,
     FIELD(policy.traffic_window_s)},
    {"attempts", "attempts", refuse_without_policy, improve_attempts, VALUE_COUNT, FIELD(policy.attempts)},
    {"tests", "tests", refuse_without_policy, improve_tests, VALUE_SUITE, FIELD(policy.tests)},
};

/* --- a lever's place --- */

static void take_kind(struct search_state *to, const struct search_state *from)
{
    memcpy(to->kind, from->kind, sizeof to->kind);
    to->checkpoint = from->checkpoint;
    to->restart = from->restart;
    to->restart_hot = from->restart_hot;
    to->reload = from->reload;
    to->startup = from->startup;
    to->recovery.restart = from->recovery.restart;
    to->restart_s = from->restart_s;
}

void run_lever_take(const struct run_lever *lever, struct search_state *to, const struct search_state *from)
{
    static const size_t sizes[] = {[VALUE_NANOS] = sizeof(nanos),
                                   [VALUE_SECONDS] = sizeof(double),
                                   [VALUE_COUNT] = sizeof(int),
                                   [VALUE_SUITE] = sizeof(struct diagnostic_suite)};
    if (lever->value == VALUE_KIND)
        take_kind(to, from);
    else
        memcpy((char *)to + lever->field, (const char *)from + lever->field, sizes[lever->value]);
}

static void format_suite(const struct diagnostic_suite *suite, char *text, size_t size)
{
    snprintf(text, size, "%s", suite->n ? "" : "none");
    for (int i = 0; i < suite->n; i++)
        text_append(text, size, "%s%s", i ? " > " : "", suite->items[i].name);
}

void run_lever_format(const struct run_lever *lever, const struct search_state *state, char *text, size_t size)
{
    const void *field = (const char *)state + lever->field;
    char interval[32];
    switch (lever->value) {
    case VALUE_KIND:
        quantity_format(nanos_to_seconds(state->checkpoint.interval), DIM_TIME, interval, sizeof interval);
        snprintf(text, size, "%s, %s", *state->kind ? state->kind : "blocking", interval);
        return;
    case VALUE_NANOS: quantity_format(nanos_to_seconds(*(const nanos *)field), DIM_TIME, text, size); return;
    case VALUE_SECONDS: quantity_format(*(const double *)field, DIM_TIME, text, size); return;
    case VALUE_COUNT: snprintf(text, size, "%d", *(const int *)field); return;
    case VALUE_SUITE: format_suite(field, text, size); return;
    }
}
