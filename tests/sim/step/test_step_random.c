/*
 * Random programs against a direct evaluation of the semantics.
 *
 * A program is grown event by event: a computation on some rank and stream, a message (the send is appended to one rank, the
 * receive to the other), or a collective (appended to every member, each on the stream that it has those of the kind on). In the
 * order of growth everything an event waits for comes before it, so its times follow at once from the definition in
 * step_executor.h, with no queue and no waiting. The executor, which sees only the finished lists, must find the same times, by
 * data flow and in time order; its breakdown must sum exactly; and with faster transfers no operation may end later.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/random.h"
#include "tests/sim/step/tiny_program.h"
#include "tests/suite.h"

enum { RANKS = 5, MAX_OPS = 200, EVENTS = 120 };

static unsigned draw(struct random_stream *random, unsigned n)
{
    return (unsigned)(random_bits(random) % n);
}

/* An operation as grown: script lists are interleaved, so they are kept per rank and laid out at the end. */
struct grown_op {
    struct op op;
    nanos duration;
    nanos start, end; /* expected */
};
struct grown {
    struct grown_op ops[RANKS][MAX_OPS];
    uint32_t n_ops[RANKS];
    nanos free_at[RANKS][N_STREAMS];
    unsigned collectives_on[RANKS][N_GROUP_KINDS]; /* streams */
    struct random_stream random;
    int slow; /* transfers take this many times their duration */
};

static nanos latest(nanos a, nanos b)
{
    return a > b ? a : b;
}

/* Append an operation with up to three random dependencies; when it is ready. */
static struct grown_op *grow_op(struct grown *grown, int rank, struct op op, nanos duration, nanos *ready)
{
    uint32_t n = grown->n_ops[rank]++;
    struct grown_op *new = &grown->ops[rank][n];

    unsigned stream = draw(&grown->random, N_STREAMS);
    op.stream = (uint8_t)(op.kind == OP_COLLECTIVE ? grown->collectives_on[rank][op.role] : stream);
    op.pass = N_PASSES;
    op.work = op.layer = op.micro_batch = -1;
    *ready = grown->free_at[rank][op.stream];
    for (int d = 0; d < OP_DEPS; d++) {
        op.deps[d] = n > 0 && draw(&grown->random, 3) == 0 ? draw(&grown->random, n) : NO_OP;
        if (op.deps[d] != NO_OP)
            *ready = latest(*ready, grown->ops[rank][op.deps[d]].end);
    }
    *new = (struct grown_op){.op = op, .duration = duration};
    return new;
}

static void grown_at(struct grown *grown, int rank, struct grown_op *op, nanos start)
{
    op->start = start;
    op->end = grown->free_at[rank][op->op.stream] = start + op->duration;
}

static void grow_compute(struct grown *grown)
{
    int rank = (int)draw(&grown->random, RANKS);
    nanos ready;
    bool join = draw(&grown->random, 8) == 0;
    struct op op = {.kind = join ? OP_JOIN : OP_COMPUTE, .class = (uint8_t)draw(&grown->random, CLASS_HOST)};
    struct grown_op *new = grow_op(grown, rank, op, join ? 0 : draw(&grown->random, 50), &ready);

    grown_at(grown, rank, new, ready);
}

static void grow_message(struct grown *grown)
{
    int from = (int)draw(&grown->random, RANKS), forward = (int)draw(&grown->random, 2);
    int to = (from + (forward ? 1 : RANKS - 1)) % RANKS;
    uint32_t tag = draw(&grown->random, 3);
    nanos duration = (nanos)draw(&grown->random, 20) * grown->slow, sent, ready;
    struct op send = {.kind = OP_SEND, .class = CLASS_PP_COMM, .role = forward ? PEER_NEXT : PEER_PREVIOUS, .tag = tag};
    struct op receive = {.kind = OP_RECV, .class = CLASS_PP_COMM, .role = forward ? PEER_PREVIOUS : PEER_NEXT, .tag = tag};

    struct grown_op *given = grow_op(grown, from, send, duration, &sent);
    grown_at(grown, from, given, sent);
    struct grown_op *received = grow_op(grown, to, receive, duration, &ready);
    grown_at(grown, to, received, latest(sent, ready));
}

/* Groups: all ranks (GROUP_DP), and ranks 0 and 1 (GROUP_TP), 2 to 4 (GROUP_TP). */
static void grow_collective(struct grown *grown)
{
    static const int first[] = {0, 0, 2}, n[] = {RANKS, 2, 3};
    int group = (int)draw(&grown->random, 3);
    nanos duration = (nanos)draw(&grown->random, 30) * grown->slow, start = 0;
    struct op op = {.kind = OP_COLLECTIVE, .class = CLASS_DP_COMM, .role = group == 0 ? GROUP_DP : GROUP_TP};
    struct grown_op *entered[RANKS];

    for (int m = 0; m < n[group]; m++) {
        nanos ready;
        entered[m] = grow_op(grown, first[group] + m, op, duration, &ready);
        start = latest(start, ready);
    }
    for (int m = 0; m < n[group]; m++)
        grown_at(grown, first[group] + m, entered[m], start);
}

static struct grown *grow(uint64_t seed, int slow)
{
    struct grown *grown = calloc(1, sizeof *grown);

    grown->random = (struct random_stream){.key = seed};
    grown->slow = slow;
    for (int r = 0; r < RANKS; r++)
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            grown->collectives_on[r][kind] = draw(&grown->random, N_STREAMS);
    for (int e = 0; e < EVENTS; e++) {
        unsigned kind = draw(&grown->random, 10);
        if (kind < 5)
            grow_compute(grown);
        else if (kind < 9)
            grow_message(grown);
        else
            grow_collective(grown);
    }
    return grown;
}

static struct tiny lay_out(const struct grown *grown)
{
    static const int32_t all[] = {0, 1, 2, 3, 4};
    struct tiny tiny = {0};

    for (int32_t r = 0; r < RANKS; r++) {
        tiny_script(&tiny);
        for (uint32_t i = 0; i < grown->n_ops[r]; i++) {
            tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, grown->ops[r][i].duration);
            tiny.program.ops[tiny.program.n_ops - 1] = grown->ops[r][i].op;
        }
        tiny_rank(&tiny, r, (r + RANKS - 1) % RANKS, (r + 1) % RANKS);
    }
    tiny_group(&tiny, GROUP_DP, all, RANKS);
    tiny_group(&tiny, GROUP_TP, all, 2);
    tiny_group(&tiny, GROUP_TP, all + 2, 3);
    return tiny;
}

static struct execution run(const struct tiny *tiny, unsigned how)
{
    struct execution execution;
    struct diags diags = {0};

    ck_assert_int_eq(program_execute(&tiny->program, &tiny->costs, NULL, how, NULL, &execution, &diags), STATUS_OK);
    ck_assert(breakdown_sums(&execution.breakdown));
    return execution;
}

START_TEST(times_are_those_of_the_definition)
{
    for (uint64_t seed = 100 * (uint64_t)_i; seed < 100 * (uint64_t)_i + 100; seed++) {
        struct grown *grown = grow(seed, 1);
        struct tiny tiny = lay_out(grown);
        for (int time_order = 0; time_order < 2; time_order++) {
            struct execution execution = run(&tiny, time_order);
            for (int r = 0; r < RANKS; r++)
                for (uint32_t i = 0; i < grown->n_ops[r]; i++) {
                    const struct op_time *at = execution_time(&execution, r, i);
                    ck_assert_int_eq(at->start - STEP_EPOCH, grown->ops[r][i].start);
                    ck_assert_int_eq(at->end - STEP_EPOCH, grown->ops[r][i].end);
                }
            ck_assert_uint_eq(execution.events, execution.n_ops);
            execution_free(&execution);
        }
        tiny_free(&tiny);
        free(grown);
    }
}
END_TEST

/* The same bytes whichever way it is run: times, and the breakdown class by class. */
START_TEST(both_ways_agree)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct grown *grown = grow(seed, 1);
        struct tiny tiny = lay_out(grown);
        struct execution a = run(&tiny, 0), b = run(&tiny, EXECUTE_TIME_ORDER), c = run(&tiny, 0);
        size_t n = (size_t)a.n_ops;
        ck_assert_mem_eq(a.times, b.times, n * sizeof *a.times);
        ck_assert_mem_eq(a.times, c.times, n * sizeof *a.times);
        ck_assert_int_eq(a.breakdown.n_stages, 1);
        ck_assert_mem_eq(&a.breakdown.stages[0], &b.breakdown.stages[0], sizeof a.breakdown.stages[0]);
        ck_assert_mem_eq(&a.breakdown.stages[0], &c.breakdown.stages[0], sizeof a.breakdown.stages[0]);
        execution_free(&a);
        execution_free(&b);
        execution_free(&c);
        tiny_free(&tiny);
        free(grown);
    }
}
END_TEST

/* Where only totals are asked for, no more than what they follow from is kept: they stay what they are, either way. */
START_TEST(totals_alone_are_the_same)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct grown *grown = grow(seed, 1);
        struct tiny tiny = lay_out(grown);
        struct execution whole = run(&tiny, 0);
        for (unsigned order = 0; order <= EXECUTE_TIME_ORDER; order++) {
            struct execution totals = run(&tiny, order | EXECUTE_TOTALS);
            ck_assert_ptr_null(totals.times);
            ck_assert_int_eq(totals.end, whole.end);
            ck_assert_uint_eq(totals.events, whole.events);
            ck_assert_mem_eq(&totals.breakdown.stages[0], &whole.breakdown.stages[0], sizeof whole.breakdown.stages[0]);
            execution_free(&totals);
        }
        execution_free(&whole);
        tiny_free(&tiny);
        free(grown);
    }
}
END_TEST

/* Twice the time for every transfer: no operation ends earlier. */
START_TEST(faster_transfers_are_never_slower)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct grown *fast = grow(seed, 1), *slow = grow(seed, 2);
        struct tiny tiny = lay_out(fast), tiny_slow = lay_out(slow);
        struct execution a = run(&tiny, false), b = run(&tiny_slow, false);
        for (size_t i = 0; i < a.n_ops; i++)
            ck_assert_int_le(a.times[i].end, b.times[i].end);
        execution_free(&a);
        execution_free(&b);
        tiny_free(&tiny);
        tiny_free(&tiny_slow);
        free(fast);
        free(slow);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_random");
    TCase *random = tcase_create("random programs");

    tcase_add_loop_test(random, times_are_those_of_the_definition, 0, 5);
    tcase_add_test(random, both_ways_agree);
    tcase_add_test(random, totals_alone_are_the_same);
    tcase_add_test(random, faster_transfers_are_never_slower);
    suite_add_tcase(suite, random);
    return suite_run(suite);
}
