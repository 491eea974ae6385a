/* casts.c - tensors of 8-bit numbers: their memory, their casts, and the casts of weights.
 *
 * Memory of a tensor [rows, cols]:
 *
 *     one scale   bytes [rows, cols] | largest | scale (fp32)
 *     in blocks   bytes with scales along rows | their scales | bytes with scales along columns | their scales
 *
 * In blocks each number is rounded twice. Products that sum over a row read the bytes with scales along rows, products that sum
 * over a column those along columns (Transformer Engine keeps both, too). */
#include "runtime/layer/casts.h"

enum { ALIGNED = 16 };

static size_t rounded(int64_t bytes)
{
    return (size_t)(bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

struct narrow_recipe narrow_recipe_of(enum precision precision)
{
    if (precision == PRECISION_FP8)
        return (struct narrow_recipe){.activations = NARROW_E4M3, .gradients = NARROW_E5M2};
    if (precision == PRECISION_MXFP8)
        return (struct narrow_recipe){.activations = NARROW_E4M3, .gradients = NARROW_E4M3, .in_blocks = true};
    return (struct narrow_recipe){0};
}

/* --- places in memory */

static size_t half_bytes(const struct tensor *t, bool down)
{
    return rounded(t->rows * t->cols) + rounded(narrow_blocks(t->rows, t->cols, down));
}

static uint8_t *bytes_of(const struct tensor *t, bool down)
{
    return (uint8_t *)t->data + (t->in_blocks && down ? half_bytes(t, false) : 0);
}

static uint8_t *blocks_of(const struct tensor *t, bool down)
{
    return bytes_of(t, down) + rounded(t->rows * t->cols);
}

static float *largest_of(const struct tensor *t)
{
    return (float *)(void *)(bytes_of(t, false) + rounded(t->rows * t->cols));
}

static float *scale_of(const struct tensor *t)
{
    return largest_of(t) + 1;
}

struct tensor *narrow_new(struct rank *rank, int64_t rows, int64_t cols, enum narrow_format format)
{
    struct tensor shape = {.rows = rows, .cols = cols, .in_blocks = rank->recipe.in_blocks};
    size_t bytes = shape.in_blocks ? half_bytes(&shape, false) + half_bytes(&shape, true)
                                   : rounded(rows * cols) + rounded(2 * sizeof(float));
    struct tensor *tensor = tensor_new(rank, bytes);
    tensor->format = format;
    tensor->in_blocks = shape.in_blocks;
    tensor->rows = rows;
    tensor->cols = cols;
    return tensor;
}

struct operand operand_of(const struct tensor *tensor, bool down)
{
    if (!tensor || tensor->format == NARROW_NONE || !tensor->data)
        return (struct operand){.data = tensor ? tensor->data : NULL};
    struct narrow_operand as = {.format = tensor->format, .down = down && tensor->in_blocks};
    if (tensor->in_blocks)
        as.blocks = blocks_of(tensor, down);
    else
        as.scale = scale_of(tensor);
    return (struct operand){.data = bytes_of(tensor, down), .as = as};
}

struct operand operand_wide(const void *data)
{
    return (struct operand){.data = data};
}

/* --- casts */

/* The largest number of all of the tensor-parallel group, whose ranks hold parts of one tensor: an exchange of one number within
 * the cast, as those of the loss are within theirs. */
static void share_largest(struct rank *rank, float *largest, struct device_stream *stream)
{
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .reduction = REDUCTION_MAX,
                                 .in = largest,
                                 .out = largest,
                                 .count = 1,
                                 .what = "largest number"};
    rank_exchange(rank, rank->side[GROUP_TP], stream, &call);
}

static void cast_in_blocks(struct rank *rank, const void *from, const int32_t *count, const struct tensor *to,
                           struct device_stream *stream)
{
    for (int down = 0; down < 2; down++) {
        struct kernel_call call = {.kernel = KERNEL_QUANTISE_BLOCKS,
                                   .quantise_blocks = {.rows = to->rows,
                                                       .cols = to->cols,
                                                       .format = to->format,
                                                       .down = down,
                                                       .count = count,
                                                       .x = from,
                                                       .y = bytes_of(to, down),
                                                       .blocks = blocks_of(to, down)}};
        rank_launch(rank, stream, &call);
    }
}

void narrow_cast(struct rank *rank, const void *from, const int32_t *count, bool shared, struct tensor *to,
                 struct device_stream *stream)
{
    if (rank->status != STATUS_OK)
        return;
    if (to->in_blocks) {
        cast_in_blocks(rank, from, count, to, stream);
        return;
    }
    struct largest_call largest = {.rows = to->rows, .cols = to->cols, .count = count, .x = from, .largest = largest_of(to)};
    struct quantise_call quantise = {.rows = to->rows,
                                     .cols = to->cols,
                                     .format = to->format,
                                     .count = count,
                                     .x = from,
                                     .largest = largest_of(to),
                                     .y = bytes_of(to, false),
                                     .scale = scale_of(to)};
    rank_launch(rank, stream, &(struct kernel_call){.kernel = KERNEL_LARGEST, .largest = largest});
    if (shared)
        share_largest(rank, largest_of(to), stream);
    rank_launch(rank, stream, &(struct kernel_call){.kernel = KERNEL_QUANTISE, .quantise = quantise});
}

/* --- a sharded sequence */

static void gather_bytes(struct step_context *c, const void *from, void *to, int64_t bytes, const char *what)
{
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = ELEMENT_INT32,
                                 .in = from,
                                 .out = to,
                                 .count = bytes / (int64_t)sizeof(int32_t),
                                 .what = what};
    pipeline_exchange(c, &call);
}

void narrow_gather(struct step_context *c, const struct tensor *in, struct tensor **out, enum gathered read, const char *what)
{
    struct rank *rank = c->rank;
    if (!*out)
        *out = narrow_new(rank, in->rows * rank->shape.tp, in->cols, in->format);
    if (rank->status != STATUS_OK)
        return;
    if (!in->in_blocks) { /* all have the same scale */
        struct copy_call copy = {scale_of(*out), scale_of(in), sizeof(float)};
        rank_launch(rank, c->stream, &(struct kernel_call){.kernel = KERNEL_COPY, .copy = copy});
        gather_bytes(c, bytes_of(in, false), bytes_of(*out, false), in->rows * in->cols, what);
        return;
    }
    for (int down = read == GATHERED_COLUMNS; down < (read == GATHERED_ROWS ? 1 : 2); down++) {
        gather_bytes(c, bytes_of(in, down), bytes_of(*out, down), in->rows * in->cols, what);
        gather_bytes(c, blocks_of(in, down), blocks_of(*out, down), narrow_blocks(in->rows, in->cols, down), what);
    }
}

/* --- products */

void *product_scratch(struct rank *rank, const struct kernel_call *call)
{
    size_t bytes = rank->device->api->product_scratch(rank->device, call);
    if (bytes == 0)
        return NULL;
    if (rank->scratch && rank->scratch->bytes < bytes)
        tensor_drop(rank, &rank->scratch, rank->streams[STREAM_COMPUTE]);
    if (!rank->scratch)
        rank->scratch = tensor_new(rank, bytes);
    return rank->scratch->data;
}

/* --- weights */

static bool is_operand(enum parameter_kind kind)
{
    switch (kind) {
    case PARAMETER_QKV:
    case PARAMETER_Q_DOWN:
    case PARAMETER_Q_UP:
    case PARAMETER_KV_DOWN:
    case PARAMETER_KV_UP:
    case PARAMETER_PROJECTION:
    case PARAMETER_UP:
    case PARAMETER_DOWN:
    case PARAMETER_EXPERT_UP:
    case PARAMETER_EXPERT_DOWN:
    case PARAMETER_SHARED_UP:
    case PARAMETER_SHARED_DOWN:
    case PARAMETER_PREDICTION_PROJECTION: return true;
    default: return false;
    }
}

void narrow_weights(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    for (int i = 0; i < u->unit->n_parameters && rank->recipe.activations; i++) {
        const struct parameter *p = &u->unit->parameters[i];
        if (!is_operand(p->kind) || !u->weights)
            continue;
        if (!u->casts[i])
            u->casts[i] = narrow_new(rank, p->rows, p->cols, rank->recipe.activations);
        narrow_cast(rank, unit_weights(rank, u, p->kind), NULL, false, u->casts[i], stream);
    }
}

void narrow_weights_once(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    if (u->steps_cast <= rank->step && !unit_weights_travel(rank, u))
        narrow_weights(rank, u, stream);
    u->steps_cast = rank->step + 1;
}

void narrow_weights_drop(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    for (int i = 0; i < u->unit->n_parameters; i++)
        tensor_drop(rank, &u->casts[i], stream);
}

const struct tensor *narrow_weights_of(const struct unit_state *u, enum parameter_kind kind)
{
    for (int i = 0; i < u->unit->n_parameters; i++)
        if (u->unit->parameters[i].kind == kind)
            return u->casts[i];
    return NULL;
}

/* --- what is refused */

/* Bytes travel four at a time; in blocks what a rank has of a sequence, and every width that is divided, are whole blocks. */
static bool is_divided_well(const struct rank *rank)
{
    const struct shape *s = &rank->shape;
    int64_t rows = s->local_tokens / rank->binding.slices, kv = (int64_t)s->kv_heads * s->head_dim;
    if (!rank->recipe.in_blocks)
        return !s->sequence_parallel || rows * s->hidden % (int64_t)sizeof(int32_t) == 0;
    return (!s->sequence_parallel || rows % NARROW_BLOCK == 0) &&
           (!s->apart || (s->query_width % NARROW_BLOCK == 0 && kv % NARROW_BLOCK == 0 && s->ffn % NARROW_BLOCK == 0));
}

enum status narrow_check(struct rank *rank)
{
    enum precision precision = rank->setting->job->precision;
    if (!rank->recipe.activations)
        return STATUS_OK;
    enum status status = rank->device->api->multiplies(rank->device, precision, &rank->diags);
    if (status != STATUS_OK || is_divided_well(rank))
        return status;
    diag_error(
        &rank->diags, PLACE_NONE,
        "in %s the runtime exchanges and divides matrices in whole blocks: a rank's share of a sequence has to be a multiple of "
        "%d tokens, widths too; set tp, sequence_parallel or seq_len otherwise, or job.precision to bf16",
        precision_name(precision), (int)NARROW_BLOCK);
    return STATUS_MISSING;
}
