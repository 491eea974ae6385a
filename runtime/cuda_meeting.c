#include "runtime/cuda_meeting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct place nowhere = {0};

enum { FILE_BYTES = 4096, HOST_BYTES = 64 };

static void path_of(const struct cuda_meeting *meeting, const char *name, char path[MEETING_PATH + 64])
{
    snprintf(path, MEETING_PATH + 64, "%s/%s", meeting->folder, name);
}

/* Writes the file aside and gives it its name if nobody else has that name yet, or anyway when `replace`. */
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
    diag_error(diags, nowhere, "rank %d: cannot write %s: %s; ranks meet in a folder that all of them can write", meeting->rank,
               path, strerror(why));
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
        diag_error(diags, nowhere, "rank %d: ranks need a folder to meet in, of at most %zu characters", rank,
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
            diag_error(diags, nowhere, "rank %d: the job was given up: %s", meeting->rank, why);
            return STATUS_FAILED;
        }
        nanosleep(&nap, NULL);
    }
    diag_error(diags, nowhere, "rank %d: rank 0 did not come to %s within %g s", meeting->rank, meeting->folder,
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
        diag_error(diags, nowhere, "rank %d: an id of %zu bytes does not fit its file", meeting->rank, bytes);
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
        diag_error(diags, nowhere, "rank %d runs %s, but rank 0 runs %s; all ranks need the same versions", meeting->rank,
                   versions, record);
        return STATUS_FAILED;
    }
    memcpy(id, record + MEETING_VERSIONS, bytes);
    return STATUS_OK;
}

void meeting_abandon(const struct cuda_meeting *meeting, const char *why)
{
    struct diags nobody = {0}; /* whoever gives up has nobody left to tell */
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
