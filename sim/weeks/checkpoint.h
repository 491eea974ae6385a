/*
 * checkpoint.h - training between checkpoints: how much work is done, and how much of it is safe.
 *
 * Example, with an interval of 30 min and a block of 1 min (blocking):
 *
 *     0 ──── train 30 ────┤ block 1 ├──── train 30 ────┤ block 1 ├── train 12 ── failure
 *                                   safe: 30                      safe: 60       lost: 12
 *
 * Training alternates `interval` of useful work and a checkpoint that blocks it for `block`. Work is measured in time at full
 * speed. So an interval of 30 min takes 40 min of clock time at 3/4 of the speed, and an interval given in steps contains the
 * same number of steps at any speed. The block does not depend on the speed. When the state is safe depends on the kind of
 * checkpoint:
 *
 *   blocking   when the block ends: everything was written while training stood still
 *   two-stage  the block copies the state from the devices to their hosts. Then the copy goes to storage while training runs, and
 *              is safe `persist` later. If the next copy is due earlier, it waits (checkpoint time)
 *   memory     as two-stage, but the copy goes to a neighbour's memory and is safe there `persist` later. It is lost if both
 *              nodes are lost before the next copy is there. (A spare that replaces a lost node has none until then; this
 *              includes the recovery.) It is also useless if numbers were wrong for longer than an interval. Every
 *              `storage_every`-th copy is also written to storage, which takes `write` in the background. A copy in storage is
 *              always safe, and older ones, from before numbers went wrong, are kept. With an interval of one step this is a
 *              checkpoint every step
 *
 * A failure undoes the work since the last safe state, and a checkpoint on its way. The time of its block stays booked as
 * checkpoint time. After a restart a full interval lies ahead.
 *
 * Arithmetic is in integers, so the work done does not depend on when the clock was stopped to look at it. At reduced speed a
 * remainder below one nanosecond of work is carried along.
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_H
#define MSIM_SIM_WEEKS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/weeks/ledger.h"

/* Longer intervals and blocks are cut to this length; within any horizon they behave the same. */
#define CHECKPOINT_MAX_NANOS (INT64_C(1) << 61)

enum checkpoint_kind { CHECKPOINT_BLOCKING, CHECKPOINT_TWO_STAGE, CHECKPOINT_MEMORY, N_CHECKPOINT_KINDS };
const char *checkpoint_kind_name(enum checkpoint_kind kind); /* blocking two-stage memory */

struct checkpoint_policy {
    nanos interval; /* of work at full speed; above 0 */
    nanos block;    /* 0: checkpoints do not stop training */
    enum checkpoint_kind kind;
    nanos persist;     /* two-stage, memory: from the end of the block until the state is safe */
    int storage_every; /* memory: every N-th is written to storage; 0: none */
    nanos write;       /* memory: duration of that write */
};

struct training {
    struct checkpoint_policy policy;
    int32_t speed;      /* in parts of FULL_SPEED */
    nanos work;         /* since the last snapshot or safe state */
    int64_t carry;      /* remainder of `work`, in nanoseconds / FULL_SPEED */
    nanos block_left;   /* > 0 while a checkpoint blocks */
    nanos persist_left; /* > 0 while a copy is on its way */
    nanos write_left;   /* > 0 while a copy goes from memory to storage */
    int held;           /* memory: copies since the last one that went to storage */
    int64_t n_written;  /* checkpoints that became safe */
    nanos goal;         /* work of the whole run, after which training stops; 0: none */
};

void training_init(struct training *training, struct checkpoint_policy policy);

/* Trains from the ledger's now to `until`, or until the goal's work is done. */
void training_advance(struct training *training, struct ledger *ledger, nanos until);

/* The goal's work is done; it may not be safe yet. */
bool training_is_done(const struct training *training, const struct ledger *ledger);

/* A failure now. `memory`: copies in neighbours' memory survive. Returns the training time lost. */
nanos training_fail(struct training *training, struct ledger *ledger, bool memory);

/* Drops the step under way; `step` is the work of one. Earlier work stays, and copies on their way pause. Returns the training
 * time lost. */
nanos training_lose_step(struct training *training, struct ledger *ledger, nanos step);

/* From the end of a block until its state is safe; 0 for blocking checkpoints. */
nanos checkpoint_lag(const struct checkpoint_policy *policy);
/* How long a stopped job needs to bring all of its work to storage. */
nanos checkpoint_save_time(const struct checkpoint_policy *policy);
/* That save is complete. */
void training_saved(struct training *training, struct ledger *ledger);

/* At the horizon: work in progress counts. */
void training_finish(struct training *training, struct ledger *ledger);

#endif
