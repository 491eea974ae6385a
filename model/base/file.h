/*
 * file.h - read whole files, write whole files.
 *
 * Example:
 *
 *     struct file_output out;
 *     file_output_open(&out, "result.json", diags);       writes to a temporary file in the same folder
 *     fprintf(out.stream, ...);
 *     file_output_commit(&out, diags);                    renames it
 *
 * Input that ends in ".gz" is decompressed (zlib); "-" is standard input. Output goes to a temporary file that is renamed when
 * complete, so a result file is either whole or absent; "-" is standard output.
 */
#ifndef MSIM_MODEL_BASE_FILE_H
#define MSIM_MODEL_BASE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/watch.h"

/* Reads a whole file and adds a NUL after its last byte. Refuses, with a diagnostic, files above `limit` bytes (uncompressed),
 * directories, UTF-16 text and unreadable files. The caller frees *bytes. */
MUST_CHECK enum status file_read(const char *path, size_t limit, char **bytes, size_t *n_bytes, struct diags *diags);
/* The same with progress: `done` counts bytes of the file itself, compressed or not. The error of a file above the limit ends
 * with `remedy`: what to do. */
MUST_CHECK enum status file_read_watched(const char *path, size_t limit, const char *remedy, const struct watch *watch,
                                         char **bytes, size_t *n_bytes, struct diags *diags);

/* Whether both paths lead to the same regular file. */
bool file_is_same(const char *a, const char *b);
/* The same of outputs, which need not be there yet: o.txt and ./o.txt. */
bool file_is_same_target(const char *a, const char *b);

/* Text that any reader takes, uncompressed; reading it needs at most 1.3 times that memory. */
#define FILE_TEXT_MAX ((size_t)1 << 30)

/* An output in progress. Its temporary file has the mode of the file that it replaces, and lies beside the target of symbolic
 * links. The next output to the same path removes what a killed process left. */
struct file_output {
    FILE *stream; /* write here */
    char *path;   /* target, NULL for standard output */
    char *aside;  /* path of the temporary file */
};

MUST_CHECK enum status file_output_open(struct file_output *out, const char *path, struct diags *diags);
/* Flushes, checks every earlier write and renames. On failure nothing is left behind and the old file does not change. */
MUST_CHECK enum status file_output_commit(struct file_output *out, struct diags *diags);
/* Gives up and removes the temporary file. Harmless after a commit. */
void file_output_abandon(struct file_output *out);

#endif
