/*
 * emit.h - translate the slots of a stage into operations (private to the program folder).
 *
 * Example: the slot "forward pass of micro-batch 1 on the middle stage", with blocking messages, becomes
 *
 *     recv     from the previous stage, after the last computation
 *     compute  the pass, after the receive
 *     send     to the next stage, after the pass
 *
 * The dependencies of the next operation are kept as a small set (`waits`). At the end of a pass it holds the pass's last
 * computation and last exchange; before a pass also the message with its input, the parameters it needs, and the data.
 * Dependencies on the operation's own stream are dropped, because the order of the stream implies them.
 */
#ifndef MSIM_MODEL_PROGRAM_EMIT_H
#define MSIM_MODEL_PROGRAM_EMIT_H

#include <string.h>

#include "model/cost/work/host_memory.h"
#include "model/program/passes.h"
#include "model/program/schedule.h"

enum { WAITS_MAX = 8, PROGRAM_OPS_MAX = 1 << 26 /* 3 GiB of operations */ };

struct waits {
    uint32_t ops[WAITS_MAX];
    int n;
};
/* Adds an operation; NO_OP is ignored. */
static inline void waits_add(struct waits *waits, uint32_t op)
{
    if (op != NO_OP && waits->n < WAITS_MAX)
        waits->ops[waits->n++] = op;
}

/* The last emitted pass of a chunk: cut number `cut` of `cuts`, paired with `partner` (of which chunk); cuts 0: none yet. */
struct emitted_pass {
    int cut, cuts, partner;
    const struct pass_pieces *pieces;
};

/* A message between virtual stages. */
struct message {
    bool exists;
    enum peer peer;
    uint32_t tag;
};

/* One model chunk of a stage, and the slots between which its weights are exchanged. */
struct chunk_plan {
    struct emitted_pass last[N_PASSES];           /* mostly equal to the next one */
    struct message into[N_PASSES], out[N_PASSES]; /* input and output of a pass */
    struct segment whole;
    int n_segments;       /* number of segments into which it is cut when weights or gradients are exchanged during its passes */
    size_t first_forward; /* slot */
    size_t last_gradient; /* slot after which its gradients are complete */
    uint32_t *gathered;   /* [n_segments] the all-gather for which its first forward pass waits, or NO_OP */
};

/* The parts of a stage in the host's memory; see host.h. */
struct host_plan {
    int layers;                        /* layers of its fullest chunk */
    int *leaving_layers;               /* [vpp] number of first layers of a chunk whose activations leave */
    uint32_t *left;                    /* [vpp][micro-batches][layers] the copy of the activations of a layer, NO_OP: they stay */
    uint32_t leaving[OFFLOAD_BUFFERS]; /* the last of these copies, oldest first */
    struct waits read[OFFLOAD_BUFFERS]; /* the ends of the last backward passes that read copied activations, oldest first */
    uint32_t *sent;                     /* [vpp][layers + 1] the last copy of a segment's gradients, NO_OP: none yet */
    uint32_t gathers[FETCHED_UNITS];    /* the last gathers of units, oldest first */
    uint32_t buckets[OFFLOADED_GRADIENT_BUCKETS]; /* the last copies of gradients, oldest first */
};

/* One program being built. */
struct build {
    struct program *program;
    size_t capacity; /* of program->ops */
    bool too_large;
    bool waits_lost; /* an operation waits for more than OP_DEPS others: a mistake in a builder */
    const struct layout *layout;
    const struct setting *setting;
    int64_t micro_batches;
    double message_bytes;
    struct passes passes;
    bool replicas, expert_replicas; /* gradients of dense (expert) weights are exchanged */
    bool hybrid;                    /* other replicas hold the same shards */
    bool mirrored;                  /* DualPipe: another stage holds copies of the same weights */
    int32_t *copies, n_copies;      /* works of copies to and from the host */
    size_t copies_capacity;
};

/* One stage's script being built. Operations are indices within the script. */
struct stage {
    struct build *build;
    int index;
    uint32_t first_op;
    struct slots slots;
    struct waits *ends;        /* [slots.n_items] the operations with which a slot ends */
    struct chunk_plan *chunks; /* [vpp] */
    struct waits waits;
    struct host_plan host;
    uint32_t gathered; /* sharded weights: the all-gather of the next unit of layers, NO_OP when not yet issued */
    uint32_t scattered[SCATTERED_UNITS]; /* sharded gradients: the last units' reduce-scatters, oldest first; NO_OP: none */
};

/* Parameters of a segment of the stage's layers, over all ranks that share it. */
struct stage_parameters stage_parameters_of(const struct stage *stage, struct segment segment);
/* The trained part of these; and the bytes per parameter of a gradient as ranks reduce it. */
struct stage_parameters stage_trained_of(const struct stage *stage, struct segment segment);
double stage_gradient_bytes(const struct stage *stage);
/* An operation of the whole step: without pass, chunk, micro-batch, layer and work. */
struct op step_op(enum op_kind kind, enum stream stream, enum work_class class);
/* Appends an operation that waits for the set; returns its index. */
uint32_t stage_add(struct stage *stage, struct op op, const struct waits *waits);
/* A ring of the last n operations, oldest first: pushing drops the oldest. NO_OP: there were fewer. */
static inline void ops_push(uint32_t *ring, int n, uint32_t op)
{
    memmove(ring, ring + 1, (size_t)(n - 1) * sizeof *ring);
    ring[n - 1] = op;
}

static inline void ops_clear(uint32_t *ring, int n)
{
    for (int i = 0; i < n; i++)
        ring[i] = NO_OP;
}

/* Appends all operations of the stage. */
void stage_emit(struct stage *stage);

static inline bool stage_has(const struct stage *stage, feature_set features)
{
    return (stage->build->layout->features & features) != 0;
}

/* --- replicas.c: exchanges between data-parallel replicas */

/* Cuts the chunks, and gathers parameters at the beginning of the step. */
void replicas_begin(struct stage *stage);
/* Before and after segment i (in the order of execution) of a slot. */
void replicas_before(struct stage *stage, size_t slot, int i);
void replicas_after(struct stage *stage, size_t slot, int i);
/* Number of segments into which the pass of a slot is cut. */
int replicas_segments(const struct stage *stage, size_t slot);
/* After the last slot: remaining reductions of gradients, their norm, the optimizer, gathers of parameters. */
void replicas_end(struct stage *stage);

/* --- program_ranks.c: scripts, peers and groups of ranks. With tp=2, pp=2, dp=2, rank 1 runs script 0; its next peer is rank 5,
 * and its GROUP_DP is {1, 3}. */

/* Fills ranks, groups and members of a program with complete scripts, one per stage. Only groups that scripts use are listed.
 * O(ranks) per kind of group. */
void program_ranks_build(struct program *program, bool folded);

#endif
