#include "model/cost/kernel/attention.h"

#include <math.h>

#include "model/cost/work/documents.h"
#include "model/cost/work/precision_bytes.h"

#define FIRST_GENERATION  0.45 /* of FlashAttention-2's speed; Dao 2023 (arXiv:2307.08691) figures 4-6 */
#define WITH_ALIBI        0.65 /* 139 FSDP runs of MPT models (llm-foundry): see the header */
#define BACKWARD_PRODUCTS 2.5  /* five products instead of two */
#define HEAD_DIM          128  /* at which the fractions of the peak hold */
#define FEW_TILES         0.8  /* per SM: below, keys are divided (FlashAttention's heuristic for the number of splits) */

/* What a kernel reaches relative to the one the GPU's parameters were fitted to. */
static double generation_factor(const struct gpu *gpu, const struct work_attention *a)
{
    double second = a->fused <= 2 && gpu->flash_attention2 > 0 ? gpu->flash_attention2 : 1;
    return second * (a->fused <= 1 ? FIRST_GENERATION : 1) * (a->alibi ? WITH_ALIBI : 1);
}

static const struct attention_parameters *parameters_of(const struct gpu *gpu, const struct work_attention *a)
{
    bool narrow = a->precision == PRECISION_FP8 && gpu->attention_fp8.forward_fraction > 0;
    return narrow ? &gpu->attention_fp8 : &gpu->attention;
}

/* --- masks --------------------------------------------------------------------------------------------------------- */

/* What a mask leaves of the square, whatever it is: seen from the number of pairs. */
struct mask {
    double window; /* keys that the last query sees */
    double edges;  /* that cut blocks: 0 none, 1 the diagonal, up to 2 with a window */
};

static struct mask mask_of(double keys, double span)
{
    double middle = keys + 0.5;
    if (2 * span >= keys + 1)
        return (struct mask){.window = keys, .edges = fmax(0, fmin(1, 2 * (keys - span) / keys))};
    double window = middle - sqrt(fmax(0, middle * middle - 2 * span * keys)); /* pairs = s w - w (w - 1) / 2 */
    return (struct mask){.window = window, .edges = 2 - window / keys};
}

/* --- tiles --------------------------------------------------------------------------------------------------------- */

struct tiling {
    double tiles;         /* of all heads */
    double mean, longest; /* scores of a tile */
    double block;         /* scores of a block, what keys are divided by */
};

/* Tiles, of queries or backward of keys, begin anew with every document. What is not all of a sequence, a rank's queries or the
 * keys of a ring's step, has its part of them, and one more begins where a chunk does, half full on average. Blocks are in
 * proportion to pairs, those of the fullest rank. */
static struct tiling tiling_of_documents(const struct work_attention *a, int tile, bool backward, struct documents_memo *memo)
{
    const struct work_documents *d = &a->documents;
    double heads = (double)a->batch * a->heads, block = (double)tile * tile;
    double rows = (double)(backward ? a->key_tokens : a->query_tokens), part = rows / d->sequence;
    double across = (double)(backward ? a->query_tokens : a->key_tokens);
    const struct documents_question question = {.mean = d->lengths.mean,
                                                .spread = d->lengths.spread,
                                                .tokens = d->sequence,
                                                .window = d->window,
                                                .sequences = (double)a->batch,
                                                .tile = tile};
    struct documents_walk walk = documents_walk(memo, &question);
    double per_pair = block * walk.tiles.blocks / d->pairs;
    double tiles = walk.tiles.tiles * part + (1 - part);
    double longest = ceil(walk.longest / tile);
    double band = d->window > 0 ? 1 + ceil((d->window - 1) / tile) : longest;
    return (struct tiling){
        .tiles = heads * tiles,
        .mean = a->pairs * d->fullest * per_pair / tiles,
        .longest = block * fmin(ceil(across / tile), fmin(longest, band)),
        .block = block,
    };
}

/* Blocks of queries and keys are the same forward and backward. Each edge cuts one of every tile of queries, whoever has the
 * keys: of a ring all steps together. */
static struct tiling tiling_of(const struct work_attention *a, int tile, bool backward, struct documents_memo *memo)
{
    double heads = (double)a->batch * a->heads, steps = a->steps > 1 ? a->steps : 1;
    bool documents = a->documents.lengths.mean > 0;
    if (tile == 0)
        return (struct tiling){.tiles = 1, .mean = heads * a->pairs * (documents ? a->documents.fullest : 1)};
    if (documents)
        return tiling_of_documents(a, tile, backward, memo);
    double span = steps * a->pairs / (double)a->query_tokens;
    struct mask mask = mask_of(steps * (double)a->key_tokens, span);
    double rows = (double)(backward ? a->key_tokens : a->query_tokens);
    double across = (double)(backward ? a->query_tokens : a->key_tokens);
    double block = (double)tile * tile; /* also of a last tile that is not full */
    double blocks = ceil((double)a->query_tokens / tile) * fmax(1, span / tile + 0.5 * mask.edges) / steps;
    return (struct tiling){
        .tiles = heads * ceil(rows / tile),
        .mean = block * blocks / ceil(rows / tile),
        .longest = block * fmin(ceil(across / tile), mask.window / tile + 1),
        .block = block,
    };
}

/* --- time ---------------------------------------------------------------------------------------------------------- */

/* Peak-relative time of a score at a head dimension: products and exponentials, partly one after the other. */
static double score_shape(const struct gpu *gpu, const struct attention_parameters *p, double product_s)
{
    double exponential = gpu->exp_rate > 0 ? 1 / gpu->exp_rate : 0;
    return fmax(product_s, exponential) + p->exposed * fmin(product_s, exponential);
}

/* Seconds of one score on one SM. */
static double score_seconds(const struct gpu *gpu, const struct attention_parameters *p, const struct work_attention *a,
                            bool backward)
{
    enum precision precision = p == &gpu->attention_fp8 ? PRECISION_FP8 : precision_there(gpu, PRECISION_BF16);
    double per_dim = 4.0 * (backward ? BACKWARD_PRODUCTS : 1) / gpu->peak_flops[precision];
    double d = 0.5 * (a->head_dim + a->value_dim);
    double fraction = (backward ? p->backward_fraction : p->forward_fraction) * generation_factor(gpu, a);
    return gpu->sms * per_dim * HEAD_DIM / fraction * score_shape(gpu, p, per_dim * d) / score_shape(gpu, p, per_dim * HEAD_DIM);
}

static double makespan(const struct gpu *gpu, const struct attention_parameters *p, struct tiling t, double score_s,
                       double overhead_s)
{
    double total = t.tiles * (t.mean * score_s + overhead_s) / gpu->sms;
    double longest = t.longest * score_s + overhead_s;
    if (t.block > 0 && t.tiles < FEW_TILES * gpu->sms) {
        double blocks = ceil(t.longest / t.block), parts = fmin(floor(gpu->sms / t.tiles), blocks);
        longest = ceil(blocks / parts) * t.block * score_s + overhead_s;
        if (parts > 1) /* the second kernel */
            longest += gpu->memory.fixed_s + gpu->launch_s;
    }
    return fmax(total, longest) + p->quantisation * fmin(total, longest);
}

static double traffic_seconds(const struct gpu *gpu, const struct work_attention *a, bool backward)
{
    if (gpu->memory.bandwidth_fraction <= 0)
        return 0;
    double queries = (double)a->batch * a->heads * (double)a->query_tokens;
    double keys = (double)a->batch * a->kv_heads * (double)a->key_tokens;
    double in = (queries * a->head_dim + keys * (a->head_dim + a->value_dim)) * precision_bytes(a->precision);
    double out = queries * a->value_dim * precision_bytes(PRECISION_BF16);
    return (backward ? 2 : 1) * (in + out) / (gpu->hbm_rate * gpu->memory.bandwidth_fraction); /* and the gradients of all */
}

struct cost attention_cost_kept(const struct gpu *gpu, const struct work_attention *a, bool backward, struct documents_memo *memo)
{
    const struct attention_parameters *p = parameters_of(gpu, a);
    struct tiling tiling = tiling_of(a, p->tile, backward, memo);
    double overhead = p->tile_overhead_s * (backward ? BACKWARD_PRODUCTS : 1);
    double compute = makespan(gpu, p, tiling, score_seconds(gpu, p, a, backward), overhead);
    double memory = traffic_seconds(gpu, a, backward);
    double both = cbrt(compute * compute * compute + memory * memory * memory);
    return (struct cost){.launch_s = p->fixed_s + gpu->launch_s, .compute_s = compute, .memory_s = both - compute};
}

struct cost attention_cost(const struct gpu *gpu, const struct work_attention *a, bool backward)
{
    return attention_cost_kept(gpu, a, backward, NULL);
}
