#include <check.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda_launch.h"
#include "kernels/gemm_library.h"
#include "tests/kernels/emulated_run.h"
#include "tests/kernels/kernel_draw.h"

/* What the dispatcher would call for matrix products: cuBLASLt is not emulated. */
enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call, struct diags *diags)
{
    (void)launch, (void)kernel, (void)call, (void)diags;
    return STATUS_MISSING;
}

void emulated_run(struct kernel_case *c, struct kernel_run *result)
{
    static char workspace[1 << 20] __attribute__((aligned(256)));
    memset(workspace, 0xff, sizeof workspace);
    struct cuda_launch launch = {.workspace = workspace, .workspace_bytes = sizeof workspace, .multiprocessors = 2};
    struct diags diags = {0};
    kernel_run_prepare(result, c, &kernel_device_host);
    ck_assert_msg(kernel_cuda_launch(&launch, &result->call, &diags) == STATUS_OK, "%s %s: %s", kernel_name(c->call.kernel),
                  c->text, diags.n_items ? diags.items[0].text : "failed");
    kernel_run_fetch(result);
}

bool emulated_agrees(struct kernel_case *c, bool twice, char *why, size_t size)
{
    struct kernel_run runs[2];
    for (int i = 0; i <= twice; i++)
        emulated_run(c, &runs[i]);
    kernel_case_reference(c);
    bool agrees = kernel_run_check(&runs[0], why, size);
    if (agrees && twice && !kernel_run_equal(&runs[0], &runs[1])) {
        snprintf(why, size, "differs between two runs");
        agrees = false;
    }
    for (int i = 0; i <= twice; i++)
        kernel_run_free(&runs[i]);
    kernel_case_free(c);
    return agrees;
}

void emulated_draw_bytes(struct kernel_case *c, enum kernel kernel, bool in_blocks, uint64_t seed)
{
    struct random_stream random = random_stream_named(seed, 17, (uint64_t)kernel);
    kernel_case_draw_bytes(c, kernel, in_blocks, linear_narrow_scratch, &random);
}

void emulated_draw_query_range(struct kernel_case *c, enum kernel kernel, uint64_t seed, struct query_range_call range)
{
    struct random_stream random = random_stream_named(seed, 18, 0);
    struct draw draw = {.kernel = kernel, .c = c, .random = &random, .size = range.keys};
    const int64_t d = range.head_dim, v = range.value_dim;
    range.batch = range.heads = range.kv_heads = 1;
    range.q_at = (struct strided){d, range.queries * d};
    range.k_at = (struct strided){d, range.keys * d};
    range.v_at = (struct strided){v, range.keys * v};
    range.out_at = (struct strided){v, range.queries * v};
    *c = (struct kernel_case){.call = {.kernel = kernel, .query_range = range}};
    draw_text(&draw, "from %lld window %lld dims %lld %lld", (long long)range.first, (long long)range.window, (long long)d,
              (long long)v);
    draw_query_range_operands(&draw);
}

void emulated_draw_scan(struct kernel_case *c, enum kernel kernel, uint64_t seed, struct scan_call scan, bool packed)
{
    struct random_stream random = random_stream_named(seed, 20, 0);
    kernel_case_draw_scan(c, kernel, scan, packed, &random);
}

void emulated_draw_attention(struct kernel_case *c, enum kernel kernel, int seed)
{
    const bool is_long = seed % 2;
    for (uint64_t i = (uint64_t)seed;; i += 100) {
        struct random_stream random = random_stream_named(i, 52, 0), again = random;
        kernel_case_draw(c, KERNEL_ATTENTION_FORWARD, &random,
                         is_long ? 350 : 100); /* sizes are drawn first, whatever the kernel */
        const int64_t heads = c->call.attention.batch * c->call.attention.heads, seq_len = c->call.attention.seq_len;
        const bool fits = c->call.attention.head_dim == 64 || c->call.attention.head_dim == 128;
        kernel_case_free(c);
        if (fits && heads <= 3 && (!is_long || (heads <= 2 && seq_len > 520))) {
            kernel_case_draw(c, kernel, &again, is_long ? 350 : 100);
            kernel_case_align(c); /* or the portable kernels would do it */
            return;
        }
    }
}
