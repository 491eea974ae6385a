/* ranks.c - ranks, coordinates and group members. Rank = tp + TP * (cp + CP * (dp + DP * pp)). */
#include "model/layout/ranks.h"

struct coordinates layout_coordinates(const struct layout *layout, int rank)
{
    struct coordinates at;
    at.tp = rank % layout->tp;
    rank /= layout->tp;
    at.cp = rank % layout->cp;
    rank /= layout->cp;
    at.dp = rank % layout->dp;
    at.pp = rank / layout->dp;
    return at;
}

int layout_rank(const struct layout *layout, struct coordinates at)
{
    return at.tp + layout->tp * (at.cp + layout->cp * (at.dp + layout->dp * at.pp));
}

int layout_expert_tp(const struct layout *layout)
{
    if (layout->etp)
        return layout->etp;
    return layout->ep == 1 ? layout->tp : 1;
}

int layout_shard_ranks(const struct layout *layout)
{
    return layout->shard ? layout->shard : layout->dp * layout->cp;
}

/* Groups of n ranks, `stride` apart, that tile the world. */
static struct group_shape tiling(const struct layout *layout, int stride, int n)
{
    int block = stride * n;
    return (struct group_shape){
        .stride = stride, .n = n, .outer_n = 1, .block = block, .n_blocks = world_ranks(layout) / block, .width = stride};
}

struct group_shape group_shape_of(const struct layout *layout, enum group_kind kind)
{
    const int tp = layout->tp, pp = layout->pp, stage = stage_ranks(layout);
    /* Neighbours in an expert-parallel group have the same tp index when experts are split over tp. */
    const int expert_tp = layout_expert_tp(layout), experts = expert_tp * layout->ep;
    const int sharded = tp * layout_shard_ranks(layout); /* neighbours that hold a stage between them */

    switch (kind) {
    case GROUP_CP: return tiling(layout, tp * layout_cp_heads(layout), layout_cp_keys(layout));
    case GROUP_CP_HEADS: return tiling(layout, tp, layout_cp_heads(layout));
    case GROUP_DP: return tiling(layout, tp, layout_shard_ranks(layout));
    case GROUP_EP: return tiling(layout, expert_tp, layout->ep);
    case GROUP_EXPERT_DP: return tiling(layout, experts, sharded / experts);
    case GROUP_REPLICA: return tiling(layout, sharded, stage / sharded);
    case GROUP_PP: return tiling(layout, stage, pp);
    case GROUP_EMBEDDING:
        return (struct group_shape){.stride = stage * (pp > 1 ? pp - 1 : 1),
                                    .n = pp > 1 ? 2 : 1,
                                    .outer_n = 1,
                                    .block = stage,
                                    .n_blocks = 1,
                                    .width = stage};
    case GROUP_MODEL:
        return (struct group_shape){
            .stride = 1, .n = tp, .outer_stride = stage, .outer_n = pp, .block = tp, .n_blocks = stage / tp, .width = 1};
    case GROUP_MIRROR: /* as far apart as the outermost pair */
        if (layout->schedule != SCHEDULE_DUALPIPE)
            return tiling(layout, 1, 1);
        return (struct group_shape){
            .stride = stage * (pp - 1), .n = 2, .outer_n = 1, .block = stage, .n_blocks = 1, .width = stage};
    case GROUP_TP:
    case N_GROUP_KINDS: break;
    }
    return tiling(layout, 1, tp);
}

int layout_group_size(const struct layout *layout, enum group_kind kind)
{
    struct group_shape shape = group_shape_of(layout, kind);
    return shape.n * shape.outer_n;
}

void layout_group_members(const struct layout *layout, enum group_kind kind, int rank, int *ranks)
{
    struct group_shape shape = group_shape_of(layout, kind);
    if (kind == GROUP_MIRROR && shape.n == 2) {
        int stage = stage_ranks(layout), mirror = (layout->pp - 1 - rank / stage) * stage + rank % stage;
        ranks[0] = rank < mirror ? rank : mirror;
        ranks[1] = rank < mirror ? mirror : rank;
        return;
    }
    if (kind == GROUP_EMBEDDING || kind == GROUP_MODEL)
        rank %= stage_ranks(layout); /* these groups begin in the first stage */
    int first = rank / shape.block * shape.block + rank % shape.block % shape.width;
    for (int j = 0; j < shape.outer_n; j++)
        for (int i = 0; i < shape.n; i++)
            ranks[j * shape.n + i] = first + i * shape.stride + j * shape.outer_stride;
}
