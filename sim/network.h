/*
 * network.h - what carries messages and collectives: a small table of functions.
 *
 * A network says how long a transfer takes once all who take part are ready. Two properties tell the executor how to ask:
 *
 *   uniform   the time depends only on what is sent (role and bytes), not on which ranks send it: asked once per operation of
 *             a script, however many ranks run it. The analytic network is uniform.
 *   otherwise asked once per transfer, with the ranks; a fabric with degraded links, say.
 *
 * In both cases transfers do not slow one another down, so an operation's end is known when it starts. A network with
 * contention changes the end of transfers already under way; it belongs behind the same table with the executor in time
 * order (step_executor.h), and will add its own begin and end to it.
 */
#ifndef MSIM_SIM_NETWORK_H
#define MSIM_SIM_NETWORK_H

#include <stdbool.h>

#include "model/base/units.h"
#include "model/cost/work.h"

struct network {
    void *state;
    bool uniform;
    /* From rank `from` to rank `to`, `bytes` as one rank sends them. Ranks are -1 when a uniform network is asked. */
    nanos (*message)(void *state, int from, int to, double bytes);
    /* Over a group of `kind`; `group` is its index in the program, -1 when a uniform network is asked; bytes of the full
     * buffer. */
    nanos (*collective)(void *state, enum collective collective, enum group_kind kind, int group, double bytes);
};

#endif
