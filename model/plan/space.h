/*
 * space.h - every way to divide one job among its GPUs, in one fixed order.
 *
 * Example: 175B parameters on 12,288 GPUs have about 1.6 million layouts in about 2,000 blocks.
 *
 *     space_create(&setting, &limits, &space, &diags);
 *     space_layout(space, 0, &layout);                    the plainest layout: tp=1, cp=1, pp=1, ...
 *     space_find(space, &layout, &index);                 index = 0
 *
 * A layout has sixteen dimensions, but most combinations make no sense. So the space is built from values that fit together:
 *
 *     block     (tp, cp, cp_comm, pp, ep, etp, vpp); dp follows as gpus / (tp cp pp)
 *     family    a block with a micro-batch size: what people call "a layout"
 *     layout    a family with schedule, offloading, recomputation, sharding (ZeRO stage, and number of replicas), sequence
 *               parallelism and overlap features
 *
 * A dimension without meaning in a layout has one value there, the plainest: sequence parallelism and TP overlap without tensor
 * parallelism, schedule and PP overlap without a pipeline, ZeRO and DP overlap on one replica. So no two layouts of a space are
 * the same training step. Every layout that layout_check calls legal is in the space, within the limits below. Illegal layouts
 * (tp does not divide the heads, dp does not divide the batch, ...) are in it too, so that the search can count the reasons.
 *
 * Candidates of a dimension without a restriction:
 *
 *     tp           divisors of the GPUs up to the number of heads, inside the NVLink domain
 *     cp           divisors that leave a rank two blocks of at least 128 tokens, the rows of an attention kernel's tile
 *     cp_comm      ring. For sequences of 32,768 tokens and more also all_gather, and a2a where it is legal. Where a2a is illegal
 * or leaves the NVLink domain: a2a over the largest part of cp that is legal and stays in one domain with tp, and a ring over the
 * rest (a2a:4+ring). Other values only where a restriction names them pp           divisors up to the number of layers, and that
 * number plus two vpp          pp vpp divides the layers (layers_divide). Where pp does not divide them (61 layers on 16 stages),
 * frameworks need a split that names each chunk's layers. Then, of the values with the same largest chunk, which sets the pace of
 * all, only the smallest; the others only add turns of the same length ep           divisors of tp cp dp, the ranks of a stage,
 * that divide the experts etp          0, the default of a layout; divisors of tp only where a restriction names them micro-batch
 * divisors of global_batch / dp up to 65,536 tokens, enough to fill the largest matrix kernels schedule     none without a
 * pipeline; gpipe 1f1b zb-1p with one chunk per stage; interleaved with more; zb-2p with one chunk and zb-v dualpipe dualpipe-v
 * with two only where a restriction names them offload      none, unless a restriction names others: sets with their amounts.
 * auto: all sets of whole parts. auto:25%: also states and activations in steps of that size recompute    none, one or two levels
 * between, full. Selective where it saves memory: scores of attention are in memory, or PyTorch's policy is possible. Where
 * FlashAttention keeps no scores: the modules with the lowest cost per byte (norms, activations, latent attention's
 * up-projections), all that the model has. Where none does not fit and full does, the search (search.h) also tries full:n, the
 * first n layers of each virtual stage, with the smallest n that fits zero         0 1 2 3. In a pipeline 2 equals 1, or is what
 * few frameworks do, so there only where a restriction names it shard        0 (all replicas); parts of them (hybrid sharding)
 * only where a restriction names them. The number of all replicas is again 0 sequence parallelism  off, on features     the
 * job's, with each of tp_overlap (or async_tp), pp_overlap and dp_overlap that the job allows off and on, because chunked kernels
 * and shared memory bandwidth can cost more than the exchange they hide; and with and without fused_linear_loss or cut_loss,
 * which save memory and may cost time. Features that change the model (parallel_block, sliding_window) or only speed kernels up
 * always stay
 *
 * A restriction replaces the candidates of its dimension. A number stands for itself, legal or not, and a range LOW..HIGH for
 * the divisors within it, without the limits above (cp=1..2048). A restriction of cp_comm, zero, shard, sp, ep, etp or an
 * overlap does not apply to layouts in which that dimension has no meaning. A restriction of schedule or vpp does:
 * schedule=1f1b leaves no layout without a pipeline.
 *
 * Indices 0 <= i < space_size are layouts in lexicographic order of (tp, cp, cp_comm, pp, ep, etp, vpp, micro-batch, schedule,
 * offload, recompute, zero, shard, sequence parallelism, features), plain before elaborate. Families are consecutive ranges of
 * indices, so a space is divided among threads, processes or machines by ranges of families. A space never changes after it is
 * built; threads may share it.
 */
#ifndef MSIM_MODEL_PLAN_SPACE_H
#define MSIM_MODEL_PLAN_SPACE_H

#include <stdint.h>

#include "model/layout/layout.h"

/* Dimensions that can be restricted: those of a layout, then the overlaps among its features. */
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
/* The dimension of a layout; -1: it is an overlap. */
int space_dimension_of_layout(enum space_dimension dimension);

enum { SPACE_RANGES = 32 };

/* The allowed values of a dimension: the union of n inclusive ranges; n = 0: not restricted. */
struct space_limit {
    int n;
    struct {
        int low, high;
    } ranges[SPACE_RANGES];
};

/* All zero is the whole space. */
struct space_limits {
    struct space_limit dimensions[N_SPACE_DIMENSIONS];
    int modules_kept;  /* a set of enum recompute_what: modules that are not recomputed where no restriction names recompute */
    bool whole_rounds; /* several chunks per stage only where pp divides the micro-batches: Megatron-Core refuses other layouts */
};

/* Adds restrictions written as "tp=8", "tp=1,2,4,8", "pp=8..64", or several: "tp=4,8,pp=8..64,schedule=1f1b,interleaved". A
 * later restriction of a dimension replaces an earlier one. The text form of a layout is such a text. `at`: the origin of the
 * text, for messages. *limits is written only on success. */
MUST_CHECK enum status space_restrict(struct space_limits *limits, const char *text, struct place at, struct diags *diags);

/* Whether the limit allows this value. */
bool space_limit_allows(const struct space_limit *limit, int value);

/* Features in which the layouts of one family may differ. */
#define SPACE_TOGGLES                                                                                                            \
    (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURES_LINEAR_LOSS)

struct space;

/* Builds the space of a setting under restrictions. STATUS_BAD_INPUT with a diagnostic if the restrictions leave nothing.
 * `setting` and all it points to must outlive the space. Time and memory are in proportion to the number of blocks (about 2,000
 * for 175B parameters on 12,288 GPUs), 56 bytes each. */
MUST_CHECK enum status space_create(const struct setting *setting, const struct space_limits *limits, struct space **space,
                                    struct diags *diags);
void space_destroy(struct space *space); /* NULL is fine */

const struct setting *space_setting(const struct space *space);
const struct space_limits *space_limits_of(const struct space *space);
bool space_restricts(const struct space *space, enum space_dimension dimension);
uint64_t space_size(const struct space *space);       /* layouts */
uint32_t space_n_families(const struct space *space); /* families */

/* Fills in layout number `index`. Every byte of *layout is set, so equal layouts are equal under memcmp. */
void space_layout(const struct space *space, uint64_t index, struct layout *layout);
/* Finds the index of a layout; false if it is not in the space. */
bool space_find(const struct space *space, const struct layout *layout, uint64_t *index);

/*
 * One family, for loops over its layouts without a division. Layout number first + i has
 *
 *     i = ((((schedule * n_offloads + offload) * n_recomputes + recompute) * n_shardings + sharding) * n_sps + sp) * n_features
 *         + features
 *
 * Features consist of n_losses groups of the same size, which differ in the loss and therefore in memory.
 */
struct sharding {
    int zero, shard;
};
enum { SPACE_LOSSES = 3, SPACE_SHARDINGS = 512 }; /* upper bounds: no number of GPUs up to 2^20 has more than 170 divisors */
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
