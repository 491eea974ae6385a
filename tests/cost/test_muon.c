/* Muon: which matrices there are, who computes them, what that takes; by hand and by brute force. */
#include <math.h>
#include <stdlib.h>

#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "model/cost/work/muon.h"
#include "shapes.h"

static struct muon_matrices matrices_of(const struct shape *s, int layers, bool head)
{
    struct muon_matrices matrices = {.n = 0};
    muon_matrices_add(&matrices, &s->layout, &s->setting, (struct layer_range){0, layers}, head);
    return matrices;
}

static void muon_shape(struct shape *s)
{
    shape_megascale(s);
    s->job.optimizer = OPTIMIZER_MUON;
    s->layout = (struct layout){.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    s->layout.schedule = SCHEDULE_NONE;
    s->model.linear_bias = s->model.qkv_bias = false;
    s->model.norm = NORM_RMS;
}

/* Other kinds of layers than GPT's. */
static void change(struct shape *s, int kind)
{
    s->model.gated_mlp = kind & 1;
    if (kind & 2)
        s->model.kv_heads = 8;
    if (kind & 4) {
        s->model.attention = ATTENTION_LATENT;
        s->model.latent = (struct latent_attention){kind & 2 ? 1536 : 0, 512, 128, 64, 128};
    }
    if (kind & 8)
        s->model.moe = (struct mixture){.experts = 16, .top_k = 2, .expert_ffn = 2048, .shared_experts = 1, .every = 2};
    if (kind & 16)
        s->model.mtp_layers = 1;
}

/* All of a layer but norms, and no table: by the parameters that the catalog's models are checked with. */
START_TEST(matrices_are_what_is_no_vector)
{
    struct shape s;
    muon_shape(&s);
    change(&s, _i);
    s.layout.ep = s.model.moe.experts ? 4 : 1, s.layout.dp = 4;
    int layers = s.model.layers;
    double h = (double)s.model.hidden, latents = s.model.latent.q_lora_rank + s.model.latent.kv_lora_rank;
    struct muon_matrices matrices = matrices_of(&s, layers, true);
    struct stage_parameters all = work_stage_parameters(&s.layout, &s.setting, (struct layer_range){0, layers}, false, true);
    struct stage_parameters muon = muon_parameters(&matrices);
    int modules = layers + s.model.mtp_layers;
    double vectors = modules * (2 * h + (s.model.attention == ATTENTION_LATENT ? latents : 0)) + 3 * h * s.model.mtp_layers + h;
    double table = s.model.tied_embeddings ? 0 : h * (double)s.model.vocab;
    ck_assert_double_eq_tol(muon.dense, all.dense - vectors - table, 1e-9 * all.dense);
    ck_assert_double_eq_tol(muon.experts, all.experts, 1e-9 * all.dense);
}
END_TEST

static double newton_schulz_flops(double a, double b)
{
    return 5 * (4 * a * a * b + 2 * a * a * a);
}

/* q, k, v and the projection [h, h]; up and down [h, 4 h]: in blocks of an eighth, and whole on each of eight ranks. */
START_TEST(products_are_counted)
{
    struct shape s;
    muon_shape(&s);
    double h = (double)s.model.hidden, f = (double)s.model.ffn_hidden;
    for (int tp = 1; tp <= 8; tp *= 8) {
        for (int whole = 0; whole < 2; whole++) {
            struct work_table table = {0};
            double d = whole ? 1 : tp;
            s.layout.tp = tp;
            s.job.muon_tp = whole ? MUON_DUPLICATED : MUON_BLOCKWISE;
            struct muon_matrices matrices = matrices_of(&s, 1, false);
            int32_t id = work_add_newton_schulz(&table, &s.layout, &s.setting, &matrices);
            double up = newton_schulz_flops(fmin(h, f / d), fmax(h, f / d));
            double expected = 4 * newton_schulz_flops(h / d, h) + 2 * up;
            ck_assert_double_eq_tol(work_flops(&table, id), expected, 1e-9 * expected);
            double gathers = 0;
            for (int32_t i = 0; i < table.n_items; i++) {
                const struct work *work = &table.items[i];
                gathers += work->kind == WORK_COLLECTIVE;
                ck_assert_int_eq(work->class, CLASS_OPTIMIZER);
                if (work->kind == WORK_GEMM)
                    ck_assert_int_le(work->gemm.m, work->gemm.n > work->gemm.k ? work->gemm.n : work->gemm.k);
            }
            ck_assert_double_eq(gathers, tp > 1 && whole ? matrices.n : 0);
            work_table_free(&table);
        }
    }
}
END_TEST

/* Two key/value heads on eight ranks: each has one whole, [128, h], of which there are four. Blockwise it is a matrix; duplicated
 * eight blocks come together, of which two make the matrix. One head is there whole: nothing comes together. */
START_TEST(fewer_heads_than_ranks_are_repeated)
{
    for (int heads = 1; heads <= 2; heads++) {
        struct shape s;
        muon_shape(&s);
        s.model.kv_heads = heads, s.layout.tp = 8;
        double h = (double)s.model.hidden, d = s.model.head_dim, divided = (2 * h * h + 2 * h * (double)s.model.ffn_hidden) / 8;
        for (int whole = 0; whole < 2; whole++) {
            s.job.muon_tp = whole ? MUON_DUPLICATED : MUON_BLOCKWISE;
            struct muon_matrices m = matrices_of(&s, 1, false);
            struct stage_parameters all = work_stage_parameters(&s.layout, &s.setting, (struct layer_range){0, 1}, false, false);
            const struct muon_kind *k = &m.items[1];
            ck_assert_str_eq(k->label, "key_value");
            ck_assert_int_eq(k->count, 2);
            ck_assert_int_eq(k->rows, (whole ? heads : 1) * s.model.head_dim);
            ck_assert_double_eq(k->held, d * h);
            ck_assert_double_eq(k->gathered, whole && heads > 1 ? 8 * d * h : 0);
            ck_assert_double_eq(muon_parameters(&m).dense, divided + 2 * d * h);
            ck_assert_double_eq(all.dense, divided + 2 * d * h + 2 * h); /* and norms, whole too */
        }
    }
}
END_TEST

static int number(unsigned *state, int n)
{
    *state = *state * 1103515245u + 12345u;
    return (int)(*state >> 16) % n;
}

/* Whose the i-th is: in turn; layer-wise every second round backward. */
static int owner_of(int64_t i, int owners, bool alternates)
{
    int turn = (int)(i % owners);
    return alternates && i / owners % 2 ? owners - 1 - turn : turn;
}

/* Matrices dealt one by one, the largest first. */
static void deal(const struct muon_matrices *m, bool experts, int owners, double *flops, double *held)
{
    int owner = 0;
    bool dealt[MUON_KINDS_MAX] = {false};
    for (int round = 0; round < m->n; round++) {
        int largest = -1;
        for (int i = 0; i < m->n; i++)
            if (!dealt[i] && m->items[i].experts == experts && (largest < 0 || m->items[i].held > m->items[largest].held))
                largest = i;
        if (largest < 0)
            return;
        dealt[largest] = true;
        const struct muon_kind *k = &m->items[largest];
        for (int64_t i = 0; i < k->count; i++, owner = (owner + 1) % owners) {
            double rows = (double)k->rows, cols = (double)k->cols;
            flops[owner] += newton_schulz_flops(fmin(rows, cols), fmax(rows, cols));
            held[owner] += k->held;
        }
    }
}

/* The fullest owner, and the mean of all, against matrices dealt one by one. */
START_TEST(owners_are_dealt_matrices_in_turn)
{
    enum { OWNERS_MAX = 64 };
    unsigned state = 7;
    for (int round = 0; round < 300; round++) {
        struct shape s;
        muon_shape(&s);
        change(&s, number(&state, 32));
        s.layout.zero = 1 + number(&state, 3);
        s.layout.tp = 1 << number(&state, 3);
        s.layout.dp = 1 << (2 + number(&state, 5));
        s.layout.ep = s.model.moe.experts ? 4 : 1;
        s.job.muon_tp = (enum muon_tp)number(&state, 2);
        struct muon_matrices m = matrices_of(&s, 1 + number(&state, 20), number(&state, 2));
        struct muon_share share = muon_share_of(&m, &s.layout, &s.job);
        double mean = 0, most[2] = {0}, counted[2] = {0};
        for (int experts = 0; experts < 2; experts++) {
            double flops[OWNERS_MAX] = {0}, held[OWNERS_MAX] = {0}, fullest = 0;
            int owners = layout_group_size(&s.layout, experts ? GROUP_EXPERT_DP : GROUP_DP);
            ck_assert_int_le(owners, OWNERS_MAX);
            deal(&m, experts, owners, flops, held);
            for (int i = 0; i < owners; i++) {
                most[experts] = fmax(most[experts], flops[i]);
                fullest = fmax(fullest, held[i]);
                mean += flops[i] / owners;
            }
            double bytes = muon_exchange_bytes(&m, &s.layout, &s.setting, experts ? GROUP_EXPERT_DP : GROUP_DP);
            ck_assert_double_eq_tol(bytes, (owners > 1 ? 2 : 0) * fullest, 1e-9 * fullest + 1e-9);
        }
        for (int i = 0; i < m.n; i++) {
            double rows = (double)m.items[i].rows, cols = (double)m.items[i].cols;
            counted[m.items[i].experts] += (double)share.counts[i] * newton_schulz_flops(fmin(rows, cols), fmax(rows, cols));
        }
        for (int experts = 0; experts < 2; experts++)
            ck_assert_double_eq_tol(counted[experts], most[experts], 1e-9 * most[experts] + 1e-9);
        struct work_table table = {0};
        int32_t id = work_add_newton_schulz(&table, &s.layout, &s.setting, &m);
        ck_assert_double_eq_tol(work_flops(&table, id), mean, 1e-9 * mean);
        work_table_free(&table);
    }
}
END_TEST

/* Of one size in the order of the structure. */
static int larger(const void *a, const void *b)
{
    const struct muon_kind *const *x = a, *const *y = b;
    if ((*x)->held < (*y)->held || (*x)->held > (*y)->held)
        return (*x)->held < (*y)->held ? 1 : -1;
    return (*x > *y) - (*x < *y);
}

/* Parameters dealt one by one, tables among the dense ones; of each owner. */
struct hand {
    double flops, matrices, tables;
};

static void deal_whole(const struct muon_matrices *m, bool experts, int owners, struct hand *hands)
{
    const struct muon_kind *kinds[MUON_KINDS_MAX + 2];
    int n = 0;
    int64_t next = 0;
    for (int i = 0; i < m->n; i++)
        if (m->items[i].experts == experts)
            kinds[n++] = &m->items[i];
    for (int i = 0; i < 2 && !experts; i++)
        kinds[n++] = &m->tables[i];
    qsort(kinds, (size_t)n, sizeof kinds[0], larger);
    for (int i = 0; i < n; i++) {
        bool table = kinds[i] >= m->tables && kinds[i] < m->tables + 2;
        double rows = (double)kinds[i]->rows, cols = (double)kinds[i]->cols;
        for (int64_t k = 0; k < kinds[i]->count; k++, next++) {
            struct hand *hand = &hands[owner_of(next, owners, true)];
            hand->flops += table ? 0 : newton_schulz_flops(fmin(rows, cols), fmax(rows, cols));
            *(table ? &hand->tables : &hand->matrices) += kinds[i]->held;
        }
    }
}

/* Layer-wise: the owner with most FLOPs and the one with most states against parameters dealt one by one; nobody sends updates,
 * all gradients stay whole. Matrices have 8 bytes of states, tables 12, and the rest is dealt evenly. */
START_TEST(owners_are_dealt_whole_parameters)
{
    enum { OWNERS_MAX = 64 };
    unsigned state = 11;
    for (int round = 0; round < 300; round++) {
        struct shape s;
        muon_shape(&s);
        change(&s, number(&state, 32));
        s.job.muon_shard = MUON_LAYER_WISE;
        s.model.position = number(&state, 2) ? POSITION_LEARNED : POSITION_ROTARY;
        s.layout.zero = 1;
        s.layout.tp = 1 << number(&state, 3);
        s.layout.dp = 4 * (1 + number(&state, 16));
        s.layout.ep = s.model.moe.experts ? 4 : 1;
        bool embedding = number(&state, 2), head = number(&state, 2);
        struct layer_range range = {0, 1 + number(&state, 20)};
        struct muon_matrices m = matrices_of(&s, range.count, head);
        muon_tables_add(&m, &s.layout, &s.setting, embedding, head);
        struct stage_parameters all = work_stage_parameters(&s.layout, &s.setting, range, embedding, head);
        struct muon_share share = muon_share_of(&m, &s.layout, &s.job);
        struct muon_updated updated = muon_updated_of(&m, &s.layout, &s.setting, all);
        double matrices = 0, tables = 0, rest[2] = {all.dense, all.experts}, flops[2] = {0}, counted[2] = {0}, even = 0;
        for (int experts = 0; experts < 2; experts++) {
            struct hand hands[OWNERS_MAX] = {0}, most = {0};
            int owners = layout_group_size(&s.layout, experts ? GROUP_EXPERT_DP : GROUP_DP);
            deal_whole(&m, experts, owners, hands);
            for (int i = 0; i < owners; i++) {
                flops[experts] = fmax(flops[experts], hands[i].flops);
                if (8 * hands[i].matrices + 12 * hands[i].tables > 8 * most.matrices + 12 * most.tables)
                    most = hands[i];
                rest[experts] -= hands[i].matrices + hands[i].tables;
            }
            matrices += most.matrices, tables += most.tables, even += rest[experts] / owners;
            ck_assert_double_ge(rest[experts], 0);
            ck_assert(experts || rest[experts] < 1e-3 * all.dense); /* vectors */
            ck_assert_double_eq(muon_exchange_bytes(&m, &s.layout, &s.setting, experts ? GROUP_EXPERT_DP : GROUP_DP), 0);
        }
        for (int i = 0; i < m.n; i++) {
            double rows = (double)m.items[i].rows, cols = (double)m.items[i].cols;
            counted[m.items[i].experts] += (double)share.counts[i] * newton_schulz_flops(fmin(rows, cols), fmax(rows, cols));
        }
        for (int experts = 0; experts < 2; experts++)
            ck_assert_double_eq_tol(counted[experts], flops[experts], 1e-9 * flops[experts] + 1e-9);
        double bytes = 8 * matrices + 12 * (tables + even);
        ck_assert_double_eq_tol(muon_state_bytes(&s.setting, updated), bytes, 1e-9 * bytes);
        if (s.model.position != POSITION_LEARNED) /* whose table may have just the states of a matrix */
            ck_assert_double_eq_tol(updated.all, matrices + tables + even, 1e-9 * updated.all);
        ck_assert_double_eq(work_reduced_parameters(&s.layout, &s.job, all), all.dense + all.experts);
    }
}
END_TEST

/* The 70B model of below, layer-wise on 64 owners. Of a stage 60 gates, ups and downs come first, then 40 queries and
 * projections, 40 keys and values: in the first round owners 0 to 59 get the former, 60 to 63 the next four; in the second,
 * backward, 63 to 28 the other 36 of these, 27 to 0 keys and values; in the third 0 to 11 those left. So 28 to 59 have most, and
 * when they are done all weights are gathered. */
START_TEST(owners_of_a_large_model_gather)
{
    struct shape s;
    muon_shape(&s);
    s.model.layers = 80, s.model.hidden = 8192, s.model.ffn_hidden = 28672, s.model.gated_mlp = true;
    s.model.heads = 64, s.model.kv_heads = 8, s.model.head_dim = 128;
    s.layout.tp = 8, s.layout.pp = 4, s.layout.dp = 64, s.layout.zero = 1;
    s.job.muon_shard = MUON_LAYER_WISE;
    struct muon_matrices m = matrices_of(&s, 20, false);
    const double h = 8192, f = 28672, kv = 1024;
    const double stage = 20 * (2 * h * h + 2 * kv * h + 3 * f * h) / 8, vectors = 20 * 2 * h;
    const struct stage_parameters all = {stage + vectors, 0};
    struct muon_updated updated = muon_updated_of(&m, &s.layout, &s.setting, all);
    const double own = (f * h + h * h) / 8; /* of an owner of both, who gets no keys or values: those go on backward */
    ck_assert_double_eq_tol(updated.matrices, own, 1e-9 * own);
    ck_assert_double_eq_tol(updated.all, own + vectors / 64, 1e-9 * own);
    struct muon_gather g = muon_gather_of(&m, &s.layout, &s.setting, all);
    ck_assert_double_eq(g.dense, stage + vectors);
    ck_assert_double_eq(g.experts, 0);
    ck_assert_double_eq(g.own, updated.all);
    double bytes = muon_scratch_bytes(&m, &s.layout, &s.setting, all);
    ck_assert_double_eq_tol(bytes, 2 * (stage + vectors + updated.all), 1e-9 * bytes);
    s.job.muon_tp = MUON_DUPLICATED; /* X twice, two Gram matrices and the blocks of a whole one are less than that */
    m = matrices_of(&s, 20, false);
    ck_assert_double_lt(2 * (3 * f * h + 2 * h * h), bytes);
    ck_assert_double_eq(muon_scratch_bytes(&m, &s.layout, &s.setting, all), bytes);
    ck_assert_double_eq(muon_scratch_bytes(&m, &s.layout, &s.setting, (struct stage_parameters){0}), 2 * (3 * f * h + 2 * h * h));
}
END_TEST

/* One replica has nobody to divide with, and all of ZeRO-0's have all: as if nothing had been said. */
START_TEST(alone_owners_are_no_others)
{
    for (int zero = 0; zero < 2; zero++) {
        struct shape s;
        struct footprint f[2];
        struct step_estimate e[2];
        muon_shape(&s);
        s.layout.tp = 4, s.layout.dp = zero ? 1 : 8, s.layout.zero = zero;
        s.job.global_batch = 8, s.setting.gpus = 4 * s.layout.dp;
        for (int shard = 0; shard < N_MUON_SHARDS; shard++) {
            s.job.muon_shard = (enum muon_shard)shard;
            footprint_of_stage(&s.layout, &s.setting, 0, &f[shard]);
            struct closed_form *form = closed_form_create(&s.setting);
            closed_form_estimate(form, &s.layout, &e[shard]);
            closed_form_destroy(form);
        }
        ck_assert_double_eq(f[0].optimizer, f[1].optimizer);
        ck_assert_double_eq(e[0].step_s, e[1].step_s);
    }
}
END_TEST

/* A parameter of a matrix: 12 bytes of gradient (read twice, zeroed), 8 of momentum, the update out and in again, 4 + 4 + 2 of
 * weights. Another has Adam's 38. */
START_TEST(a_step_streams_what_is_counted)
{
    struct shape s;
    struct work_table table = {0};
    muon_shape(&s);
    int32_t update = work_add_muon_update(&table, &s.setting, 3e9, 2e9);
    int32_t apply = work_add_muon_apply(&table, &s.setting, 2e9, 0);
    ck_assert_double_eq_tol(table.items[update].memory.bytes, 2e9 * (12 + 8 + 2) + 1e9 * 38, 1);
    ck_assert_double_eq_tol(table.items[apply].memory.bytes, 2e9 * (4 + 2 + 4 + 2), 1);
    work_table_free(&table);
}
END_TEST

/* A matrix keeps 8 bytes a parameter where Adam keeps 12, whatever divides them. */
START_TEST(one_moment_a_matrix)
{
    for (int zero = 0; zero < 4; zero++) {
        struct shape s;
        muon_shape(&s);
        s.layout.tp = 4, s.layout.dp = 8, s.layout.zero = zero;
        struct footprint with, without;
        footprint_of_stage(&s.layout, &s.setting, 0, &with);
        s.job.optimizer = OPTIMIZER_ADAM;
        footprint_of_stage(&s.layout, &s.setting, 0, &without);
        s.job.optimizer = OPTIMIZER_MUON;
        struct muon_matrices m = matrices_of(&s, s.model.layers, true);
        double matrices = muon_parameters(&m).dense / (zero ? 8 : 1);
        ck_assert_double_gt(matrices, 0);
        ck_assert_double_eq_tol(without.optimizer - with.optimizer, 4 * matrices, 1e-6 * matrices);
        s.job.moment_precision = PRECISION_BF16; /* a matrix has one momentum, the rest Adam's two: 2 bytes less each */
        struct footprint narrow;
        footprint_of_stage(&s.layout, &s.setting, 0, &narrow);
        double others = (with.optimizer - 8 * matrices) / 12;
        ck_assert_double_eq_tol(with.optimizer - narrow.optimizer, 2 * matrices + 4 * others, 1e-6 * matrices);
        ck_assert_double_eq(with.weights, without.weights);
        ck_assert_double_eq(with.gradients, without.gradients);
        ck_assert_double_ge(with.buffers, without.buffers);
        ck_assert_double_eq(with.total,
                            with.weights + with.gradients + with.optimizer + with.activations + with.buffers + with.framework);
    }
}
END_TEST

/* What matrices need between two iterations is there only where activations leave less. */
START_TEST(scratch_takes_the_place_of_activations)
{
    struct shape s;
    muon_shape(&s);
    s.job.seq_len = 64;
    struct footprint f, adam;
    footprint_of_stage(&s.layout, &s.setting, 0, &f);
    s.job.optimizer = OPTIMIZER_ADAM;
    footprint_of_stage(&s.layout, &s.setting, 0, &adam);
    s.job.optimizer = OPTIMIZER_MUON;
    double h = (double)s.model.hidden, own = 12 * h * h * s.model.layers; /* bf16: updates; X twice, A and B of [h, 4 h] */
    double scratch = 2 * own + 2 * (2 * 4 * h * h + 2 * h * h);
    ck_assert_double_eq_tol(f.buffers - adam.buffers, scratch - f.activations, 1e-9 * scratch);
}
END_TEST

/* A 70B model on tp=8, pp=4, dp=64 that all divide states: of a stage's 140 matrices, dealt the largest first, the fullest owner
 * has one of gate, up and down, one of queries and projections, one of keys and values. What it sends is a 64th of the stage; of
 * the largest matrix, [8192, 28672] in 8 blocks, X twice and two Gram matrices of the smaller side; duplicated, of the whole,
 * once more as blocks. */
START_TEST(scratch_of_a_large_model)
{
    for (int whole = 0; whole < 2; whole++) {
        struct shape s;
        muon_shape(&s);
        s.model.layers = 80, s.model.hidden = 8192, s.model.ffn_hidden = 28672, s.model.gated_mlp = true;
        s.model.heads = 64, s.model.kv_heads = 8, s.model.head_dim = 128;
        s.layout.tp = 8, s.layout.pp = 4, s.layout.dp = 64, s.layout.zero = 1;
        s.job.muon_tp = whole ? MUON_DUPLICATED : MUON_BLOCKWISE;
        struct muon_matrices m = matrices_of(&s, 20, false);
        const double h = 8192, f = 28672, kv = 1024, block = f / 8;
        double stage = 20 * (2 * h * h + 2 * kv * h + 3 * f * h) / 8;
        double x = whole ? f * h : block * h, side = whole ? h : block;
        double batch = 2 * x + 2 * side * side + (whole ? f * h : 0);
        double owned = (f * h + h * h + kv * h) / 8;
        double bytes = muon_scratch_bytes(&m, &s.layout, &s.setting, (struct stage_parameters){0});
        ck_assert_double_eq_tol(bytes, 2 * (batch + stage / 64 + owned), 1e-9 * bytes);
    }
}
END_TEST

/* Moonlight (arXiv:2502.16982, section 2.3) reports 1 to 3 % of a step for a Muon whose ranks repeat one another's work. Dealt
 * among owners it takes less, and the more of them there are. */
START_TEST(more_owners_take_less)
{
    struct shape s;
    muon_shape(&s);
    s.layout.tp = 8, s.layout.zero = 1;
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
    double before = INFINITY;
    for (int dp = 1; dp <= 64; dp *= 2) {
        s.layout.dp = dp;
        s.job.global_batch = 64 * dp;
        s.setting.gpus = 8 * dp;
        struct closed_form *form = closed_form_create(&s.setting);
        struct step_estimate e;
        closed_form_estimate(form, &s.layout, &e);
        closed_form_destroy(form);
        ck_assert_double_lt(e.by_class.s[CLASS_OPTIMIZER], before);
        before = e.by_class.s[CLASS_OPTIMIZER];
    }
}
END_TEST

Suite *suite_muon(void)
{
    Suite *suite = suite_create("muon");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, matrices_are_what_is_no_vector, 0, 32);
    tcase_add_test(all, products_are_counted);
    tcase_add_test(all, fewer_heads_than_ranks_are_repeated);
    tcase_add_test(all, owners_are_dealt_matrices_in_turn);
    tcase_add_test(all, owners_are_dealt_whole_parameters);
    tcase_add_test(all, owners_of_a_large_model_gather);
    tcase_add_test(all, alone_owners_are_no_others);
    tcase_add_test(all, a_step_streams_what_is_counted);
    tcase_add_test(all, one_moment_a_matrix);
    tcase_add_test(all, scratch_takes_the_place_of_activations);
    tcase_add_test(all, scratch_of_a_large_model);
    tcase_add_test(all, more_owners_take_less);
    suite_add_tcase(suite, all);
    return suite;
}
