#include "traces/launch/launch_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder of a file, with a slash at its end, as the file's path says it: "" is the current one. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Is `path` in the folder of `namer` or below, links followed? */
static bool is_beside(const char *namer, const char *path)
{
    char folder[PATH_MAX];
    int n = snprintf(folder, sizeof folder, "%s%.*s", *namer == '/' ? "" : "./", (int)folder_length(namer), namer);
    char *whole = realpath(path, NULL), *around = n > 0 && (size_t)n < sizeof folder ? realpath(folder, NULL) : NULL;
    size_t length = around ? strlen(around) : 0;
    bool root = length == 1; /* the folder is / */
    bool beside = whole && around && strncmp(whole, around, length) == 0 && (root || whole[length] == '/');
    free(whole);
    free(around);
    return beside;
}

enum named_file launch_file_at(const char *namer, const char *path, bool follow)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return NAMED_ABSENT;
    if (!follow && !is_beside(namer, path))
        return NAMED_OUTSIDE;
    return S_ISREG(about.st_mode) ? NAMED_HERE : NAMED_SPECIAL;
}

enum named_file launch_file_find(const char *namer, const char *path, bool follow, char found[PATH_MAX])
{
    int n = *path == '/' ? 0 : snprintf(found, PATH_MAX, "%.*s%s", (int)folder_length(namer), namer, path);
    enum named_file beside = n > 0 && n < PATH_MAX ? launch_file_at(namer, found, follow) : NAMED_ABSENT;
    if (beside != NAMED_ABSENT)
        return beside;
    n = snprintf(found, PATH_MAX, "%s", path);
    return n < PATH_MAX ? launch_file_at(namer, found, follow) : NAMED_ABSENT;
}

const char *launch_file_refusal(enum named_file kind)
{
    switch (kind) {
    case NAMED_OUTSIDE: return "lies outside the script's folder; --follow reads it";
    case NAMED_SPECIAL: return "is a FIFO, device, socket or folder, no file; msim does not read it";
    case NAMED_ABSENT: return "is not here";
    default: return "is read";
    }
}
