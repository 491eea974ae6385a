/*
 * casts.h - casts of tensors to 8-bit numbers, operands of matrix products (private to the runtime; kernels/narrow.h has
 * formats).
 *
 * Example: precision fp8 and the product y = x w^T of the up-projection.
 *
 *     layer_cast(c, &l->n2_full, s->hidden, (struct cast){0});        x becomes bytes (e4m3) with one scale
 *     narrow_weights_once(rank, unit, stream);                        casts w in the first pass of a step that reads it
 *     product_forward(c, up_product(c), l->n2_full, y, false);        multiplies bytes, sums in fp32, writes y in bf16
 *
 * Products with 8-bit operands: those of attention and feed-forward parts, of experts, and the one behind the norms of a
 * prediction module. The output matrix, the embedding, the router and the core of attention stay in the device's precision.
 *
 * fp8: activations and weights e4m3, gradients e5m2, one power of two as the scale of each tensor, from its present largest
 * number ("current scaling"). mxfp8: e4m3 everywhere, a power of two for each block of 32.
 *
 * If a tensor is divided among ranks, each rank's part has its own scale, without an exchange. Scales are powers of two, so this
 * changes the rounding only of numbers far below the largest (kernels/narrow.h). There is one exception. What sequence
 * parallelism divides is gathered as bytes and becomes one operand, so its ranks need the same scale: the cast exchanges the
 * largest number over the tensor-parallel group.
 *
 * Weights are cast by the first pass of a step that reads them, as Transformer Engine's first micro-batch does; under ZeRO-3
 * after every gather. These casts have no operation in the program: they are part of the one that enters the layer.
 */
#ifndef MSIM_RUNTIME_LAYER_CASTS_H
#define MSIM_RUNTIME_LAYER_CASTS_H

#include "runtime/base/rank.h"

/* An operand of a product as a kernel takes it. */
struct operand {
    const void *data;
    struct narrow_operand as;
};
/* The operand of a product that sums over the tensor's columns, or with `down` over its rows. NULL gives an empty operand. */
struct operand operand_of(const struct tensor *tensor, bool down);
struct operand operand_wide(const void *data);
/* The part of an operand that begins at row `row`. */
static inline struct operand operand_from(struct operand whole, int64_t row, int64_t cols, size_t element_bytes)
{
    struct operand part = whole;
    if (!whole.data)
        return part;
    part.data = (const char *)whole.data + (size_t)(row * cols) * (whole.as.format ? 1 : element_bytes);
    if (whole.as.blocks)
        part.as.blocks += whole.as.down ? row / NARROW_BLOCK * cols : narrow_blocks(row, cols, false);
    return part;
}

/* The formats of a precision; all NARROW_NONE if operands have 16 bits or more. */
struct narrow_recipe narrow_recipe_of(enum precision precision);

struct tensor *narrow_new(struct rank *rank, int64_t rows, int64_t cols, enum narrow_format format);
/* to = from [rows, cols], of which the first *count rows exist (device memory; NULL: all). `shared`: each rank of
 * the tensor-parallel group has a part of one tensor, and all agree on its scale. */
void narrow_cast(struct rank *rank, const void *from, const int32_t *count, bool shared, struct tensor *to,
                 struct device_stream *stream);
/* Gathers the sequence of which this rank has `in`; allocates *out if it is NULL. With blocks, gathers the casts named by `read`.
 */
void narrow_gather(struct step_context *c, const struct tensor *in, struct tensor **out, enum gathered read, const char *what);

/* Scratch memory in which a product prepares its operands. All products share it, since they run one after another on one stream.
 */
void *product_scratch(struct rank *rank, const struct kernel_call *call);

/* Casts of a unit's weights: make them again; make them once per step; free them; get one (NULL: no cast of this parameter). */
void narrow_weights(struct rank *rank, struct unit_state *unit, struct device_stream *stream);
void narrow_weights_once(struct rank *rank, struct unit_state *unit, struct device_stream *stream); /* a step; ZeRO-3: never */
void narrow_weights_drop(struct rank *rank, struct unit_state *unit, struct device_stream *stream);
const struct tensor *narrow_weights_of(const struct unit_state *unit, enum parameter_kind kind);

/* STATUS_MISSING with a message if this rank's device or layout does not support the job's precision. */
MUST_CHECK enum status narrow_check(struct rank *rank);

#endif
