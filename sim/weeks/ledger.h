/*
 * ledger.h - accounts for every nanosecond of a run.
 *
 * Example: 30 min of training, a checkpoint of 1 min that makes it safe, 12 min of training, and a failure:
 *
 *     ledger_train(&l, 30 min, 0);  ledger_book(&l, USE_CHECKPOINT, 1 min);  ledger_commit(&l);     training 30, checkpoint 1
 *     ledger_train(&l, 12 min, 0);  ledger_lose(&l);                                                lost 12
 *
 * The ledger is the clock of a run: time advances only when it is booked to a use. So the uses sum to the horizon exactly, in
 * total and in each bin of the time series. Bins have equal width; the horizon cuts off the last one.
 *
 * Work since the last safe checkpoint is pending, because a failure may still undo it. A checkpoint commits it: to training, and
 * to degraded for the extra time on slow hardware. A failure turns it into lost time. Pending amounts are kept per bin, so that
 * both end up in the bins in which the time was spent. They are also kept per level, because a checkpoint becomes safer in
 * stages:
 *
 *     fresh     work since the last copy
 *     staged    copied off the device, on its way
 *     held      in the memory of a neighbour
 *     writing   on its way from there to storage
 *
 * Cost: O(1) per booking; a commit or loss visits the bins that the pending work spans. Memory: 136 bytes per bin.
 */
#ifndef MSIM_SIM_WEEKS_LEDGER_H
#define MSIM_SIM_WEEKS_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

#define TIME_USES(X)                                                                                                             \
    X(TRAINING, "training", "work that counts, at full speed")                                                                   \
    X(DEGRADED, "degraded", "extra time that work took on slow nodes and links")                                                 \
    X(CHECKPOINT, "checkpoint", "training blocked by a checkpoint")                                                              \
    X(LOST, "lost", "work since the last safe checkpoint, undone by a failure")                                                  \
    X(DETECTION, "detection", "stopped, failure not noticed yet")                                                                \
    X(WAITING, "waiting", "stopped, more nodes down than there are spares")                                                      \
    X(RESTART, "restart", "restarting: scheduling, loading, initialising")                                                       \
    X(DIAGNOSIS, "diagnosis", "stopped, looking for the faulty node")                                                            \
    X(HUMAN, "human", "stopped until a person steps in")

/* The plain rules have the uses before this one; the others occur only under a recovery policy. */
#define N_PLAIN_USES USE_DIAGNOSIS

enum time_use {
#define X(id, name, what) USE_##id,
    TIME_USES(X)
#undef X
        N_TIME_USES
};
const char *time_use_name(enum time_use use);
const char *time_use_meaning(enum time_use use);

enum ledger_level { LEVEL_FRESH, LEVEL_STAGED, LEVEL_HELD, LEVEL_WRITING, N_LEVELS };

struct ledger_bin {
    nanos use[N_TIME_USES];
    nanos work[N_LEVELS], slow[N_LEVELS]; /* pending */
};

struct ledger {
    nanos horizon, width;
    nanos now;
    struct ledger_bin *bins;
    size_t n_bins;
    size_t bin;             /* contains `now` */
    size_t first[N_LEVELS]; /* first bin with pending amounts of the level; LEDGER_NONE: none */
    nanos work;             /* done and not lost, safe or pending */
};

/* Most bins of a series. */
enum { LEDGER_MAX_BINS = 1 << 20 };
#define LEDGER_NONE SIZE_MAX

/* Requires horizon > 0, width > 0 and horizon / width < LEDGER_MAX_BINS. */
void ledger_open(struct ledger *ledger, nanos horizon, nanos width);

/* End of the current bin. One booking must not cross it. */
nanos ledger_edge(const struct ledger *ledger);

/* Books the next `duration` to a use. */
void ledger_book(struct ledger *ledger, enum time_use use, nanos duration);
/* Books the next work + slow as pending training. */
void ledger_train(struct ledger *ledger, nanos work, nanos slow);
/* Books n whole checkpoint intervals of work + block; all of it is safe. Nothing may be pending. */
void ledger_train_intervals(struct ledger *ledger, nanos n, nanos work, nanos block);

/* Moves pending work from one level to another; makes it safe; turns it into lost time, which is returned. */
void ledger_promote(struct ledger *ledger, enum ledger_level from, enum ledger_level to);
void ledger_commit_level(struct ledger *ledger, enum ledger_level level);
nanos ledger_lose_level(struct ledger *ledger, enum ledger_level level);
/* Loses the last `work` of the fresh level and the last `slow` of its extra time, or less if there is not so much. Returns the
 * time lost. */
nanos ledger_lose_recent(struct ledger *ledger, nanos work, nanos slow);
/* The same for all levels. */
void ledger_commit(struct ledger *ledger);
nanos ledger_lose(struct ledger *ledger); /* returns the time lost */

/* The run ends now, before its horizon, which becomes now. Requires now > 0. */
void ledger_close(struct ledger *ledger);

/* Sum of a use over all bins. */
nanos ledger_total(const struct ledger *ledger, enum time_use use);

#endif
