/* cuda_meeting.c - how processes find each other through files, and notice that one is gone. */
#include "runtime/cuda/cuda_meeting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/base/clock.h"
#include "model/base/memory.h"

enum { FILE_BYTES = 4096, HOST_BYTES = 64 };

static void path_of(const struct cuda_meeting *meeting, const char *name, char path[MEETING_PATH + 64])
{
    snprintf(path, MEETING_PATH + 64, "%s/%s", meeting->folder, name);
}

/* Writes a file under a temporary name and renames it, if no file has its name yet or with `replace`. */
static enum status put(const struct cuda_meeting *meeting, const char *name, const void *bytes, size_t n, bool replace,
                       struct diags *diags)
{
    char path[MEETING_PATH + 64], aside[MEETING_PATH + 96];
    path_of(meeting, name, path);
    snprintf(aside, sizeof aside, "%s.%d.%ld", path, meeting->rank, (long)getpid());
    FILE *file = fopen(aside, "wb");
    bool written = file && fwrite(bytes, 1, n, file) == n;
    written = file && fclose(file) == 0 && written;
    if (written && replace)
        written = rename(aside, path) == 0;
    else if (written)
        written = link(aside, path) == 0 || errno == EEXIST;
    int why = errno;
    if (!replace || !written)
        (void)unlink(aside);
    if (written)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "rank %d: cannot write %s: %s; ranks meet in a folder that all of them can write",
               meeting->rank, path, strerror(why));
    return STATUS_FAILED;
}

/* Bytes read, 0 when the file is not there. */
static size_t get(const struct cuda_meeting *meeting, const char *name, void *bytes, size_t most)
{
    char path[MEETING_PATH + 64];
    path_of(meeting, name, path);
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(bytes, 1, most, file) : 0;
    if (file)
        (void)fclose(file);
    return n;
}

enum status meeting_enter(struct cuda_meeting *meeting, const char *folder, int rank, int n_ranks, nanos timeout,
                          struct diags *diags)
{
    char name[32], text[HOST_BYTES + 32], host[HOST_BYTES] = "";
    struct cuda_meeting made = {.rank = rank, .n_ranks = n_ranks, .timeout = timeout};
    if (!folder || strlen(folder) >= sizeof made.folder) {
        diag_error(diags, PLACE_NONE, "rank %d: ranks need a folder to meet in, of at most %zu characters", rank,
                   sizeof made.folder - 1);
        return STATUS_BAD_INPUT;
    }
    snprintf(made.folder, sizeof made.folder, "%s", folder);
    (void)gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rank.%d", rank);
    snprintf(text, sizeof text, "%s %ld\n", host, (long)getpid());
    enum status status = put(&made, name, text, strlen(text), true, diags);
    if (status == STATUS_OK)
        *meeting = made;
    return status;
}

static enum status wait_for_id(const struct cuda_meeting *meeting, char *bytes, size_t *n, struct diags *diags)
{
    const struct timespec nap = {.tv_nsec = 2000000};
    char why[MEETING_REASON];
    for (nanos waited = 0; waited < meeting->timeout; waited += nap.tv_nsec) {
        *n = get(meeting, "id", bytes, FILE_BYTES);
        if (*n)
            return STATUS_OK;
        if (meeting_abandoned(meeting, why)) {
            diag_error(diags, PLACE_NONE, "rank %d: the job was given up: %s", meeting->rank, why);
            return STATUS_FAILED;
        }
        nanosleep(&nap, NULL);
    }
    diag_error(diags, PLACE_NONE, "rank %d: rank 0 did not come to %s within %g s", meeting->rank, meeting->folder,
               (double)meeting->timeout * 1e-9);
    return STATUS_FAILED;
}

enum status meeting_share(const struct cuda_meeting *meeting, const char *versions, void *id, size_t bytes,
                          void (*share)(void *bytes, size_t n), struct diags *diags)
{
    char record[FILE_BYTES] = {0};
    size_t n = MEETING_VERSIONS + bytes;
    enum status status = STATUS_OK;
    if (n > sizeof record || strlen(versions) >= MEETING_VERSIONS) {
        diag_error(diags, PLACE_NONE, "rank %d: an id of %zu bytes does not fit its file", meeting->rank, bytes);
        return STATUS_FAILED;
    }
    if (meeting->rank == 0) {
        snprintf(record, MEETING_VERSIONS, "%s", versions);
        memcpy(record + MEETING_VERSIONS, id, bytes);
    }
    if (share)
        share(record, n);
    else if (meeting->rank == 0)
        status = put(meeting, "id", record, n, true, diags);
    else
        status = wait_for_id(meeting, record, &n, diags);
    if (status != STATUS_OK)
        return status;
    record[MEETING_VERSIONS - 1] = '\0';
    if (n != MEETING_VERSIONS + bytes || strcmp(record, versions) != 0) {
        diag_error(diags, PLACE_NONE, "rank %d runs %s, but rank 0 runs %s; all ranks need the same versions", meeting->rank,
                   versions, record);
        return STATUS_FAILED;
    }
    memcpy(id, record + MEETING_VERSIONS, bytes);
    return STATUS_OK;
}

void meeting_abandon(const struct cuda_meeting *meeting, const char *why)
{
    struct diags nobody = {0}; /* a rank that gives up has no one to report errors to */
    (void)!put(meeting, "abandoned", why, strlen(why), false, &nobody);
    diags_free(&nobody);
}

bool meeting_abandoned(const struct cuda_meeting *meeting, char why[MEETING_REASON])
{
    size_t n = get(meeting, "abandoned", why, MEETING_REASON - 1);
    why[n] = '\0';
    return n > 0;
}

void meeting_gone(const struct cuda_meeting *meeting, char *text, size_t size)
{
    char host[HOST_BYTES] = "", name[32];
    size_t at = 0;
    (void)gethostname(host, sizeof host - 1);
    text[0] = '\0';
    for (int rank = 0; rank < meeting->n_ranks && at < size; rank++) {
        char record[HOST_BYTES + 32] = {0};
        snprintf(name, sizeof name, "rank.%d", rank);
        get(meeting, name, record, sizeof record - 1);
        char *space = strrchr(record, ' ');
        if (!space)
            continue;
        *space = '\0';
        long process = strtol(space + 1, NULL, 10);
        if (strcmp(record, host) == 0 && process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH)
            at += (size_t)snprintf(text + at, size - at, "%srank %d (process %ld) is gone", at ? ", " : "", rank, process);
    }
}

/* --- the guard */

enum { GUARD_MS = 200 }; /* between two looks at the folder, which may be on another machine */

struct meeting_guard {
    struct cuda_meeting meeting;
    nanos grace;
    void (*end)(const char *text);
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool left;
};

/* Until the process has left, at most until the next look. */
static bool has_left(struct meeting_guard *guard)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GUARD_MS * 1000000L;
    until.tv_sec += until.tv_nsec / NANOS_PER_SECOND;
    until.tv_nsec %= NANOS_PER_SECOND;
    pthread_mutex_lock(&guard->lock);
    if (!guard->left)
        pthread_cond_timedwait(&guard->changed, &guard->lock, &until);
    bool left = guard->left;
    pthread_mutex_unlock(&guard->lock);
    return left;
}

static void *guard_main(void *argument)
{
    struct meeting_guard *guard = argument;
    char why[MEETING_REASON], text[MEETING_REASON + 160];
    nanos given_up = 0;
    while (!has_left(guard)) {
        if (!meeting_abandoned(&guard->meeting, why))
            continue;
        given_up = given_up ? given_up : clock_monotonic();
        if (clock_monotonic() - given_up < guard->grace)
            continue;
        snprintf(text, sizeof text,
                 "rank %d: has not come to an end %g s after the job was given up; CUDA or NCCL may keep it: %s",
                 guard->meeting.rank, (double)guard->grace * 1e-9, why);
        guard->end(text);
        break;
    }
    return NULL;
}

struct meeting_guard *meeting_guard_new(const struct cuda_meeting *meeting, nanos grace, void (*end)(const char *text))
{
    if (!end)
        return NULL;
    struct meeting_guard *guard = memory_new(1, sizeof *guard);
    guard->meeting = *meeting;
    guard->grace = grace;
    guard->end = end;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_cond_init(&guard->changed, NULL);
    if (pthread_create(&guard->thread, NULL, guard_main, guard) == 0)
        return guard;
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
    return NULL;
}

void meeting_guard_free(struct meeting_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->lock);
    guard->left = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}
