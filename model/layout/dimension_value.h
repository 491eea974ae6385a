/*
 * dimension_value.h - the value of any dimension of a layout, by its enum.
 *
 *     dimension_number(&layout, DIMENSION_TP)               8
 *     dimension_text(&layout, DIMENSION_SCHEDULE, text)     "1f1b"
 *     dimension_is_usual(&layout, DIMENSION_SHARD)          true: no shard
 *
 * Outputs loop over dimensions with these, so that a new row of model/spec/layout_dimensions.h reaches all of them.
 */
#ifndef MSIM_MODEL_LAYOUT_DIMENSION_VALUE_H
#define MSIM_MODEL_LAYOUT_DIMENSION_VALUE_H

#include "model/layout/layout.h"

/* Room for any of them. */
enum { DIMENSION_TEXT = (int)RECOMPUTE_TEXT > (int)OFFLOAD_TEXT ? (int)RECOMPUTE_TEXT : (int)OFFLOAD_TEXT };

/* NUMBERs as they are, FLAGs as 0 and 1, others by the number that stands for them in a search. */
int dimension_number(const struct layout *layout, enum layout_dimension dimension);

/* Sets a NUMBER or a FLAG. */
void dimension_set(struct layout *layout, enum layout_dimension dimension, int value);

/* As layout_format writes it: "8", "1", "a2a:4+ring", "norm+act", "optimizer:50%", "1f1b". Returns text. */
const char *dimension_text(const struct layout *layout, enum layout_dimension dimension, char text[DIMENSION_TEXT]);

/* Whether it has its default. */
bool dimension_is_usual(const struct layout *layout, enum layout_dimension dimension);

/* Whether outputs show it: a rare one only where it does not have its default. */
static inline bool dimension_is_shown(const struct layout *layout, enum layout_dimension dimension)
{
    return !layout_dimensions[dimension].rare || !dimension_is_usual(layout, dimension);
}

#endif
