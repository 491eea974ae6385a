#include "model/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "model/base/memory.h"
#include "model/base/utf8.h"

static gzFile open_input(const char *path)
{
    if (strcmp(path, "-") != 0)
        return gzopen(path, "rb");
    int fd = dup(STDIN_FILENO);
    gzFile file = fd < 0 ? NULL : gzdopen(fd, "rb");
    if (!file && fd >= 0)
        close(fd);
    return file;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Bytes on disk; 0 of what has no size, such as a pipe. */
static double size_of(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (double)st.st_size : 0;
}

enum status file_read(const char *path, size_t limit, char **bytes, size_t *n_bytes, struct diags *diags)
{
    return file_read_watched(path, limit, NULL, bytes, n_bytes, diags);
}

enum status file_read_watched(const char *path, size_t limit, const struct watch *watch, char **bytes, size_t *n_bytes,
                              struct diags *diags)
{
    struct place at = {.file = path};
    errno = 0;
    gzFile file = is_directory(path) ? NULL : open_input(path);
    if (!file) {
        diag_error(diags, at, "cannot read: %s", is_directory(path) ? "is a directory" : strerror(errno ? errno : ENOMEM));
        return STATUS_BAD_INPUT;
    }
    char *data = NULL;
    size_t capacity = 0, n = 0, told = 0;
    double size = watch ? size_of(path) : 0;
    int got;
    do {
        data = memory_grow(data, &capacity, n + 65536 + 1, 1);
        got = gzread(file, data + n, 65536);
        if (got > 0)
            n += (size_t)got;
        if (n - told >= WATCH_BYTES || got == 0) {
            watch_tell(watch, (double)gzoffset(file), size);
            told = n;
        }
    } while (got > 0 && n <= limit);
    int code = Z_OK;
    const char *problem = got < 0 ? gzerror(file, &code) : NULL;
    if (code == Z_ERRNO)
        problem = strerror(errno);
    if (n > limit)
        diag_error(diags, at, "larger than %zu MiB; is this the right file?", limit >> 20);
    else if (got < 0)
        diag_error(diags, at, "cannot read: %s", problem);
    int closed = gzclose(file);
    if (closed == Z_BUF_ERROR && got == 0 && n <= limit) {
        diag_error(diags, at, "the compressed file ends too early (truncated?)");
        got = -1;
    }
    bool wide = got == 0 && utf16_begins(data, n);
    if (wide)
        diag_error(diags, (struct place){.file = path, .line = 1, .column = 1}, "is UTF-16 text; save it as UTF-8");
    if (got < 0 || n > limit || wide) {
        free(data);
        return STATUS_BAD_INPUT;
    }
    data[n] = '\0';
    *bytes = data;
    *n_bytes = n;
    return STATUS_OK;
}

static enum status output_failed(struct file_output *out, const char *doing, int code, struct diags *diags)
{
    struct place at = {.file = out->path ? out->path : "standard output"};
    diag_error(diags, at, "cannot %s: %s", doing, strerror(code));
    file_output_abandon(out);
    return STATUS_FAILED;
}

enum status file_output_open(struct file_output *out, const char *path, struct diags *diags)
{
    *out = (struct file_output){0};
    if (strcmp(path, "-") == 0) {
        out->stream = stdout;
        return STATUS_OK;
    }
    size_t n = strlen(path) + sizeof ".XXXXXX.tmp";
    out->path = memory_copy_text(path);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe: write straight into it */
        out->stream = fopen(path, "wb");
        return out->stream ? STATUS_OK : output_failed(out, "write", errno, diags);
    }
    out->aside = memory_new(n, 1);
    snprintf(out->aside, n, "%s.XXXXXX", path);
    int fd = mkstemp(out->aside);
    if (fd < 0) {
        int code = errno;
        free(out->aside);
        out->aside = NULL;
        return output_failed(out, "write", code, diags);
    }
    mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(fd, 0666 & ~mask);
    out->stream = fdopen(fd, "wb");
    return out->stream ? STATUS_OK : output_failed(out, "write", errno, diags);
}

enum status file_output_commit(struct file_output *out, struct diags *diags)
{
    errno = 0;
    bool bad = fflush(out->stream) != 0 || ferror(out->stream);
    if (bad)
        return output_failed(out, "write", errno ? errno : EIO, diags);
    if (!out->path) {
        out->stream = NULL;
        return STATUS_OK;
    }
    FILE *stream = out->stream;
    out->stream = NULL;
    if (fclose(stream) != 0)
        return output_failed(out, "write", errno, diags);
    if (out->aside && rename(out->aside, out->path) != 0)
        return output_failed(out, "rename into place", errno, diags);
    free(out->aside);
    free(out->path);
    *out = (struct file_output){0};
    return STATUS_OK;
}

void file_output_abandon(struct file_output *out)
{
    if (out->stream && out->path)
        fclose(out->stream);
    if (out->aside)
        unlink(out->aside);
    free(out->aside);
    free(out->path);
    *out = (struct file_output){0};
}

bool file_is_same(const char *a, const char *b)
{
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && S_ISREG(one.st_mode) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}
