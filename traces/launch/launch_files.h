/*
 * launch_files.h - files that a script or configuration names, and which of them msim reads.
 *
 *     train.sh: source ./env.sh              read: it lies beside train.sh
 *               source ../secrets.sh         outside the folder of train.sh: read only with --follow
 *               --deepspeed p.json           a FIFO: refused, because nobody may ever write into it
 *
 * A script is often someone else's. So a name alone never makes msim read what lies elsewhere on the machine.
 */
#ifndef MSIM_TRACES_LAUNCH_LAUNCH_FILES_H
#define MSIM_TRACES_LAUNCH_LAUNCH_FILES_H

#include <limits.h>
#include <stdbool.h>

enum named_file {
    NAMED_ABSENT,
    NAMED_HERE,    /* a regular file in the namer's folder or below, or anywhere with `follow` */
    NAMED_OUTSIDE, /* of that folder, and `follow` is false */
    NAMED_SPECIAL, /* a FIFO, device, socket or folder */
};

/* What lies at `path`, which the file `namer` names. */
enum named_file launch_file_at(const char *namer, const char *path, bool follow);

/* Looks for a file beside its namer, then from the current folder. `found` gets the path of what is there. */
enum named_file launch_file_find(const char *namer, const char *path, bool follow, char found[PATH_MAX]);

/* "is a FIFO, device, socket or folder ..." and the like: why a file is not read, and what to do. */
const char *launch_file_refusal(enum named_file kind);

#endif
