/*
 * kernel_time [REPEATS [PART]] - every kernel at sizes that fill a GPU: CSV on stdout with medians and spread. PART: norms,
 * pointwise, ends, optimizers, mixture, mixers, attention, query_ranges, experts or products. Exit 77 without a GPU, 3 when it
 * failed for good, 1 when something could not be launched.
 *
 * Each repetition goes through a buffer larger than the second-level cache first, so inputs come from memory: it is written
 * before kernels that write, which then find as much in the cache to be written back as they leave there, and read before those
 * that only read. Data is random (zeros, and what sums of NaN are, run faster). Times are of CUDA events around one launch,
 * which adds one to two microseconds. `copy_fraction`: bytes moved per second over those of a large device-to-device copy (read
 * and written bytes counted) measured at the beginning. `peak_fraction`: FLOPs per second over what the tensor cores do in bf16
 * at the card's highest clock, 0 where that is not known.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm_library.h"
#include "tests/kernels/gpu_memory.h"
#include "tests/kernels/kernel_bench.h"

static enum status launch_fused(const struct bench *bench, const void *call, struct diags *diags)
{
    return gemm_fused_cuda(&bench->launch, call, diags);
}

static void time_norms(struct bench *b, int64_t t, int64_t h)
{
    char sizes[64];
    const double n = (double)t * (double)h;
    for (int rms = 0; rms < 2; rms++) {
        snprintf(sizes, sizeof sizes, "t=%lld h=%lld %s", (long long)t, (long long)h, rms ? "rms" : "layer");
        struct norm_forward_call f = {
            t, h, rms, 1e-5f, bf16s(b, t * h), bf16s(b, h), bf16s(b, h), bf16s(b, t * h), floats(b, t), floats(b, t)};
        time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_NORM_FORWARD, .norm_forward = f}, 4 * n, 8 * n);
        struct norm_backward_call r = {t,
                                       h,
                                       rms,
                                       bf16s(b, t * h),
                                       bf16s(b, t * h),
                                       bf16s(b, h),
                                       floats(b, t),
                                       floats(b, t),
                                       bf16s(b, t * h),
                                       bf16s(b, t * h),
                                       floats(b, h),
                                       floats(b, h)};
        time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_NORM_BACKWARD, .norm_backward = r}, 8 * n, 16 * n);
    }
}

/* To 8 bits: the largest number, one scale, and scales of blocks of rows and of columns. */
static void time_casts(struct bench *b, const char *sizes, int64_t t, int64_t h)
{
    const double n = (double)t * (double)h;
    float *numbers = floats(b, 2);
    struct kernel_call call = {.kernel = KERNEL_LARGEST,
                               .largest = {.rows = t, .cols = h, .x = bf16s(b, t * h), .largest = numbers}};
    time_kernel(b, sizes, &call, 2 * n, n);
    call = (struct kernel_call){.kernel = KERNEL_QUANTISE,
                                .quantise = {.rows = t,
                                             .cols = h,
                                             .format = NARROW_E4M3,
                                             .x = bf16s(b, t * h),
                                             .largest = numbers,
                                             .y = bench_take(b, (size_t)(t * h)),
                                             .scale = numbers + 1}};
    time_kernel(b, sizes, &call, 3 * n, n);
    for (int down = 0; down < 2; down++) {
        call = (struct kernel_call){.kernel = KERNEL_QUANTISE_BLOCKS,
                                    .quantise_blocks = {.rows = t,
                                                        .cols = h,
                                                        .format = NARROW_E4M3,
                                                        .down = down,
                                                        .x = bf16s(b, t * h),
                                                        .y = bench_take(b, (size_t)(t * h)),
                                                        .blocks = bench_take(b, (size_t)narrow_blocks(t, h, down))}};
        time_kernel(b, sizes, &call, 3 * n, 2 * n);
    }
}

static void time_pointwise(struct bench *b, int64_t t, int64_t h)
{
    char sizes[64];
    const double n = (double)t * (double)h;
    snprintf(sizes, sizeof sizes, "t=%lld h=%lld", (long long)t, (long long)h);
    struct kernel_call call = {.kernel = KERNEL_ADD,
                               .add = {.n = t * h, .h = h, .a = bf16s(b, t * h), .b = bf16s(b, t * h), .y = bf16s(b, t * h)}};
    time_kernel(b, sizes, &call, 6 * n, n);
    call = (struct kernel_call){.kernel = KERNEL_DROPOUT_FORWARD,
                                .dropout = {.n = t * h,
                                            .h = h,
                                            .p = 0.1f,
                                            .seed = 1,
                                            .x = bf16s(b, t * h),
                                            .bias = bf16s(b, h),
                                            .residual = bf16s(b, t * h),
                                            .y = bf16s(b, t * h)}};
    time_kernel(b, sizes, &call, 6 * n, 3 * n);
    call.kernel = KERNEL_DROPOUT_BACKWARD;
    call.dropout.dy = bf16s(b, t * h), call.dropout.dx = bf16s(b, t * h);
    time_kernel(b, sizes, &call, 4 * n, n);
    call = (struct kernel_call){.kernel = KERNEL_COLUMN_SUM, .column_sum = {t, h, bf16s(b, t * h), floats(b, h)}};
    time_kernel(b, sizes, &call, 2 * n, n);
    call = (struct kernel_call){.kernel = KERNEL_CAST, .cast = {t * h, floats(b, t * h), bf16s(b, t * h), false}};
    time_kernel(b, sizes, &call, 6 * n, 0);
    time_casts(b, sizes, t, h);
    for (int gated = 0; gated < 2; gated++) {
        int64_t wide = t * h * (gated ? 2 : 1);
        snprintf(sizes, sizeof sizes, "t=%lld f=%lld %s", (long long)t, (long long)h, gated ? "swiglu" : "gelu");
        struct activation_call a = {.t = t,
                                    .f = h,
                                    .gated = gated,
                                    .u = bf16s(b, wide),
                                    .a = bf16s(b, t * h),
                                    .da = bf16s(b, t * h),
                                    .du = bf16s(b, wide)};
        time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_ACTIVATION_FORWARD, .activation = a}, (gated ? 6 : 4) * n,
                    10 * n);
        a = (struct activation_call){.t = t,
                                     .f = h,
                                     .gated = gated,
                                     .u = bf16s(b, wide),
                                     .a = bf16s(b, t * h),
                                     .da = bf16s(b, t * h),
                                     .du = bf16s(b, wide)};
        time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_ACTIVATION_BACKWARD, .activation = a}, (gated ? 10 : 6) * n,
                    20 * n);
    }
}

static void time_ends(struct bench *b, int64_t t, int64_t h, int64_t v)
{
    char sizes[64];
    const double n = (double)t * (double)v, x = (double)t * (double)h;
    snprintf(sizes, sizeof sizes, "t=%lld h=%lld v=%lld", (long long)t, (long long)h, (long long)v);
    struct embedding_call e = {.t = t,
                               .h = h,
                               .seq_len = t,
                               .count = v,
                               .tokens = indices(b, t, v),
                               .table = bf16s(b, v * h),
                               .x = bf16s(b, t * h),
                               .dx = bf16s(b, t * h),
                               .dtable = floats(b, v * h)};
    size_t used = b->used;
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_EMBEDDING_FORWARD, .embedding = e}, 4 * x, 0);
    b->used = used;
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_EMBEDDING_BACKWARD, .embedding = e}, 10 * x, x);
    struct logits_call l = {.t = t,
                            .v = v,
                            .targets = indices(b, t, v),
                            .logits = bf16s(b, t * v),
                            .max = floats(b, t),
                            .sums = floats(b, 2 * t),
                            .scale = 1,
                            .loss = bench_take(b, 8)};
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_LOGITS_MAX, .logits = l}, 2 * n, n);
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_LOGITS_SUM, .logits = l}, 2 * n, 3 * n);
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_LOGITS_BACKWARD, .logits = l}, 4 * n, 3 * n);
}

static void time_optimizers(struct bench *b, int64_t n)
{
    char sizes[64];
    snprintf(sizes, sizeof sizes, "n=%lld", (long long)n);
    struct adam_call a = {.n = n,
                          .p = floats(b, n),
                          .m = floats(b, n),
                          .v = positive_floats(b, n),
                          .g = floats(b, n),
                          .compute = bf16s(b, n),
                          .rate = 1e-4f,
                          .beta1 = 0.9f,
                          .beta2 = 0.95f,
                          .epsilon = 1e-8f,
                          .gradient_scale = 1,
                          .step = 10};
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_ADAM, .adam = a}, 30.0 * (double)n, 15.0 * (double)n);
    struct lamb_call l = {.n = n,
                          .p = floats(b, n),
                          .m = floats(b, n),
                          .v = positive_floats(b, n),
                          .g = floats(b, n),
                          .update = floats(b, n),
                          .norms = floats(b, 2),
                          .compute = bf16s(b, n),
                          .rate = 1e-4f,
                          .beta1 = 0.9f,
                          .beta2 = 0.95f,
                          .epsilon = 1e-8f,
                          .gradient_scale = 1,
                          .step = 10};
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_LAMB, .lamb = l}, 46.0 * (double)n, 20.0 * (double)n);
    struct square_sum_call s = {n, floats(b, n), floats(b, 1)};
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_SQUARE_SUM, .square_sum = s}, 4.0 * (double)n, 2.0 * (double)n);
}

static double pairs(int64_t s, int64_t window)
{
    double sum = 0;
    for (int64_t i = 0; i < s; i++)
        sum += (double)(window > 0 && i + 1 > window ? window : i + 1);
    return sum;
}

/* By the kernel made for the architecture, where there is one, and by the portable one: the sizes end with the instruction. */
static void time_both_ways(struct bench *b, const char *sizes, const struct kernel_call *call, bool hopper, double bytes,
                           double flops)
{
    char text[128];
    const bool portable = b->launch.portable;
    if (!portable && hopper) {
        snprintf(text, sizeof text, "%s wgmma", sizes);
        time_kernel(b, text, call, bytes, flops);
    }
    b->launch.portable = true;
    snprintf(text, sizeof text, "%s mma.sync", sizes);
    time_kernel(b, text, call, bytes, flops);
    b->launch.portable = portable;
}

static void time_attention(struct bench *b, int64_t batch, int64_t s, int heads, int kv, int d, int64_t window)
{
    char sizes[96];
    const int64_t t = batch * s, row = (int64_t)(heads + 2 * kv) * d, out = (int64_t)heads * d;
    const double flops = 4.0 * d * heads * (double)batch * pairs(s, window);
    snprintf(sizes, sizeof sizes, "batch=%lld s=%lld heads=%d/%d d=%d window=%lld", (long long)batch, (long long)s, heads, kv, d,
             (long long)window);
    struct attention_call a = {.batch = batch,
                               .seq_len = s,
                               .window = window,
                               .heads = heads,
                               .kv_heads = kv,
                               .head_dim = d,
                               .qkv = bf16s(b, t * row),
                               .out = bf16s(b, t * out),
                               .log_sum_exp = floats(b, t * heads),
                               .dout = bf16s(b, t * out),
                               .dqkv = bf16s(b, t * row),
                               .workspace = floats(b, t * heads)};
    struct kernel_call call = {.kernel = KERNEL_ATTENTION_FORWARD, .attention = a};
    time_both_ways(b, sizes, &call, attention_forward_has_hopper(&a), 2.0 * (double)(t * (row + out)), flops);
    call.kernel = KERNEL_ATTENTION_BACKWARD; /* on what the forward pass left */
    time_both_ways(b, sizes, &call, attention_backward_has_hopper(&a), 2.0 * (double)(t * (2 * row + 2 * out)), 2.5 * flops);
}

/* Latent attention, ALiBi, a range of queries with the keys of all before them: `first` keys stand before the queries. */
static void time_query_range(struct bench *b, int64_t s, int64_t first, int heads, int dk, int dv, bool alibi)
{
    char sizes[96];
    const int64_t keys = first + s, q = (int64_t)heads * dk, out = (int64_t)heads * dv;
    const double flops = 2.0 * (double)(dk + dv) * heads * (pairs(keys, 0) - pairs(first, 0));
    snprintf(sizes, sizeof sizes, "s=%lld first=%lld heads=%d d=%d/%d%s", (long long)s, (long long)first, heads, dk, dv,
             alibi ? " alibi" : "");
    struct query_range_call a = {.batch = 1, .queries = s, .keys = keys, .first = first, .heads = heads, .kv_heads = heads};
    a.head_dim = dk, a.value_dim = dv;
    a.q_at.row = a.k_at.row = q, a.v_at.row = a.out_at.row = out;
    a.slopes = alibi ? positive_floats(b, heads) : NULL;
    a.q = bf16s(b, s * q), a.k = bf16s(b, keys * q), a.v = bf16s(b, keys * out), a.out = bf16s(b, s * out);
    a.log_sum_exp = floats(b, s * heads), a.workspace = floats(b, s * heads);
    a.dout = bf16s(b, s * out), a.dq = bf16s(b, s * q), a.dk = bf16s(b, keys * q), a.dv = bf16s(b, keys * out);
    const double bytes = 2.0 * (double)(s * (q + out) + keys * (q + out));
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_QUERY_RANGE_FORWARD, .query_range = a}, bytes, flops);
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_QUERY_RANGE_BACKWARD, .query_range = a}, 2 * bytes, 2.5 * flops);
}

/* `t` rows of tokens for `experts` experts, the last with three times its share. */
static void time_grouped(struct bench *b, int experts, int64_t t, int64_t in, int64_t out)
{
    char sizes[96];
    int32_t offsets[257];
    const double flops = 2.0 * (double)t * (double)in * (double)out;
    const double bytes = 2.0 * (double)(t * in + experts * out * in + t * out);
    for (int e = 0; e < experts; e++)
        offsets[e] = (int32_t)(t / (experts + 2) * e);
    offsets[experts] = (int32_t)t;
    struct grouped_call g = {.groups = experts, .most = t, .in = in, .out = out, .x = bf16s(b, t * in)};
    int32_t *place = bench_take(b, sizeof offsets);
    gpu_must(cudaMemcpy(place, offsets, ((size_t)experts + 1) * sizeof *offsets, cudaMemcpyHostToDevice), "offsets");
    g.offsets = place, g.w = bf16s(b, experts * out * in), g.y = bf16s(b, t * out), g.dy = bf16s(b, t * out);
    g.dx = bf16s(b, t * in), g.dw = floats(b, experts * out * in);
    snprintf(sizes, sizeof sizes, "experts=%d m=%lld n=%lld k=%lld", experts, (long long)t, (long long)out, (long long)in);
    for (int kernel = KERNEL_GROUPED_FORWARD; kernel <= KERNEL_GROUPED_BACKWARD_WEIGHT; kernel++)
        time_kernel(b, sizes, &(struct kernel_call){.kernel = (enum kernel)kernel, .grouped = g}, bytes, flops);
}

/* Random numbers as e4m3 with their scale. */
static const void *quantised(struct bench *b, int64_t n, struct narrow_operand *as)
{
    struct diags diags = {0};
    float *numbers = floats(b, 2);
    struct largest_call most = {.rows = 1, .cols = n, .x = bf16s(b, n), .largest = numbers};
    struct quantise_call q = {.rows = 1,
                              .cols = n,
                              .format = NARROW_E4M3,
                              .x = most.x,
                              .largest = numbers,
                              .y = bench_take(b, (size_t)n),
                              .scale = numbers + 1};
    (void)!kernel_cuda_launch(&b->launch, &(struct kernel_call){.kernel = KERNEL_LARGEST, .largest = most}, &diags);
    (void)!kernel_cuda_launch(&b->launch, &(struct kernel_call){.kernel = KERNEL_QUANTISE, .quantise = q}, &diags);
    diags_free(&diags);
    *as = (struct narrow_operand){.format = NARROW_E4M3, .scale = q.scale};
    return q.y;
}

static void time_linear(struct bench *b, int64_t t, int64_t in, int64_t out)
{
    char sizes[96];
    const double flops = 2.0 * (double)t * (double)in * (double)out;
    struct linear_call l = {.t = t,
                            .in = in,
                            .out = out,
                            .x = bf16s(b, t * in),
                            .w = bf16s(b, out * in),
                            .bias = bf16s(b, out),
                            .y = bf16s(b, t * out),
                            .dy = bf16s(b, t * out),
                            .dx = bf16s(b, t * in),
                            .dw = floats(b, out * in)};
    const double bytes = 2.0 * (double)(t * in + out * in + t * out);
    snprintf(sizes, sizeof sizes, "m=%lld n=%lld k=%lld", (long long)t, (long long)out, (long long)in);
    for (int kernel = KERNEL_LINEAR_FORWARD; kernel <= KERNEL_LINEAR_BACKWARD_WEIGHT; kernel++)
        time_kernel(b, sizes, &(struct kernel_call){.kernel = (enum kernel)kernel, .linear = l}, bytes, flops);
    struct gemm_fused_call g = {.m = t, .n = out, .k = in, .x = l.x, .w = l.w, .bias = l.bias, .y = l.y, .gelu = true};
    (void)time_call(b, "linear_gelu", sizes, launch_fused, &g, bytes, flops);
    g = (struct gemm_fused_call){.m = t, .n = out, .k = in, .y = bf16s(b, t * out)};
    g.x = quantised(b, t * in, &g.x_as);
    g.w = quantised(b, out * in, &g.w_as);
    (void)time_call(b, "linear_fp8", sizes, launch_fused, &g, bytes / 2, flops);
}

static void norms(struct bench *b)
{
    time_norms(b, 2048, 12288);
    time_norms(b, 16384, 12288);
    time_norms(b, 32768, 4096);
}

static void pointwise(struct bench *b)
{
    struct rotary_call r = {.t = 65536,
                            .seq_len = 4096,
                            .heads = 32,
                            .kv_heads = 8,
                            .head_dim = 128,
                            .base = 10000,
                            .qkv = bf16s(b, (int64_t)65536 * 48 * 128)};
    time_kernel(b, "t=65536 heads=32/8 d=128", &(struct kernel_call){.kernel = KERNEL_ROTARY, .rotary = r},
                4.0 * 65536 * 40 * 128, 0);
    time_pointwise(b, 16384, 12288);
}

static void ends(struct bench *b)
{
    time_ends(b, 8192, 4096, 32000);
    time_ends(b, 8192, 4096, 128256);
}

static void optimizers(struct bench *b)
{
    time_optimizers(b, (int64_t)128 << 20);
}

/* As in a mixture of 8 experts of which a token takes 2, and norms of 32 heads. */
static void mixture(struct bench *b)
{
    const int64_t t = 16384, h = 4096, copies = 2 * t, heads = 32, d = 128;
    const double n = (double)t * (double)h;
    const char *sizes = "t=16384 h=4096 k=2";
    struct kernel_call call = {.kernel = KERNEL_ROWS,
                               .rows = {.n = copies,
                                        .width = h,
                                        .from_row = h,
                                        .to_row = h,
                                        .index = indices(b, copies, t),
                                        .from = bf16s(b, t * h),
                                        .to = bf16s(b, copies * h)}};
    time_kernel(b, sizes, &call, 8 * n, 0);
    call = (struct kernel_call){.kernel = KERNEL_COMBINE_FORWARD,
                                .combine = {.t = t,
                                            .h = h,
                                            .top_k = 2,
                                            .rows = bf16s(b, copies * h),
                                            .place = indices(b, copies, copies),
                                            .gate = floats(b, copies),
                                            .y = bf16s(b, t * h),
                                            .dy = bf16s(b, t * h),
                                            .drows = bf16s(b, copies * h),
                                            .dgate = floats(b, copies)}};
    time_kernel(b, sizes, &call, 6 * n, 4 * n);
    call.kernel = KERNEL_COMBINE_BACKWARD;
    time_kernel(b, sizes, &call, 10 * n, 6 * n);
    call = (struct kernel_call){.kernel = KERNEL_EXPERT_SORT,
                                .expert_sort = {copies, 8, indices(b, copies, 8), indices(b, 8, 1), indices(b, copies, 1)}};
    time_kernel(b, "n=32768 experts=8", &call, 12.0 * (double)copies, 0);
    call = (struct kernel_call){.kernel = KERNEL_HEAD_NORM_FORWARD,
                                .head_norm = {.t = t,
                                              .heads = (int)heads,
                                              .head_dim = (int)d,
                                              .rms = true,
                                              .epsilon = 1e-5f,
                                              .x_row = heads * d,
                                              .y_row = heads * d,
                                              .x = bf16s(b, t * heads * d),
                                              .gain = bf16s(b, d),
                                              .y = bf16s(b, t * heads * d),
                                              .dy = bf16s(b, t * heads * d),
                                              .dx = bf16s(b, t * heads * d),
                                              .dgain = floats(b, d)}};
    time_kernel(b, "t=16384 heads=32 d=128", &call, 4.0 * (double)(t * heads * d), 0);
    call.kernel = KERNEL_HEAD_NORM_BACKWARD;
    time_kernel(b, "t=16384 heads=32 d=128", &call, 6.0 * (double)(t * heads * d), 0);
}

/* The recurrence, on decays that gates made, and of the delta rule on keys of length 1. */
static void time_scan(struct bench *b, const char *sizes, struct gates_call gates, struct scan_call scan)
{
    const int64_t t = scan.seq_len, inputs = scan.groups * (int64_t)scan.state, values = scan.heads * (int64_t)scan.head_dim;
    const double element = (double)t * (double)values * scan.state, bytes = 2.0 * (double)(t * (2 * values + 2 * inputs));
    gates.steps = bf16s(b, t * gates.steps_row), gates.strengths = gates.by_step ? NULL : bf16s(b, t * gates.strengths_row);
    gates.rates = bf16s(b, gates.heads), gates.bias = bf16s(b, gates.heads);
    gates.decay = floats(b, t * gates.heads), gates.strength = floats(b, t * gates.heads);
    scan.decay = gates.decay, scan.strength = gates.strength;
    scan.v = bf16s(b, t * values), scan.k = bf16s(b, t * inputs), scan.q = bf16s(b, t * inputs);
    scan.skip = scan.delta ? NULL : bf16s(b, scan.heads), scan.dskip = scan.delta ? NULL : floats(b, scan.heads);
    scan.y = bf16s(b, t * values), scan.dy = bf16s(b, t * values), scan.dv = bf16s(b, t * values);
    scan.dk = bf16s(b, t * inputs), scan.dq = bf16s(b, t * inputs), scan.ddecay = floats(b, t * scan.heads);
    scan.dstrength = floats(b, t * scan.heads);
    const size_t room[] = {scan_cuda_workspace(&scan, false), scan_cuda_workspace(&scan, true)};
    scan.workspace = bench_take(b, room[room[0] < room[1]]);
    const struct unit_call unit = {.t = t,
                                   .n = scan.groups,
                                   .width = scan.state,
                                   .epsilon = 1e-6f,
                                   .x_row = inputs,
                                   .x = bf16s(b, t * inputs),
                                   .y = (void *)scan.k};
    const size_t used = b->used;
    const double numbers = (double)t * gates.heads;
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_GATES_FORWARD, .gates = gates}, 10 * numbers, 10 * numbers);
    b->used = used;
    if (scan.delta)
        time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_UNIT_FORWARD, .unit = unit}, 4.0 * (double)(t * inputs), 0);
    b->used = used;
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_SCAN_FORWARD, .scan = scan}, bytes,
                (scan.delta ? 6 : 4) * element);
    b->used = used;
    time_kernel(b, sizes, &(struct kernel_call){.kernel = KERNEL_SCAN_BACKWARD, .scan = scan}, 2 * bytes, 20 * element);
}

/* Gated DeltaNet as in Qwen3-Next: 32 heads of 128 by 128, two to a key. */
static void delta_rule(struct bench *b)
{
    enum { T = 8192, HEADS = 32, GROUPS = 16, STATE = 128, HEAD_DIM = 128 };
    const struct gates_call gates = {.t = T, .heads = HEADS, .rows = 1, .steps_row = HEADS, .strengths_row = HEADS};
    const struct scan_call scan = {.batch = 1,
                                   .seq_len = T,
                                   .chunk = 64,
                                   .heads = HEADS,
                                   .groups = GROUPS,
                                   .state = STATE,
                                   .head_dim = HEAD_DIM,
                                   .rows = 1,
                                   .delta = true,
                                   .scale = 1 / sqrtf((float)STATE),
                                   .v_row = HEADS * HEAD_DIM,
                                   .k_row = GROUPS * STATE,
                                   .decay_row = HEADS};
    time_scan(b, "delta t=8192 heads=32 groups=16 state=128 d=128", gates, scan);
}

/* Mamba-2 with 64 heads of 64 by 128 in eight groups, and a convolution of four taps in front. */
static void mixers(struct bench *b)
{
    enum { T = 8192, HEADS = 64, GROUPS = 8, STATE = 128, HEAD_DIM = 64, TAPS = 4 };
    const int64_t values = HEADS * HEAD_DIM, keys = GROUPS * STATE, channels = values + 2 * keys;
    const double all = (double)T * (double)channels, n = (double)T * (double)values;
    struct convolution_call c = {.batch = 1, .seq_len = T, .channels = channels, .taps = TAPS, .x_row = channels};
    c.x = bf16s(b, T * channels), c.w = bf16s(b, TAPS * channels), c.bias = bf16s(b, channels), c.y = bf16s(b, T * channels);
    c.dy = bf16s(b, T * channels), c.dx = bf16s(b, T * channels), c.dw = floats(b, TAPS * channels),
    c.dbias = floats(b, channels);
    struct kernel_call call = {.kernel = KERNEL_CONVOLUTION_FORWARD, .convolution = c};
    time_kernel(b, "t=8192 channels=6144 taps=4", &call, 4 * all, 15 * all);
    call.kernel = KERNEL_CONVOLUTION_BACKWARD;
    time_kernel(b, "t=8192 channels=6144 taps=4", &call, 6 * all, 40 * all);
    const struct gates_call gates = {.t = T, .heads = HEADS, .rows = 1, .by_step = true, .steps_row = HEADS};
    const struct scan_call scan = {.batch = 1,
                                   .seq_len = T,
                                   .chunk = 256,
                                   .heads = HEADS,
                                   .groups = GROUPS,
                                   .state = STATE,
                                   .head_dim = HEAD_DIM,
                                   .rows = 1,
                                   .scale = 1,
                                   .v_row = values,
                                   .k_row = keys,
                                   .decay_row = HEADS};
    time_scan(b, "t=8192 heads=64 groups=8 state=128 d=64", gates, scan);
    delta_rule(b);
    struct gated_norm_call g = {.t = T, .n = GROUPS, .width = values / GROUPS, .gate_first = true, .epsilon = 1e-5f};
    g.gate_row = values, g.x = bf16s(b, T * values), g.gate = bf16s(b, T * values), g.gain = bf16s(b, values);
    g.y = bf16s(b, T * values), g.dy = bf16s(b, T * values), g.dx = bf16s(b, T * values), g.dgate = bf16s(b, T * values);
    g.dgain = floats(b, values);
    call = (struct kernel_call){.kernel = KERNEL_GATED_NORM_FORWARD, .gated_norm = g};
    time_kernel(b, "t=8192 n=8 width=512", &call, 6 * n, 15 * n);
    call.kernel = KERNEL_GATED_NORM_BACKWARD;
    time_kernel(b, "t=8192 n=8 width=512", &call, 10 * n, 40 * n);
}

static void attention(struct bench *b)
{
    for (int64_t s = 2048; s <= 8192; s *= 2) {
        time_attention(b, 16384 / s, s, 16, 16, 128, 0);
        time_attention(b, 16384 / s, s, 32, 32, 64, 0);
    }
    time_attention(b, 4, 4096, 32, 8, 128, 0);
    time_attention(b, 4, 4096, 16, 16, 128, 1024);
}

/* DeepSeek-V3's heads, BLOOM's, Llama's on the second of two ranks, and heads of 80. */
static void query_ranges(struct bench *b)
{
    time_query_range(b, 4096, 0, 32, 192, 128, false);
    time_query_range(b, 4096, 0, 32, 128, 128, true);
    time_query_range(b, 4096, 4096, 32, 128, 128, false);
    time_query_range(b, 4096, 0, 32, 80, 80, false);
}

/* Mixtral's and DeepSeek-V3's, of which a rank has eight and 16. */
static void experts(struct bench *b)
{
    time_grouped(b, 8, 32768, 4096, 14336);
    time_grouped(b, 16, 32768, 7168, 4096);
    time_grouped(b, 16, 32768, 2048, 7168);
}

static void products(struct bench *b)
{
    time_linear(b, 8192, 8192, 8192);
    time_linear(b, 2048, 12288, 4608);
    time_linear(b, 2048, 1536, 12288);
    time_linear(b, 2048, 12288, 6144);
    time_linear(b, 2048, 6144, 12288);
    time_linear(b, 4096, 4096, 14336);
}

static const struct {
    const char *name;
    void (*time)(struct bench *);
} parts[] = {{"norms", norms},     {"pointwise", pointwise}, {"ends", ends},           {"optimizers", optimizers},
             {"mixture", mixture}, {"mixers", mixers},       {"attention", attention}, {"query_ranges", query_ranges},
             {"experts", experts}, {"products", products}};

int main(int argc, char **argv)
{
    char name[320];
    struct bench bench = {.repeats = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 21};
    if (!gpu_open(&bench.launch, name, sizeof name))
        return EXIT_SKIPPED;
    if (bench.repeats < 3 || bench.repeats > MOST_REPEATS) {
        fprintf(stderr, "usage: kernel_time [REPEATS [PART]], 3 to %d\n", MOST_REPEATS);
        return EXIT_FAILURE;
    }
    bench_open(&bench, name);
    printf("gpu,op,sizes,bytes,flops,median_us,p10_us,p90_us,gigabytes_per_s,teraflops,copy_fraction,peak_fraction\n");
    bench_copy(&bench);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc < 3 || strcmp(argv[2], parts[i].name) == 0)
            parts[i].time(&bench);
    bench_close(&bench);
    return bench.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
