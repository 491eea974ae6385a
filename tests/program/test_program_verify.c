/* The verifier refuses programs broken by hand in one place, and says what is wrong with them. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "model/base/random.h"
#include "model/cost/work/host_memory.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"

/* Four stages of two replicas, all ranks there, with everything that can go wrong in it. */
static struct program healthy(void)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 4, 1, 4);
    f.layout.dp = 2;
    f.layout.zero = 1;
    f.job.global_batch = 8;
    f.layout.features |= FEATURE_BIT(PP_OVERLAP);
    return fixture_build(&f, DETAIL_CHUNK, false);
}

static struct op *find_op(struct program *program, int rank, enum op_kind kind, int ordinal)
{
    const struct script *script = &program->scripts[program->ranks[rank].script];
    for (uint32_t i = 0; i < script->n_ops; i++) {
        struct op *op = &program->ops[script->first_op + i];
        if (op->kind == (uint8_t)kind && ordinal-- == 0)
            return op;
    }
    ck_abort_msg("no such operation");
    return NULL;
}

static void expect_wrong(struct program *program, const char *part)
{
    struct diags diags = {0};
    ck_assert_int_eq(program_verify(program, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_ge(diags.n_errors, 1);
    bool found = false;
    for (size_t i = 0; i < diags.n_items; i++)
        found = found || strstr(diags.items[i].text, part);
    ck_assert_msg(found, "'%s' has no '%s'", diags.items[0].text, part);
    diags_free(&diags);
    program_free(program);
}

START_TEST(healthy_is_right)
{
    struct program program = healthy();
    struct diags diags = {0};
    ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
    program_free(&program);
    struct program empty = {0};
    ck_assert_int_eq(program_verify(&empty, &diags), STATUS_OK);
    ck_assert_uint_eq(diags.n_items, 0);
}
END_TEST

START_TEST(dropped_receive)
{
    struct program program = healthy();
    find_op(&program, 2, OP_RECV, 0)->kind = OP_JOIN; /* stage 1 no longer takes what stage 0 sends */
    expect_wrong(&program, "never receives it");
}
END_TEST

START_TEST(dropped_send)
{
    struct program program = healthy();
    struct op *last = NULL;
    for (int i = 0; i < 4; i++)
        last = find_op(&program, 0, OP_SEND, i);
    last->kind = OP_JOIN;
    expect_wrong(&program, "rank 2, op ");
    program = healthy();
    find_op(&program, 0, OP_SEND, 3)->kind = OP_JOIN;
    expect_wrong(&program, "rank 0 never sends it");
}
END_TEST

START_TEST(wrong_tag)
{
    struct program program = healthy();
    find_op(&program, 0, OP_SEND, 1)->tag = 99;
    expect_wrong(&program, "tag 99: rank 2 never receives it");
}
END_TEST

START_TEST(wrong_bytes)
{
    struct program program = healthy();
    find_op(&program, 0, OP_SEND, 0)->bytes += 1;
    expect_wrong(&program, "receives 1048576 bytes, but op 1 of rank 0 sends 1048577");
}
END_TEST

START_TEST(one_sided_peer)
{
    struct program program = healthy();
    program.ranks[2].peers[PEER_PREVIOUS] = 1; /* rank 0 sends to rank 2, which listens to rank 1 */
    expect_wrong(&program, "never");
    program = healthy();
    program.ranks[0].peers[PEER_NEXT] = -1;
    expect_wrong(&program, "rank 0");
}
END_TEST

START_TEST(swapped_collectives)
{
    struct program program = healthy();
    /* The second replica of stage 0 gets a script of its own, with two collectives of the group swapped. */
    struct script copy = program.scripts[0];
    uint32_t n = program.n_ops;
    program.ops = realloc(program.ops, (n + copy.n_ops) * sizeof *program.ops);
    memcpy(program.ops + n, program.ops + copy.first_op, copy.n_ops * sizeof *program.ops);
    program.n_ops += copy.n_ops;
    copy.first_op = n;
    program.scripts = realloc(program.scripts, 5 * sizeof *program.scripts);
    program.scripts[4] = copy;
    program.n_scripts = 5;
    program.ranks[1].script = 4;
    struct diags diags = {0};
    ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK); /* so far only a copy */
    struct op *reduce = find_op(&program, 1, OP_COLLECTIVE, 0), *gather = find_op(&program, 1, OP_COLLECTIVE, 3);
    ck_assert_int_eq(reduce->collective, COLLECTIVE_REDUCE_SCATTER);
    ck_assert_int_eq(gather->collective, COLLECTIVE_ALL_GATHER);
    uint8_t collective = reduce->collective;
    reduce->collective = gather->collective;
    gather->collective = collective;
    expect_wrong(&program, "as collective 0, rank 0 enters reduce_scatter");
}
END_TEST

START_TEST(missing_collective)
{
    struct program program = healthy();
    struct op *norm = find_op(&program, 6, OP_COLLECTIVE, 2);
    ck_assert_int_eq(norm->role, GROUP_MODEL);
    norm->kind = OP_JOIN;
    expect_wrong(&program, "model group");
}
END_TEST

START_TEST(unequal_collective)
{
    struct program program = healthy();
    struct op *norm = find_op(&program, 6, OP_COLLECTIVE, 2);
    norm->bytes = 8;
    expect_wrong(&program, "of 8 bytes");
}
END_TEST

START_TEST(collective_without_group)
{
    struct program program = healthy();
    find_op(&program, 0, OP_COLLECTIVE, 2)->role = GROUP_PP;
    expect_wrong(&program, "a collective over pp, but the rank is in no such group");
}
END_TEST

START_TEST(two_streams_for_one_group)
{
    struct program program = healthy();
    find_op(&program, 0, OP_COLLECTIVE, 3)->stream = STREAM_TP;
    expect_wrong(&program, "on another stream");
}
END_TEST

/* Stage 1 answers before it has been asked: its first backward pass waits for stage 2, which waits for what stage 1 sends
 * after that pass. */
START_TEST(cyclic_wait)
{
    struct program program = healthy();
    struct op *recv = NULL;
    for (int i = 0; !recv || recv->pass != PASS_BACKWARD; i++)
        recv = find_op(&program, 2, OP_RECV, i);
    struct op *first = find_op(&program, 2, OP_RECV, 0);
    struct op swap = *recv; /* the first operation now waits for a gradient, and the first forward pass for it */
    *recv = *first;
    *first = swap;
    for (int d = 0; d < OP_DEPS; d++) {
        uint32_t dep = recv->deps[d];
        recv->deps[d] = first->deps[d];
        first->deps[d] = dep;
    }
    for (int d = 0; d < OP_DEPS; d++)
        first->deps[d] = NO_OP;
    expect_wrong(&program, "waits in a circle: rank");
}
END_TEST

/* Two ranks of one group enter collectives of two kinds of groups in opposite orders on different streams. */
static const struct op OP = {.class = CLASS_GEMM,
                             .pass = N_PASSES,
                             .chunk = -1,
                             .micro_batch = -1,
                             .layer = -1,
                             .work = -1,
                             .deps = {NO_OP, NO_OP, NO_OP, NO_OP}};

static struct program two_ranks(const struct op *ops, uint32_t first, uint32_t second)
{
    struct program program = {.n_ops = first + second, .n_scripts = 2, .n_ranks = 2, .n_groups = 2, .n_members = 4};
    program.ops = memory_new(program.n_ops, sizeof *program.ops);
    memcpy(program.ops, ops, program.n_ops * sizeof *ops);
    program.scripts = memory_new(2, sizeof *program.scripts);
    program.scripts[0] = (struct script){0, first};
    program.scripts[1] = (struct script){first, second};
    program.ranks = memory_new(2, sizeof *program.ranks);
    for (int r = 0; r < 2; r++) {
        program.ranks[r] = (struct program_rank){.script = r, .peers = {1 - r, 1 - r}};
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            program.ranks[r].groups[kind] = kind == GROUP_TP ? 0 : kind == GROUP_DP ? 1 : -1;
    }
    program.groups = memory_new(2, sizeof *program.groups);
    program.groups[0] = (struct rank_group){GROUP_TP, 0, 2};
    program.groups[1] = (struct rank_group){GROUP_DP, 2, 2};
    program.members = memory_new(4, sizeof *program.members);
    for (int i = 0; i < 4; i++)
        program.members[i] = i % 2;
    return program;
}

static struct op collective_on(enum stream stream, enum group_kind kind)
{
    struct op op = OP;
    op.kind = OP_COLLECTIVE;
    op.stream = (uint8_t)stream;
    op.role = (uint8_t)kind;
    return op;
}

START_TEST(crossed_groups)
{
    struct op ops[4] = {
        collective_on(STREAM_TP, GROUP_TP),
        collective_on(STREAM_DP, GROUP_DP),
        collective_on(STREAM_DP, GROUP_DP),
        collective_on(STREAM_TP, GROUP_TP),
    };
    struct program program = two_ranks(ops, 2, 2);
    struct diags diags = {0};
    ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK); /* streams keep them apart */
    program.ops[1].deps[0] = 0;
    program.ops[3].deps[0] = 0; /* rank 0: tp, then dp; rank 1: dp, then tp */
    expect_wrong(&program,
                 "waits in a circle: rank 0 op 0 (collective over tp) waits for rank 1 op 1 (collective over tp) waits for "
                 "rank 1 op 0 (collective over dp) waits for rank 0 op 1 (collective over dp) waits for the first of these");
}
END_TEST

START_TEST(crossed_messages)
{
    struct op recv = OP, send = OP;
    recv.kind = OP_RECV;
    recv.stream = STREAM_RECV;
    send.kind = OP_SEND;
    send.stream = STREAM_SEND;
    send.deps[0] = 0;
    struct op ops[4] = {recv, send, recv, send};
    struct program program = two_ranks(ops, 2, 2);
    expect_wrong(&program, "waits in a circle: rank 0 op 1 (send) waits for rank 0 op 0 (receive) waits for rank 1 op 1 (send) "
                           "waits for rank 1 op 0 (receive) waits for the first of these");
}
END_TEST

START_TEST(forward_dependency)
{
    struct program program = healthy();
    find_op(&program, 0, OP_COMPUTE, 0)->deps[0] = 5;
    expect_wrong(&program, "waits for op 5, which does not come before it");
    program = healthy();
    find_op(&program, 0, OP_COMPUTE, 0)->deps[0] = 0;
    expect_wrong(&program, "waits for op 0");
}
END_TEST

#define EXPECT_WRONG_AFTER(change, part)                                                                                         \
    do {                                                                                                                         \
        struct program p = healthy();                                                                                            \
        change;                                                                                                                  \
        expect_wrong(&p, part);                                                                                                  \
    } while (0)

START_TEST(bad_indices)
{
    EXPECT_WRONG_AFTER(p.ops[0].kind = N_OP_KINDS, "script 0, op 0: the kind is out of range");
    EXPECT_WRONG_AFTER(p.ops[0].stream = N_STREAMS, "the stream");
    EXPECT_WRONG_AFTER(p.ops[0].pass = N_PASSES + 1, "the pass");
    EXPECT_WRONG_AFTER(p.ops[0].class = N_WORK_CLASSES, "the class");
    EXPECT_WRONG_AFTER(p.ops[0].work = p.works.n_items, "the work");
    EXPECT_WRONG_AFTER(find_op(&p, 0, OP_SEND, 0)->role = N_PEERS, "the peer");
    EXPECT_WRONG_AFTER(find_op(&p, 0, OP_COLLECTIVE, 0)->role = N_GROUP_KINDS, "collective or group");
    EXPECT_WRONG_AFTER(find_op(&p, 0, OP_SEND, 0)->bytes = NAN, "number of bytes");
    EXPECT_WRONG_AFTER(find_op(&p, 0, OP_SEND, 0)->bytes = -1, "number of bytes");
    EXPECT_WRONG_AFTER(p.scripts[3].n_ops++, "script 3 lies outside");
    EXPECT_WRONG_AFTER(p.scripts[2].first_op = UINT32_MAX, "script 2 lies outside");
    EXPECT_WRONG_AFTER(p.ranks[5].script = 4, "rank 5: there is no script 4");
    EXPECT_WRONG_AFTER(p.ranks[5].peers[0] = 8, "its peer 8 is out of range");
    EXPECT_WRONG_AFTER(p.ranks[5].groups[GROUP_DP] = p.n_groups, "is not one of kind dp");
    EXPECT_WRONG_AFTER(p.ranks[5].groups[GROUP_DP] = p.ranks[5].groups[GROUP_MODEL], "is not one of kind dp");
    EXPECT_WRONG_AFTER(p.ranks[5].groups[GROUP_DP] = p.ranks[0].groups[GROUP_DP], "does not name it");
    EXPECT_WRONG_AFTER(p.members[1] = p.members[0], "out of order");
    EXPECT_WRONG_AFTER(p.groups[0].n_members++, "");
    EXPECT_WRONG_AFTER(p.groups[0].first_member = -1, "group 0 has no valid");
    EXPECT_WRONG_AFTER(p.groups[0].n_members = 1, "name a group that does not list them");
}
END_TEST

/* Any single corruption is either harmless or refused, and never more than that. */
START_TEST(random_damage)
{
    struct random_stream random = {.key = 99};
    int refused = 0;
    for (int round = 0; round < 3000; round++) {
        struct program program = healthy();
        struct diags diags = {0};
        uint8_t *bytes = (uint8_t *)program.ops;
        size_t n = program.n_ops * sizeof *program.ops;
        if (round % 3 == 1) {
            bytes = (uint8_t *)program.ranks;
            n = (size_t)program.n_ranks * sizeof *program.ranks;
        } else if (round % 3 == 2) {
            bytes = (uint8_t *)program.groups;
            n = (size_t)program.n_groups * sizeof *program.groups;
        }
        bytes[random_below(&random, (uint64_t)n)] ^= (uint8_t)(1u << random_below(&random, 8));
        refused += program_verify(&program, &diags) != STATUS_OK;
        ck_assert(refused >= 0 && diags.n_errors <= 100);
        diags_free(&diags);
        program_free(&program);
    }
    ck_assert_int_gt(refused, 1000);
}
END_TEST

/* Six layers of which four go to the host, and come back. */
static struct program offloading(void)
{
    struct fixture f = fixture_of(6, false);
    f.job.global_batch = 2;
    f.layout.offload = offloaded("activations");
    return fixture_build(&f, DETAIL_CHUNK, true);
}

static struct op *find_copy(struct program *program, enum stream stream, int ordinal)
{
    for (uint32_t i = 0; i < program->n_ops; i++)
        if (program->ops[i].stream == (uint8_t)stream && ordinal-- == 0)
            return &program->ops[i];
    ck_abort_msg("no such copy");
    return NULL;
}

START_TEST(copies_come_back)
{
    struct program program = offloading();
    struct diags diags = {0};
    ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
    program_free(&program);
    program = offloading();
    find_copy(&program, STREAM_UP, 1)->layer++;
    expect_wrong(&program, "brings what no copy that it waits for took away");
    program = offloading();
    find_copy(&program, STREAM_UP, 2)->stream = STREAM_HOST;
    expect_wrong(&program, "takes away what does not come back");
    program = offloading();
    *find_copy(&program, STREAM_UP, 2) = *find_copy(&program, STREAM_UP, 1);
    expect_wrong(&program, ", again");
    program = offloading();
    find_copy(&program, STREAM_UP, 0)->work =
        work_add_copy(&program.works, "less", program.works.items[find_copy(&program, STREAM_UP, 0)->work].host.bytes / 2);
    expect_wrong(&program, "bytes that op");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_verify");
    TCase *tcase = tcase_create("verify");
    tcase_add_test(tcase, healthy_is_right);
    tcase_add_test(tcase, copies_come_back);
    tcase_add_test(tcase, dropped_receive);
    tcase_add_test(tcase, dropped_send);
    tcase_add_test(tcase, wrong_tag);
    tcase_add_test(tcase, wrong_bytes);
    tcase_add_test(tcase, one_sided_peer);
    tcase_add_test(tcase, swapped_collectives);
    tcase_add_test(tcase, missing_collective);
    tcase_add_test(tcase, unequal_collective);
    tcase_add_test(tcase, collective_without_group);
    tcase_add_test(tcase, two_streams_for_one_group);
    tcase_add_test(tcase, cyclic_wait);
    tcase_add_test(tcase, crossed_groups);
    tcase_add_test(tcase, crossed_messages);
    tcase_add_test(tcase, forward_dependency);
    tcase_add_test(tcase, bad_indices);
    tcase_add_test(tcase, random_damage);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
