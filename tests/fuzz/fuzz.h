/*
 * fuzz.h - what a fuzz target is.
 *
 * A target is one file with LLVMFuzzerTestOneInput. It is built twice: with replay.c, by any compiler, to run over saved inputs
 * in the short tier; and with libFuzzer (clang, MSIM_FUZZ) to look for new ones in the long tier. A target may not print, and
 * must release what it takes: leaks are findings.
 */
#ifndef MSIM_TESTS_FUZZ_FUZZ_H
#define MSIM_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input as a text with a NUL after its last byte; free it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* The input as a file in memory, for readers that take a path. The path is valid until the file is closed. */
struct fuzz_file {
    int fd;
    char path[32];
};
struct fuzz_file fuzz_file_open(const uint8_t *data, size_t size);
void fuzz_file_close(struct fuzz_file *file);

/* A finding: ends the process the way fuzzers notice. */
void fuzz_expect(int holds, const char *what);

#endif
