/* probe_cases.c - the list of cases of a probe: those of a job, or a ladder of sizes. */
#include "runtime/probe/probe_cases.h"

#include <stdlib.h>

/* --- sizes without a job */

static void add_layer_kernels(struct probe_cases *cases, int64_t t, int64_t w)
{
    const struct probe_layer layer = {.t = t, .h = w, .activated = t, .f = 4 * w};
    struct kernel_call sum = {.kernel = KERNEL_ADD, .add = {.n = t * w, .h = w}};
    probe_add_norms(cases, &layer, 0);
    probe_add_activation(cases, &layer);
    probe_add_streaming(cases, sum, MEMORY_RESIDUAL, 1, "add", t * w, 3);
}

static void add_ladder(struct probe_cases *cases, int ranks)
{
    static const int64_t widths[] = {64, 128, 256, 512};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i];
        struct probe_experts experts = {.tokens = 128, .h = w, .ffn = w, .up = w, .n = 8, .local = 8, .top_k = 2, .copies = 256};
        probe_add_products(cases, 1, false, 128, w, w);
        probe_add_products(cases, 1, false, w, w, 4 * w);
        probe_add_experts(cases, 1, &experts);
        add_layer_kernels(cases, 128, w);
        struct attention_call attention = {.batch = 1, .seq_len = w, .heads = 4, .kv_heads = 4, .head_dim = 64};
        probe_add_attention(cases, &attention);
        probe_add_loss(cases, 128, 8 * w);
        probe_add_optimizer(cases, OPTIMIZER_ADAM, w * w);
        probe_add_exchanges(cases, ranks, w * 64);
        probe_add_copy(cases, w * w);
    }
}

/* Sizes that fill a GPU. */
static void add_large_ladder(struct probe_cases *cases, int ranks)
{
    enum { LARGEST_EXPERT = 4096 };
    static const int64_t widths[] = {1024, 2048, 4096, 8192};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        int64_t w = widths[i], t = 4096;
        struct probe_experts experts = {
            .tokens = t, .h = w, .ffn = w / 2, .up = w, .n = 8, .local = 8, .top_k = 2, .copies = 2 * t};
        probe_add_products(cases, 1, false, t, w, w);
        probe_add_products(cases, 1, false, t, w, 4 * w);
        if (w <= LARGEST_EXPERT) /* larger ones take seconds and gigabytes */
            probe_add_experts(cases, 1, &experts);
        add_layer_kernels(cases, t, w);
        struct attention_call attention = {.batch = 16384 / w, .seq_len = w, .heads = 16, .kv_heads = 16, .head_dim = 128};
        probe_add_attention(cases, &attention);
        probe_add_loss(cases, t, 4 * w);
        probe_add_optimizer(cases, OPTIMIZER_ADAM, w * w);
        probe_add_exchanges(cases, ranks, w * w);
        probe_add_copy(cases, w * w);
    }
    probe_add_exchanges(cases, ranks, 1 << 14);
}

void probe_cases_make(const struct probe_options *options, struct device *device, struct probe_cases *cases)
{
    *cases = (struct probe_cases){.device = device, .element_bytes = device_element_bytes(device)};
    struct probe_case *nothing = probe_add(cases, "nothing", 64);
    nothing->call = (struct kernel_call){.kernel = KERNEL_ZERO, .zero.bytes = sizeof(float)};
    if (options->layout)
        probe_cases_of_job(options, cases);
    else if (cases->element_bytes < sizeof(float))
        add_large_ladder(cases, options->ranks);
    else
        add_ladder(cases, options->ranks);
}

void probe_cases_free(struct probe_cases *cases)
{
    free(cases->items);
    *cases = (struct probe_cases){0};
}
