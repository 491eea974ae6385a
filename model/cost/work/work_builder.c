/* work_builder.c - building blocks of a layer: products, exchanges, casts, memory passes. */
#include "model/base/memory.h"
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work_layer.h"

struct layer_builder layer_builder_of(struct work_table *table, const struct layout *layout, const struct setting *setting)
{
    double tokens = (double)layout->micro_batch * (double)setting->job->seq_len / layout->cp;
    return (struct layer_builder){
        .table = table,
        .layout = layout,
        .model = setting->model,
        .job = setting->job,
        .cluster = setting->cluster,
        .tokens = tokens,
        .frozen = job_adapts(setting->job),
        .local_tokens = layout->sequence_parallel ? tokens / layout->tp : tokens,
    };
}

bool builder_has(const struct layer_builder *b, feature_set any_of)
{
    return (b->layout->features & any_of) != 0;
}

void builder_append(struct layer_builder *b, int32_t work)
{
    if (b->n < LAYER_WORKS_MAX)
        b->ids[b->n++] = work;
}

static enum work_class compute_class(const struct layer_builder *b, enum work_class class)
{
    return b->recomputing ? CLASS_RECOMPUTE : class;
}

void builder_memory(struct layer_builder *b, enum work_class class, enum memory_kernel kernel, const char *label, double bytes,
                    int kernels)
{
    struct work work = {.kind = WORK_MEMORY_BOUND,
                        .class = compute_class(b, class),
                        .label = label,
                        .memory = {.bytes = bytes, .count = kernels, .kernel = kernel}};
    builder_append(b, work_add(b->table, work));
}

/* Bytes per element of a weight's gradient. It is written in half precision where a separate kernel adds it to the sum (see
 * builder_gradient_sum). Elsewhere the product itself adds it to an fp32 sum, which it reads and writes. */
static double gradient_bytes(const struct layer_builder *b)
{
    return work_is_current(b->layout) ? 4 + 4 : 2;
}

struct work_gemm builder_gemm(const struct layer_builder *b, int64_t tokens, int64_t in, int64_t out, enum pass pass,
                              enum precision precision)
{
    struct work_gemm gemm = {.m = tokens, .n = out, .k = in, .count = 1, .precision = precision, .output_bytes = 2};
    if (pass == PASS_BACKWARD_INPUT) {
        gemm.n = in;
        gemm.k = out;
    } else if (pass == PASS_BACKWARD_WEIGHT) {
        gemm.m = out;
        gemm.n = in;
        gemm.k = tokens;
        gemm.output_bytes = gradient_bytes(b);
    }
    return gemm;
}

int32_t builder_linear(struct layer_builder *b, enum work_class class, const char *label, double tokens, int64_t in, int64_t out,
                       enum pass pass)
{
    int64_t t = (int64_t)tokens;
    bool head = class == CLASS_HEAD; /* the logits stay in bf16 under every recipe */
    struct work_gemm gemm = builder_gemm(b, t, in, out, pass, head ? PRECISION_BF16 : b->job->precision);
    struct work work = {.kind = WORK_GEMM,
                        .class = compute_class(b, class),
                        .label = label,
                        .flops = 2.0 * (double)t * (double)in * (double)out,
                        .gemm = gemm};
    return work_add(b->table, work);
}

int32_t builder_exchange(struct layer_builder *b, enum work_class class, const char *label, enum collective collective,
                         enum group_kind group, double bytes)
{
    struct work work = {.kind = WORK_COLLECTIVE,
                        .class = class,
                        .label = label,
                        .collective = {.collective = collective, .group = group, .bytes = bytes}};
    return work_add(b->table, work);
}

static bool gathers(const struct layer_builder *b)
{
    return b->layout->tp > 1 && b->layout->sequence_parallel;
}

static int32_t gather_of(struct layer_builder *b, const char *label, double element_bytes)
{
    return builder_exchange(b, CLASS_TP_COMM, label, COLLECTIVE_ALL_GATHER, GROUP_TP,
                            b->tokens * (double)b->model->hidden * element_bytes);
}

int32_t builder_tp_gather(struct layer_builder *b, const char *label)
{
    return gathers(b) ? gather_of(b, label, 2) : -1;
}

int32_t builder_tp_gather_operand(struct layer_builder *b, const char *label, bool both)
{
    enum precision p = b->job->precision;
    double copies = both && p != PRECISION_FP8 ? 2 : 1; /* see builder_cast_operand */
    return gathers(b) ? gather_of(b, label, precision_is_narrow(p) ? copies * precision_bytes(p) : 2) : -1;
}

int32_t builder_tp_reduce(struct layer_builder *b, const char *label)
{
    if (b->layout->tp == 1)
        return -1;
    enum collective c = b->layout->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    return builder_exchange(b, CLASS_TP_COMM, label, c, GROUP_TP, b->tokens * (double)b->model->hidden * 2);
}

/* Pieces are equal: of a rank's share of the sequence. */
static int32_t most_pieces(const struct layer_builder *b)
{
    int64_t rows = (int64_t)b->local_tokens;
    int32_t n = WORK_PIECES_MAX;
    while (rows % n)
        n /= 2;
    return n;
}

void builder_pipelined(struct layer_builder *b, int32_t gemm, int32_t exchange, bool exchange_first)
{
    if (exchange < 0) {
        builder_append(b, gemm);
        return;
    }
    if (builder_has(b, FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP)) && b->layout->sequence_parallel) {
        builder_append(b, work_add_overlapped(b->table, gemm, exchange, most_pieces(b)));
        return;
    }
    builder_append(b, exchange_first ? exchange : gemm);
    builder_append(b, exchange_first ? gemm : exchange);
}

void builder_side_by_side(struct layer_builder *b, int32_t gemm, int32_t exchange)
{
    /* Megatron's line waits for the exchange of an input gradient only behind the weight gradient's GEMM. */
    if (exchange >= 0 && (builder_is_current(b) || builder_has(b, FEATURE_BIT(FUSED_OPS)))) {
        builder_append(b, work_add_overlapped(b->table, gemm, exchange, 0));
        return;
    }
    builder_append(b, gemm);
    if (exchange >= 0)
        builder_append(b, exchange);
}

bool work_is_current(const struct layout *layout)
{
    return layout->sequence_parallel || ((layout->features & FEATURE_BIT(FUSED_OPS)) && (layout->features & FEATURES_FLASH));
}

bool work_sums_gradients(const struct layout *layout, const struct job *job)
{
    return layout_micro_batches(layout, job) > 1 && !work_is_current(layout);
}

bool work_keeps_matrices_apart(const struct layout *layout, const struct transformer *model)
{
    return model->gated_mlp && !(layout->features & FEATURE_BIT(FUSED_OPS));
}

bool builder_is_current(const struct layer_builder *b)
{
    return work_is_current(b->layout);
}

/* Read the new gradient (2) and the sum, write the sum: in fp32 4 + 4, in bf16 2 + 2. The first micro-batch has nothing to add
 * to. */
void builder_gradient_sum(struct layer_builder *b, double elements)
{
    double bytes = b->job->gradient_precision == PRECISION_FP32 ? 10 : 6;
    if (layout_micro_batches(b->layout, b->job) > 1)
        builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "gradient_sum", elements * bytes, 1);
}

void builder_weight_gradient(struct layer_builder *b, int32_t gemm, int32_t exchange, double elements)
{
    builder_side_by_side(b, gemm, exchange);
    if (work_sums_gradients(b->layout, b->job))
        builder_gradient_sum(b, elements);
}

void builder_cast(struct layer_builder *b, const char *label, double elements)
{
    builder_casts(b, label, elements, 1);
}

void builder_casts(struct layer_builder *b, const char *label, double elements, int32_t tensors)
{
    enum precision p = b->job->precision;
    if (!precision_is_narrow(p))
        return;
    /* Read bf16; write the narrow copy and its transpose (the weight gradient needs the other order). The absolute maximum comes
     * from the step before (delayed scaling) or is taken while the block is in registers (mx, nv formats). */
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, label, elements * (2 + 2 * precision_bytes(p)), tensors);
    b->table->items[b->ids[b->n - 1]].memory.apart = true;
}

void builder_cast_operand(struct layer_builder *b, const char *label, int64_t width)
{
    enum precision p = b->job->precision;
    double narrow = precision_bytes(p), own = b->local_tokens * (double)width, whole = b->tokens * (double)width;
    bool blocks =
        p != PRECISION_FP8; /* their scales differ by direction: both copies are cast, and gathered when they are read */
    if (!gathers(b))
        builder_cast(b, label, whole);
    else if (precision_is_narrow(p))
        builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, label,
                       blocks ? own * (2 + 2 * narrow) : own * (2 + narrow) + whole * 2 * narrow, blocks ? 1 : 2);
}
