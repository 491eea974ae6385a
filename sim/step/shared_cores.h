/*
 * shared_cores.h - one step of ranks that share the CPU cores of a machine.
 *
 * Example: two ranks on one core each compute for 10 ms. Alone each would end at 10 ms; sharing the core, both end at 20 ms. When
 * the first rank waits for a message instead, the second has the core to itself and ends at 10 ms:
 *
 *     const struct core_span cores[] = {{.first = 0, .n = 1}, {.first = 0, .n = 1}};
 *     status = shared_cores_predict(&program, &machine, cores, waking_s, &prediction, &timeline, &diags);
 *
 * The simulator (step.h) gives every rank a device of its own, whose streams run side by side. Here the k operations under way on
 * n cores each run at n / k of full speed where k is larger, as a time-sharing system lets them. An operation that computes or
 * moves bytes needs a core; one that waits needs none. So while some ranks wait for others (the ends of a pipeline) those that
 * work have the cores to themselves.
 *
 * This is the mean of what a system does in turns of milliseconds. The step and the work of operations come out right. A single
 * short exchange that overlaps computations may not: it waits for the end of a turn or gets the core at once.
 *
 * Every member of a collective, and both sides of a message, need a core while bytes move. The collective ends when its last
 * member has had its share, a message when it has been sent and received. Before that each exchange wakes threads for
 * `waking_s`, which needs no core.
 *
 * Cost: time goes from one end of an operation, or of a waking, to the next: O(operations x ranks x streams).
 */
#ifndef MSIM_SIM_STEP_SHARED_CORES_H
#define MSIM_SIM_STEP_SHARED_CORES_H

#include "model/base/diag.h"
#include "model/cost/kernel/machine.h"
#include "model/program/program.h"
#include "traces/timeline/timeline.h"

/* The cores of a rank. Two ranks have the same span or none in common. */
struct core_span {
    int first, n;
};

/* The seconds, within the spans of all ranks' operations, in which the operation had no core. */
struct core_waiting {
    double computations; /* others had the core */
    double exchanges;    /* the same, or threads were being woken, or another member was not ready */
};

struct shared_cores_prediction {
    double step_s;
    double work_s[N_WORK_CLASSES]; /* seconds with a core, sum over ranks */
    struct core_waiting waiting;
};

/* `cores`: [program->n_ranks]. Appends the spans of all ranks to `timeline` and closes it. STATUS_BAD_INPUT with diagnostics when
 * the program is not well formed (step_tables_create). */
MUST_CHECK enum status shared_cores_predict(const struct program *program, const struct machine *machine,
                                            const struct core_span *cores, double waking_s,
                                            struct shared_cores_prediction *prediction, struct timeline *timeline,
                                            struct diags *diags);

#endif
