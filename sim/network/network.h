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
 * contention changes the end of transfers already under way: it has the functions at the end of the table besides, and the
 * executor then runs in time order (step_executor.h), tells it when transfers begin and asks it which have ended.
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
    /* From rank `from` to rank `to`, `bytes` as one rank sends them. Ranks are -1 when a uniform network is asked. */
    nanos (*message)(void *state, int from, int to, double bytes);
    /* Over a group of `kind`; `group` is its index in the program, -1 when a uniform network is asked; bytes of the full
     * buffer. */
    nanos (*collective)(void *state, enum collective collective, enum group_kind kind, int group, double bytes);

    /* With contention; otherwise NULL. Both ends are ready `now` and the transfer begins; `what` is the executor's word. */
    void (*begin_message)(void *state, nanos now, int from, int to, double bytes, uint64_t payload);
    void (*begin_collective)(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t payload);
    /* When the next transfer leaves the links if nothing else begins; INT64_MAX: none is under way. */
    nanos (*next)(void *state);
    /* A transfer that leaves the links `now`: its word, and how much later it has ended (latency). False: no more. */
    bool (*take)(void *state, nanos now, uint64_t *payload, nanos *latency);
    /* NULL where `next` knows. Otherwise, before each step of the executor: go on to `until`, at which something may begin
     * (INT64_MAX: nothing will), or to the first end before it, which is returned; INT64_MAX: there is none. -1: there is
     * no going on, for a reason that the network knows. */
    nanos (*advance)(void *state, nanos until);
};

#endif
