#include "model/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
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
    return file_read_watched(path, limit, "is this the right file?", NULL, bytes, n_bytes, diags);
}

/* Room for a file's bytes and a NUL. A plain file's size is known; what else is read grows by a quarter, so that neither needs
 * much more memory than its text. */
struct room {
    char *data;
    size_t capacity, n;
};

static void make_room(struct room *room, size_t more, size_t size)
{
    size_t needed = room->n + more + 1;
    if (needed <= room->capacity)
        return;
    size_t larger = room->capacity + room->capacity / 4;
    room->capacity = size > 0 && room->n == 0 ? size : needed > larger ? needed : larger;
    room->capacity = room->capacity < needed ? needed : room->capacity;
    room->data = memory_resize(room->data, room->capacity, 1);
}

/* Does zlib hand the file on as it is? Then its size is that of its text. */
static bool is_plain(gzFile file)
{
    return gzdirect(file) == 1;
}

enum status file_read_watched(const char *path, size_t limit, const char *remedy, const struct watch *watch, char **bytes,
                              size_t *n_bytes, struct diags *diags)
{
    enum { PIECE = 1 << 16 };
    struct place at = {.file = path};
    errno = 0;
    gzFile file = is_directory(path) ? NULL : open_input(path);
    if (!file) {
        diag_error(diags, at, "cannot read: %s", is_directory(path) ? "is a directory" : strerror(errno ? errno : ENOMEM));
        return STATUS_BAD_INPUT;
    }
    struct room room = {0};
    size_t reported = 0;
    double size = size_of(path);
    bool known = is_plain(file) && size > 0 && size <= (double)limit;
    bool large = is_plain(file) && size > (double)limit; /* refused without reading it */
    int got = 1;
    while (!large && got > 0 && room.n <= limit) {
        make_room(&room, PIECE, known ? (size_t)size + PIECE + 1 : 0);
        got = gzread(file, room.data + room.n, PIECE);
        if (got > 0)
            room.n += (size_t)got;
        if (room.n - reported >= WATCH_BYTES || got == 0) {
            watch_tell(watch, (double)gzoffset(file), size);
            reported = room.n;
        }
    }
    large = large || room.n > limit;
    int code = Z_OK;
    const char *problem = got < 0 ? gzerror(file, &code) : NULL;
    if (code == Z_ERRNO)
        problem = strerror(errno);
    if (large)
        diag_error(diags, at, "larger than %zu MiB of text; %s", limit >> 20, remedy);
    else if (got < 0)
        diag_error(diags, at, "cannot read: %s", problem);
    int closed = gzclose(file);
    if (closed == Z_BUF_ERROR && got == 0 && !large) {
        diag_error(diags, at, "the compressed file ends too early (truncated?)");
        got = -1;
    }
    bool wide = got == 0 && utf16_begins(room.data, room.n);
    if (wide)
        diag_error(diags, (struct place){.file = path, .line = 1, .column = 1}, "is UTF-16 text; save it as UTF-8");
    if (got < 0 || large || wide) {
        free(room.data);
        return STATUS_BAD_INPUT;
    }
    room.data[room.n] = '\0';
    *bytes = memory_resize(room.data, room.n + 1, 1);
    *n_bytes = room.n;
    return STATUS_OK;
}

/* --- output -------------------------------------------------------------------------------------------------------- */

/* The code of a write that failed earlier, which stdio does not keep: another byte fails for the same reason. */
static int write_error(FILE *stream)
{
    errno = 0;
    return write(fileno(stream), "\n", 1) < 0 && errno ? errno : EIO;
}

static enum status output_failed(struct file_output *out, const char *doing, int code, struct diags *diags)
{
    struct place at = {.file = out->path ? out->path : "standard output"};
    diag_error(diags, at, "cannot %s: %s", doing, strerror(code));
    file_output_abandon(out);
    return STATUS_FAILED;
}

/* Where a path leads, its symbolic links followed, also to a file that is not there yet. The caller frees it. */
static char *target_of(const char *path)
{
    enum { LINKS_MAX = 40 };
    char *target = memory_copy_text(path), link[PATH_MAX];
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n <= 0)
            break;
        link[n] = '\0';
        const char *slash = strrchr(target, '/');
        size_t folder = *link == '/' || !slash ? 0 : (size_t)(slash - target) + 1;
        char *next = memory_new(folder + (size_t)n + 1, 1);
        memcpy(next, target, folder);
        memcpy(next + folder, link, (size_t)n + 1);
        free(target);
        target = next;
    }
    return target;
}

/* Temporary files are called TARGET.msim-XXXXXX, and locked by the process that writes them. */
#define ASIDE_MARK ".msim-"
enum { ASIDE_RANDOM = 6 };

static void remove_if_abandoned(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    close(fd);
}

/* A new temporary file, locked. Another process may take it for abandoned as long as it is not, and remove it: then the next. */
static int aside_new(char *path)
{
    struct stat st;
    for (;;) {
        memset(path + strlen(path) - ASIDE_RANDOM, 'X', ASIDE_RANDOM);
        int fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX) != 0 || (fstat(fd, &st) == 0 && st.st_nlink > 0))
            return fd;
        close(fd);
    }
}

/* Removes temporary files of this target whose writers were killed. */
static void remove_abandoned(const char *target)
{
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    size_t folder = (size_t)(base - target), n = strlen(base);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", folder ? (int)folder : 1, folder ? target : ".");
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        bool ours = strncmp(name, base, n) == 0 && strncmp(name + n, ASIDE_MARK, strlen(ASIDE_MARK)) == 0 &&
                    strlen(name) == n + strlen(ASIDE_MARK) + ASIDE_RANDOM;
        if (ours && snprintf(path, sizeof path, "%.*s%s", (int)folder, target, name) < (int)sizeof path)
            remove_if_abandoned(path);
    }
    if (dir)
        closedir(dir);
}

/* The mode of the file that is replaced, or that of a new file. */
static mode_t mode_of(const char *target)
{
    struct stat st;
    if (stat(target, &st) == 0)
        return st.st_mode & 07777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

enum status file_output_open(struct file_output *out, const char *path, struct diags *diags)
{
    *out = (struct file_output){0};
    if (strcmp(path, "-") == 0) {
        out->stream = stdout;
        return STATUS_OK;
    }
    out->path = target_of(path);
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe: write straight into it */
        out->stream = fopen(path, "wb");
        return out->stream ? STATUS_OK : output_failed(out, "write", errno, diags);
    }
    remove_abandoned(out->path);
    size_t n = strlen(out->path) + strlen(ASIDE_MARK) + ASIDE_RANDOM + 1;
    out->aside = memory_new(n, 1);
    snprintf(out->aside, n, "%s" ASIDE_MARK "XXXXXX", out->path);
    int fd = aside_new(out->aside);
    if (fd < 0) {
        int code = errno;
        free(out->aside);
        out->aside = NULL;
        return output_failed(out, "write", code, diags);
    }
    (void)!fchmod(fd, mode_of(out->path));
    out->stream = fdopen(fd, "wb");
    return out->stream ? STATUS_OK : output_failed(out, "write", errno, diags);
}

enum status file_output_commit(struct file_output *out, struct diags *diags)
{
    errno = 0;
    bool bad = fflush(out->stream) != 0 || ferror(out->stream);
    if (bad)
        return output_failed(out, "write", errno ? errno : write_error(out->stream), diags);
    if (!out->path) {
        out->stream = NULL;
        return STATUS_OK;
    }
    if (out->aside && fsync(fileno(out->stream)) != 0) /* else a crash could leave an empty file in the old one's place */
        return output_failed(out, "write", errno, diags);
    if (out->aside && rename(out->aside, out->path) != 0)
        return output_failed(out, "rename into place", errno, diags);
    free(out->aside);
    out->aside = NULL;
    FILE *stream = out->stream;
    out->stream = NULL;
    if (fclose(stream) != 0)
        return output_failed(out, "write", errno, diags);
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

bool file_is_same_target(const char *a, const char *b)
{
    if (file_is_same(a, b))
        return true;
    char *targets[] = {target_of(a), target_of(b)}, *folders[2];
    const char *bases[2];
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(targets[i], '/');
        bases[i] = slash ? slash + 1 : targets[i];
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - targets[i]) + 1 : 1, slash ? targets[i] : ".");
        folders[i] = realpath(folder, NULL);
    }
    bool same = folders[0] && folders[1] && strcmp(folders[0], folders[1]) == 0 && strcmp(bases[0], bases[1]) == 0;
    for (int i = 0; i < 2; i++) {
        free(folders[i]);
        free(targets[i]);
    }
    return same;
}
