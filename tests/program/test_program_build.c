/* Programs of all kinds are well formed, and are the same work at every detail. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixtures.h"
#include "model/base/random.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"

static void expect_verified(const struct program *program)
{
    struct diags diags = {0};
    char text[160];
    enum status status = program_verify(program, &diags);
    ck_assert_msg(status == STATUS_OK, "%s, detail %d, %d ranks: %s", layout_format(&program->layout, text, sizeof text),
                  program->detail, program->n_ranks, diags.n_items ? diags.items[0].text : "");
    ck_assert_uint_eq(diags.n_items, 0);
}

static void expect_all_verified(const struct fixture *f)
{
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
        for (int folded = 0; folded < 2; folded++) {
            struct program program = fixture_build(f, (enum detail)detail, folded);
            expect_verified(&program);
            program_free(&program);
        }
    }
}

START_TEST(sizes)
{
    ck_assert_uint_le(sizeof(struct op), 64);
    ck_assert_uint_eq(sizeof(struct op), 48);
}
END_TEST

START_TEST(pipelines)
{
    static const int stages[] = {2, 3, 4, 8};
    static const feature_set features[] = {0, FEATURE_BIT(PP_OVERLAP), FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP)};
    for (int s = SCHEDULE_GPIPE; s < N_SCHEDULES; s++) {
        bool folded = schedule_is_folded((enum schedule)s);
        for (int i = 0; i < 4; i++) {
            if (s == SCHEDULE_DUALPIPE && stages[i] % 2)
                continue;
            for (int rounds = 1; rounds <= 3; rounds++) {
                for (int k = 0; k < 3; k++) {
                    int v = s == SCHEDULE_INTERLEAVED ? 1 + rounds : 1 + folded;
                    int m = stages[i] * rounds * (1 + folded) + (v == 1 || s == SCHEDULE_ZBV || s == SCHEDULE_DUALPIPEV);
                    struct fixture f = fixture_pipeline((enum schedule)s, stages[i], v, m);
                    f.layout.dp = 2;
                    f.layout.zero = k;
                    f.job.global_batch *= 2;
                    f.layout.features = features[k];
                    expect_all_verified(&f);
                }
            }
        }
    }
}
END_TEST

START_TEST(fewer_micro_batches_than_stages)
{
    for (int s = SCHEDULE_GPIPE; s <= SCHEDULE_ZBV; s++) {
        for (int m = 1; m < 8; m++) {
            struct fixture f = fixture_pipeline((enum schedule)s, 8, s == SCHEDULE_ZBV || s == SCHEDULE_INTERLEAVED ? 2 : 1, m);
            expect_all_verified(&f);
        }
    }
}
END_TEST

/* Rounds that are not full, blocking and not. */
START_TEST(interleaved_any_number)
{
    static const int stages[] = {2, 3, 4, 8};
    for (int i = 0; i < 4; i++) {
        for (int v = 2; v <= 5; v++) {
            for (int m = 1; m <= 3 * stages[i] + 1; m++) {
                for (int overlap = 0; overlap < 2; overlap++) {
                    struct fixture f = fixture_pipeline(SCHEDULE_INTERLEAVED, stages[i], v, m);
                    f.layout.features = overlap ? FEATURE_BIT(PP_OVERLAP) : 0;
                    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
                    expect_verified(&program);
                    program_free(&program);
                }
            }
        }
    }
}
END_TEST

/* The embedding and the head alone on the first and last stage: passes without layers, without weight gradients even. */
START_TEST(stages_without_layers)
{
    for (int s = SCHEDULE_1F1B; s < N_SCHEDULES; s++) {
        int v = s == SCHEDULE_INTERLEAVED || schedule_is_folded((enum schedule)s) ? 2 : 1;
        struct fixture f = fixture_pipeline((enum schedule)s, 4, v, 8);
        f.model.layers = layout_virtual_stages(&f.layout) - 2;
        f.layout.features = FEATURE_BIT(DP_OVERLAP);
        f.layout.dp = 2;
        f.job.global_batch *= 2;
        expect_all_verified(&f);
    }
}
END_TEST

static int pick(struct random_stream *random, const int *values, int n)
{
    return values[random_below(random, (uint64_t)n)];
}

static struct fixture random_fixture(struct random_stream *random)
{
    static const int powers[] = {1, 1, 2, 4}, chunks[] = {1, 1, 2, 3}, batches[] = {1, 2, 3, 4, 8};
    struct fixture f = fixture_of(4 + (int)random_below(random, 30), random_below(random, 2) == 0);
    struct layout *l = &f.layout;
    l->tp = pick(random, powers, 4);
    l->cp = pick(random, powers, 3);
    l->pp = pick(random, powers, 4);
    l->vpp = pick(random, chunks, 4);
    l->dp = 1 + (int)random_below(random, 4);
    l->ep = pick(random, powers, 4);
    l->micro_batch = 1 + (int)random_below(random, 2);
    l->zero = (int)random_below(random, 4);
    l->sequence_parallel = random_below(random, 2) == 0;
    l->recompute.what = (enum recompute_what)random_below(random, N_RECOMPUTES);
    l->schedule = (enum schedule)random_below(random, N_SCHEDULES);
    l->features = random_below(random, (uint64_t)1 << N_FEATURES);
    f.model.tied_embeddings = random_below(random, 2) == 0;
    f.job.global_batch = (int64_t)l->dp * l->micro_batch * l->pp * pick(random, batches, 5);
    const struct offload some[] = {offloaded("optimizer:40%"), offloaded("activations:30%"), offloaded("activations:2")};
    int drawn = (int)random_below(random, N_OFFLOAD_WHOLES + 3);
    l->offload = drawn < N_OFFLOAD_WHOLES ? offload_wholes[drawn] : some[drawn - N_OFFLOAD_WHOLES];
    l->shard = l->zero && l->dp * l->cp > 2 && random_below(random, 2) == 0 ? 2 : 0;
    static const enum cp_comm comms[] = {CP_RING, CP_ALL_GATHER, CP_A2A, 2 * 2, 2 * 2 + 1}; /* a2a:2 with a ring, or gathering */
    l->cp_comm = comms[random_below(random, 5)];
    return f;
}

START_TEST(random_layouts)
{
    struct random_stream random = {.key = 20240801};
    int legal = 0, mixtures = 0, hybrids = 0, schedules[N_SCHEDULES] = {0}, zeros[4] = {0};
    while (legal < 500) {
        struct fixture f = random_fixture(&random);
        struct setting setting = fixture_setting(&f);
        if (layout_check(&f.layout, &setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        expect_all_verified(&f);
        legal++;
        mixtures += f.model.moe.experts > 0;
        hybrids += f.layout.shard > 0;
        schedules[f.layout.schedule]++;
        zeros[f.layout.zero]++;
    }
    ck_assert_int_gt(mixtures, 50);
    ck_assert_int_gt(hybrids, 20);
    for (int s = SCHEDULE_NONE; s < N_SCHEDULES; s++)
        ck_assert_int_gt(schedules[s], 5);
    for (int z = 0; z < 4; z++)
        ck_assert_int_gt(zeros[z], 10);
}
END_TEST

/* Arithmetic of a rank's passes, and exchanges inside them: as operations, or as leaves below the operations' works. */
struct tally {
    double flops, exchanged;
    int64_t n_exchanges;
};

static void tally_work(const struct program *program, int32_t id, double times, struct tally *tally)
{
    const struct work *work = &program->works.items[id];
    if (work->kind == WORK_COLLECTIVE) {
        tally->exchanged += times * work->collective.bytes;
        tally->n_exchanges += (int64_t)times;
    }
    if (work->kind == WORK_PART) {
        tally_work(program, program->works.children[work->sequence.first_child], times, tally);
        return;
    }
    if (work->kind != WORK_SEQUENCE && work->kind != WORK_OVERLAPPED) {
        tally->flops += work->kind == WORK_COLLECTIVE ? 0 : times * work->flops;
        return;
    }
    for (int32_t i = 0; i < work->sequence.n_children; i++)
        tally_work(program, program->works.children[work->sequence.first_child + i], times * work->sequence.repeat, tally);
}

static struct tally tally_rank(const struct program *program, int rank)
{
    struct tally tally = {0};
    uint32_t n;
    const struct op *ops = rank_ops(program, rank, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].kind == OP_COMPUTE && ops[i].work >= 0)
            tally_work(program, ops[i].work, 1, &tally);
        if (ops[i].kind == OP_COLLECTIVE && ops[i].stream == STREAM_TP) {
            tally.exchanged += ops[i].bytes;
            tally.n_exchanges++;
        }
    }
    return tally;
}

static void expect_near(double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-12 * fabs(b), "%.17g is not %.17g", a, b);
}

START_TEST(same_work_at_every_detail)
{
    struct random_stream random = {.key = 42};
    for (int round = 0; round < 60;) {
        struct fixture f = random_fixture(&random);
        struct setting setting = fixture_setting(&f);
        if (layout_check(&f.layout, &setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        round++;
        struct program programs[3];
        for (int detail = 0; detail < 3; detail++)
            programs[detail] = fixture_build(&f, (enum detail)detail, true);
        for (int r = 0; r < f.layout.pp; r++) {
            struct tally chunk = tally_rank(&programs[0], r);
            for (int detail = 1; detail < 3; detail++) {
                struct tally other = tally_rank(&programs[detail], r);
                expect_near(other.flops, chunk.flops);
                expect_near(other.exchanged, chunk.exchanged);
                ck_assert_int_eq(other.n_exchanges, chunk.n_exchanges);
            }
        }
        for (int detail = 0; detail < 3; detail++)
            program_free(&programs[detail]);
    }
}
END_TEST

/* Layers of a stage's operations at layer detail: each one forward and backward once per micro-batch, in order. */
START_TEST(layers_in_order)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 2, 1, 1);
    f.model.layers = 6;
    struct program program = fixture_build(&f, DETAIL_LAYER, true);
    static const int expected[2][9] = {{-1, 0, 1, 2, 2, 1, 0, -1, -1}, {3, 4, 5, -1, -1, 5, 4, 3, -1}};
    for (int r = 0; r < 2; r++) {
        uint32_t n;
        const struct op *ops = rank_ops(&program, r, &n);
        int at = 0;
        for (uint32_t i = 0; i < n; i++)
            if (ops[i].kind == OP_COMPUTE)
                ck_assert_int_eq(ops[i].layer, expected[r][at++]);
        ck_assert_int_eq(at, 9); /* with the optimizer */
    }
    program_free(&program);
}
END_TEST

/* Kernel detail with overlapped exchanges: the exchange waits for what its GEMM waits for, not for the GEMM. */
START_TEST(overlapped_pairs_run_side_by_side)
{
    struct fixture f = fixture_of(2, false);
    f.layout.tp = 2;
    f.layout.sequence_parallel = true;
    f.layout.features = FEATURE_BIT(TP_OVERLAP);
    struct program program = fixture_build(&f, DETAIL_KERNEL, true);
    uint32_t n;
    const struct op *ops = rank_ops(&program, 0, &n);
    int pairs = 0;
    for (uint32_t i = 1; i + 1 < n; i++) {
        if (ops[i].stream != STREAM_TP || ops[i - 1].kind != OP_COMPUTE)
            continue;
        bool beside = true;
        for (int d = 0; d < OP_DEPS; d++)
            beside = beside && ops[i].deps[d] != i - 1;
        pairs += beside;
    }
    ck_assert_int_ge(pairs, 2 * 2 * 2); /* layers, directions, at least two pairs in each */
    program_free(&program);
}
END_TEST

/* The whole of a tiny program, by hand: two stages, two micro-batches, blocking exchanges. */
static const char DUMP[] = "0 compute compute forward chunk=0 mb=0 layer=0 work=forward\n"
                           "1 send send forward chunk=0 mb=0 to=1 tag=0 bytes=1048576 after=0\n"
                           "2 compute compute forward chunk=0 mb=1 layer=0 work=forward after=1\n"
                           "3 send send forward chunk=0 mb=1 to=1 tag=0 bytes=1048576 after=2\n"
                           "4 recv recv backward chunk=0 mb=0 from=1 tag=1 bytes=1048576 after=2\n"
                           "5 compute compute backward chunk=0 mb=0 layer=0 work=backward after=3,4\n"
                           "6 recv recv backward chunk=0 mb=1 from=1 tag=1 bytes=1048576 after=5\n"
                           "7 compute compute backward chunk=0 mb=1 layer=0 work=backward after=6\n"
                           "8 dp collective all_reduce group=model bytes=4 after=7\n"
                           "9 compute compute work=optimizer after=8\n";

START_TEST(dump)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 2, 1, 2);
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    program_dump(&program, 0, out);
    fclose(out);
    ck_assert_str_eq(text, DUMP);
    free(text);
    program_free(&program);
}
END_TEST

static void expect_refused(const struct fixture *f, const char *part)
{
    struct setting setting = fixture_setting(f);
    struct diags diags = {0};
    struct program program = {.n_ranks = 77};
    ck_assert_int_eq(program_build(&f->layout, &setting, DETAIL_CHUNK, true, &program, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq(program.n_ranks, 77); /* untouched */
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_msg(strstr(diags.items[0].text, part) != NULL, "'%s' has no '%s'", diags.items[0].text, part);
    diags_free(&diags);
}

START_TEST(refused)
{
    struct fixture f = fixture_pipeline(SCHEDULE_DUALPIPE, 4, 2, 9);
    expect_refused(&f, "an even number of at least 2 * pp=8 micro-batches, not 9");
    f = fixture_pipeline(SCHEDULE_1F1B, 4, 1, 4);
    f.model.layers = 1;
    expect_refused(&f, "more virtual stages than the 1 layers");
    f = fixture_pipeline(SCHEDULE_1F1B, 4, 1, 1 << 30);
    expect_refused(&f, "operations");
}
END_TEST

/* DualPipe's stages r and p - 1 - r hold the same weights and add up what is left of their gradients after their own replicas. */
START_TEST(mirrored_gradients)
{
    for (int zero = 0; zero <= 1; zero++) {
        struct fixture f = fixture_pipeline(SCHEDULE_DUALPIPE, 4, 2, 8);
        f.layout.dp = 2;
        f.layout.zero = zero;
        f.job.global_batch = 16;
        struct program program = fixture_build(&f, DETAIL_CHUNK, false);
        for (int r = 0; r < program.n_ranks; r++) {
            double among = collective_bytes(&program, r, zero ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, GROUP_DP);
            double between = collective_bytes(&program, r, COLLECTIVE_ALL_REDUCE, GROUP_MIRROR);
            ck_assert_double_gt(between, 0);
            ck_assert_double_eq_tol(between, among / (zero ? 2 : 1), 1e-9 * among);
            const struct rank_group *pair = &program.groups[program.ranks[r].groups[GROUP_MIRROR]];
            ck_assert_int_eq(pair->n_members, 2);
            ck_assert_int_eq(program.members[pair->first_member] + program.members[pair->first_member + 1],
                             2 * (r % 2) + 2 * 3); /* replica r % 2 of stages s and 3 - s, two ranks per stage */
        }
        program_free(&program);
    }
}
END_TEST

/* Without async_data the stages at the ends of the model wait for the batch before their first pass; nobody else, and nothing but
 * that pass, does. */
START_TEST(data_before_the_first_pass)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 3, 1, 4);
    for (int async = 0; async <= 1; async++) {
        f.layout.features = async ? FEATURE_BIT(ASYNC_DATA) : 0;
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        for (int r = 0; r < 3; r++) {
            uint32_t n, loads = 0, waiting = 0;
            const struct op *ops = rank_ops(&program, r, &n);
            for (uint32_t i = 0; i < n; i++) {
                loads += ops[i].stream == STREAM_HOST;
                for (int d = 0; d < OP_DEPS && ops[i].deps[d] != NO_OP; d++) {
                    if (ops[ops[i].deps[d]].stream != STREAM_HOST)
                        continue;
                    ck_assert(ops[i].kind == OP_COMPUTE && ops[i].pass == PASS_FORWARD && ops[i].micro_batch == 0);
                    waiting++;
                }
            }
            ck_assert_uint_eq(loads, !async && r != 1);
            ck_assert_uint_eq(waiting, loads);
        }
        program_free(&program);
    }
}
END_TEST

/* Groups of an unfolded program are the layout's; only those used are there. */
START_TEST(ranks_and_groups)
{
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, 2, 1, 4);
    f.layout.tp = 2;
    f.layout.dp = 3;
    f.job.global_batch = 12;
    struct program program = fixture_build(&f, DETAIL_CHUNK, false);
    ck_assert_int_eq(program.n_ranks, 12);
    ck_assert_int_eq(program.n_scripts, 2);
    for (int r = 0; r < 12; r++) {
        const struct program_rank *rank = &program.ranks[r];
        ck_assert_int_eq(rank->script, r / 6);
        ck_assert_int_eq(rank->peers[PEER_NEXT], (r + 6) % 12);
        ck_assert_int_eq(rank->groups[GROUP_TP], -1); /* exchanges are inside the passes */
        static const enum group_kind used[] = {GROUP_DP, GROUP_MODEL};
        for (int i = 0; i < 2; i++) {
            int members[12];
            layout_group_members(&f.layout, used[i], r, members);
            const struct rank_group *group = &program.groups[rank->groups[used[i]]];
            ck_assert_int_eq(group->n_members, layout_group_size(&f.layout, used[i]));
            for (int m = 0; m < group->n_members; m++)
                ck_assert_int_eq(program.members[group->first_member + m], members[m]);
        }
    }
    ck_assert_int_eq(program.n_groups, 4 + 3);
    program_free(&program);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_build");
    TCase *tcase = tcase_create("build");
    tcase_add_test(tcase, sizes);
    tcase_add_test(tcase, pipelines);
    tcase_add_test(tcase, fewer_micro_batches_than_stages);
    tcase_add_test(tcase, interleaved_any_number);
    tcase_add_test(tcase, stages_without_layers);
    tcase_add_test(tcase, random_layouts);
    tcase_add_test(tcase, same_work_at_every_detail);
    tcase_add_test(tcase, layers_in_order);
    tcase_add_test(tcase, overlapped_pairs_run_side_by_side);
    tcase_add_test(tcase, dump);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, ranks_and_groups);
    tcase_add_test(tcase, mirrored_gradients);
    tcase_add_test(tcase, data_before_the_first_pass);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
