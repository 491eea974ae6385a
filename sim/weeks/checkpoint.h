/*
 * checkpoint.h - training between checkpoints.
 *
 * Training alternates `interval` of useful work and a checkpoint that blocks it for `block`. Work is measured in time at full
 * speed, so an interval of 30 min takes 40 min of the clock at 3/4 of the speed, and an interval given in steps holds that many
 * steps at any speed. Writing a checkpoint does not depend on the speed. When the state is safe depends on the kind:
 *
 *   blocking   when the block ends: everything was written while training stood still
 *   two-stage  the block copies the state from the devices to their hosts; then it goes to storage while training goes on, and is
 *              safe `persist` later. A copy that is due earlier than that waits for it (checkpoint time)
 *   memory     the same, but it goes to the memory of a neighbour: it is safe there `persist` later unless both nodes are lost
 *              before the next one is there too (a spare in a lost node's place has none until then), also while the job
 *              recovers, or numbers have been wrong for longer than an interval and memory holds nothing else. Every
 *              `storage_every`-th is also written to storage, which takes `write` in the background; what storage has is
 *              safe whatever happens (and older ones, from before numbers went wrong, are kept there). With an interval of one
 *              step this is a checkpoint every step
 *
 * A failure undoes the work since the last safe state, and a checkpoint on its way with it; the time that had gone into the block
 * stays booked as checkpoint time. After a restart a full interval lies ahead.
 *
 * All arithmetic is in integers: the work done does not depend on where the clock was stopped to look at it. (A remainder below
 * one nanosecond of work is carried along while the speed is not full.)
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_H
#define MSIM_SIM_WEEKS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/weeks/ledger.h"

/* Intervals and blocks up to this length; longer ones behave the same within any horizon. */
#define CHECKPOINT_MAX_NANOS (INT64_C(1) << 61)

enum checkpoint_kind { CHECKPOINT_BLOCKING, CHECKPOINT_TWO_STAGE, CHECKPOINT_MEMORY, N_CHECKPOINT_KINDS };
const char *checkpoint_kind_name(enum checkpoint_kind kind); /* blocking two-stage memory */

struct checkpoint_policy {
    nanos interval; /* of work at full speed; above 0 */
    nanos block;    /* 0: checkpoints cost nothing */
    enum checkpoint_kind kind;
    nanos persist;     /* not blocking: from the end of the block until the state is safe */
    int storage_every; /* memory: which ones are written to storage; 0: none */
    nanos write;       /* memory: how long that takes */
};

struct training {
    struct checkpoint_policy policy;
    int32_t speed;      /* in parts of FULL_SPEED */
    nanos work;         /* since the last snapshot or safe state */
    int64_t carry;      /* of work, in nanoseconds / FULL_SPEED */
    nanos block_left;   /* above 0 while a checkpoint blocks */
    nanos persist_left; /* above 0 while one is on its way */
    nanos write_left;   /* above 0 while one is being written to storage from memory */
    int held;           /* memory: checkpoints since the last one that storage got */
    int64_t n_written;  /* checkpoints that became safe */
    nanos goal;         /* of the whole run, in work: training stops there; 0: none */
};

void training_init(struct training *training, struct checkpoint_policy policy);

/* Train from the ledger's now to `until`, or until the work of the goal is done. */
void training_advance(struct training *training, struct ledger *ledger, nanos until);

/* The work of the goal is done, though it may not be safe yet. */
bool training_is_done(const struct training *training, const struct ledger *ledger);

/* A failure now; `memory`: what neighbours hold survives. Returns the time lost. */
nanos training_fail(struct training *training, struct ledger *ledger, bool memory);

/* A step of so much work that is under way is dropped, at the speed of now; what came before it stays, and checkpoints on their
 * way wait meanwhile. Returns the time lost. */
nanos training_lose_step(struct training *training, struct ledger *ledger, nanos step);

/* From the end of a block until its state is safe: 0 where the block lasts until then. */
nanos checkpoint_lag(const struct checkpoint_policy *policy);
/* From now, training stopped, until all of its work is in storage. */
nanos checkpoint_save_time(const struct checkpoint_policy *policy);
/* It is there. */
void training_saved(struct training *training, struct ledger *ledger);

/* The horizon: work in progress counts. */
void training_finish(struct training *training, struct ledger *ledger);

#endif
