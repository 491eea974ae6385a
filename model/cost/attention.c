#include "model/cost/attention.h"

#include <math.h>

enum { QUERY_BLOCK = 128 };

#define FIRST_GENERATION 0.45 /* of FlashAttention-2's speed; Dao 2023 (arXiv:2307.08691) figures 4-6 */

/* What a kernel generation reaches relative to the one the GPU's parameters were fitted to. */
static double generation_factor(int fused)
{
    return fused <= 1 ? FIRST_GENERATION : 1;
}

static double block_waves(const struct gpu *gpu, const struct work_attention *a)
{
    double blocks = (double)a->batch * a->heads * ceil((double)a->query_tokens / QUERY_BLOCK);
    double x = blocks / gpu->sms, q = gpu->attention.quantisation;
    double waves = q * ceil(x) + (1 - q) * x;
    return (waves > 1 ? waves : 1) / x;
}

struct cost attention_cost(const struct gpu *gpu, const struct work_attention *a, bool backward)
{
    const struct attention_parameters *p = &gpu->attention;
    double d = 0.5 * (a->head_dim + a->value_dim);
    double flops = 4.0 * d * a->pairs * (double)a->batch * a->heads * (backward ? 2.5 : 1);
    double fraction = (backward ? p->backward_fraction : p->forward_fraction) * generation_factor(a->fused);
    double head = d / (d + p->half_head_dim) * (128 + p->half_head_dim) / 128;
    double span = 2 * a->pairs / (double)a->query_tokens; /* causal pairs are half of s * s: span = s for a full causal mask */
    double seconds = flops / (gpu->peak_flops[PRECISION_BF16] * fraction * head);
    return (struct cost){
        .launch_s = p->fixed_s + gpu->launch_s,
        .compute_s = seconds * (1 + p->half_tokens / span) * block_waves(gpu, a),
    };
}
