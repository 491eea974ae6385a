/*
 * file.h - whole files in, whole files out.
 *
 * Input ending in ".gz" is decompressed (zlib); "-" is standard input. Output is written beside its target and renamed
 * when complete, so a result file is either whole or absent; "-" is standard output.
 */
#ifndef MSIM_MODEL_BASE_FILE_H
#define MSIM_MODEL_BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/watch.h"

/* A whole file in memory with a NUL after its last byte. Refuses files above `limit` bytes (uncompressed), directories,
 * UTF-16 text, and what cannot be read, with a diagnostic. The caller frees *bytes. */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **bytes, size_t *n_bytes, struct diags *diags);
/* The same; the watch receives how many of the file's own bytes, compressed or not, have been read. */
MUST_CHECK enum status file_read_watched(const char *path, size_t limit, const struct watch *watch, char **bytes, size_t *n_bytes,
                                         struct diags *diags);

/* Whether both paths lead to one file, an ordinary one. */
bool file_is_same(const char *a, const char *b);

/* An output in progress. */
struct file_output {
    FILE *stream; /* write here */
    char *path;   /* target, NULL for standard output */
    char *aside;  /* what is being written */
};

MUST_CHECK enum status file_output_open(struct file_output *out, const char *path, struct diags *diags);
/* Flush, check every earlier write, rename into place. On failure nothing is left behind and the old file is untouched. */
MUST_CHECK enum status file_output_commit(struct file_output *out, struct diags *diags);
/* Give up: remove what was written. Harmless after a commit. */
void file_output_abandon(struct file_output *out);

#endif
