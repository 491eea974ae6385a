/*
 * space.h - every way to divide one job among its GPUs, in one fixed order.
 *
 * A layout has sixteen dimensions, but most tuples of them make no sense, so the space is built from what fits together:
 *
 *   block     (tp, cp, cp_comm, pp, ep, etp, vpp), dp following as gpus / (tp cp pp)
 *   family    a block with a micro-batch size: what people call "a layout"
 *   layout    a family with schedule, offloading, recomputation, sharding (ZeRO stage, and among how many replicas), sequence
 *             parallelism and overlap features
 *
 * A dimension that has no meaning in a layout has one value there, the plainest: sequence parallelism and TP overlap without
 * tensor parallelism, schedule and PP overlap without a pipeline, ZeRO and DP overlap on one replica. So no two layouts of a
 * space are the same training step, and every layout that layout_check calls legal is there, save for the limits below. Layouts
 * that layout_check refuses (tp not dividing the heads, dp not dividing the batch, ...) are there too: the search says why they
 * are out.
 *
 * Candidates of a dimension when nothing restricts it:
 *
 *   tp           divisors of the GPUs up to the number of heads, inside the NVLink domain
 *   cp           divisors that leave a rank two blocks of at least 128 tokens, the rows of an attention kernel's tile
 *   cp_comm      ring. Of sequences from 32,768 tokens on, with cp: all_gather too; a2a where it is legal; where it is not
 *                or leaves the NVLink domain, a2a by the largest part of cp that is and stays with tp in one, and a ring among
 *                those (a2a:4+ring). Others, and of shorter sequences, only where a restriction names them
 *   pp           divisors up to the number of layers, and that number plus two
 *   vpp          pp vpp divides the layers (layers_divide). Where pp itself does not (61 layers on 16 stages), which frameworks
 *                take as a split that names each chunk's layers: of the values with the same largest chunk, which sets the pace
 *                of all, the least; the others only add turns of the same length
 *   ep           divisors of tp cp dp, the ranks of a stage, that divide the experts
 *   etp          what a layout means that does not say (0); others only where a restriction names them: divisors of tp
 *   micro-batch  divisors of global_batch / dp up to 65,536 tokens, where the largest matrix kernels have long been full
 *   schedule     none without a pipeline; gpipe 1f1b zb-1p zb-2p with one chunk per stage; interleaved with more; zb-v dualpipe
 *                dualpipe-v, with two, only where a restriction names them
 *   offload      none, unless a restriction names others: sets with their amounts; auto is all sets of whole parts, auto:25%
 *                those of states and activations in such steps, too
 *   recompute    none, one or two levels between, full. Selective, where it saves anything: scores of attention are in memory, or
 *                PyTorch's policy is possible. Where a FlashAttention keeps no scores, the modules that cost least by the byte:
 *                norms, activations and latent attention's up-projections, all that the model has of them
 *                Full is no more than it must be: where none does not fit and full does, the search (search.h) looks in its place
 *                at the first n layers of each virtual stage, full:n, for the least n that fits
 *   zero         0 1 2 3; 2 in a pipeline, where it is 1 or what few frameworks do, only where a restriction names it
 *   shard        all replicas (0); parts of them (hybrid sharding) only where a restriction names them; that of all replicas is 0
 *                again
 *   sequence parallelism  off, on
 *   features     the job's, with each of tp_overlap (or async_tp), pp_overlap and dp_overlap that the job allows off and on:
 *                chunked kernels and shared memory bandwidth can cost more than the exchange they hide; and without or with
 *                fused_linear_loss or cut_loss, which save memory and may cost time. Features that change the model
 *                (parallel_block, sliding_window) or only speed kernels up are never taken away
 *
 * A restriction replaces the candidates of its dimension: a number stands for itself, legal or not, and a range LOW..HIGH for the
 * divisors within it, without the limits above (cp=1..2048). A restriction of cp_comm, zero, shard, sp, ep, etp or an overlap
 * does not reach layouts in which that dimension has no meaning; one of schedule or vpp does: schedule=1f1b leaves no layout
 * without a pipeline.
 *
 * Indices 0 <= i < space_size are layouts in lexicographic order of (tp, cp, cp_comm, pp, ep, etp, vpp, micro-batch, schedule,
 * offload, recompute, zero, shard, sequence parallelism, features), plain before elaborate. Families are consecutive ranges of
 * indices, so a space is divided among threads, processes or machines by ranges of families. A space is never changed after it is
 * built; threads may share it.
 */
#ifndef MSIM_MODEL_PLAN_SPACE_H
#define MSIM_MODEL_PLAN_SPACE_H

#include <stdint.h>

#include "model/layout/layout.h"

/* What can be restricted: a layout's dimensions, then the overlaps among its features. */
enum space_dimension {
#define X(id, ...) SPACE_##id,
    LAYOUT_DIVISION(X) LAYOUT_SCHEDULE(X) LAYOUT_OFFLOAD(X) LAYOUT_RECOMPUTE(X) LAYOUT_SHARDING(X)
#undef X
        SPACE_TP_OVERLAP,
    SPACE_PP_OVERLAP,
    SPACE_DP_OVERLAP,
    N_SPACE_DIMENSIONS
};
enum { N_SPACE_OF_LAYOUT = SPACE_TP_OVERLAP };
const char *space_dimension_name(enum space_dimension dimension);
/* The dimension of a layout that it is; -1: an overlap. */
int space_dimension_of_layout(enum space_dimension dimension);

enum { SPACE_RANGES = 32 };

/* What a dimension may be: the union of n inclusive ranges; n = 0: not restricted. */
struct space_limit {
    int n;
    struct {
        int low, high;
    } ranges[SPACE_RANGES];
};

/* All zero is the whole space. */
struct space_limits {
    struct space_limit dimensions[N_SPACE_DIMENSIONS];
    int modules_kept; /* a set of enum recompute_what: modules that are not repeated where nothing restricts recomputation */
};

/*
 * Add restrictions written as "tp=8", "tp=1,2,4,8", "pp=8..64", or several: "tp=4,8,pp=8..64,schedule=1f1b,interleaved". A later
 * restriction of a dimension replaces an earlier one. The text form of a layout is one of these. `at` is where the text came
 * from. *limits is written only on success.
 */
MUST_CHECK enum status space_restrict(struct space_limits *limits, const char *text, struct place at, struct diags *diags);

/* Does the limit let this value through? */
bool space_limit_allows(const struct space_limit *limit, int value);

/* What the features of one family's layouts differ in. */
#define SPACE_TOGGLES                                                                                                            \
    (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURES_LINEAR_LOSS)

struct space;

/* The space of a setting under restrictions. STATUS_BAD_INPUT with a diagnostic when the restrictions leave nothing. `setting`
 * and what it points to must outlive the space. Time and memory are in proportion to the number of blocks (about 2,000 for 175B
 * parameters on 12,288 GPUs), 56 bytes each. */
MUST_CHECK enum status space_create(const struct setting *setting, const struct space_limits *limits, struct space **space,
                                    struct diags *diags);
void space_destroy(struct space *space); /* NULL is fine */

const struct setting *space_setting(const struct space *space);
bool space_restricts(const struct space *space, enum space_dimension dimension);
uint64_t space_size(const struct space *space);       /* layouts */
uint32_t space_n_families(const struct space *space); /* families */

/* Layout number `index`; every byte of *layout is set, so equal layouts are equal under memcmp. */
void space_layout(const struct space *space, uint64_t index, struct layout *layout);
/* The index of a layout, false when it is not in the space. */
bool space_find(const struct space *space, const struct layout *layout, uint64_t *index);

/* One family, for loops that go through all its layouts without a division: layout number first + i is that with
 * i = ((((schedule * n_offloads + offload) * n_recomputes + recompute) * n_shardings + sharding) * n_sps + sp) * n_features
 *     + features. Features come as n_losses times as many, which differ in the loss and so in what they need of memory.
 */
struct sharding {
    int zero, shard;
};
enum { SPACE_LOSSES = 3, SPACE_SHARDINGS = 512 }; /* at most: no number of GPUs up to 2^20 has more than 170 divisors */
struct space_family {
    struct layout base; /* first layout of the family */
    uint64_t first;     /* its index */
    const int *schedules, *offloads, *recomputes, *sps;
    const struct sharding *shardings;
    const feature_set *features;
    int n_schedules, n_offloads, n_recomputes, n_shardings, n_sps, n_features, n_losses;
};
void space_family(const struct space *space, uint32_t family, struct space_family *out);
static inline uint64_t space_family_size(const struct space_family *family)
{
    return (uint64_t)family->n_schedules * (uint64_t)family->n_offloads * (uint64_t)family->n_recomputes *
           (uint64_t)family->n_shardings * (uint64_t)family->n_sps * (uint64_t)family->n_features;
}

#endif
