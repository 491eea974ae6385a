/* What a probe makes of the marks it takes: a clock that ticks as the test says stands in for the device's. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "runtime/probe/probe.h"
#include "tests/runtime/toys.h"

enum { RANKS_MOST = 4, EVENTS_MOST = 4096, SLOWER = 4 };
static const nanos TICK = 1000, LONG = 1200 * NANOS_PER_SECOND;

/* The CPU's table with a clock in front; the same for all ranks. */
static struct device_api scripted;
static const struct device_api *own;
static nanos ahead;     /* that each rank's clock is of the one before it */
static int fails, says; /* this rank's launches fail from the `says`-th on; -1: nobody's */

/* Of the rank whose thread this is: the n-th mark is taken at n^2 ticks, so that every interval is longer than the one before. */
static _Thread_local struct {
    int rank, n_events, n_launches;
    int64_t marks;
    struct device_event *events[EVENTS_MOST];
    nanos times[EVENTS_MOST];
} mine;

static int place_of(struct device_event *event)
{
    for (int i = 0; i < mine.n_events; i++)
        if (mine.events[i] == event)
            return i;
    ck_assert_int_lt(mine.n_events, EVENTS_MOST);
    mine.events[mine.n_events] = event;
    return mine.n_events++;
}

static enum status record(struct device_event *event, struct device_stream *stream, struct diags *diags)
{
    mine.marks++;
    mine.times[place_of(event)] = mine.marks * mine.marks * TICK + mine.rank * ahead;
    return own->event_record(event, stream, diags);
}

static enum status tell(struct device_event *event, nanos *time, struct diags *diags)
{
    (void)diags;
    *time = mine.times[place_of(event)];
    return STATUS_OK;
}

static enum status tell_work(struct device_event *event, nanos *time, struct diags *diags)
{
    (void)diags;
    *time = mine.times[place_of(event)] / SLOWER;
    return STATUS_OK;
}

static enum status launch(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    if (mine.rank == fails && mine.n_launches++ >= says) {
        diag_error(diags, PLACE_NONE, "no more of this");
        return STATUS_FAILED;
    }
    return own->launch(stream, call, diags);
}

struct rank_probe {
    const struct probe_options *options;
    struct hub *hub;
    int rank;
    pthread_t thread;
    struct probe_result result;
    struct diags diags;
    enum status status;
};

static void *rank_main(void *argument)
{
    struct rank_probe *p = argument;
    struct world *world = hub_join(p->hub, p->rank);
    struct device *device;
    memset(&mine, 0, sizeof mine);
    mine.rank = p->rank;
    p->status = device_cpu_open(p->rank, hub_epoch(p->hub), 0, &device, &p->diags);
    ck_assert_int_eq(p->status, STATUS_OK);
    device->api = &scripted;
    p->status = probe_rank(p->options, device, world, &p->result, &p->diags);
    return NULL;
}

static void probe(struct rank_probe *ranks, int n, const struct probe_options *options)
{
    struct hub *hub = hub_new(n, LONG);
    struct device *any;
    struct diags diags = {0};
    ck_assert_int_eq(device_cpu_open(0, NULL, 0, &any, &diags), STATUS_OK);
    own = any->api;
    own->close(any);
    scripted = *own;
    scripted.event_record = record;
    scripted.event_time = tell;
    scripted.event_work = tell_work;
    scripted.launch = launch;
    for (int r = 0; r < n; r++) {
        ranks[r] = (struct rank_probe){.options = options, .hub = hub, .rank = r};
        ck_assert_int_eq(pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]), 0);
    }
    for (int r = 0; r < n; r++)
        pthread_join(ranks[r].thread, NULL);
    hub_free(hub);
}

static void release(struct rank_probe *ranks, int n)
{
    for (int r = 0; r < n; r++) {
        probe_result_free(&ranks[r].result);
        diags_free(&ranks[r].diags);
    }
}

static void job_of(struct toy *toy, const char *layout, struct probe_options *options)
{
    toy_make(toy, TOY_GPT);
    toy_lay_out(toy, layout, 0);
    *options = (struct probe_options){
        .ranks = toy->setting.gpus, .cores = 1, .seconds = 1e-9, .layout = &toy->layout, .setting = &toy->setting};
    fails = -1;
    ahead = 0;
}

/* Ranges grow evenly, so the median of a case is in the middle between its shortest and its longest. */
START_TEST(a_row_is_the_median_of_its_batches)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe ranks[2];
    job_of(&toy, "tp=2,sp=1", &options);
    probe(ranks, 2, &options);
    for (int i = 0; i < ranks[0].result.n_rows; i++) {
        const struct probe_row *row = &ranks[0].result.rows[i], *other = &ranks[1].result.rows[i];
        ck_assert_msg(row->spread > 0 && row->fastest > 0, "%s", row->op);
        ck_assert_double_eq_tol(row->seconds, row->fastest + row->spread * row->seconds / 2, 1e-12);
        ck_assert(row->seconds == other->seconds && row->worked == other->worked); /* all ranks get the same */
        if (row->ranks)
            ck_assert_msg(row->worked < row->seconds, "%s", row->op);
        else
            ck_assert_double_eq(row->worked, row->seconds);
    }
    ck_assert_double_eq(ranks[0].result.launch_s, ranks[0].result.rows[0].seconds);
    release(ranks, 2);
}
END_TEST

/* Of a batch of one call there are six marks: its beginning beside, its beginning, two of the call, its end, its end beside. From
 * the n-th to the (n + 3)-th it is 6 n + 9 ticks, n = 8 behind the call that is thrown away. A kernel takes what was worked of
 * it, a quarter, the mean of two ranks alike. */
START_TEST(a_kernel_takes_what_was_worked)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe ranks[2];
    job_of(&toy, "tp=2,sp=1", &options);
    probe(ranks, 2, &options);
    double tick = (double)TICK * 1e-9, first = ranks[0].result.rows[0].fastest / (tick / SLOWER);
    ck_assert_double_eq_tol(first, 6 * 8 + 9, 1e-6);
    release(ranks, 2);
}
END_TEST

/* An exchange begins when the last rank is there: what the second rank's clock is ahead is taken from the first one's time. */
START_TEST(an_exchange_begins_with_its_last_rank)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe even[2], apart[2];
    int exchanges = 0;
    job_of(&toy, "tp=2,sp=1", &options);
    probe(even, 2, &options);
    ahead = 3 * TICK;
    probe(apart, 2, &options);
    for (int i = 0; i < even[0].result.n_rows; i++) {
        const struct probe_row *a = &even[0].result.rows[i], *b = &apart[0].result.rows[i];
        ck_assert_double_eq_tol(a->seconds - b->seconds, a->ranks ? 1.5 * (double)TICK * 1e-9 : 0, 1e-12);
        exchanges += a->ranks > 0;
    }
    ck_assert_int_gt(exchanges, 1);
    release(even, 2);
    release(apart, 2);
}
END_TEST

/* Of the shortest ones what is left of their time when both ranks' work has had the only core. */
START_TEST(waking_is_what_the_shortest_exchanges_do_not_work)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe ranks[2];
    double shortest = INFINITY, left = 0;
    int n = 0;
    job_of(&toy, "tp=2,sp=1", &options);
    probe(ranks, 2, &options);
    const struct probe_result *result = &ranks[0].result;
    for (int i = 0; i < result->n_rows; i++)
        shortest = result->rows[i].ranks ? fmin(shortest, result->rows[i].bytes) : shortest;
    for (int i = 0; i < result->n_rows; i++)
        if (result->rows[i].ranks && result->rows[i].bytes <= shortest)
            left += result->rows[i].seconds - 2 * result->rows[i].worked, n++;
    ck_assert_int_gt(n, 0);
    ck_assert_double_eq_tol(result->waking_s, fmax(left / n, 0), 1e-12);
    release(ranks, 2);
}
END_TEST

/* Two groups of two, and all four. */
START_TEST(groups_are_of_neighbours)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe ranks[4];
    job_of(&toy, "tp=2,sp=1,dp=2,zero=1", &options);
    probe(ranks, 4, &options);
    for (int r = 0; r < 4; r++)
        ck_assert_msg(ranks[r].status == STATUS_OK, "rank %d", r);
    release(ranks, 4);
}
END_TEST

/* The device of one rank refuses: the other rank learns it and ends at once. */
START_TEST(a_rank_that_fails_ends_the_others)
{
    struct toy toy;
    struct probe_options options;
    struct rank_probe ranks[2];
    nanos began = clock_monotonic();
    job_of(&toy, "tp=2,sp=1", &options);
    fails = 1;
    says = 3;
    probe(ranks, 2, &options);
    ck_assert_int_lt(clock_monotonic() - began, LONG / 2);
    ck_assert(ranks[0].status == STATUS_FAILED && ranks[1].status == STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(ranks[1].diags.items[0].text, "no more of this"));
    ck_assert_ptr_nonnull(strstr(ranks[0].diags.items[0].text, "first failure: no more of this"));
    release(ranks, 2);
}
END_TEST

/* Buffers of 128 TiB. */
START_TEST(what_does_not_fit_fails)
{
    struct toy toy;
    struct probe_options options;
    struct probe_result result = {0};
    struct diags diags = {0};
    job_of(&toy, "tp=2,sp=1", &options);
    toy.layout.micro_batch = 1 << 20;
    toy.job.global_batch = 1 << 20;
    toy.job.seq_len = 1 << 20;
    ck_assert_int_eq(probe_cpu(&options, &result, &diags), STATUS_FAILED);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "out of memory"));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{a_row_is_the_median_of_its_batches, 1},
                                     {a_kernel_takes_what_was_worked, 1},
                                     {an_exchange_begins_with_its_last_rank, 1},
                                     {waking_is_what_the_shortest_exchanges_do_not_work, 1},
                                     {groups_are_of_neighbours, 1},
                                     {a_rank_that_fails_ends_the_others, 1},
                                     {what_does_not_fit_fails, 1}};
    return toy_suite("a probe's clock", tests, COUNT(tests));
}
