#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_expect(text != NULL, "memory");
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

struct fuzz_file fuzz_file_open(const uint8_t *data, size_t size)
{
    struct fuzz_file file = {.fd = memfd_create("input", MFD_CLOEXEC)};
    fuzz_expect(file.fd >= 0 && write(file.fd, data, size) == (ssize_t)size, "a file in memory");
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

void fuzz_file_close(struct fuzz_file *file)
{
    close(file->fd);
}

void fuzz_expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s\n", what);
    abort();
}

/* libfyaml 0.7.12 loses a buffer of a few KiB in a quoted scalar with hundreds of '' escapes; what msim loses is still found. */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): its name */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml\n";
}
