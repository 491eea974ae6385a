/*
 * emit.h - from the slots of a stage to its operations (private to the program folder).
 *
 * What the next operation has to wait for is kept as a small set (`waits`): at the end of a pass its last computation and its
 * last exchange, before it also the message it consumes, the parameters it needs, the data. Dependencies on the operation's own
 * stream are dropped: the stream's order says as much.
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
void waits_add(struct waits *waits, uint32_t op); /* NO_OP is ignored */

/* The pass that a chunk emitted last: which of `cuts` cuts, and beside which pass (of what chunk); cuts 0: none yet. */
struct emitted_pass {
    int cut, cuts, partner;
    const struct pass_pieces *pieces;
};

/* Between virtual stages. */
struct message {
    bool exists;
    enum peer peer;
    uint32_t tag;
};

/* One model chunk of a stage and when what concerns its weights happens. */
struct chunk_plan {
    struct emitted_pass last[N_PASSES];           /* mostly the next one, too */
    struct message into[N_PASSES], out[N_PASSES]; /* what a pass needs, and what others need of it */
    struct segment whole;
    int n_segments;       /* into which it is cut when weights or gradients are exchanged beside it */
    size_t first_forward; /* slot */
    size_t last_gradient; /* slot after which its gradients are complete */
    uint32_t *gathered;   /* [n_segments] the all-gather its first forward pass waits for, or NO_OP */
};

/* Of what a stage has in the host's memory; see host.h. */
struct host_plan {
    int layers;                         /* of its fullest chunk */
    int *leaving_layers;                /* [vpp] number of first layers of a chunk whose activations leave */
    uint32_t *left;                     /* [vpp][micro-batches][layers] the copy of what a layer keeps, NO_OP: it stays */
    uint32_t leaving[OFFLOAD_BUFFERS];  /* the last such copies, oldest first */
    struct waits read[OFFLOAD_BUFFERS]; /* what the last backward passes of what came back ended with, oldest first */
    uint32_t *sent;                     /* [vpp][layers + 1] the last copy of a segment's gradients, NO_OP: none yet */
    uint32_t gathers[FETCHED_UNITS];    /* the last gathers of units, oldest first */
    uint32_t buckets[OFFLOADED_GRADIENT_BUCKETS]; /* the last such copies, oldest first */
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
    bool replicas, expert_replicas; /* gradients of dense, of expert weights are exchanged */
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
    struct waits *ends;        /* [slots.n_items] what a slot ends with */
    struct chunk_plan *chunks; /* [vpp] */
    struct waits waits;
    struct host_plan host;
    uint32_t gathered; /* sharded weights: the all-gather of the next unit of layers, NO_OP when not yet issued */
    uint32_t scattered[SCATTERED_UNITS]; /* sharded gradients: the last units' reduce-scatters, oldest first; NO_OP: none */
};

/* What a segment of the stage's layers has, of all ranks that share it; bytes of a parameter's gradient as ranks reduce it. */
struct stage_parameters stage_parameters_of(const struct stage *stage, struct segment segment);
/* Of that what is trained. */
struct stage_parameters stage_trained_of(const struct stage *stage, struct segment segment);
double stage_gradient_bytes(const struct stage *stage);
/* An operation of the whole step: of no pass, chunk, micro-batch or layer, and without work. */
struct op step_op(enum op_kind kind, enum stream stream, enum work_class class);
/* Append an operation that waits for the set; its index. */
uint32_t stage_add(struct stage *stage, struct op op, const struct waits *waits);
/* The last n of something, oldest first: the oldest falls out; NO_OP where there were fewer. */
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

/* All operations of the stage, from its slots. */
void stage_emit(struct stage *stage);

static inline bool stage_has(const struct stage *stage, feature_set features)
{
    return (stage->build->layout->features & features) != 0;
}

/* --- replicas.c: exchanges between data-parallel replicas */

/* Cut the chunks, and gather at the beginning of the step what is gathered there. */
void replicas_begin(struct stage *stage);
/* Around one segment (in the order of execution, `i` of the chunk's segments) of a slot. */
void replicas_before(struct stage *stage, size_t slot, int i);
void replicas_after(struct stage *stage, size_t slot, int i);
/* Segments into which a slot's pass is cut. */
int replicas_segments(const struct stage *stage, size_t slot);
/* After the last slot: gradients not yet reduced, their norm, the optimizer, parameters to be gathered. */
void replicas_end(struct stage *stage);

#endif
