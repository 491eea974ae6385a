/*
 * step_tables.h - a program prepared for execution: everything that can be computed per script, instead of per rank.
 *
 * Example: 12,288 ranks run 8 scripts (one per stage). Tables of 8 scripts and a handful of neighbourhoods replace 12,288
 * copies.
 *
 * For each script: each operation in 48 bytes, with its successor on the stream, the streams with operations that depend on it,
 * and, for a collective, its number among those of its group kind. For each kind of neighbourhood (the script of a rank and
 * those of its peers): the receive of the peer that each send completes. So the executor keeps only a start and an end per rank
 * and operation.
 *
 * Internal to the step executor.
 */
#ifndef MSIM_SIM_STEP_STEP_TABLES_H
#define MSIM_SIM_STEP_STEP_TABLES_H

#include "model/base/diag.h"
#include "sim/step/step_costs.h"

struct step_op {
    uint32_t deps[OP_DEPS];  /* on other streams, NO_OP after the last */
    nanos duration;          /* 0 if the network must be asked per rank */
    uint32_t previous, next; /* on the same stream; NO_OP: none */
    uint32_t ordinal;        /* of a collective: number of earlier ones of its group kind in the script */
    uint32_t slot;           /* index of its end if only needed ends are stored (step_tables_slots) */
    uint8_t kind, stream, role;
    uint8_t class;      /* class of its duration on the compute stream */
    uint8_t wait_class; /* class of the wait for its partners */
    uint8_t dependents; /* bit s: an operation of stream s depends on this one */
    uint8_t together;   /* the ranks of a block execute it together (lockstep.h) */
};

enum message_side { SIDE_SEND, SIDE_RECEIVE, N_MESSAGE_SIDES };
struct step_script {
    const struct step_op *ops;
    const struct op *source; /* the same operations in the program */
    uint32_t n_ops;
    uint32_t n_slots; /* step_tables_slots */
    uint32_t first[N_STREAMS], last[N_STREAMS];
    const uint32_t *collectives[N_GROUP_KINDS]; /* ordinal -> operation */
    uint32_t n_collectives[N_GROUP_KINDS];
    const uint32_t *messages[N_MESSAGE_SIDES]; /* operations in the order of the script */
    uint32_t n_messages[N_MESSAGE_SIDES];
};

/* Sends and receives of one script matched with those of its peers' scripts. */
struct neighbourhood {
    int32_t script;
    struct neighbour {
        int32_t script;    /* -1: no such peer */
        uint8_t my_roles;  /* bit p: my peer in role p is this rank */
        uint8_t its_roles; /* bit p: its peer in role p is me */
    } peers[N_PEERS];
    uint32_t *match; /* [n_ops of script]: the receive that a send completes, the send that a receive waits for, else NO_OP */
};

struct step_tables {
    struct step_op *ops; /* parallel to program.ops */
    struct step_script *scripts;
    uint32_t *lists; /* storage of the scripts' lists */
    struct neighbourhood *neighbourhoods;
    size_t n_neighbourhoods, neighbourhood_capacity;
    int32_t *rank_neighbourhood; /* [n_ranks] */
};

/* `op_nanos`: durations of the operations; NULL: set them later. STATUS_BAD_INPUT with diagnostics if the program is malformed
 * (an index out of range, a send without a receive, a group whose members enter different numbers of collectives), or if the
 * durations of all ranks sum to 2^62 ns or more, so that times could overflow. Does not look for circles of waits: the executor
 * finds them. */
MUST_CHECK enum status step_tables_create(const struct program *program, const nanos *op_nanos, struct step_tables *tables,
                                          struct diags *diags);
/* Sets new durations: operation i gets op_nanos[like[i]], or op_nanos[i] if `like` is NULL. `program` is the one of the tables.
 * STATUS_BAD_INPUT if their sum is too long. */
MUST_CHECK enum status step_tables_time(struct step_tables *tables, const struct program *program, const nanos *op_nanos,
                                        const uint32_t *like, struct diags *diags);
/* Numbers the operations whose ends are read: all but computations for which no other stream waits. */
void step_tables_slots(struct step_tables *tables, const struct program *program);
/* Do all members of each group have the same duration for each collective? */
bool step_tables_agree(const struct step_tables *tables, const struct program *program);
void step_tables_free(struct step_tables *tables);

#endif
