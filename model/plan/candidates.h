/*
 * candidates.h - the values that one dimension of a layout may have once the dimensions before it are chosen.
 *
 * Example: 32 heads, NVLink domains of 8 GPUs, 64 GPUs, no restriction of tp.
 *
 *     struct int_list list = {0};
 *     candidates_tp(&list, &limit, 8, 64);        1 2 4 8
 *
 * Lists are ascending and without repetition. Where `limit` restricts nothing, the candidates are those that space.h lists. A
 * number in `limit` stands for itself, a range for the natural values within it. When the dimensions chosen before already fail
 * to divide what they must, one candidate remains, so that the space has one layout for layout_check to refuse.
 */
#ifndef MSIM_MODEL_PLAN_CANDIDATES_H
#define MSIM_MODEL_PLAN_CANDIDATES_H

#include <stddef.h>

#include "model/plan/space.h"

struct int_list {
    int *items;
    size_t n, capacity;
};
void int_list_add(struct int_list *list, int value);
void int_list_free(struct int_list *list);

/* `most`: the smaller of the number of heads and the NVLink domain. */
void candidates_tp(struct int_list *out, const struct space_limit *limit, int most, int gpus);
void candidates_cp(struct int_list *out, const struct space_limit *limit, int64_t seq_len, int gpus, int tp);
/* The exchanges of cp ranks for each of tp; see space.h. */
void candidates_cp_comm(struct int_list *out, const struct space_limit *limit, const struct setting *setting, int tp, int cp);
/* `inner` is tp * cp. */
void candidates_pp(struct int_list *out, const struct space_limit *limit, int layers, int gpus, int64_t inner);
void candidates_vpp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int pp);
/* `ranks` is tp * cp * dp. */
void candidates_ep(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int64_t ranks);
/* 0 (the default of a layout) unless the limit names other values. */
void candidates_etp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int tp);
/* 0 (all replicas) unless the limit names other values. Candidates divide the number of GPUs; layout_check refuses those that
 * do not divide dp * cp. The number of all `replicas` (0: unknown) becomes 0. */
void candidates_shard(struct int_list *out, const struct space_limit *limit, int gpus, int replicas);
void candidates_micro_batch(struct int_list *out, const struct space_limit *limit, const struct job *job, int dp);

#endif
