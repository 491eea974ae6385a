/*
 * network.h - the interface of a network to the executor: a table of functions that time messages and collectives.
 *
 * Example: a network in which every message takes 1 us, and every collective 5 us:
 *
 *     static nanos message(void *state, int from, int to, double bytes) { return 1000; }
 *     static nanos collective(void *state, enum collective c, enum group_kind kind, int group, double bytes) { return 5000; }
 *     const struct network simple = {.uniform = true, .message = message, .collective = collective};
 *
 * A network says how long a transfer takes once all its ranks are ready. Two properties decide how the executor asks:
 *
 *   uniform      the time depends only on what is sent (role and bytes), not on the ranks. The executor asks once per operation
 *                of a script, however many ranks run it. The analytic network is uniform.
 *   not uniform  the executor asks once per transfer, with the ranks: for example, a fabric with degraded links.
 *
 * In both cases transfers do not slow one another down, so an operation's end is known when it starts. A network with contention
 * changes the end of transfers under way. It also has the functions at the end of the table. The executor then runs in time
 * order (step_executor.h), reports when transfers begin, and asks which have ended.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_H
#define MSIM_SIM_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/base/units.h"
#include "model/cost/work/work.h"

struct network {
    void *state;
    bool uniform;
    /* Time of `bytes` from one rank to another. A uniform network is asked with ranks -1. */
    nanos (*message)(void *state, int from, int to, double bytes);
    /* Time of a collective over a group of `kind` with a full buffer of `bytes`. `group`: its index in the program, or -1 for a
     * uniform network. */
    nanos (*collective)(void *state, enum collective collective, enum group_kind kind, int group, double bytes);

    /* NULL without contention. Both ends are ready `now` and the transfer begins; `payload` is the executor's. */
    void (*begin_message)(void *state, nanos now, int from, int to, double bytes, uint64_t payload);
    void (*begin_collective)(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t payload);
    /* When the next transfer leaves the links if nothing else begins; INT64_MAX: none is under way. */
    nanos (*next)(void *state);
    /* Takes a transfer that leaves the links `now`: its payload, and how much later it ends (latency). Returns false: no more. */
    bool (*take)(void *state, nanos now, uint64_t *payload, nanos *latency);
    /* NULL if `next` knows the end. Otherwise called before each step of the executor: advances to `until`, when something may
     * begin (INT64_MAX: nothing will), or to the first end before it. Returns that end; INT64_MAX: none; -1: it cannot go on,
     * for a reason that the network knows. */
    nanos (*advance)(void *state, nanos until);
};

#endif
