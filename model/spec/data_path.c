/* data_path.c - find the data files of the program. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/memory.h"
#include "model/spec/entry.h"

/* Compile definitions: MSIM_SOURCE_DIR, the tree this was built from; MSIM_INSTALL_DATA, PREFIX/share/msim. */
static char *existing(const char *directory, const char *relative)
{
    size_t size = strlen(directory) + strlen(relative) + 2;
    char *path = memory_new(size, 1);
    snprintf(path, size, "%s/%s", directory, relative);
    if (access(path, F_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* `relative` in the share/msim of the folder that lies `up` levels above this file. */
static char *in_share_above(const char *file, int up, const char *relative)
{
    char share[PATH_MAX + 16];
    snprintf(share, PATH_MAX, "%s", file);
    for (; up > 0; up--) {
        char *slash = strrchr(share, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
    }
    size_t n = strlen(share);
    snprintf(share + n, sizeof share - n, "/share/msim");
    return existing(share, relative);
}

/* The share/msim beside the bin that this program runs from: an installed tree that was moved. */
static char *beside_program(const char *relative)
{
    char program[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        return NULL;
    program[n] = '\0';
    return in_share_above(program, 2, relative);
}

/* The same beside the lib, or the lib/TRIPLET, that another program loaded libmsim.so from. */
static char *beside_library(const char *relative)
{
    static const char code_of_library; /* an address that tells this library from all others */
    char library[PATH_MAX];
    Dl_info info;
    if (!dladdr(&code_of_library, &info) || !info.dli_fname || !realpath(info.dli_fname, library))
        return NULL;
    char *path = in_share_above(library, 2, relative);
    return path ? path : in_share_above(library, 3, relative);
}

char *data_path_in(enum data_place place, const char *relative)
{
    const char *chosen = getenv("MSIM_DATA");
    switch (place) {
    case DATA_CHOSEN: return chosen && *chosen ? existing(chosen, relative) : NULL;
    case DATA_SPEC: return existing(MSIM_SOURCE_DIR "/model/spec", relative);
    case DATA_SOURCE: return existing(MSIM_SOURCE_DIR, relative);
    case DATA_BESIDE: return beside_program(relative);
    case DATA_LIBRARY: return beside_library(relative);
    case DATA_INSTALLED: return existing(MSIM_INSTALL_DATA, relative);
    default: return NULL;
    }
}

char *data_path(const char *relative)
{
    char *path = NULL;
    for (int place = 0; place < N_DATA_PLACES && !path; place++)
        path = data_path_in((enum data_place)place, relative);
    return path;
}

enum status data_path_check(struct diags *diags)
{
    const char *chosen = getenv("MSIM_DATA");
    DIR *folder = chosen && *chosen ? opendir(chosen) : NULL;
    if (!chosen || !*chosen || folder) {
        if (folder)
            closedir(folder);
        return STATUS_OK;
    }
    diag_error(diags, (struct place){.file = chosen}, "MSIM_DATA is not a readable folder: %s", strerror(errno));
    return STATUS_BAD_INPUT;
}
