/* Ranks as threads: what every exchange gives, by hand; who comes for something else, late, or not at all is named, and nobody
 * waits for a rank that has gone. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "runtime/comm/comm_threads.h"
#include "runtime/device/device_cpu.h"
#include "tests/runtime/members.h"
#include "tests/runtime/toys.h"

static const nanos LONG = 1200 * NANOS_PER_SECOND, SHORT = 200 * (NANOS_PER_SECOND / 1000);

/* A rank as a thread. */
struct joining {
    struct hub *hub;
    struct member *member;
    int rank;
    void (*body)(struct member *member);
    pthread_t thread;
};

static void *join(void *argument)
{
    struct joining *j = argument;
    member_open(j->member, hub_join(j->hub, j->rank), hub_epoch(j->hub));
    if (j->member->status == STATUS_OK)
        j->body(j->member);
    member_close(j->member);
    return NULL;
}

/* All of them until they have ended, long before anybody's patience would end that has this much. */
static void run(struct member *members, int n, nanos timeout, void (*body)(struct member *member))
{
    struct hub *hub = hub_new(n, timeout);
    struct joining threads[MEMBERS_MOST];
    nanos began = clock_monotonic();
    for (int r = 0; r < n; r++) {
        threads[r] = (struct joining){.hub = hub, .member = &members[r], .rank = r, .body = body};
        ck_assert_int_eq(pthread_create(&threads[r].thread, NULL, join, &threads[r]), 0);
    }
    for (int r = 0; r < n; r++)
        pthread_join(threads[r].thread, NULL);
    ck_assert_int_lt(clock_monotonic() - began, LONG / 2);
    hub_free(hub);
}

/* --- what they give */

START_TEST(every_exchange_by_hand)
{
    const struct exchange_by_hand *hand = &exchanges_by_hand[_i];
    struct member m[MEMBERS_MOST];
    run(m, hand->ranks, LONG, hand->exchange);
    for (int r = 0; r < hand->ranks; r++)
        hand->check(&m[r]);
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
    member_begin(m, member_group(m, 0, 2), others[m->rank ? other : 0]);
    member_finish(m);
}

START_TEST(what_is_not_alike_does_not_meet)
{
    struct member m[2];
    other = _i;
    run(m, 2, LONG, come_for_something_else);
    for (int r = 0; r < 2; r++) {
        ck_assert(m[r].status == (_i ? STATUS_FAILED : STATUS_OK));
        if (_i)
            member_says(&m[r], "elements met");
    }
}
END_TEST

static void send_less(struct member *m)
{
    member_begin(
        m, member_group(m, 0, 2),
        (struct exchange_call){.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND, .count = 3 + m->rank, .peer = !m->rank});
    member_finish(m);
}

START_TEST(a_message_of_another_size_is_said)
{
    struct member m[2];
    run(m, 2, LONG, send_less);
    ck_assert(m[1].status == STATUS_FAILED);
    member_says(&m[1], "12 bytes came, 16 were expected");
}
END_TEST

static void make_other_groups(struct member *m)
{
    (void)member_group(m, m->rank, 2);
}

START_TEST(groups_have_the_same_members_everywhere)
{
    struct member m[2];
    run(m, 2, LONG, make_other_groups);
    ck_assert((m[0].status == STATUS_OK) != (m[1].status == STATUS_OK)); /* the first to come says who is in it */
    member_says(&m[m[0].status == STATUS_OK], "has other members than on another rank");
}
END_TEST

/* --- who does not come */

static int missing_from; /* this rank and every second one behind it stay away from the second exchange */

static void stay_away(struct member *m)
{
    struct communicator *all = member_group(m, 0, 4);
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    if (m->rank < missing_from || (m->rank - missing_from) % 2)
        member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    member_finish(m);
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

/* Rank 0 waits for rank 1, which waits for rank 2, which is silent: rank 2 is named, whichever timeout ends first. Rank 1
 * has asked for what rank 0 waits for, behind what it waits for itself. */
static void pass_a_silence_on(struct member *m)
{
    struct communicator *first = member_group(m, 0, 2), *second = member_group(m, 1, 2);
    if (m->rank == 1)
        member_begin(m, second, (struct exchange_call){.exchange = EXCHANGE_ALL_GATHER, .count = 1, .what = "late"});
    if (m->rank < 2)
        member_begin(m, first, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 1});
    member_finish(m);
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

START_TEST(a_message_that_never_comes_is_said)
{
    struct member m[2];
    run(m, 2, SHORT, exchange_half);
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_FAILED);
    member_says(&m[1], "recv numbers: rank 0 did not arrive within 0.2 s; rank 0 never came to send numbers");
}
END_TEST

/* It has not been silent, either. */
START_TEST(who_has_failed_sends_nothing)
{
    struct member m[2];
    run(m, 2, SHORT, exchange_and_fail);
    member_says(&m[0], "out of order");
    member_says(&m[1], "rank 0 did not arrive");
    ck_assert_ptr_null(strstr(m[1].text, "came to"));
}
END_TEST

/* When the others have given up. */
static void come_late(struct member *m)
{
    struct communicator *all = member_group(m, 0, 2);
    if (m->rank)
        member_sleep(3 * SHORT);
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    member_finish(m);
}

START_TEST(who_comes_late_is_told_at_once)
{
    struct member m[2];
    run(m, 2, SHORT, come_late);
    member_says(&m[0], "rank 1 did not arrive within 0.2 s");
    member_says(&m[1],
                "rank 1: all_reduce numbers: waited for rank 0; first failure: rank 0: all_reduce numbers: rank 1 did not");
}
END_TEST

/* --- who goes */

START_TEST(nobody_waits_for_who_has_gone)
{
    struct member m[4];
    run(m, 4, LONG, exchange_and_go);
    for (int r = 0; r < 3; r++) {
        ck_assert(m[r].status == STATUS_FAILED);
        member_says(&m[r], "first failure: enough");
    }
    member_says(&m[0], "waited for ranks 1, 2, 3");
    member_says(&m[1], "waited for rank 3");
    member_says(&m[2], "barrier");
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
            member_sleep(SHORT / 100);
    }
    m->status = m->world->api->barrier(m->world, false, &m->diags);
}

/* Whoever gives up is not counted any more: one alone does not pass the next one. */
START_TEST(a_barrier_that_failed_can_be_met_again)
{
    struct member m[2];
    run(m, 2, SHORT, meet_twice);
    member_says(&m[0], "barrier: 1 of 2 ranks did not arrive within 0.2 s");
    ck_assert(m[0].status == STATUS_OK && m[1].status == STATUS_OK);
}
END_TEST

static nanos epochs[3]; /* before, behind a barrier, behind one that sets the clock */

static void look_at_the_clock(struct member *m)
{
    if (!m->rank)
        epochs[0] = *m->epoch;
    for (int clock = 0; clock < 2 && m->status == STATUS_OK; clock++) {
        member_sleep(SHORT / 20);
        m->status = m->world->api->barrier(m->world, clock, &m->diags);
        if (!m->rank)
            epochs[1 + clock] = *m->epoch;
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
    const struct toy_test tests[] = {{every_exchange_by_hand, N_EXCHANGES_BY_HAND},
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
