/*
 * thread_meeting.h - what members of a communicator do when they have met in shared memory (private to the runtime; see
 * comm_threads.c).
 */
#ifndef MSIM_RUNTIME_COMM_THREAD_MEETING_H
#define MSIM_RUNTIME_COMM_THREAD_MEETING_H

#include "runtime/base/comm.h"

/* All members are there: what member `me` does of the exchange. Members work on different parts of the result and may read all of
 * the inputs until everybody is done. */
void thread_meeting_share(struct exchange_call *const *calls, int n, int me); /* calls [n] in the order of members */

#endif
