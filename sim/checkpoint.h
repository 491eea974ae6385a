/*
 * checkpoint.h - training between checkpoints.
 *
 * Training alternates `interval` of useful work and a checkpoint that blocks it for `block`; the state is safe when the block
 * ends. Work is measured in time at full speed, so an interval of 30 min takes 40 min of the clock at 3/4 of the speed, and an
 * interval given in steps holds that many steps at any speed. Writing a checkpoint does not depend on the speed. A failure undoes
 * the work since the last safe state and a half-written checkpoint with it; the time that had gone into writing stays booked as
 * checkpoint time. After a restart a full interval lies ahead.
 *
 * All arithmetic is in integers: the work done does not depend on where the clock was stopped to look at it. (A remainder below
 * one nanosecond of work is carried along while the speed is not full.)
 */
#ifndef MSIM_SIM_CHECKPOINT_H
#define MSIM_SIM_CHECKPOINT_H

#include <stdint.h>

#include "sim/ledger.h"

/* Intervals and blocks up to this length; longer ones behave the same within any horizon. */
#define CHECKPOINT_MAX_NANOS (INT64_C(1) << 61)

struct checkpoint_policy {
    nanos interval; /* of work at full speed; above 0 */
    nanos block;    /* 0: checkpoints cost nothing */
};

struct training {
    struct checkpoint_policy policy;
    int32_t speed;     /* in parts of FULL_SPEED */
    nanos work;        /* since the last safe state */
    int64_t carry;     /* of work, in nanoseconds / FULL_SPEED */
    nanos block_left;  /* above 0 while a checkpoint is being written */
    int64_t n_written; /* checkpoints completed */
};

void training_init(struct training *training, struct checkpoint_policy policy);

/* Train from the ledger's now to `until`. */
void training_advance(struct training *training, struct ledger *ledger, nanos until);

/* A failure now. Returns the time lost. */
nanos training_fail(struct training *training, struct ledger *ledger);

/* The horizon: work in progress counts. */
void training_finish(struct training *training, struct ledger *ledger);

#endif
