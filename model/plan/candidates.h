/*
 * candidates.h - the values one dimension of a layout may take when the dimensions before it are chosen.
 *
 * Lists come out ascending and without repetition. Where `limit` restricts nothing, the candidates are those space.h lists; a
 * number in it stands for itself, a range for the natural values within it. When the dimensions before already fail to divide
 * what they must, one candidate remains, so that the space holds one layout for layout_check to refuse.
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

/* `most`: heads, or the NVLink domain where that is smaller. */
void candidates_tp(struct int_list *out, const struct space_limit *limit, int most, int gpus);
void candidates_cp(struct int_list *out, const struct space_limit *limit, int64_t seq_len, int gpus, int tp);
/* How cp ranks of each of tp exchange; see space.h. */
void candidates_cp_comm(struct int_list *out, const struct space_limit *limit, const struct setting *setting, int tp, int cp);
/* `inner` is tp * cp. */
void candidates_pp(struct int_list *out, const struct space_limit *limit, int layers, int gpus, int64_t inner);
void candidates_vpp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int pp);
/* `ranks` is tp * cp * dp. */
void candidates_ep(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int64_t ranks);
/* 0, what a layout means that does not say, unless the limit names others. */
void candidates_etp(struct int_list *out, const struct space_limit *limit, const struct transformer *model, int tp);
/* Of all GPUs, those that divide no dp * cp among them: layout_check knows. 0, all replicas, unless the limit names others; the
 * number of all `replicas` (0: unknown) is 0, too. */
void candidates_shard(struct int_list *out, const struct space_limit *limit, int gpus, int replicas);
void candidates_micro_batch(struct int_list *out, const struct space_limit *limit, const struct job *job, int dp);

#endif
