/* What data-parallel replicas exchange: all gradients once, or with ZeRO-2 and 3 once a micro-batch, all parameters once;
 * of adapters theirs alone. */
#include <check.h>
#include <math.h>

#include "fixtures.h"
#include "model/cost/work/muon.h"
#include "tests/suite.h"

static void expect_near(double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-9 * fabs(b), "%.17g is not %.17g", a, b);
}

/* Parameters that a stage holds. */
static struct stage_parameters parameters_of_stage(const struct fixture *f, int stage)
{
    struct setting setting = fixture_setting(f);
    struct stage_parameters sum = {0, 0};
    int last = f->layout.pp * f->layout.vpp - 1;
    for (int c = 0; c < f->layout.vpp; c++) {
        int v = layout_virtual_stage(&f->layout, stage, c);
        struct stage_parameters p =
            work_stage_parameters(&f->layout, &setting, layout_layers(&f->layout, &f->model, v), v == 0, v == last);
        sum.dense += p.dense;
        sum.experts += p.experts;
    }
    return sum;
}

static struct stage_parameters matrices_of_stage(const struct fixture *f, int stage)
{
    struct setting setting = fixture_setting(f);
    struct muon_matrices matrices = {.n = 0};
    for (int c = 0; c < f->layout.vpp; c++) {
        int v = layout_virtual_stage(&f->layout, stage, c);
        muon_matrices_add(&matrices, &f->layout, &setting, layout_layers(&f->layout, &f->model, v), false);
    }
    return muon_parameters(&matrices);
}

static struct fixture replicated(int p, int v, int zero, feature_set features, bool mixture)
{
    struct fixture f = p > 1 ? fixture_pipeline(v > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B, p, v, 2 * p) : fixture_of(8, false);
    if (mixture)
        f.model.moe = fixture_of(1, true).model.moe;
    f.layout.dp = 4;
    f.layout.ep = mixture ? 2 : 1;
    f.layout.zero = zero;
    f.layout.features |= features;
    f.job.global_batch = 4 * (p > 1 ? 2 * p : 3);
    return f;
}

/* What each stage of a job that is not hybrid exchanges. */
static void check_conserved(struct fixture *f)
{
    const int zero = f->layout.zero;
    const bool mixture = f->model.moe.experts > 0;
    struct program program = fixture_build(f, DETAIL_CHUNK, true);
    enum collective reduce = zero ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    int passes = zero == 2 && f->layout.pp == 1 ? 3 : 1;
    for (int r = 0; r < f->layout.pp; r++) {
        struct stage_parameters p = parameters_of_stage(f, r);
        double norm = mixture && !zero ? 4 : 0; /* experts of other replicas count in it */
        expect_near(collective_bytes(&program, r, reduce, GROUP_DP), passes * 4 * p.dense + norm);
        expect_near(collective_bytes(&program, r, reduce, GROUP_EXPERT_DP), passes * 4 * p.experts);
        expect_near(collective_bytes(&program, r, COLLECTIVE_ALL_GATHER, GROUP_DP), zero ? 2 * p.dense : 0);
        expect_near(collective_bytes(&program, r, COLLECTIVE_ALL_GATHER, GROUP_EXPERT_DP), zero ? 2 * p.experts : 0);
        ck_assert(mixture == (p.experts > 0));
    }
    program_free(&program);
}

/* ZeRO 0 to 2: gradients once in 4 bytes, of ZeRO-2 without a pipeline after each of three micro-batches, parameters once in 2,
 * split over dense and expert groups. */
START_TEST(bytes_are_conserved)
{
    static const int shapes[][2] = {{1, 1}, {2, 1}, {4, 1}, {2, 3}};
    for (int zero = 0; zero < 3; zero++) {
        for (int overlap = 0; overlap < 2; overlap++) {
            for (int mixture = 0; mixture < 2; mixture++) {
                for (int s = 0; s < 4; s++) {
                    struct fixture f =
                        replicated(shapes[s][0], shapes[s][1], zero, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, mixture);
                    check_conserved(&f);
                }
            }
        }
    }
}
END_TEST

/* Four replicas, of which two divide the states: what is scattered and gathered is as before, with half of the ranks, and half of
 * the gradients is added up with the other two, once a step whatever the stage. All experts are in each half. */
START_TEST(hybrid_bytes)
{
    for (int zero = 1; zero <= 3; zero++) {
        for (int overlap = 0; overlap < 2; overlap++) {
            for (int mixture = 0; mixture < 2; mixture++) {
                struct fixture f = replicated(1, 1, zero, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, mixture);
                f.layout.shard = 2;
                struct program program = fixture_build(&f, DETAIL_CHUNK, true);
                struct stage_parameters p = parameters_of_stage(&f, 0);
                int passes = zero >= 2 ? 3 : 1; /* of as many micro-batches */
                expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), passes * 4 * p.dense);
                expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_EXPERT_DP), 0);
                expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_REDUCE, GROUP_REPLICA), 4 * (p.dense / 2 + p.experts));
                expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_REDUCE, GROUP_DP), 4); /* the norm */
                program_free(&program);
            }
        }
    }
}
END_TEST

/* ZeRO-2 keeps whole gradients of two layers at a time: the backward pass over one waits, with overlap, for the scattering of the
 * one two before it, of this micro-batch or the one before; without it for the last. */
START_TEST(scattered_gradients_make_room)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        struct fixture f = replicated(1, 1, 2, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, false);
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        uint32_t n, passes = 0, scattered[3 * 8], n_scattered = 0;
        const struct op *ops = rank_ops(&program, 0, &n);
        for (uint32_t i = 0; i < n; i++) {
            bool backward = ops[i].kind == OP_COMPUTE && ops[i].pass == PASS_BACKWARD;
            if (ops[i].kind == OP_COLLECTIVE && ops[i].collective == COLLECTIVE_REDUCE_SCATTER) {
                ck_assert_uint_lt(n_scattered, 3 * 8);
                scattered[n_scattered++] = i;
            }
            if (!backward)
                continue;
            ck_assert_uint_eq(n_scattered, passes); /* each layer's is issued before the next layer's pass */
            uint32_t behind = overlap ? 2 : 1;
            bool waits = passes < behind || (!overlap && passes % 8 == 0); /* the forward pass between did */
            for (int d = 0; d < OP_DEPS; d++)
                waits |= passes >= behind && ops[i].deps[d] == scattered[passes - behind];
            ck_assert_msg(waits, "pass %u, overlap %d", passes, overlap);
            passes++;
        }
        ck_assert_uint_eq(passes, 3 * 8);
        program_free(&program);
    }
}
END_TEST

/* The exchange between those who hold the same shard follows the last scattering of its layer. */
START_TEST(hybrid_order)
{
    struct fixture f = replicated(1, 1, 3, FEATURE_BIT(DP_OVERLAP), false);
    f.layout.shard = 2;
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    uint32_t n, sums = 0;
    const struct op *ops = rank_ops(&program, 0, &n);
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].kind != OP_COLLECTIVE || ops[i].role != GROUP_REPLICA)
            continue;
        sums++;
        int before = 0;
        for (uint32_t j = 0; j < n; j++)
            if (ops[j].kind == OP_COLLECTIVE && ops[j].collective == COLLECTIVE_REDUCE_SCATTER && ops[j].layer == ops[i].layer) {
                before++;
                ck_assert_uint_lt(j, i);
            }
        ck_assert_int_eq(before, 3);
    }
    ck_assert_uint_eq(sums, 8 + 1); /* the ends are one more */
    program_free(&program);
}
END_TEST

START_TEST(gradient_precision)
{
    struct fixture f = replicated(2, 1, 1, 0, false);
    f.job.gradient_precision = PRECISION_BF16;
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), 2 * parameters_of_stage(&f, 0).dense);
    program_free(&program);
}
END_TEST

/* One replica exchanges nothing, not even the norm over shards. */
START_TEST(one_replica)
{
    for (int zero = 0; zero < 4; zero++) {
        struct fixture f = replicated(1, 1, zero, FEATURE_BIT(DP_OVERLAP), false);
        f.layout.dp = 1;
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        ck_assert_int_eq(program.n_groups, 0);
        uint32_t n;
        const struct op *ops = rank_ops(&program, 0, &n);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_int_eq(ops[i].stream, STREAM_COMPUTE);
        program_free(&program);
    }
}
END_TEST

static bool depends_on(const struct op *op, uint32_t on)
{
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] == on)
            return true;
    return false;
}

static uint32_t find(const struct op *ops, uint32_t n, uint32_t from, enum op_kind kind, int pass, int collective)
{
    for (uint32_t i = from; i < n; i++)
        if (ops[i].kind == (uint8_t)kind && ops[i].pass == (uint8_t)pass &&
            (kind != OP_COLLECTIVE || ops[i].collective == (uint8_t)collective))
            return i;
    return n;
}

static int count(const struct op *ops, uint32_t begin, uint32_t end, enum op_kind kind, int pass, int collective)
{
    int found = 0;
    for (uint32_t i = find(ops, end, begin, kind, pass, collective); i < end; i = find(ops, end, i + 1, kind, pass, collective))
        found++;
    return found;
}

/* A single chunk of eight layers: its last backward pass in four buckets, each reduced as soon as it is done, while the others
 * are still computed; its parameters in four buckets before the first forward pass, which waits for one at a time. */
START_TEST(buckets_overlap)
{
    struct fixture f = replicated(1, 1, 1, FEATURE_BIT(DP_OVERLAP), false);
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    uint32_t n;
    const struct op *ops = rank_ops(&program, 0, &n);
    ck_assert_int_eq(count(ops, 0, n, OP_COMPUTE, PASS_BACKWARD, 0), 2 + 4);
    ck_assert_int_eq(count(ops, 0, n, OP_COMPUTE, PASS_FORWARD, 0), 4 + 2);
    ck_assert_int_eq(count(ops, 0, n, OP_COLLECTIVE, N_PASSES, COLLECTIVE_ALL_GATHER), 4);
    ck_assert_int_eq(count(ops, 0, n, OP_COLLECTIVE, N_PASSES, COLLECTIVE_REDUCE_SCATTER), 4);
    uint32_t gather = 0, forward = find(ops, n, 0, OP_COMPUTE, PASS_FORWARD, 0);
    for (int b = 0; b < 4; b++) {
        ck_assert_int_eq(ops[gather].collective, COLLECTIVE_ALL_GATHER);
        ck_assert(!depends_on(&ops[gather], 0));
        ck_assert(depends_on(&ops[forward], gather));
        ck_assert_int_eq(ops[forward].layer, 2 * b);
        gather++;
        forward = find(ops, n, forward + 1, OP_COMPUTE, PASS_FORWARD, 0);
    }
    uint32_t reduce = 0;
    for (int b = 3; b >= 0; b--) {
        reduce = find(ops, n, reduce + 1, OP_COLLECTIVE, N_PASSES, COLLECTIVE_REDUCE_SCATTER);
        ck_assert_int_eq(ops[reduce - 1].pass, PASS_BACKWARD); /* the bucket's own pass */
        ck_assert_int_eq(ops[reduce - 1].layer, 2 * b);
        ck_assert(depends_on(&ops[reduce], reduce - 1));
    }
    program_free(&program);
}
END_TEST

/* Several chunks: one exchange each, right after the chunk's last backward pass, the first chunk's last. */
START_TEST(chunks_overlap)
{
    struct fixture f = replicated(2, 3, 2, FEATURE_BIT(DP_OVERLAP), false);
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    for (int r = 0; r < 2; r++) {
        uint32_t n, reduce = 0;
        const struct op *ops = rank_ops(&program, r, &n);
        for (int c = 0; c < 3; c++) {
            ck_assert_int_eq(ops[c].collective, COLLECTIVE_ALL_GATHER);
            ck_assert_int_eq(ops[c].chunk, c);
        }
        for (int c = 2; c >= 0; c--) {
            reduce = find(ops, n, reduce + 1, OP_COLLECTIVE, N_PASSES, COLLECTIVE_REDUCE_SCATTER);
            ck_assert_int_eq(ops[reduce].chunk, c);
            for (uint32_t i = reduce + 1; i < n; i++)
                ck_assert(ops[i].pass != PASS_BACKWARD || ops[i].kind != OP_COMPUTE || ops[i].chunk != c);
        }
    }
    program_free(&program);
}
END_TEST

/* Without overlap: passes, then gradients, norm, optimizer, parameters. */
START_TEST(end_of_step)
{
    struct fixture f = replicated(2, 1, 1, 0, false);
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    uint32_t n;
    const struct op *ops = rank_ops(&program, 0, &n);
    ck_assert_int_eq(ops[n - 5].collective, COLLECTIVE_REDUCE_SCATTER);
    ck_assert_int_eq(ops[n - 4].role, GROUP_DP); /* norm over shards */
    ck_assert_int_eq(ops[n - 3].role, GROUP_MODEL);
    ck_assert_int_eq(ops[n - 2].class, CLASS_OPTIMIZER);
    ck_assert_int_eq(ops[n - 2].kind, OP_COMPUTE);
    ck_assert(depends_on(&ops[n - 2], n - 3));
    ck_assert_int_eq(ops[n - 1].collective, COLLECTIVE_ALL_GATHER);
    ck_assert(depends_on(&ops[n - 1], n - 2));
    /* a rank updates its quarter */
    double share = parameters_of_stage(&f, 0).dense / 4;
    struct work_table works = {0};
    struct setting setting = fixture_setting(&f);
    int32_t expected = work_add_optimizer(&works, &setting, share, 0);
    expect_near(program.works.items[ops[n - 2].work].memory.bytes, works.items[expected].memory.bytes);
    work_table_free(&works);
    program_free(&program);
}
END_TEST

/* Muon: momenta, updates to owners, Newton-Schulz, back again, weights; at any detail, with every stage of ZeRO, experts or not.
 * Whole states are nobody else's, so nothing is sent. */
START_TEST(muon_sends_updates_to_owners)
{
    for (int zero = 0; zero < 4; zero++) {
        for (int mixture = 0; mixture < 2; mixture++) {
            for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
                struct fixture f = replicated(zero < 3 ? 2 : 1, zero == 2 ? 3 : 1, zero, FEATURE_BIT(DP_OVERLAP), mixture);
                f.job.optimizer = OPTIMIZER_MUON;
                struct program program = fixture_build(&f, (enum detail)detail, mixture);
                struct diags diags = {0};
                ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
                diags_free(&diags);
                uint32_t n;
                const struct op *ops = rank_ops(&program, 0, &n);
                int computations = 0, exchanges[2] = {0};
                double bytes[2] = {0};
                for (uint32_t i = 0; i < n; i++) {
                    computations += ops[i].class == CLASS_OPTIMIZER && ops[i].kind == OP_COMPUTE;
                    if (ops[i].kind != OP_COLLECTIVE || ops[i].collective != COLLECTIVE_ALL_TO_ALL || ops[i].pass != N_PASSES)
                        continue;
                    exchanges[ops[i].role == GROUP_EXPERT_DP]++;
                    bytes[ops[i].role == GROUP_EXPERT_DP] += ops[i].bytes;
                }
                ck_assert_int_eq(computations, 3);
                ck_assert_int_eq(exchanges[0], zero ? 2 : 0);
                ck_assert_int_eq(exchanges[1], zero && mixture ? 2 : 0);
                struct stage_parameters p = matrices_of_stage(&f, 0); /* in bf16, there and back; the fullest owner's */
                ck_assert(!zero || bytes[0] >= 2 * 2 * p.dense / 4 * (1 - 1e-9));
                ck_assert(!zero || bytes[1] >= 2 * 2 * p.experts / 2 * (1 - 1e-9));
                program_free(&program);
            }
        }
    }
}
END_TEST

/* Layer-wise, at any detail, experts or not, in chunks or not: gradients all-reduced (twice the bytes that a reduce-scatter takes
 * of each rank), no updates, three computations and two copies, one gather of all dense weights and one of the experts' at the
 * end, whatever overlaps. */
START_TEST(owners_of_whole_parameters_gather_once)
{
    for (int mixture = 0; mixture < 2; mixture++) {
        for (int chunks = 1; chunks <= 3; chunks += 2) {
            for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
                struct fixture f = replicated(chunks > 1 ? 2 : 1, chunks, 1, detail ? FEATURE_BIT(DP_OVERLAP) : 0, mixture);
                f.job.optimizer = OPTIMIZER_MUON, f.job.muon_shard = MUON_LAYER_WISE;
                struct program program = fixture_build(&f, (enum detail)detail, mixture);
                struct diags diags = {0};
                ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
                diags_free(&diags);
                uint32_t n, last_gather = 0;
                const struct op *ops = rank_ops(&program, 0, &n);
                int computations = 0, gathers[2] = {0};
                double reduced[2] = {0}, gathered[2] = {0};
                for (uint32_t i = 0; i < n; i++) {
                    bool experts = ops[i].role == GROUP_EXPERT_DP;
                    computations += ops[i].class == CLASS_OPTIMIZER && ops[i].kind == OP_COMPUTE;
                    if (ops[i].kind != OP_COLLECTIVE || ops[i].pass != N_PASSES || (ops[i].role != GROUP_DP && !experts) ||
                        ops[i].class == CLASS_OPTIMIZER)
                        continue;
                    bool gather = ops[i].collective == COLLECTIVE_ALL_GATHER;
                    ck_assert(gather || ops[i].collective == COLLECTIVE_ALL_REDUCE);
                    gathers[experts] += gather;
                    *(gather ? &gathered[experts] : &reduced[experts]) += ops[i].bytes;
                    last_gather = gather ? i : last_gather;
                }
                struct stage_parameters p = parameters_of_stage(&f, 0);
                ck_assert_int_eq(computations, 5);
                ck_assert_int_eq(gathers[0], 1);
                ck_assert_int_eq(gathers[1], mixture);
                ck_assert_uint_eq(last_gather, n - 2); /* and what came is copied */
                expect_near(reduced[0], 4 * p.dense);
                expect_near(reduced[1], 4 * p.experts);
                expect_near(gathered[0], 2 * p.dense);
                expect_near(gathered[1], 2 * p.experts);
                program_free(&program);
            }
        }
    }
}
END_TEST

/* ZeRO-3, three micro-batches of eight layers: per micro-batch every layer is gathered forward and backward and reduced once, the
 * embedding and head gathered and reduced once. */
START_TEST(sharded_counts)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        for (int mixture = 0; mixture < 2; mixture++) {
            struct fixture f = replicated(1, 1, 3, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, mixture);
            struct program program = fixture_build(&f, DETAIL_CHUNK, true);
            struct setting setting = fixture_setting(&f);
            struct stage_parameters all = parameters_of_stage(&f, 0);
            struct stage_parameters layers = work_stage_parameters(&f.layout, &setting, (struct layer_range){0, 8}, false, false);
            expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_GATHER, GROUP_DP), 3 * 2 * (all.dense + layers.dense));
            expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), 3 * 4 * all.dense);
            expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_GATHER, GROUP_EXPERT_DP), 3 * 2 * 2 * layers.experts);
            expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_EXPERT_DP), 3 * 4 * all.experts);
            uint32_t n;
            const struct op *ops = rank_ops(&program, 0, &n);
            ck_assert_int_eq(count(ops, 0, n, OP_COMPUTE, PASS_FORWARD, 0), 3 * 8);
            ck_assert_int_eq(count(ops, 0, n, OP_COMPUTE, PASS_BACKWARD, 0), 3 * 8);
            program_free(&program);
        }
    }
}
END_TEST

static uint32_t gather_of(const struct op *ops, uint32_t unit)
{
    uint32_t found = NO_OP;
    for (int d = 0; d < OP_DEPS; d++)
        if (ops[unit].deps[d] != NO_OP && ops[ops[unit].deps[d]].collective == COLLECTIVE_ALL_GATHER &&
            ops[ops[unit].deps[d]].kind == OP_COLLECTIVE)
            found = ops[unit].deps[d];
    return found;
}

/* Recomputation uses the weights gathered for the backward pass where exchanges overlap, and gathers once more where they do not.
 */
START_TEST(sharded_recomputation)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        struct fixture f = replicated(1, 1, 3, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, false);
        f.layout.recompute.what = RECOMPUTE_FULL;
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        struct setting setting = fixture_setting(&f);
        struct stage_parameters all = parameters_of_stage(&f, 0);
        struct stage_parameters layers = work_stage_parameters(&f.layout, &setting, (struct layer_range){0, 8}, false, false);
        double gathered = all.dense + (overlap ? 1 : 2) * layers.dense;
        expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_GATHER, GROUP_DP), 3 * 2 * gathered);
        program_free(&program);
    }
}
END_TEST

/* Each layer waits for its own parameters, which are asked for when the layer before begins, that is when the one before that has
 * ended. */
START_TEST(sharded_prefetch)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        struct fixture f = replicated(1, 1, 3, overlap ? FEATURE_BIT(DP_OVERLAP) : 0, false);
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        uint32_t n, units[3 * 16], n_units = 0;
        const struct op *ops = rank_ops(&program, 0, &n);
        for (uint32_t i = 0; i < n; i++)
            if (ops[i].kind == OP_COMPUTE && ops[i].pass < N_PASSES)
                units[n_units++] = i;
        ck_assert_uint_eq(n_units, 3 * 16);
        for (uint32_t u = 0; u < n_units; u++) {
            uint32_t gather = gather_of(ops, units[u]);
            ck_assert_uint_ne(gather, NO_OP);
            ck_assert_int_eq(ops[gather].layer, ops[units[u]].layer);
            if (u >= 2)
                ck_assert(depends_on(&ops[gather], units[u - 2]));
            if (u + 1 < n_units && ops[units[u]].pass == PASS_BACKWARD) { /* without overlap the reduction blocks */
                uint32_t reduce = find(ops, n, units[u], OP_COLLECTIVE, N_PASSES, COLLECTIVE_REDUCE_SCATTER);
                ck_assert(depends_on(&ops[reduce], units[u]));
                ck_assert(overlap || ops[units[u + 1]].deps[0] >= reduce);
            }
        }
        program_free(&program);
    }
}
END_TEST

START_TEST(tied_embeddings)
{
    struct fixture f = replicated(4, 1, 0, 0, false);
    f.model.tied_embeddings = true;
    struct program program = fixture_build(&f, DETAIL_CHUNK, false);
    double table = 4.0 * 4096 * 512;
    for (int r = 0; r < program.n_ranks; r++) {
        int stage = program.ranks[r].script;
        bool at_end = stage == 0 || stage == 3;
        expect_near(collective_bytes(&program, r, COLLECTIVE_ALL_REDUCE, GROUP_EMBEDDING), at_end ? table : 0);
        ck_assert_int_eq(program.ranks[r].groups[GROUP_EMBEDDING] >= 0, at_end);
    }
    program_free(&program);
    f = replicated(1, 1, 0, 0, false); /* one stage has only one table */
    f.model.tied_embeddings = true;
    program = fixture_build(&f, DETAIL_CHUNK, true);
    ck_assert_int_eq(program.ranks[0].groups[GROUP_EMBEDDING], -1);
    program_free(&program);
}
END_TEST

/* `variant`: bits of a mixture of experts, a hybrid division and overlapping. */
static void check_adapters(int zero, int variant)
{
    bool mixture = variant & 1, hybrid = variant & 2 && zero;
    int stages = zero < 3 ? 2 : 1, passes = zero == 3 ? 3 : 1;
    struct fixture f = replicated(stages, 1, zero, variant & 4 ? FEATURE_BIT(DP_OVERLAP) : 0, mixture);
    f.model.tied_embeddings = true;
    f.layout.shard = hybrid ? 2 : 0;
    f.job.adapter = (struct adapter){.rank = 4, .targets = 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION};
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    double trained = f.model.layers / stages * 4 * (512 + 3 * 512 + 512 + 512), share = hybrid ? 2 : 4;
    struct setting setting = fixture_setting(&f);
    struct stage_parameters layers = work_stage_parameters(&f.layout, &setting, (struct layer_range){0, 8}, false, false);
    struct stage_parameters all = parameters_of_stage(&f, 0);
    double norm = zero || mixture ? 4 : 0;
    expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_REDUCE, GROUP_DP), (zero ? 0 : 4 * trained) + norm);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), zero ? passes * 4 * trained : 0);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_REDUCE, GROUP_REPLICA), hybrid ? 4 * trained / share : 0);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_GATHER, GROUP_DP), zero == 3 ? 3 * 2 * (all.dense + layers.dense)
                                                                                : zero    ? 2 * trained
                                                                                          : 0);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_EXPERT_DP), 0);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_GATHER, GROUP_EXPERT_DP),
                zero == 3 && !hybrid ? 3 * 2 * 2 * layers.experts : 0);
    expect_near(collective_bytes(&program, 0, COLLECTIVE_ALL_REDUCE, GROUP_EMBEDDING), 0);
    program_free(&program);
}

/* Where adapters are trained gradients are theirs, and so is what is gathered behind their update; ZeRO-3 gathers what is frozen
 * too, experts among it. A tied table has no gradient. */
START_TEST(adapters_alone_are_exchanged)
{
    for (int zero = 0; zero <= 3; zero++)
        for (int variant = 0; variant < 8; variant++)
            check_adapters(zero, variant);
}
END_TEST

/* Stages of the embedding and of the head alone have nothing to train. */
START_TEST(ends_alone_train_nothing)
{
    struct diags diags = {0};
    for (int s = SCHEDULE_GPIPE; s <= SCHEDULE_ZB2P; s++) {
        if (s == SCHEDULE_INTERLEAVED)
            continue;
        struct fixture f = fixture_pipeline((enum schedule)s, 4, 1, 8);
        f.model.layers = 2;
        f.layout.dp = 2, f.layout.zero = 1;
        f.job.global_batch *= 2;
        f.job.adapter = (struct adapter){.rank = 4, .targets = 1 << ADAPT_MLP_DOWN};
        for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
            struct program program = fixture_build(&f, (enum detail)detail, true);
            ck_assert_int_eq(program_verify(&program, &diags), STATUS_OK);
            expect_near(collective_bytes(&program, 0, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), 0);
            expect_near(collective_bytes(&program, 1, COLLECTIVE_REDUCE_SCATTER, GROUP_DP), 4 * 4 * (2048 + 512));
            program_free(&program);
        }
    }
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_replicas");
    TCase *tcase = tcase_create("replicas");
    tcase_add_test(tcase, bytes_are_conserved);
    tcase_add_test(tcase, scattered_gradients_make_room);
    tcase_add_test(tcase, hybrid_bytes);
    tcase_add_test(tcase, hybrid_order);
    tcase_add_test(tcase, gradient_precision);
    tcase_add_test(tcase, one_replica);
    tcase_add_test(tcase, buckets_overlap);
    tcase_add_test(tcase, chunks_overlap);
    tcase_add_test(tcase, end_of_step);
    tcase_add_test(tcase, muon_sends_updates_to_owners);
    tcase_add_test(tcase, owners_of_whole_parameters_gather_once);
    tcase_add_test(tcase, sharded_counts);
    tcase_add_test(tcase, sharded_recomputation);
    tcase_add_test(tcase, sharded_prefetch);
    tcase_add_test(tcase, tied_embeddings);
    tcase_add_test(tcase, adapters_alone_are_exchanged);
    tcase_add_test(tcase, ends_alone_train_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
