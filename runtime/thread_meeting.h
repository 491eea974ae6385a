/*
 * thread_meeting.h - where members of a communicator meet in shared memory (private to the runtime; comm_threads.c).
 */
#ifndef MSIM_RUNTIME_THREAD_MEETING_H
#define MSIM_RUNTIME_THREAD_MEETING_H

#include <pthread.h>

#include "runtime/comm.h"

struct hub;
struct message;

/* What all members of a communicator share. */
struct thread_meeting {
    struct hub *hub;
    int n, *members;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t round;               /* exchanges completed */
    int n_arrived, n_done;        /* in this round */
    struct exchange_call **calls; /* [n] of those who are there, NULL: not yet */
    struct message *first, *last; /* sent, not yet received: of a channel */
    uint64_t taken;               /* messages received */
    uint64_t *enqueued;           /* [n] exchanges that a member has asked for so far */
    int n_waiting;                /* members that wait for others, in the exchange below */
    enum exchange exchange;
    const char *what;
};

/* All members are there: what member `me` does of the exchange. Members work on different parts of the result and may read all of
 * the inputs until everybody is done. */
void thread_meeting_share(const struct thread_meeting *meeting, const struct exchange_call *call, int me);

#endif
