/*
 * cuda_meeting.h - how processes of one job find each other: files in a folder that all of them see.
 *
 *   id           what rank 0 tells the others: a line of versions, then the bytes of the unique id
 *   rank.N       host and process id of rank N
 *   abandoned    "rank N: why": a rank gave up; the first one's sentence stays
 *
 * Files appear whole (written aside, then linked or renamed).
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

/* Leaves this rank's host and process id. */
MUST_CHECK enum status meeting_enter(struct cuda_meeting *meeting, const char *folder, int rank, int n_ranks, nanos timeout,
                                     struct diags *diags);
/* Rank 0 gives `id`; on the others it is filled in when it is there. All must run the same `versions`. `share` carries it (all
 * ranks call it at the same time and get rank 0's bytes); NULL: a file does. */
MUST_CHECK enum status meeting_share(const struct cuda_meeting *meeting, const char *versions, void *id, size_t bytes,
                                     void (*share)(void *bytes, size_t n), struct diags *diags);
void meeting_abandon(const struct cuda_meeting *meeting, const char *why);
/* From now on a thread calls `end` with a sentence when this process has not left `grace` after a rank gave up: CUDA may keep
 * it (a kernel that is loaded, or memory that is taken, behind one that waits for who is gone), where it asks nobody. All that
 * `end` can do is to end the process without asking CUDA. NULL: no thread was to be had, or `end` is NULL. */
struct meeting_guard;
MUST_CHECK struct meeting_guard *meeting_guard_new(const struct cuda_meeting *meeting, nanos grace,
                                                   void (*end)(const char *text));
void meeting_guard_free(struct meeting_guard *guard); /* it has left; NULL is nothing */
/* Whether a rank gave up; `why` gets the sentence. */
bool meeting_abandoned(const struct cuda_meeting *meeting, char why[MEETING_REASON]);
/* "rank 3 (process 1234) is gone" for each rank of this host whose process has ended; "" when none has. */
void meeting_gone(const struct cuda_meeting *meeting, char *text, size_t size);

#endif
