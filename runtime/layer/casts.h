/*
 * casts.h - tensors of 8-bit numbers, operands of matrix products (kernels/narrow.h, private to the runtime).
 *
 * Which products: those of attention and feed-forward parts, of experts, and the one that joins what a prediction module reads.
 * The output matrix, the embedding, the router and the core of attention stay in the device's precision.
 *
 * fp8: activations and weights e4m3, gradients e5m2, one power of two as the scale of each tensor, from the present largest
 * number ("current scaling"). mxfp8: e4m3 everywhere, a power of two for each block of 32.
 *
 * Where a tensor is divided among ranks each rank's part has its own scale, without an exchange: powers of two, so that only
 * numbers far below the largest are rounded otherwise (kernels/narrow.h). One case is different: what sequence parallelism
 * divides is gathered as bytes and becomes one operand, so its ranks agree on one scale: the largest number goes around the
 * tensor-parallel group within the cast.
 *
 * Weights are cast by the first pass of a step that reads them, as Transformer Engine's first micro-batch does; under ZeRO-3
 * whenever they were gathered. No operation of the program stands for that: it is part of the one that enters the layer.
 */
#ifndef MSIM_RUNTIME_LAYER_CASTS_H
#define MSIM_RUNTIME_LAYER_CASTS_H

#include "runtime/base/rank.h"

/* An operand of a product as a kernel takes it. */
struct operand {
    const void *data;
    struct narrow_operand as;
};
/* Summed over its columns, or `down`: over its rows. Of NULL nothing. */
struct operand operand_of(const struct tensor *tensor, bool down);
struct operand operand_wide(const void *data);
/* From row `row` on. */
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

/* Formats of a precision; all NARROW_NONE where operands are not narrow. */
struct narrow_recipe narrow_recipe_of(enum precision precision);

struct tensor *narrow_new(struct rank *rank, int64_t rows, int64_t cols, enum narrow_format format);
/* to = from [rows, cols], of whose rows *count are there (device memory; NULL: all). `shared`: the tensor-parallel group has
 * parts of one tensor. */
void narrow_cast(struct rank *rank, const void *from, const int32_t *count, bool shared, struct tensor *to,
                 struct device_stream *stream);
/* The whole of a sequence of which this rank has `in`; made where it is not there. In blocks the casts that `read` names. */
void narrow_gather(struct step_context *c, const struct tensor *in, struct tensor **out, enum gathered read, const char *what);

/* Room for what a product does to its operands first: one for all of them, since they follow one another on one stream. */
void *product_scratch(struct rank *rank, const struct kernel_call *call);

/* Casts of a unit's weights: made (again), given up, one of them (NULL: the parameter is not an operand). */
void narrow_weights(struct rank *rank, struct unit_state *unit, struct device_stream *stream);
void narrow_weights_once(struct rank *rank, struct unit_state *unit, struct device_stream *stream); /* a step; ZeRO-3: never */
void narrow_weights_drop(struct rank *rank, struct unit_state *unit, struct device_stream *stream);
const struct tensor *narrow_weights_of(const struct unit_state *unit, enum parameter_kind kind);

/* STATUS_MISSING with a sentence where this rank's device or layout cannot do it. */
MUST_CHECK enum status narrow_check(struct rank *rank);

#endif
