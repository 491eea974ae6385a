/* GEMM, attention and memory-bound kernels: limits that follow from the theory in their headers. */
#include <math.h>

#include "model/base/random.h"
#include "model/cost/kernel/attention.h"
#include "model/cost/kernel/data_loading.h"
#include "model/cost/kernel/gemm_memo.h"
#include "model/cost/kernel/memory_bound.h"
#include "shapes.h"

static struct gpu plain_gpu(void)
{
    struct shape shape;
    shape_megascale(&shape);
    struct gpu gpu = shape.cluster.gpu;
    gpu.launch_s = 0;
    gpu.sustained_clock = 1;
    gpu.gemm[PRECISION_BF16] = (struct gemm_parameters){.peak_fraction = 1,
                                                        .small_tile_fraction = 1,
                                                        .smallest_tile_fraction = 1,
                                                        .quantisation = 1,
                                                        .memory_fraction = 1,
                                                        .overlap = 0.75};
    return gpu;
}

static struct cost gemm(const struct gpu *gpu, int64_t m, int64_t n, int64_t k)
{
    struct work_gemm g = {.m = m, .n = n, .k = k, .count = 1, .precision = PRECISION_BF16, .output_bytes = 2};
    return gemm_cost(gpu, &g);
}

/* 108 SMs, tiles of 256 x 128: 108 tiles fill one wave; the 109th costs a second one (performance guide's example), unless
 * smaller tiles do better. */
START_TEST(gemm_pays_for_whole_waves)
{
    struct gpu gpu = plain_gpu();
    gpu.gemm[PRECISION_BF16].small_tile_fraction = 0.01; /* leave only the large tile */
    double full = gemm(&gpu, 256, 128 * 108, 65536).compute_s, over = gemm(&gpu, 256, 128 * 109, 65536).compute_s;
    double tile = 2.0 * 256 * 128 * 65536 / (312e12 / 108);
    ck_assert_double_eq_tol(full, tile, tile * 1e-9);
    ck_assert_double_gt(over, 1.05 * tile); /* k is divided: 17 sixteenths of a wave, and the partial sums */
    ck_assert_double_lt(over, 2 * tile);
    gpu.gemm[PRECISION_BF16].split_s = 1; /* a library that does not divide k */
    ck_assert_double_eq_tol(gemm(&gpu, 256, 128 * 109, 65536).compute_s, 2 * tile, tile * 1e-9);
}
END_TEST

/* 108 SMs: 12 x 9 tiles of 128 x 192 fill one wave. Blackwell's libraries have that tile, which at 0.8 of the rate a halving
 * beats all others; an older one's best is a wave of 84 tiles of 128 x 256, seven columns of which the last is three quarters
 * full. */
START_TEST(gemm_takes_tiles_of_its_architecture)
{
    struct gpu gpu = plain_gpu();
    struct gemm_parameters *p = &gpu.gemm[PRECISION_BF16];
    p->small_tile_fraction = p->smallest_tile_fraction = 0.8;
    p->split_s = 1; /* a library that does not divide k */
    double whole = 2.0 * 256 * 128 * 65536 / (312e12 / 108);
    ck_assert_double_eq_tol(gemm(&gpu, 128 * 12, 192 * 9, 65536).compute_s, whole, whole * 1e-9);
    gpu.architecture = ARCHITECTURE_BLACKWELL;
    double narrow = whole * 0.75 / pow(0.8, log2(4.0 / 3));
    ck_assert_double_eq_tol(gemm(&gpu, 128 * 12, 192 * 9, 65536).compute_s, narrow, narrow * 1e-9);
    ck_assert_double_eq_tol(gemm(&gpu, 192 * 9, 128 * 12, 65536).compute_s, narrow, narrow * 1e-9); /* either way up */
    gpu.peak_flops[PRECISION_FP32] = 312e12; /* no tensor cores, none of their tiles */
    gpu.gemm[PRECISION_FP32] = *p;
    struct work_gemm ordinary = {
        .m = 128 * 12, .n = 192 * 9, .k = 65536, .count = 1, .precision = PRECISION_FP32, .output_bytes = 4};
    ck_assert_double_eq_tol(gemm_cost(&gpu, &ordinary).compute_s, whole, whole * 1e-9);
}
END_TEST

/* gemm.h's formula for one tile and split, as it is written there. */
static double tile_seconds(const struct gpu *gpu, const struct work_gemm *g, int tm, int tn, int split, double *waves)
{
    const struct gemm_parameters *p = &gpu->gemm[g->precision];
    double x = ceil((double)g->m / tm) * ceil((double)g->n / tn) * split / gpu->sms;
    double halvings = log2(256 * 128 / (double)(tm * tn)), first = fmin(halvings, 1);
    double fraction = pow(p->small_tile_fraction, first) * pow(p->smallest_tile_fraction, halvings - first);
    double rate = gpu->peak_flops[g->precision] * p->peak_fraction / gpu->sms * fraction;
    double depth = ceil((double)g->k / (64 * split)) * 64;
    double reduction = split == 1 ? 0 : p->split_s + 4.0 * (double)(g->m * g->n) * split / (gpu->hbm_rate * p->memory_fraction);
    *waves = x;
    return fmax(1, p->quantisation * ceil(x) + (1 - p->quantisation) * x) *
               (2.0 * tm * tn * depth / rate + p->tile_overhead_s * tm * tn / (256 * 128)) +
           reduction;
}

static double best_tile_seconds(const struct gpu *gpu, const struct work_gemm *g)
{
    static const int splits[] = {1, 2, 3, 4, 6, 8, 12, 16};
    bool blackwell = gpu->architecture == ARCHITECTURE_BLACKWELL;
    double best = INFINITY;
    for (int tm = 32; tm <= 256; tm += 32)
        for (int tn = 32; tn <= 256; tn += 32) {
            bool powers = !(tm & (tm - 1)) && !(tn & (tn - 1)) && tm >= 64 && tn >= 64 && tm * tn <= 256 * 128;
            bool widths = (tm == 128 && tn <= 256) || (tn == 128 && tm <= 256);
            double waves = 0;
            for (size_t s = 0; (blackwell ? widths : powers) && s < 8 && waves <= 16; s++)
                best = fmin(best, tile_seconds(gpu, g, tm, tn, splits[s], &waves));
        }
    return best;
}

/* Over shapes of any kind the formula of the header, tile by tile and power by power. */
START_TEST(gemm_is_the_best_of_all_tiles)
{
    struct gpu gpu = plain_gpu();
    struct random_stream random = {.key = 5};
    for (int i = 0; i < 4000; i++) {
        struct gemm_parameters *p = &gpu.gemm[PRECISION_BF16];
        p->small_tile_fraction = 0.4 + 0.6 * random_uniform(&random);
        p->smallest_tile_fraction = 0.4 + 0.6 * random_uniform(&random);
        p->quantisation = random_uniform(&random);
        p->tile_overhead_s = 4e-6 * random_uniform(&random);
        p->split_s = 8e-6 * random_uniform(&random);
        gpu.architecture = i % 2 ? ARCHITECTURE_BLACKWELL : ARCHITECTURE_AMPERE;
        struct work_gemm g = {.count = 1, .precision = PRECISION_BF16, .output_bytes = 2};
        g.m = (int64_t)pow(2, 4 + 10 * random_uniform(&random));
        g.n = (int64_t)pow(2, 4 + 10 * random_uniform(&random));
        g.k = (int64_t)pow(2, 6 + 10 * random_uniform(&random));
        double best = best_tile_seconds(&gpu, &g);
        ck_assert_double_eq_tol(gemm_cost(&gpu, &g).compute_s, best, best * 1e-13);
    }
}
END_TEST

START_TEST(gemm_reaches_the_peak_fraction_when_large)
{
    struct gpu gpu = plain_gpu();
    gpu.gemm[PRECISION_BF16].peak_fraction = 0.8;
    double ideal = 2.0 * 65536 * 65536 * 65536 / (0.8 * 312e12);
    ck_assert_double_eq_tol(gemm(&gpu, 65536, 65536, 65536).compute_s / ideal, 1, 0.01);
}
END_TEST

/* A head of 108 in 16 bits is no multiple of 16 bytes: 312 TFLOP/s become 19.5. */
/* A device measured as a whole has a rate, not tiles: small and odd products take their share. */
START_TEST(one_sm_has_no_tiles)
{
    struct gpu gpu = plain_gpu();
    gpu.sms = 1;
    ck_assert_double_eq_tol(gemm(&gpu, 3, 5, 7).compute_s, 2.0 * 3 * 5 * 7 / 312e12, 1e-24);
    ck_assert_double_eq_tol(gemm(&gpu, 4097, 513, 100).compute_s, 2.0 * 4097 * 513 * 100 / 312e12, 1e-18);
}
END_TEST

START_TEST(slices_that_are_not_aligned_miss_the_tensor_cores)
{
    struct gpu gpu = plain_gpu();
    gpu.peak_flops[PRECISION_FP32] = gpu.peak_flops[PRECISION_BF16] / 16;
    struct work_gemm g = {.m = 8192, .n = 8192, .k = 108 * 64, .count = 1, .precision = PRECISION_BF16, .output_bytes = 2};
    double filled = gemm_cost(&gpu, &g).compute_s;
    g.sliced = true;
    ck_assert_double_eq(gemm_cost(&gpu, &g).compute_s, filled);
    g.k -= 4;
    ck_assert_double_gt(gemm_cost(&gpu, &g).compute_s, 15 * filled);
    g.sliced = false;
    ck_assert_double_eq(gemm_cost(&gpu, &g).compute_s, filled); /* frameworks pad what a layer multiplies */
}
END_TEST

START_TEST(thin_gemm_is_limited_by_memory)
{
    struct gpu gpu = plain_gpu();
    double bytes = 2.0 * (64.0 * 16384 + 16384.0 * 16384 + 64.0 * 16384);
    double seconds = cost_seconds(gemm(&gpu, 64, 16384, 16384));
    ck_assert_double_ge(seconds, bytes / gpu.hbm_rate);
    ck_assert_double_le(seconds, 1.25 * bytes / gpu.hbm_rate);
}
END_TEST

/* One product whose operands take as long to read as it takes to compute: twice that one after the other, 2^(1/4) times with
 * three quarters overlapped, by the p-norm with p = 4; what little traffic there is beside a large product is hidden. */
START_TEST(arithmetic_and_traffic_overlap)
{
    struct gpu gpu = plain_gpu();
    struct gemm_parameters *p = &gpu.gemm[PRECISION_BF16];
    double bytes = 2.0 * (3 * 8192.0 * 8192.0), arithmetic = gemm(&gpu, 8192, 8192, 8192).compute_s;
    gpu.hbm_rate = bytes / arithmetic;
    p->split_s = 1; /* whose partial sums would be traffic, too */
    ck_assert_double_eq_tol(cost_seconds(gemm(&gpu, 8192, 8192, 8192)), pow(2, 0.25) * arithmetic, arithmetic * 1e-9);
    p->overlap = 0;
    ck_assert_double_eq_tol(cost_seconds(gemm(&gpu, 8192, 8192, 8192)), 2 * arithmetic, arithmetic * 1e-9);
    gpu.hbm_rate *= 1e6;
    p->overlap = 0.75;
    ck_assert_double_eq_tol(cost_seconds(gemm(&gpu, 8192, 8192, 8192)), arithmetic, arithmetic * 1e-9);
}
END_TEST

/* Storing C: a tile of half the area has half the overhead. 108 tiles of either size are one wave of 108 SMs. */
START_TEST(overhead_follows_the_area_of_a_tile)
{
    struct gpu gpu = plain_gpu();
    struct gemm_parameters *p = &gpu.gemm[PRECISION_BF16];
    p->split_s = 1;
    double large = gemm(&gpu, 256, 128 * 108, 512).compute_s, small = gemm(&gpu, 128, 128 * 108, 512).compute_s;
    p->tile_overhead_s = 1e-6;
    ck_assert_double_eq_tol(gemm(&gpu, 256, 128 * 108, 512).compute_s - large, 1e-6, 1e-15);
    ck_assert_double_eq_tol(gemm(&gpu, 128, 128 * 108, 512).compute_s - small, 0.5e-6, 1e-15);
}
END_TEST

/* Half of the droop at droop_time, next to none far below, all far above. */
START_TEST(long_gemms_droop)
{
    struct gpu gpu = plain_gpu();
    struct gemm_parameters *p = &gpu.gemm[PRECISION_BF16];
    double full = gemm(&gpu, 8192, 8192, 8192).compute_s, ideal = 2.0 * 8192 * 8192 * 8192 / gpu.peak_flops[PRECISION_BF16];
    p->droop = 0.2;
    p->droop_s = ideal;
    ck_assert_double_eq_tol(gemm(&gpu, 8192, 8192, 8192).compute_s, 1.1 * full, full * 1e-9);
    p->droop_s = ideal * 1e9;
    ck_assert_double_eq_tol(gemm(&gpu, 8192, 8192, 8192).compute_s, full, full * 1e-6);
    p->droop_s = 0;
    ck_assert_double_eq_tol(gemm(&gpu, 8192, 8192, 8192).compute_s, 1.2 * full, full * 1e-9);
}
END_TEST

START_TEST(gemm_grows_with_every_dimension)
{
    struct shape shape;
    shape_megascale(&shape);
    const struct gpu *gpu = &shape.cluster.gpu;
    for (int64_t k = 512; k <= 16384; k *= 2)
        ck_assert_double_lt(cost_seconds(gemm(gpu, 2048, 4096, k)), cost_seconds(gemm(gpu, 2048, 4096, 2 * k)));
    for (int64_t m = 512; m <= 16384; m *= 2)
        ck_assert_double_lt(cost_seconds(gemm(gpu, m, 4096, 4096)), cost_seconds(gemm(gpu, 2 * m, 4096, 4096)));
}
END_TEST

START_TEST(attention_counts_pairs_and_heads)
{
    struct shape shape;
    shape_megascale(&shape);
    struct gpu gpu = shape.cluster.gpu;
    gpu.launch_s = 0;
    gpu.sustained_clock = 1;
    gpu.memory = (struct memory_parameters){0};
    gpu.attention = (struct attention_parameters){.forward_fraction = 0.5, .backward_fraction = 0.5}; /* and no tiles */
    double s = 8192, pairs = s * (s + 1) / 2;
    struct work_attention a = {.batch = 4,
                               .query_tokens = 8192,
                               .key_tokens = 8192,
                               .pairs = pairs,
                               .heads = 27,
                               .kv_heads = 27,
                               .head_dim = 128,
                               .value_dim = 128,
                               .fused = 2};
    double flops = 4.0 * 128 * pairs * 4 * 27;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), flops / (0.5 * 312e12), 1e-9);
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, true)), 2.5 * flops / (0.5 * 312e12), 1e-9);
}
END_TEST

/* A loss head in bf16 beside fp16 layers, as everywhere else. */
START_TEST(a_gpu_without_bf16_takes_fp16)
{
    struct gpu gpu = plain_gpu();
    double bf16 = cost_seconds(gemm(&gpu, 4096, 4096, 4096));
    gpu.peak_flops[PRECISION_FP16] = gpu.peak_flops[PRECISION_BF16];
    gpu.gemm[PRECISION_FP16] = gpu.gemm[PRECISION_BF16];
    gpu.peak_flops[PRECISION_BF16] = 0;
    gpu.gemm[PRECISION_BF16] = (struct gemm_parameters){0};
    ck_assert_double_eq(cost_seconds(gemm(&gpu, 4096, 4096, 4096)), bf16);
}
END_TEST

/* A GPU on which a block of 128 x 128 scores takes one second of one of its SMs, at head dimension 128, and nothing else any
 * time. */
static struct gpu block_gpu(int sms)
{
    struct gpu gpu = {.sms = sms, .peak_flops[PRECISION_BF16] = sms * 4.0 * 128 * 128 * 128};
    gpu.attention = (struct attention_parameters){.forward_fraction = 1, .backward_fraction = 1, .tile = 128};
    return gpu;
}

static struct work_attention causal(int64_t tokens, double window, int32_t heads)
{
    return (struct work_attention){.batch = 1,
                                   .query_tokens = tokens,
                                   .key_tokens = tokens,
                                   .pairs = attended_pairs((double)tokens, window),
                                   .heads = heads,
                                   .kv_heads = heads,
                                   .head_dim = 128,
                                   .value_dim = 128,
                                   .precision = PRECISION_BF16,
                                   .fused = 2};
}

/* Blocks that a kernel cannot leave out: those with at least one score the mask shows. */
static double blocks_touched(int tokens, int window)
{
    double n = 0;
    for (int first = 0; first < tokens; first += 128) {
        int oldest = window && first - window + 1 > 0 ? first - window + 1 : 0;
        n += (first + 127) / 128 - oldest / 128 + 1;
    }
    return n;
}

START_TEST(attention_does_the_blocks_that_a_mask_touches)
{
    static const int cases[][2] = {{512, 0}, {1024, 0}, {8192, 0}, {4096, 128}, {16384, 1024}, {16384, 8192}, {1536, 512}};
    struct gpu gpu = block_gpu(1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct work_attention a = causal(cases[i][0], cases[i][1], 3);
        double blocks = 3 * blocks_touched(cases[i][0], cases[i][1]);
        ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)) / blocks, 1, 0.02);
        ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, true)) / (2.5 * blocks), 1, 0.02);
    }
    struct work_attention square = causal(2048, 0, 1);
    square.pairs = 2048.0 * 2048;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &square, false)), 16 * 16, 1e-9);
}
END_TEST

/* Whether any query of block q sees any key of block k. */
static bool block_is_seen(int q, int k, int window)
{
    for (int i = q * 128; i < (q + 1) * 128; i++)
        for (int j = k * 128; j < (k + 1) * 128; j++)
            if (j <= i && (window == 0 || i - j < window))
                return true;
    return false;
}

/* Pairs of blocks of queries of rank `a` and keys of rank `b`; rank r of n has chunks r and 2 n - 1 - r. */
static double blocks_between(int tokens, int window, int ranks, int a, int b)
{
    int chunk = tokens / 128 / (2 * ranks), last = 2 * ranks - 1;
    double n = 0;
    for (int q = 0; q < tokens / 128; q++)
        for (int k = 0; k < tokens / 128; k++) {
            bool queries = q / chunk == a || q / chunk == last - a, keys = k / chunk == b || k / chunk == last - b;
            n += queries && keys && block_is_seen(q, k, window);
        }
    return n;
}

/* Ranks that share a sequence: each has its queries and all keys, gathered, or the keys of one rank after the other. Blocks are
 * those that all ranks count together, forward and backward, whether tiles are of queries or of keys. */
START_TEST(ranks_do_the_blocks_that_masks_touch)
{
    static const int cases[][3] = {{2048, 0, 2},    {4096, 0, 4},   {8192, 0, 8},    {8192, 0, 2},
                                   {4096, 1024, 2}, {8192, 512, 4}, {8192, 2048, 8}, {8192, 128, 8}};
    int tokens = cases[_i][0], window = cases[_i][1], ranks = cases[_i][2];
    double counted = 0;
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++)
            counted += blocks_between(tokens, window, ranks, a, b) / ranks;
    struct gpu gpu = block_gpu(1);
    struct work_attention gathered = causal(tokens, window, 3);
    gathered.query_tokens /= ranks, gathered.pairs /= ranks;
    struct work_attention step = gathered;
    step.key_tokens /= ranks, step.pairs /= ranks, step.steps = ranks;
    for (int backward = 0; backward <= 1; backward++) {
        double seconds = 3 * counted * (backward ? 2.5 : 1),
               tolerance = 0.01 * seconds; /* a query sees itself: half a row more */
        ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &gathered, backward)), seconds, tolerance);
        ck_assert_double_eq_tol(ranks * cost_seconds(attention_cost(&gpu, &step, backward)), seconds, tolerance);
    }
}
END_TEST

START_TEST(attention_waits_for_its_longest_tile)
{
    struct gpu gpu = block_gpu(16);
    struct work_attention a = causal(2048, 0, 1); /* 16 tiles of 1, 2, ... 16 blocks */
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 16, 1e-9);
    gpu.attention.tile_overhead_s = 0.5;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 16.5, 1e-9);
    a.heads = a.kv_heads = 16; /* 136 blocks and 16 tiles on each SM */
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 136 + 8, 0.2);
    gpu.attention.quantisation = 1;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 136 + 8 + 16.5, 0.2);
}
END_TEST

START_TEST(few_tiles_divide_their_keys)
{
    struct gpu gpu = block_gpu(64);
    gpu.memory.fixed_s = 0.25;
    struct work_attention a = causal(2048, 0, 1); /* 16 tiles on 64 SMs: four parts of four blocks, and the second kernel */
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 4.25, 1e-9);
    a.query_tokens = 1; /* one query at the end: 16 blocks, in as many parts */
    a.pairs = 2048;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 1.25, 1e-9);
}
END_TEST

START_TEST(exponentials_limit_short_heads)
{
    struct gpu gpu = block_gpu(1);
    struct work_attention a = causal(8192, 0, 1);
    double full = cost_seconds(attention_cost(&gpu, &a, false));
    a.head_dim = a.value_dim = 64;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)) / full, 0.5, 1e-12); /* products only */
    gpu.exp_rate = 128.0 * 128; /* a block's exponentials take as long as its products at 128 */
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)) / full, 1, 1e-12);
    gpu.attention.exposed = 0.5; /* (1 + 0.5 * 0.5) / (1 + 0.5) */
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)) / full, 1.25 / 1.5, 1e-12);
}
END_TEST

START_TEST(narrow_attention_has_parameters_of_its_own)
{
    struct gpu gpu = block_gpu(1);
    struct work_attention a = causal(8192, 0, 1), narrow = a;
    narrow.precision = PRECISION_FP8;
    double wide = cost_seconds(attention_cost(&gpu, &a, false));
    ck_assert_double_eq(cost_seconds(attention_cost(&gpu, &narrow, false)), wide);
    gpu.peak_flops[PRECISION_FP8] = 2 * gpu.peak_flops[PRECISION_BF16];
    gpu.attention_fp8 = gpu.attention;
    gpu.attention_fp8.forward_fraction = 0.8;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &narrow, false)) / wide, 0.5 / 0.8, 1e-12);
    ck_assert_double_eq(cost_seconds(attention_cost(&gpu, &a, false)), wide);
}
END_TEST

/* Parameters of a later kernel: the second generation is as much slower as the entry says, the first slower still. */
START_TEST(generations_of_attention_differ)
{
    struct gpu gpu = block_gpu(1);
    struct work_attention third = causal(8192, 0, 1), second = third, first = third;
    third.fused = 3, second.fused = 2, first.fused = 1;
    double best = cost_seconds(attention_cost(&gpu, &third, false));
    ck_assert_double_eq(cost_seconds(attention_cost(&gpu, &second, false)), best);
    gpu.flash_attention2 = 0.5;
    ck_assert_double_eq(cost_seconds(attention_cost(&gpu, &third, false)), best);
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &second, false)) / best, 2, 1e-12);
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &first, false)) / best, 2 / 0.45, 1e-12);
}
END_TEST

START_TEST(attention_cannot_outrun_memory)
{
    struct gpu gpu = block_gpu(1);
    struct work_attention a = causal(1024, 0, 1);
    double bytes = 4.0 * 1024 * 128 * 2;
    gpu.peak_flops[PRECISION_BF16] *= 1e9;
    gpu.hbm_rate = bytes;
    gpu.memory.bandwidth_fraction = 0.5;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), 2, 1e-6);
}
END_TEST

START_TEST(memory_bound_is_bytes_over_bandwidth)
{
    struct gpu gpu = plain_gpu();
    gpu.memory = (struct memory_parameters){.bandwidth_fraction = 0.5};
    struct work_memory w = {.bytes = 2039e9, .count = 3};
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &w)), 2, 1e-9);
    gpu.memory.rate[MEMORY_ACTIVATION] = 2039e8; /* a tenth of the bandwidth, of this kernel alone */
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &w)), 2, 1e-9);
    w.kernel = MEMORY_ACTIVATION;
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &w)), 10, 1e-9);
}
END_TEST

/* Half of what a kernel moves was just written: nothing of a large tensor's half is still in the L2, all of a tiny one's; of as
 * many bytes as the L2 holds 1/e. Neither the optimizer's nor a measured rate knows of it. */
START_TEST(what_was_just_written_is_in_the_l2)
{
    struct gpu gpu = plain_gpu();
    gpu.memory = (struct memory_parameters){.bandwidth_fraction = 0.5};
    gpu.l2_bytes = 40e6;
    double rate = gpu.hbm_rate / 2;
    struct work_memory large = {.bytes = 40e9, .count = 1}, tiny = {.bytes = 40, .count = 1},
                       three = {.bytes = 120e6, .count = 3};
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &large)) * rate / 40e9, 1, 1e-12);
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &tiny)) * rate / 40, 0.5, 1e-6);
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &three)) * rate / 120e6, 1 - 0.5 / exp(1), 1e-12);
    three.kernel = MEMORY_OPTIMIZER;
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &three)) * rate / 120e6, 1, 1e-12);
    three.kernel = MEMORY_ACTIVATION;
    gpu.memory.rate[MEMORY_ACTIVATION] = rate;
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &three)) * rate / 120e6, 1, 1e-12);
    /* bytes that come with another kernel, and none of them */
    three = (struct work_memory){.bytes = 40e6};
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &three)) * rate / 40e6, 1, 1e-12);
    three.bytes = 0;
    ck_assert(cost_seconds(memory_bound_cost(&gpu, &three)) == 0);
}
END_TEST

/* 1,024 samples of 2,048 tokens over 16 replicas: 64 samples of 1 ms and 64 x 2,048 x 16 bytes over 1 MB/s; none with async_data.
 */
START_TEST(data_waits_for_samples_and_bytes)
{
    struct job job = {.global_batch = 1024, .seq_len = 2048};
    struct cluster cluster = {.gpu = plain_gpu(), .data_sample_s = 1e-3};
    cluster.gpu.pcie_rate = 1e6;
    struct setting setting = {.cluster = &cluster, .job = &job};
    struct layout layout = {.dp = 16, .cp = 1};
    ck_assert_double_eq_tol(data_loading_seconds(&layout, &setting), 0.064 + 2.097152, 1e-12);
    layout.features = FEATURE_BIT(ASYNC_DATA);
    ck_assert_double_eq(data_loading_seconds(&layout, &setting), 0);
}
END_TEST

/* Asked twice, in another order, and with more products than a table begins with. */
START_TEST(a_remembered_product_takes_what_it_took)
{
    struct gpu gpu = plain_gpu();
    struct gemm_memo memo = {0};
    for (int i = 0; i < 4000; i++) {
        int j = i < 2000 ? i : 3999 - i;
        struct work_gemm g = {.m = 64 * (1 + j % 10), .n = 128, .k = 64 * (1 + j / 10 % 10), .count = 1 + j / 100 % 3};
        g.output_bytes = j / 300 % 2 ? 8 : 2, g.apart = j / 600 % 2, g.precision = PRECISION_BF16;
        struct cost kept = gemm_memo_cost(&memo, &gpu, &g), fresh = gemm_cost(&gpu, &g);
        ck_assert_mem_eq(&kept, &fresh, sizeof kept);
    }
    ck_assert_uint_eq(memo.n_used, 1200);
    gemm_memo_free(&memo);
}
END_TEST

Suite *suite_kernels(void)
{
    Suite *suite = suite_create("kernels");
    TCase *all = tcase_create("all");
    tcase_add_test(all, gemm_pays_for_whole_waves);
    tcase_add_test(all, gemm_takes_tiles_of_its_architecture);
    tcase_add_test(all, gemm_is_the_best_of_all_tiles);
    tcase_add_test(all, gemm_reaches_the_peak_fraction_when_large);
    tcase_add_test(all, one_sm_has_no_tiles);
    tcase_add_test(all, slices_that_are_not_aligned_miss_the_tensor_cores);
    tcase_add_test(all, a_remembered_product_takes_what_it_took);
    tcase_add_test(all, thin_gemm_is_limited_by_memory);
    tcase_add_test(all, arithmetic_and_traffic_overlap);
    tcase_add_test(all, overhead_follows_the_area_of_a_tile);
    tcase_add_test(all, long_gemms_droop);
    tcase_add_test(all, gemm_grows_with_every_dimension);
    tcase_add_test(all, a_gpu_without_bf16_takes_fp16);
    tcase_add_test(all, attention_counts_pairs_and_heads);
    tcase_add_test(all, attention_does_the_blocks_that_a_mask_touches);
    tcase_add_loop_test(all, ranks_do_the_blocks_that_masks_touch, 0, 8);
    tcase_add_test(all, attention_waits_for_its_longest_tile);
    tcase_add_test(all, few_tiles_divide_their_keys);
    tcase_add_test(all, exponentials_limit_short_heads);
    tcase_add_test(all, narrow_attention_has_parameters_of_its_own);
    tcase_add_test(all, generations_of_attention_differ);
    tcase_add_test(all, attention_cannot_outrun_memory);
    tcase_add_test(all, memory_bound_is_bytes_over_bandwidth);
    tcase_add_test(all, what_was_just_written_is_in_the_l2);
    tcase_add_test(all, data_waits_for_samples_and_bytes);
    suite_add_tcase(suite, all);
    return suite;
}
