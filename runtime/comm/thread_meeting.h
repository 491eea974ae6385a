/*
 * thread_meeting.h - one member's share of a collective in shared memory, once all members have arrived (private to
 * comm_threads.c).
 *
 * Example: an all-reduce of 1000 elements by 4 members. thread_meeting_share(calls, 4, 1) computes elements 250 to 499 of the
 * sum from all four inputs and writes them to all four outputs.
 */
#ifndef MSIM_RUNTIME_COMM_THREAD_MEETING_H
#define MSIM_RUNTIME_COMM_THREAD_MEETING_H

#include "runtime/base/comm.h"

/* Executes the share of member `me`. Members write different parts of the results and may read all inputs until all are done.
 * calls [n] are in the order of members. */
void thread_meeting_share(struct exchange_call *const *calls, int n, int me);

#endif
