/* replay FOLDER... - run the target over every file of the folders; fails when there is none. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 0;
    }
    uint8_t *data = NULL;
    size_t size = 0, got, room = 0;
    do {
        room = room ? room * 2 : 4096;
        data = realloc(data, room);
        fuzz_expect(data != NULL, "memory");
        got = fread(data + size, 1, room - size, file);
        size += got;
    } while (size == room);
    fclose(file);
    /* A copy of exact size, so that a sanitizer sees the first byte too far. */
    uint8_t *exact = malloc(size ? size : 1);
    fuzz_expect(exact != NULL, "memory");
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, visible, alphasort), n_replayed = 0;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        n_replayed += replay_file(path);
        free(entries[i]);
    }
    free(entries);
    return n_replayed;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++)
        n += replay_folder(argv[i]);
    printf("%d inputs replayed\n", n);
    return n == 0;
}
