/* Ranks as threads: what every exchange gives, by hand; who comes for something else, late, or not at all is named, and nobody
 * waits for a rank that has gone. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "runtime/comm_threads.h"
#include "runtime/device_cpu.h"
#include "tests/runtime/toys.h"

enum { RANKS_MOST = 4, NUMBERS = 32, TEXT = 512 };
static const nanos LONG = 60 * NANOS_PER_SECOND, SHORT = 200 * (NANOS_PER_SECOND / 1000);

struct member {
    struct hub *hub;
    int rank;
    void (*body)(struct member *member);
    pthread_t thread;
    struct world *world;
    struct device *device;
    struct device_stream *stream;
    struct diags diags;
    enum status status;
    float in[NUMBERS], out[NUMBERS];
    double wide_in[NUMBERS], wide_out[NUMBERS];
    char text[TEXT]; /* its first sentence */
};

static void *member_main(void *argument)
{
    struct member *m = argument;
    m->world = hub_join(m->hub, m->rank);
    m->status = device_cpu_open(m->rank, hub_epoch(m->hub), 0, &m->device, &m->diags);
    if (m->status == STATUS_OK)
        m->status = m->device->api->stream_new(m->device, false, &m->stream, &m->diags);
    for (int i = 0; i < NUMBERS; i++)
        m->wide_in[i] = m->in[i] = (float)(100 * m->rank + i);
    if (m->status == STATUS_OK)
        m->body(m);
    if (m->diags.n_items)
        snprintf(m->text, sizeof m->text, "%s", m->diags.items[0].text);
    m->device->api->stream_free(m->stream);
    m->world->api->close(m->world);
    m->device->api->close(m->device);
    diags_free(&m->diags);
    return NULL;
}

/* All of them until they have ended, long before anybody's patience would end that has this much. */
static void run(struct member *members, int n, nanos timeout, void (*body)(struct member *member))
{
    struct hub *hub = hub_new(n, timeout);
    nanos began = clock_monotonic();
    for (int r = 0; r < n; r++) {
        members[r] = (struct member){.hub = hub, .rank = r, .body = body};
        ck_assert_int_eq(pthread_create(&members[r].thread, NULL, member_main, &members[r]), 0);
    }
    for (int r = 0; r < n; r++)
        pthread_join(members[r].thread, NULL);
    ck_assert_int_lt(clock_monotonic() - began, LONG / 2);
    hub_free(hub);
}

static void wait_for(nanos duration)
{
    const struct timespec t = {.tv_sec = duration / NANOS_PER_SECOND, .tv_nsec = duration % NANOS_PER_SECOND};
    nanosleep(&t, NULL);
}

/* Of the first `n` ranks from `first` on. */
static struct communicator *group(struct member *m, int first, int n)
{
    struct communicator *made = NULL;
    int ranks[RANKS_MOST];
    for (int i = 0; i < n; i++)
        ranks[i] = first + i;
    if (m->status == STATUS_OK)
        m->status = m->world->api->communicator_new(m->world, ranks, n, &made, &m->diags);
    return made;
}

static void begin(struct member *m, struct communicator *among, struct exchange_call call)
{
    call.in = call.in ? call.in : m->in;
    call.out = call.out ? call.out : m->out;
    call.what = call.what ? call.what : "numbers";
    if (m->status == STATUS_OK && among)
        m->status = m->world->api->enqueue(among, m->stream, &call, &m->diags);
}

static void finish(struct member *m)
{
    if (m->status == STATUS_OK)
        m->status = m->device->api->stream_synchronise(m->stream, &m->diags);
}

static void says(const struct member *m, const char *part)
{
    ck_assert_msg(strstr(m->text, part) != NULL, "rank %d: '%s' does not say '%s'", m->rank, m->text, part);
}

/* --- what they give */

static void exchange_all_kinds(struct member *m)
{
    struct communicator *all = group(m, 0, 3);
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    begin(m, all,
          (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .reduction = REDUCTION_MAX, .count = 4, .out = m->out + 4});
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_GATHER, .count = 2, .blocks = 2, .out = m->out + 8});
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_REDUCE_SCATTER, .count = 2, .blocks = 2, .out = m->out + 14});
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_TO_ALL, .count = 1, .out = m->out + 16});
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_BROADCAST, .count = 2, .peer = 1, .out = m->out + 19});
    for (int max = 0; max < 2; max++)
        begin(m, all,
              (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE,
                                     .element = ELEMENT_FP64,
                                     .reduction = max ? REDUCTION_MAX : REDUCTION_SUM,
                                     .count = 2,
                                     .in = m->wide_in,
                                     .out = m->wide_out + 2 * max});
    finish(m);
}

START_TEST(every_exchange_by_hand)
{
    struct member m[3];
    run(m, 3, LONG, exchange_all_kinds);
    for (int r = 0; r < 3; r++) {
        const float me = (float)r, expected[] = {300, 303,      306,      309, 200, 201, 202,          203,
                                                 0,   100,      200,      1,   101, 201, 300 + 3 * me, 300 + 3 * (me + 3),
                                                 me,  100 + me, 200 + me, 100, 101};
        const double wide[] = {300, 303, 200, 201};
        ck_assert_msg(m[r].status == STATUS_OK, "%s", m[r].text);
        for (int i = 0; i < COUNT(expected); i++)
            ck_assert_msg(m[r].out[i] == expected[i], "rank %d, number %d: %g is not %g", r, i, m[r].out[i], expected[i]);
        ck_assert_mem_eq(m[r].wide_out, wide, sizeof wide);
    }
}
END_TEST

static void pass_messages(struct member *m)
{
    struct communicator *pair = group(m, 0, 2);
    for (int i = 0; i < 3; i++)
        begin(m, pair,
              (struct exchange_call){.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND,
                                     .count = i + 1,
                                     .peer = !m->rank,
                                     .in = m->in + 4 * i,
                                     .out = m->out + 4 * i});
    finish(m);
}

START_TEST(messages_come_as_they_were_sent)
{
    struct member m[2];
    run(m, 2, LONG, pass_messages);
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_OK);
    ck_assert(m[1].out[0] == 0 && m[1].out[4] == 4 && m[1].out[5] == 5 && m[1].out[8] == 8 && m[1].out[10] == 10);
}
END_TEST

/* --- who comes for something else */

static const struct exchange_call others[] = {
    {.exchange = EXCHANGE_ALL_GATHER, .count = 4},
    {.exchange = EXCHANGE_ALL_TO_ALL, .count = 4},
    {.exchange = EXCHANGE_ALL_GATHER, .count = 2},
    {.exchange = EXCHANGE_ALL_GATHER, .count = 4, .element = ELEMENT_FP64},
    {.exchange = EXCHANGE_ALL_GATHER, .count = 4, .blocks = 2},
};
static int other; /* of the test under way */

static void come_for_something_else(struct member *m)
{
    begin(m, group(m, 0, 2), others[m->rank ? other : 0]);
    finish(m);
}

START_TEST(what_is_not_alike_does_not_meet)
{
    struct member m[2];
    other = _i;
    run(m, 2, LONG, come_for_something_else);
    for (int r = 0; r < 2; r++) {
        ck_assert(m[r].status == (_i ? STATUS_FAILED : STATUS_OK));
        if (_i)
            says(&m[r], "elements met");
    }
}
END_TEST

static void send_less(struct member *m)
{
    begin(m, group(m, 0, 2),
          (struct exchange_call){.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND, .count = 3 + m->rank, .peer = !m->rank});
    finish(m);
}

START_TEST(a_message_of_another_size_is_said)
{
    struct member m[2];
    run(m, 2, LONG, send_less);
    ck_assert(m[1].status == STATUS_FAILED);
    says(&m[1], "12 bytes came, 16 were expected");
}
END_TEST

static void make_other_groups(struct member *m)
{
    (void)group(m, m->rank, 2);
}

START_TEST(groups_have_the_same_members_everywhere)
{
    struct member m[2];
    run(m, 2, LONG, make_other_groups);
    ck_assert((m[0].status == STATUS_OK) != (m[1].status == STATUS_OK)); /* the first to come says who is in it */
    says(&m[m[0].status == STATUS_OK], "has other members than on another rank");
}
END_TEST

/* --- who does not come */

static int missing_from; /* this rank and every second one behind it stay away from the second exchange */

static void stay_away(struct member *m)
{
    struct communicator *all = group(m, 0, 4);
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    if (m->rank < missing_from || (m->rank - missing_from) % 2)
        begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    finish(m);
}

START_TEST(the_missing_are_listed)
{
    struct member m[4];
    missing_from = _i ? 1 : 3;
    run(m, 4, SHORT, stay_away);
    bool named = false;
    for (int r = 0; r < 4; r++) {
        named =
            named || strstr(m[r].text, _i ? ": ranks 1, 3 did not arrive within 0.2 s; rank 1 never came to all_reduce numbers"
                                          : ": rank 3 did not arrive within 0.2 s; rank 3 never came to all_reduce numbers");
        ck_assert(!m[r].text[0] || strstr(m[r].text, "did not arrive") || strstr(m[r].text, "first failure"));
    }
    ck_assert_msg(named, "%s", m[0].text);
    ck_assert_int_eq(m[0].status, STATUS_FAILED);
}
END_TEST

/* Rank 0 waits for rank 1, which waits for rank 2, which is silent: the silence is told, whoever's patience ends first. Rank 1
 * has asked for what rank 0 waits for, behind what it waits for itself. */
static void pass_a_silence_on(struct member *m)
{
    struct communicator *first = group(m, 0, 2), *second = group(m, 1, 2);
    if (m->rank == 1)
        begin(m, second, (struct exchange_call){.exchange = EXCHANGE_ALL_GATHER, .count = 1, .what = "late"});
    if (m->rank < 2)
        begin(m, first, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 1});
    finish(m);
}

START_TEST(a_silence_is_traced_to_its_beginning)
{
    struct member m[3];
    run(m, 3, SHORT, pass_a_silence_on);
    ck_assert(m[0].status == STATUS_FAILED && m[1].status == STATUS_FAILED && m[2].status == STATUS_OK);
    bool traced =
        strstr(m[0].text, "rank 2 never came to all_gather late") || strstr(m[1].text, "rank 2 never came to all_gather late");
    ck_assert_msg(traced, "'%s', '%s'", m[0].text, m[1].text);
    ck_assert(!strstr(m[0].text, "rank 1 never came") && !strstr(m[1].text, "rank 1 never came"));
}
END_TEST

/* One message comes, the second one never does. */
static void send_once(struct member *m)
{
    struct communicator *pair = group(m, 0, 2);
    struct exchange_call call = {.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND, .count = 1, .peer = !m->rank};
    for (int i = 0; i < 1 + m->rank; i++)
        begin(m, pair, call);
    finish(m);
}

START_TEST(a_message_that_never_comes_is_said)
{
    struct member m[2];
    run(m, 2, SHORT, send_once);
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_FAILED);
    says(&m[1], "recv numbers: rank 0 did not arrive within 0.2 s; rank 0 never came to send numbers");
}
END_TEST

/* A rank that has failed sends nothing more; it has not been silent. */
static void fail_and_send(struct member *m)
{
    if (!m->rank)
        device_cpu_fail(m->device, "out of order");
    send_once(m);
}

START_TEST(who_has_failed_sends_nothing)
{
    struct member m[2];
    run(m, 2, SHORT, fail_and_send);
    says(&m[0], "out of order");
    says(&m[1], "rank 0 did not arrive");
    ck_assert_ptr_null(strstr(m[1].text, "came to"));
}
END_TEST

/* When the others have given up. */
static void come_late(struct member *m)
{
    struct communicator *all = group(m, 0, 2);
    if (m->rank)
        wait_for(3 * SHORT);
    begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    finish(m);
}

START_TEST(who_comes_late_is_told_at_once)
{
    struct member m[2];
    run(m, 2, SHORT, come_late);
    says(&m[0], "rank 1 did not arrive within 0.2 s");
    says(&m[1], "rank 1: all_reduce numbers: waited for rank 0; first failure: rank 0: all_reduce numbers: rank 1 did not");
}
END_TEST

/* --- who goes */

/* Ranks 0, 1, 2 wait in a collective, for a message, in a barrier; rank 3 goes, and once more with another reason. */
static void go(struct member *m)
{
    struct communicator *all = group(m, 0, 4), *pair = group(m, 1, 3);
    if (m->rank == 3) {
        wait_for(SHORT);
        m->world->api->abandon(m->world, "enough");
        m->world->api->abandon(m->world, "really");
    } else if (m->rank == 2) {
        m->status = m->world->api->barrier(m->world, false, &m->diags);
    } else if (m->rank == 1) {
        begin(m, pair, (struct exchange_call){.exchange = EXCHANGE_RECV, .count = 4, .peer = 2});
    } else {
        begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    }
    finish(m);
}

START_TEST(nobody_waits_for_who_has_gone)
{
    struct member m[4];
    run(m, 4, LONG, go);
    for (int r = 0; r < 3; r++) {
        ck_assert(m[r].status == STATUS_FAILED);
        says(&m[r], "first failure: enough");
    }
    says(&m[0], "waited for ranks 1, 2, 3");
    says(&m[1], "waited for rank 3");
    says(&m[2], "barrier");
}
END_TEST

/* --- the barrier */

static atomic_bool gave_up;

static void meet_twice(struct member *m)
{
    if (!m->rank) {
        gave_up = m->world->api->barrier(m->world, false, &m->diags) == STATUS_FAILED;
    } else {
        while (!gave_up)
            wait_for(SHORT / 100);
    }
    m->status = m->world->api->barrier(m->world, false, &m->diags);
}

/* Whoever gives up is not counted any more: one alone does not pass the next one. */
START_TEST(a_barrier_that_failed_can_be_met_again)
{
    struct member m[2];
    run(m, 2, SHORT, meet_twice);
    says(&m[0], "barrier: 1 of 2 ranks did not arrive within 0.2 s");
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_OK);
}
END_TEST

static nanos epochs[3]; /* before, behind a barrier, behind one that sets the clock */

static void look_at_the_clock(struct member *m)
{
    if (!m->rank)
        epochs[0] = *hub_epoch(m->hub);
    for (int clock = 0; clock < 2 && m->status == STATUS_OK; clock++) {
        wait_for(SHORT / 20);
        m->status = m->world->api->barrier(m->world, clock, &m->diags);
        if (!m->rank)
            epochs[1 + clock] = *hub_epoch(m->hub);
        if (m->status == STATUS_OK)
            m->status = m->world->api->barrier(m->world, false, &m->diags);
    }
}

START_TEST(the_clock_begins_where_it_is_asked_to)
{
    struct member m[2];
    run(m, 2, LONG, look_at_the_clock);
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_OK);
    ck_assert_int_eq(epochs[1], epochs[0]);
    ck_assert_int_ge(epochs[2] - epochs[1], SHORT / 20);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{every_exchange_by_hand, 1},
                                     {messages_come_as_they_were_sent, 1},
                                     {what_is_not_alike_does_not_meet, COUNT(others)},
                                     {a_message_of_another_size_is_said, 1},
                                     {groups_have_the_same_members_everywhere, 1},
                                     {the_missing_are_listed, 2},
                                     {a_silence_is_traced_to_its_beginning, 1},
                                     {a_message_that_never_comes_is_said, 1},
                                     {who_has_failed_sends_nothing, 1},
                                     {who_comes_late_is_told_at_once, 1},
                                     {nobody_waits_for_who_has_gone, 1},
                                     {a_barrier_that_failed_can_be_met_again, 1},
                                     {the_clock_begins_where_it_is_asked_to, 1}};
    return toy_suite("ranks as threads", tests, COUNT(tests));
}
