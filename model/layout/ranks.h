/*
 * ranks.h - the shape of rank groups (private to the layout folder).
 *
 * Example: tp=8, dp=16: a GROUP_DP is 16 ranks with stride 8; the groups of a stage begin at ranks 0 to 7.
 *
 * In the order of ranks every group is a regular grid:
 *
 *     first + i * stride + j * outer_stride,  0 <= i < n, 0 <= j < outer_n,
 *
 * and groups of a kind begin (`first`) at block * k + i, 0 <= k < n_blocks, 0 <= i < width.
 */
#ifndef MSIM_MODEL_LAYOUT_RANKS_H
#define MSIM_MODEL_LAYOUT_RANKS_H

#include "model/layout/layout.h"

struct group_shape {
    int stride, n;
    int outer_stride, outer_n;
    int block, n_blocks, width;
};
struct group_shape group_shape_of(const struct layout *layout, enum group_kind kind);

/* Ranks of one pipeline stage, and of the whole job. */
static inline int stage_ranks(const struct layout *layout)
{
    return layout->tp * layout->cp * layout->dp;
}
static inline int world_ranks(const struct layout *layout)
{
    return stage_ranks(layout) * layout->pp;
}

#endif
