/*
 * The step executor against timelines worked out by hand (times in nanoseconds), each run by data flow and in time order, and
 * what it says about programs that cannot be run.
 */
#include <check.h>
#include <string.h>

#include "tests/sim/step/tiny_program.h"
#include "tests/suite.h"

static struct execution run(const struct tiny *tiny, unsigned how)
{
    struct execution execution;
    struct diags diags = {0};

    ck_assert_int_eq(program_execute(&tiny->program, &tiny->costs, NULL, how, NULL, &execution, &diags), STATUS_OK);
    ck_assert(breakdown_sums(&execution.breakdown));
    diags_free(&diags);
    return execution;
}

static void expect_span(const struct execution *execution, int rank, uint32_t op, nanos start, nanos end)
{
    const struct op_time *at = execution_time(execution, rank, op);

    ck_assert_int_eq(at->start - STEP_EPOCH, start);
    ck_assert_int_eq(at->end - STEP_EPOCH, end);
}

/* Sums over all ranks. */
static nanos class_sum(const struct execution *execution, enum work_class class)
{
    nanos sum = 0;

    for (int s = 0; s < execution->breakdown.n_stages; s++)
        sum += execution->breakdown.stages[s].by_class.ns[class];
    return sum;
}

/* rank 0: |-- compute 100 --|-- send 10 --|
 * rank 1: (bubble 100)      |-- recv 10 --|-- compute 50 --|                                                              */
START_TEST(overlapped_message)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    uint32_t compute = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 100);
    tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 10), compute);
    tiny_script(&tiny);
    uint32_t receive = tiny_receive(&tiny, STREAM_RECV, PEER_PREVIOUS, 0, 10);
    tiny_after(&tiny, tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 50), receive);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    struct execution execution = run(&tiny, (unsigned)_i);
    ck_assert_int_eq(execution.end, 160);
    ck_assert_uint_eq(execution.events, 4);
    expect_span(&execution, 0, 1, 100, 110);
    expect_span(&execution, 1, 0, 100, 110);
    expect_span(&execution, 1, 1, 110, 160);
    ck_assert_int_eq(class_sum(&execution, CLASS_GEMM), 150);
    ck_assert_int_eq(class_sum(&execution, CLASS_PP_COMM), 10 + 10); /* rank 0 ends with its send exposed */
    ck_assert_int_eq(class_sum(&execution, CLASS_BUBBLE), 100 + 50);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* Everything on the compute stream; the second receive is posted at 160, its sender is ready at 210. */
START_TEST(blocking_messages)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 100);
        tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, k, 10);
    }
    tiny_script(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, k, 10);
        tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 50);
    }
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    struct execution execution = run(&tiny, (unsigned)_i);
    ck_assert_int_eq(execution.end, 270);
    expect_span(&execution, 1, 0, 100, 110);
    expect_span(&execution, 1, 2, 210, 220);
    ck_assert_int_eq(class_sum(&execution, CLASS_PP_COMM), 40);
    ck_assert_int_eq(class_sum(&execution, CLASS_BUBBLE), 100 + 50 + 50);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* A receiver that comes at 100 pays the whole transfer, though the sender was ready at 0. */
START_TEST(late_receiver)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 10);
    tiny_script(&tiny);
    tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 100);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 0, 10);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    struct execution execution = run(&tiny, (unsigned)_i);
    expect_span(&execution, 0, 0, 0, 10);
    expect_span(&execution, 1, 1, 100, 110);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* Neighbours that both send before they receive: the sends do not wait, so nothing locks up. */
START_TEST(crossing_sends)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 10);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_NEXT, 1, 10);
    tiny_script(&tiny);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 1, 10);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 0, 10);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    struct execution execution = run(&tiny, (unsigned)_i);
    ck_assert_int_eq(execution.end, 20);
    ck_assert_int_eq(class_sum(&execution, CLASS_PP_COMM), 40);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* Three ranks reach a collective of 5 at 10, 30 and 20: it takes 30 to 35 for all. Waiting for peers of the stage counts as the
 * exchange, for ranks across stages as bubble. */
static void last_member(enum group_kind kind, enum work_class waiting, bool time_order)
{
    static const nanos arrival[] = {10, 30, 20};
    static const int32_t members[] = {0, 1, 2};
    struct tiny tiny = {0};
    for (int32_t r = 0; r < 3; r++) {
        tiny_script(&tiny);
        tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, arrival[r]);
        tiny_collective(&tiny, STREAM_COMPUTE, kind, CLASS_DP_COMM, 5);
        tiny_rank(&tiny, r, -1, -1);
    }
    tiny_group(&tiny, kind, members, 3);
    struct execution execution = run(&tiny, time_order);
    ck_assert_int_eq(execution.end, 35);
    for (int r = 0; r < 3; r++)
        expect_span(&execution, r, 1, 30, 35);
    ck_assert_int_eq(class_sum(&execution, CLASS_GEMM), 60);
    ck_assert_int_eq(class_sum(&execution, waiting), waiting == CLASS_DP_COMM ? 15 + 30 : 30);
    execution_free(&execution);
    tiny_free(&tiny);
}

START_TEST(collective_waits_for_the_last)
{
    last_member(GROUP_DP, CLASS_DP_COMM, _i);
    last_member(GROUP_MODEL, CLASS_BUBBLE, _i);
}
END_TEST

/* Two gathers of 40 queue on their stream; computations of 10 need one each:
 * dp:      |-- 0..40 --|-- 40..80 --|
 * compute:  (dp 40)    | 40..50 | (dp 30) | 80..90 |                                                                      */
START_TEST(queued_gathers)
{
    static const int32_t members[] = {0};
    struct tiny tiny = {0};
    tiny_script(&tiny);
    uint32_t first = tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 40);
    uint32_t second = tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 40);
    tiny_after(&tiny, tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10), first);
    tiny_after(&tiny, tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10), second);
    tiny_rank(&tiny, 0, -1, -1);
    tiny_group(&tiny, GROUP_DP, members, 1);
    struct execution execution = run(&tiny, (unsigned)_i);
    ck_assert_int_eq(execution.end, 90);
    ck_assert_int_eq(class_sum(&execution, CLASS_DP_COMM), 70);
    ck_assert_int_eq(class_sum(&execution, CLASS_GEMM), 20);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* The walk through a gap: compute waits from 5 for a second receive. Its transfer [60, 70) is pp_comm; before it its sender was
 * late since 30, the end of the first receive: bubble; the first transfer was [20, 30): pp_comm; before that, from 5: bubble. */
START_TEST(gap_with_two_transfers)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    uint32_t early = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 20);
    tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 10), early);
    uint32_t late = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 40);
    tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 10), late);
    tiny_script(&tiny);
    tiny_compute(&tiny, STREAM_COMPUTE, CLASS_HEAD, 5);
    tiny_receive(&tiny, STREAM_RECV, PEER_PREVIOUS, 0, 10);
    uint32_t second = tiny_receive(&tiny, STREAM_RECV, PEER_PREVIOUS, 0, 10);
    tiny_after(&tiny, tiny_compute(&tiny, STREAM_COMPUTE, CLASS_HEAD, 30), second);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    struct execution execution = run(&tiny, (unsigned)_i);
    ck_assert_int_eq(execution.end, 100);
    expect_span(&execution, 1, 1, 20, 30);
    expect_span(&execution, 1, 2, 60, 70);
    ck_assert_int_eq(class_sum(&execution, CLASS_HEAD), 35);
    ck_assert_int_eq(class_sum(&execution, CLASS_PP_COMM), 20 + 10); /* rank 0's last send is exposed */
    ck_assert_int_eq(class_sum(&execution, CLASS_BUBBLE), (15 + 30) + 30);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* In a ring of two the previous and the next stage are one rank; tags tell the messages apart, order does within a tag. */
START_TEST(ring_of_two)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    uint32_t a = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10);
    uint32_t to_next = tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 7, 1);
    tiny_after(&tiny, to_next, a);
    uint32_t b = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10);
    uint32_t to_previous = tiny_send(&tiny, STREAM_SEND, PEER_PREVIOUS, 3, 1);
    tiny_after(&tiny, to_previous, b);
    uint32_t c = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10);
    tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 7, 1), c);
    tiny_script(&tiny);
    tiny_receive(&tiny, STREAM_RECV, PEER_NEXT, 3, 1);        /* from b: 20..21 */
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 7, 1); /* from a: 10..11 */
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 7, 1); /* from c: 30..31 */
    tiny_rank(&tiny, 0, 1, 1);
    tiny_rank(&tiny, 1, 0, 0);
    struct execution execution = run(&tiny, (unsigned)_i);
    expect_span(&execution, 1, 0, 20, 21);
    expect_span(&execution, 1, 1, 10, 11);
    expect_span(&execution, 1, 2, 30, 31);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* Messages between ranks of different hosts take longer; the network is asked with the ranks. */
static nanos pair_message(void *state, int from, int to, double bytes)
{
    (void)state;
    (void)bytes;
    return from / 2 == to / 2 ? 3 : 30;
}

static nanos group_collective(void *state, enum collective collective, enum group_kind kind, int group, double bytes)
{
    (void)state;
    (void)collective;
    (void)kind;
    (void)bytes;
    return 100 + group;
}

START_TEST(network_that_knows_ranks)
{
    static const int32_t one[] = {0, 2}, other[] = {1, 3};
    struct network network = {.message = pair_message, .collective = group_collective};
    struct tiny tiny = {0};
    struct execution execution;
    struct diags diags = {0};
    for (int s = 0; s < 2; s++) {
        tiny_script(&tiny);
        if (s == 0)
            tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 0);
        else
            tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 0, 0);
        tiny_collective(&tiny, STREAM_COMPUTE, GROUP_DP, CLASS_DP_COMM, 0);
    }
    tiny_rank(&tiny, 0, -1, 1); /* 0 -> 1 on one host */
    tiny_rank(&tiny, 1, 0, -1);
    tiny_rank(&tiny, 0, -1, 4); /* 2 -> 4 between hosts */
    tiny_rank(&tiny, 1, 4, -1); /* 3 receives from 4, whose next is 3 */
    tiny_script(&tiny);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 0, 0);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 0);
    tiny_rank(&tiny, 2, 2, 3);
    tiny_group(&tiny, GROUP_DP, one, 2);
    tiny_group(&tiny, GROUP_DP, other, 2);
    ck_assert_int_eq(program_execute(&tiny.program, &tiny.costs, &network, _i, NULL, &execution, &diags), STATUS_OK);
    ck_assert(breakdown_sums(&execution.breakdown));
    expect_span(&execution, 1, 0, 0, 3);
    expect_span(&execution, 4, 0, 0, 30);
    expect_span(&execution, 3, 0, 30, 60);
    expect_span(&execution, 0, 1, 30, 130);
    expect_span(&execution, 1, 1, 60, 161);
    execution_free(&execution);
    tiny_free(&tiny);
}
END_TEST

/* ---- programs that cannot be run */

static void expect_refused(struct tiny *tiny, bool time_order, enum status status, const char *part)
{
    struct execution execution;
    struct diags diags = {0};

    ck_assert_int_eq(program_execute(&tiny->program, &tiny->costs, NULL, time_order, NULL, &execution, &diags), status);
    ck_assert_uint_ge(diags.n_items, 1);
    ck_assert_msg(strstr(diags.items[0].text, part) != NULL, "'%s' has no '%s'", diags.items[0].text, part);
    diags_free(&diags);
    tiny_free(tiny);
}

START_TEST(circle_is_reported)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_NEXT, 1, 10);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 10);
    tiny_script(&tiny);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 0, 10);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 1, 10);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    expect_refused(&tiny, _i, STATUS_FAILED, "waits in a circle: rank 0 never ends receive 0");
}
END_TEST

START_TEST(unmatched_send_is_reported)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 10);
    tiny_script(&tiny);
    tiny_receive(&tiny, STREAM_COMPUTE, PEER_PREVIOUS, 1, 10);
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "do not match");
}
END_TEST

START_TEST(send_to_nobody_is_reported)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_send(&tiny, STREAM_COMPUTE, PEER_NEXT, 0, 10);
    tiny_rank(&tiny, 0, -1, -1);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "sends to nobody");
}
END_TEST

START_TEST(uneven_group_is_reported)
{
    static const int32_t members[] = {0, 1};
    struct tiny tiny = {0};
    for (int32_t r = 0; r < 2; r++) {
        tiny_script(&tiny);
        for (int32_t k = 0; k <= r; k++)
            tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 1);
        tiny_rank(&tiny, r, -1, -1);
    }
    tiny_group(&tiny, GROUP_DP, members, 2);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "enter 1 and 2 collectives");
}
END_TEST

/* The second could begin before the first has ended: which of them a rank is in would be open. */
START_TEST(a_group_on_two_streams_is_reported)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 1);
    tiny_collective(&tiny, STREAM_TP, GROUP_DP, CLASS_DP_COMM, 1);
    tiny_rank(&tiny, 0, -1, -1);
    tiny_group(&tiny, GROUP_DP, (const int32_t[]){0}, 1);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "on two streams");
}
END_TEST

/* Members that do not agree how long a collective takes: the last to enter says. Its start is then not the end less what the
 * others' tables say, so times are kept as they are. */
START_TEST(members_may_disagree_how_long_a_collective_takes)
{
    static const int32_t members[] = {0, 1};
    struct tiny tiny = {0};
    for (int32_t r = 0; r < 2; r++) {
        tiny_script(&tiny);
        tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 10 + 5 * r);
        tiny_after(&tiny, tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 20 - 10 * r), 0);
        tiny_rank(&tiny, r, -1, -1);
    }
    tiny_group(&tiny, GROUP_DP, members, 2);
    struct execution whole = run(&tiny, (unsigned)_i), totals = run(&tiny, (unsigned)_i | EXECUTE_TOTALS);
    ck_assert_ptr_nonnull(totals.times);
    ck_assert_int_eq(whole.end, 25);
    ck_assert_int_eq(totals.end, 25);
    for (int class = 0; class < N_WORK_CLASSES; class ++)
        ck_assert_int_eq(class_sum(&totals, class), class_sum(&whole, class));
    execution_free(&whole);
    execution_free(&totals);
    tiny_free(&tiny);
}
END_TEST

START_TEST(bad_indices_are_reported)
{
    struct tiny tiny = {0};
    tiny_script(&tiny);
    tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 1);
    tiny_after(&tiny, 0, 0); /* on itself */
    tiny_rank(&tiny, 0, -1, -1);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "index out of range");
    tiny_script(&tiny);
    tiny_rank(&tiny, 0, -1, 5);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "index out of range");
    tiny_script(&tiny);
    tiny_collective(&tiny, STREAM_DP, GROUP_DP, CLASS_DP_COMM, 1);
    tiny_rank(&tiny, 0, -1, -1);
    expect_refused(&tiny, _i, STATUS_BAD_INPUT, "is in none");
}
END_TEST

/* A split sums to its total whatever the proportions. */
START_TEST(split_is_exact)
{
    struct cost_by_class by = {{0}};
    by.s[CLASS_GEMM] = 1.0 / 3;
    by.s[CLASS_ATTENTION] = 1.0 / 3;
    by.s[CLASS_TP_COMM] = 1.0 / 7;
    for (nanos total = 0; total < 2000; total++) {
        struct class_nanos split;
        class_nanos_split(total, &by, CLASS_HEAD, &split);
        nanos sum = 0;
        for (int c = 0; c < N_WORK_CLASSES; c++) {
            ck_assert_int_ge(split.ns[c], 0);
            sum += split.ns[c];
        }
        ck_assert_int_eq(sum, total);
        ck_assert_int_eq(split.ns[CLASS_HEAD], 0);
    }
    struct class_nanos split;
    class_nanos_split(9, &(struct cost_by_class){{0}}, CLASS_HEAD, &split);
    ck_assert_int_eq(split.ns[CLASS_HEAD], 9);
}
END_TEST

/* What is kept per operation and rank decides how large a cluster fits in memory. */
START_TEST(sizes)
{
    ck_assert_uint_eq(sizeof(struct op_time), 16);
    ck_assert_uint_eq(sizeof(struct step_op), 48);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_executor");
    TCase *times = tcase_create("times by hand"), *refused = tcase_create("refused"), *parts = tcase_create("parts");

    /* 0: data flow, 1: time order */
    tcase_add_loop_test(times, overlapped_message, 0, 2);
    tcase_add_loop_test(times, blocking_messages, 0, 2);
    tcase_add_loop_test(times, late_receiver, 0, 2);
    tcase_add_loop_test(times, crossing_sends, 0, 2);
    tcase_add_loop_test(times, collective_waits_for_the_last, 0, 2);
    tcase_add_loop_test(times, queued_gathers, 0, 2);
    tcase_add_loop_test(times, gap_with_two_transfers, 0, 2);
    tcase_add_loop_test(times, ring_of_two, 0, 2);
    tcase_add_loop_test(times, network_that_knows_ranks, 0, 2);
    tcase_add_loop_test(refused, circle_is_reported, 0, 2);
    tcase_add_loop_test(refused, unmatched_send_is_reported, 0, 2);
    tcase_add_loop_test(refused, send_to_nobody_is_reported, 0, 2);
    tcase_add_loop_test(refused, uneven_group_is_reported, 0, 2);
    tcase_add_loop_test(refused, a_group_on_two_streams_is_reported, 0, 2);
    tcase_add_loop_test(refused, members_may_disagree_how_long_a_collective_takes, 0, 2);
    tcase_add_loop_test(refused, bad_indices_are_reported, 0, 2);
    tcase_add_test(parts, split_is_exact);
    tcase_add_test(parts, sizes);
    suite_add_tcase(suite, times);
    suite_add_tcase(suite, refused);
    suite_add_tcase(suite, parts);
    return suite_run(suite);
}
