/*
 * cuda_meeting.h - how the processes of one job find each other: through files in a folder that all of them see.
 *
 * Example: rank 0 and rank 1 of a job in the folder /shared/job17.
 *
 *     meeting_enter(&meeting, "/shared/job17", rank, 2, timeout, &diags);               writes rank.0 or rank.1
 *     meeting_share(&meeting, versions, &id, sizeof id, NULL, &diags);                   rank 0 writes id, rank 1 waits for it
 *
 *   id           written by rank 0: a line of versions, then the bytes of the unique id
 *   rank.N       host and process id of rank N
 *   abandoned    "rank N: why": a rank gave up; the message of the first stays
 *
 * Files appear complete: they are written under another name, then linked or renamed.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_MEETING_H
#define MSIM_RUNTIME_CUDA_CUDA_MEETING_H

#include "model/base/diag.h"
#include "model/base/units.h"

enum { MEETING_PATH = 512, MEETING_VERSIONS = 96, MEETING_REASON = 320 };

struct cuda_meeting {
    char folder[MEETING_PATH];
    int rank, n_ranks;
    nanos timeout;
};

/* Joins the meeting: writes this rank's host and process id. */
MUST_CHECK enum status meeting_enter(struct cuda_meeting *meeting, const char *folder, int rank, int n_ranks, nanos timeout,
                                     struct diags *diags);
/* Copies rank 0's `id` to all ranks. All must run the same `versions`. `share` transports it: all ranks call it at the same time
 * and get rank 0's bytes. NULL: a file transports it. */
MUST_CHECK enum status meeting_share(const struct cuda_meeting *meeting, const char *versions, void *id, size_t bytes,
                                     void (*share)(void *bytes, size_t n), struct diags *diags);
void meeting_abandon(const struct cuda_meeting *meeting, const char *why);
/* Starts a thread that calls `end` with a message if this process is still here `grace` after a rank gave up. CUDA may block the
 * process without a timeout: loading a kernel or allocating memory waits behind a kernel that waits for a lost rank. `end` must
 * end the process without calling CUDA. NULL: the thread could not start, or `end` is NULL. */
struct meeting_guard;
MUST_CHECK struct meeting_guard *meeting_guard_new(const struct cuda_meeting *meeting, nanos grace,
                                                   void (*end)(const char *text));
void meeting_guard_free(struct meeting_guard *guard); /* stops the thread; may be NULL */
/* Whether a rank gave up; `why` gets its message. */
bool meeting_abandoned(const struct cuda_meeting *meeting, char why[MEETING_REASON]);
/* "rank 3 (process 1234) is gone" for each rank of this host whose process has ended; "" when none has. */
void meeting_gone(const struct cuda_meeting *meeting, char *text, size_t size);

#endif
