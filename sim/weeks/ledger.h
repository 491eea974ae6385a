/*
 * ledger.h - where the time of a run went, booked to the nanosecond.
 *
 * The ledger is the clock of a run: time moves only by being booked to a use, so the uses sum to the horizon exactly, in the
 * whole and in every bin of the time series (bins of equal width, the last one cut off by the horizon).
 *
 * Work done since the last safe checkpoint is pending: nobody knows yet whether it will count. A checkpoint commits it (training,
 * and the time by which it took longer on degraded hardware), a failure turns all of it into lost time. Pending amounts are kept
 * per bin, so both find their way into the bins in which the time was spent. They are kept by level, as a checkpoint becomes
 * safer in stages: fresh work; staged (copied off the device, on its way); held (in the memory of a neighbour); being written to
 * storage.
 *
 * Cost: O(1) per booking; a commit or loss visits the bins that pending work spans. Memory: 136 bytes per bin.
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
    X(HUMAN, "human", "stopped until somebody steps in")

/* Uses below it are those of the plain replay rules; the others occur only with a recovery policy of stages. */
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
    size_t bin;             /* that `now` is in */
    size_t first[N_LEVELS]; /* bin with pending amounts of that level; LEDGER_NONE: none has any */
    nanos work;             /* done and not lost, whether it is safe or pending */
};

/* Bins the series of a run has: at most LEDGER_MAX_BINS. */
enum { LEDGER_MAX_BINS = 1 << 20 };
#define LEDGER_NONE SIZE_MAX

/* horizon and width above 0, horizon / width below LEDGER_MAX_BINS. */
void ledger_open(struct ledger *ledger, nanos horizon, nanos width);

/* End of the current bin: no single booking may go beyond it. */
nanos ledger_edge(const struct ledger *ledger);

/* The next `duration` belongs to `use`. */
void ledger_book(struct ledger *ledger, enum time_use use, nanos duration);
/* The next work + slow is training whose worth is open. */
void ledger_train(struct ledger *ledger, nanos work, nanos slow);
/* The next n * (work + block) are whole checkpoint intervals: nothing stays pending. Nothing may be pending before. */
void ledger_train_intervals(struct ledger *ledger, nanos n, nanos work, nanos block);

/* What was pending at one level now is at another. */
void ledger_promote(struct ledger *ledger, enum ledger_level from, enum ledger_level to);
void ledger_commit_level(struct ledger *ledger, enum ledger_level level);
nanos ledger_lose_level(struct ledger *ledger, enum ledger_level level);
/* Of the fresh level the last `work` that was done and the last `slow` by which it took longer, as far as there is so much.
 * Returns the time lost. */
nanos ledger_lose_recent(struct ledger *ledger, nanos work, nanos slow);
/* All levels. */
void ledger_commit(struct ledger *ledger);
nanos ledger_lose(struct ledger *ledger); /* time lost */

/* The run is over now, before its horizon: that is its horizon. Some time has passed. */
void ledger_close(struct ledger *ledger);

/* Sum over bins of one use. */
nanos ledger_total(const struct ledger *ledger, enum time_use use);

#endif
