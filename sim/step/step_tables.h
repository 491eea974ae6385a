/*
 * step_tables.h - a program prepared for execution: what can be known per script is worked out once, not per rank.
 *
 * For every script: each operation in 48 bytes with its successor on the stream, the streams that hold operations depending on
 * it, and, of a collective, its number among those of its group kind. For every kind of neighbourhood (a rank's script and
 * those of its peers): which receive of the peer a send completes; thousands of ranks share a handful of these tables. What
 * the executor keeps per rank and operation is then no more than a start and an end.
 *
 * Internal to the step executor.
 */
#ifndef MSIM_SIM_STEP_STEP_TABLES_H
#define MSIM_SIM_STEP_STEP_TABLES_H

#include "model/base/diag.h"
#include "sim/step/step_costs.h"

struct step_op {
    uint32_t deps[OP_DEPS];  /* on other streams, NO_OP after the last */
    nanos duration;          /* 0 where the network must be asked with ranks */
    uint32_t previous, next; /* on the same stream, NO_OP none */
    uint32_t ordinal;        /* of a collective: how many of its group kind stand before it in the script */
    uint32_t slot;           /* where its end is kept when only the ends are that something reads (step_tables_slots) */
    uint8_t kind, stream, role;
    uint8_t class;      /* what its duration counts as on the compute stream */
    uint8_t wait_class; /* what waiting for its partners counts as */
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
    const uint32_t *messages[N_MESSAGE_SIDES]; /* operations, as they stand */
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

/* `op_nanos`, the operations' durations, may be NULL: they come later. STATUS_BAD_INPUT with diagnostics when the program is not
 * well formed (an index out of range, a send without its receive, a group whose members enter different numbers of collectives),
 * or its durations, all ranks' one after the other, are 2^62 ns or more, so that times could pass what their type holds. Does not
 * look for circles: the executor meets those. */
MUST_CHECK enum status step_tables_create(const struct program *program, const nanos *op_nanos, struct step_tables *tables,
                                          struct diags *diags);
/* Give the operations of the program that the tables were made of other durations: operation i that of like[i]; NULL: its own.
 * STATUS_BAD_INPUT where these are too long together. */
MUST_CHECK enum status step_tables_time(struct step_tables *tables, const struct program *program, const nanos *op_nanos,
                                        const uint32_t *like, struct diags *diags);
/* Number the operations whose ends others read: all but computations that no other stream waits for, which come and go in the
 * order of theirs. */
void step_tables_slots(struct step_tables *tables, const struct program *program);
/* Do all members of every group take the same time for a collective? */
bool step_tables_agree(const struct step_tables *tables, const struct program *program);
void step_tables_free(struct step_tables *tables);

#endif
