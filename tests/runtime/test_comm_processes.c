/*
 * Ranks as processes that exchange through MPI: what every exchange gives, by hand; who does not come is named, and nobody waits
 * for a rank that has gone. Four processes execute the suite together (mpirun -n 4), each for itself: nothing is asserted before
 * all have left a world, so that none waits for one whose test has ended.
 */
#include <check.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "runtime/comm/comm_processes.h"
#include "tests/runtime/members.h"
#include "tests/runtime/toys.h"

static const nanos LONG = 1200 * NANOS_PER_SECOND, SHORT = NANOS_PER_SECOND;

/* One rank in a world of its own making with the others, until all have ended. */
static void run(struct member *m, nanos timeout, void (*body)(struct member *member))
{
    struct world *world = NULL;
    struct diags diags = {0};
    ck_assert_int_eq(comm_processes_open(timeout, &world, &diags), STATUS_OK);
    ck_assert_int_eq(world->n_ranks, MEMBERS_MOST);
    member_open(m, world, comm_processes_epoch(world));
    MPI_Barrier(MPI_COMM_WORLD);
    if (m->status == STATUS_OK)
        body(m);
    MPI_Barrier(MPI_COMM_WORLD);
    member_close(m);
}

/* --- what they give */

START_TEST(every_exchange_by_hand)
{
    const struct exchange_by_hand *hand = &exchanges_by_hand[_i];
    struct member m;
    run(&m, LONG, hand->exchange);
    if (m.rank < hand->ranks)
        hand->check(&m);
    else /* it is in no group, and waits for nobody */
        ck_assert_int_eq(m.status, STATUS_OK);
}
END_TEST

/* Groups with members in common do not take each other's messages, whoever comes first. */
static void exchange_in_two_groups(struct member *m)
{
    struct communicator *all = member_group(m, 0, 4), *pair = member_group(m, 0, 2);
    const struct exchange_call wide = {.exchange = EXCHANGE_ALL_GATHER, .count = 1},
                               narrow = {.exchange = EXCHANGE_ALL_GATHER, .count = 1, .in = m->in + 7, .out = m->out + 4};
    struct device_stream *first = m->stream, *second = NULL;
    m->status = m->device->api->stream_new(m->device, false, &second, &m->diags);
    m->stream = m->rank ? first : second;
    member_begin(m, all, wide);
    m->stream = m->rank ? second : first;
    member_begin(m, pair, narrow);
    m->stream = first;
    member_finish(m);
    if (m->status == STATUS_OK)
        m->status = m->device->api->stream_synchronise(second, &m->diags);
    m->device->api->stream_free(second);
}

START_TEST(groups_keep_their_messages)
{
    static const float expected[] = {0, 100, 200, 300, 7, 107};
    struct member m;
    run(&m, LONG, exchange_in_two_groups);
    ck_assert_int_eq(m.status, STATUS_OK);
    for (int i = 0; i < (m.rank < 2 ? 6 : 4); i++)
        ck_assert_float_eq(m.out[i], expected[i]);
}
END_TEST

/* --- who does not come */

/* The ranks 1 and 3 stay away from the second exchange. */
static void stay_away(struct member *m)
{
    struct communicator *all = member_group(m, 0, 4);
    for (int i = 0; i < (m->rank % 2 ? 1 : 2); i++)
        member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    member_finish(m);
}

/* Those whose parts have come are not among them. */
START_TEST(the_missing_are_listed)
{
    struct member m;
    run(&m, SHORT, stay_away);
    ck_assert_int_eq(m.status, m.rank % 2 ? STATUS_OK : STATUS_FAILED);
    if (m.rank % 2)
        return;
    ck_assert_msg(strstr(m.text, "all_reduce numbers: ranks 1, 3 did not arrive within 1 s") ||
                      strstr(m.text, "all_reduce numbers: waited for ranks 1, 3; first failure: rank"),
                  "%s", m.text);
}
END_TEST

START_TEST(a_message_that_never_comes_is_said)
{
    struct member m;
    run(&m, SHORT, exchange_half);
    ck_assert_int_eq(m.status, m.rank == 1 ? STATUS_FAILED : STATUS_OK);
    if (m.rank == 1)
        member_says(&m, "rank 1: recv numbers: rank 0 did not arrive within 1 s");
}
END_TEST

START_TEST(who_has_failed_sends_nothing)
{
    struct member m;
    run(&m, SHORT, exchange_and_fail);
    if (m.rank == 0)
        member_says(&m, "out of order");
    if (m.rank == 1)
        member_says(&m, "rank 0 did not arrive within 1 s");
}
END_TEST

/* When rank 0 has given up, and has told everybody. */
static void come_late(struct member *m)
{
    struct communicator *pair = member_group(m, 0, 2);
    if (m->rank == 1)
        member_sleep(2 * SHORT);
    member_begin(m, pair, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    member_finish(m);
}

START_TEST(who_comes_late_is_told_at_once)
{
    struct member m;
    run(&m, SHORT, come_late);
    if (m.rank == 0)
        member_says(&m, "rank 0: all_reduce numbers: rank 1 did not arrive within 1 s");
    if (m.rank == 1)
        member_says(&m,
                    "rank 1: all_reduce numbers: waited for rank 0; first failure: rank 0: all_reduce numbers: rank 1 did not");
}
END_TEST

/* --- who goes */

START_TEST(nobody_waits_for_who_has_gone)
{
    static const char *const said[] = {"all_reduce numbers: waited for ranks 1, 2, 3; first failure: enough",
                                       "recv numbers: waited for rank 3; first failure: enough",
                                       "rank 2: barrier: first failure: enough"};
    struct member m;
    nanos began = clock_monotonic();
    run(&m, LONG, exchange_and_go);
    ck_assert_int_lt(clock_monotonic() - began, LONG / 2);
    ck_assert_int_eq(m.status, m.rank < 3 ? STATUS_FAILED : STATUS_OK);
    if (m.rank < 3)
        member_says(&m, said[m.rank]);
}
END_TEST

/* --- what MPI cannot send */

static void send_too_much(struct member *m)
{
    static const int32_t rows[] = {600, 600};
    struct communicator *pair = member_group(m, 0, 2);
    if (m->rank == 0)
        member_begin(m, pair, (struct exchange_call){.exchange = EXCHANGE_SEND, .count = (int64_t)1 << 30, .peer = 1});
    if (m->rank == 1)
        member_begin(m, pair,
                     (struct exchange_call){
                         .exchange = EXCHANGE_ALL_TO_ALL, .count = (int64_t)1 << 20, .parts = {.sent = rows, .received = rows}});
    member_finish(m);
}

START_TEST(messages_that_are_too_long_are_said)
{
    static const char *const said[] = {"rank 0: send numbers: a message of 4294967296 bytes is too long for MPI",
                                       "rank 1: all_to_all numbers: a message of 2516582400 bytes is too long for MPI"};
    struct member m;
    run(&m, LONG, send_too_much);
    if (m.rank < 2)
        member_says(&m, said[m.rank]);
}
END_TEST

/* --- the barrier */

static bool gave_up;

/* Rank 0 is alone there at first. */
static void meet(struct member *m)
{
    struct diags diags = {0};
    if (m->rank)
        member_sleep(2 * SHORT);
    gave_up = m->world->api->barrier(m->world, false, &diags) != STATUS_OK;
    if (diags.n_items)
        diag_error(&m->diags, PLACE_NONE, "%s", diags.items[0].text);
    diags_free(&diags);
}

START_TEST(a_barrier_that_is_not_met_is_said)
{
    struct member m;
    run(&m, SHORT, meet);
    ck_assert_int_eq(gave_up, m.rank == 0);
    if (m.rank == 0)
        member_says(&m, "rank 0: barrier: another rank did not arrive within 1 s");
}
END_TEST

static nanos epochs[3]; /* before, behind a barrier, behind one that sets the clock */

static void look_at_the_clock(struct member *m)
{
    epochs[0] = *m->epoch;
    for (int clock = 0; clock < 2 && m->status == STATUS_OK; clock++) {
        member_sleep(SHORT / 50 * (1 + m->rank));
        m->status = m->world->api->barrier(m->world, clock, &m->diags);
        epochs[1 + clock] = *m->epoch;
    }
}

/* Of one machine all ranks have that of rank 0. */
START_TEST(the_clock_begins_where_it_is_asked_to)
{
    struct member m;
    nanos before = clock_monotonic(), first;
    run(&m, LONG, look_at_the_clock);
    first = epochs[2];
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    ck_assert_int_eq(m.status, STATUS_OK);
    ck_assert_int_eq(epochs[1], epochs[0]);
    ck_assert_int_ge(epochs[2], before);
    ck_assert_int_eq(epochs[2], first);
}
END_TEST

/* Before MPI_Init: main has asked. */
static enum status early;
static char early_text[MEMBER_TEXT];

START_TEST(without_mpi_there_is_no_world)
{
    ck_assert_int_eq(early, STATUS_MISSING);
    ck_assert_ptr_nonnull(strstr(early_text, "mpirun or srun"));
}
END_TEST

int main(int argc, char **argv)
{
    const struct toy_test tests[] = {
        {every_exchange_by_hand, N_EXCHANGES_BY_HAND},
        {groups_keep_their_messages, 1},
        {the_missing_are_listed, 1},
        {a_message_that_never_comes_is_said, 1},
        {who_has_failed_sends_nothing, 1},
        {who_comes_late_is_told_at_once, 1},
        {nobody_waits_for_who_has_gone, 1},
        {messages_that_are_too_long_are_said, 1},
        {a_barrier_that_is_not_met_is_said, 1},
        {the_clock_begins_where_it_is_asked_to, 1},
        {without_mpi_there_is_no_world, 1},
    };
    struct diags diags = {0};
    struct world *world;
    int level;
    early = comm_processes_open(LONG, &world, &diags);
    snprintf(early_text, sizeof early_text, "%s", diags.n_items ? diags.items[0].text : "");
    diags_free(&diags);
    setenv("CK_FORK", "no", 1); /* MPI does not survive it */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    int failed = toy_suite("ranks as processes", tests, COUNT(tests));
    MPI_Finalize();
    return failed;
}
