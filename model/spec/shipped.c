#include "model/spec/shipped.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/base/units.h"
#include "model/spec/catalog.h"
#include "model/spec/entry.h"

static void names_add(struct names *names, const char *text, size_t length, const char *suffix)
{
    size_t size = length + strlen(suffix) + 1;
    char *name = memory_new(size, 1);
    snprintf(name, size, "%.*s%s", (int)length, text, suffix);
    names->items = memory_grow(names->items, &names->capacity, names->n + 2, sizeof *names->items);
    names->items[names->n++] = name;
    names->items[names->n] = NULL;
}

/* Characters before the ending; 0: it has none of them, or nothing else. */
static size_t stem_length(const char *file, const char *const *endings)
{
    size_t length = strlen(file);
    for (; *endings; endings++) {
        size_t ending = strlen(*endings);
        if (length > ending && strcmp(file + length - ending, *endings) == 0)
            return length - ending;
    }
    return 0;
}

bool names_of_folder(const char *path, const char *const *endings, const char *suffix, struct names *names)
{
    DIR *directory = opendir(path);
    if (!directory)
        return false;
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t stem = stem_length(entry->d_name, endings);
        if (stem)
            names_add(names, entry->d_name, stem, suffix);
    }
    closedir(directory);
    return true;
}

void names_sort(struct names *names)
{
    size_t kept = 0;
    if (names->n == 0)
        return;
    qsort(names->items, names->n, sizeof *names->items, text_compare);
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->items[kept - 1], names->items[i]) == 0)
            free(names->items[i]);
        else
            names->items[kept++] = names->items[i];
    }
    names->n = kept;
    names->items[kept] = NULL;
}

void names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++)
        free(names[i]);
    free(names);
}

char *shipped_path(const struct shipped *kind, const char *name, bool *ours)
{
    char relative[512], *path = NULL;
    bool file = strchr(name, '/') || strchr(name, '.') || strcmp(name, "-") == 0;
    for (const char *const *ending = kind->endings; !file && !path && *ending; ending++)
        if (snprintf(relative, sizeof relative, "%s/%s%s", kind->folder, name, *ending) < (int)sizeof relative)
            path = data_path(relative);
    if (ours)
        *ours = path != NULL;
    if (!path && (file || access(name, R_OK) == 0))
        path = memory_copy_text(name);
    return path;
}

char **shipped_names(const struct shipped *kind, size_t *n_names)
{
    struct names names = {0};
    char *folder = data_path(kind->folder);
    names.items = memory_grow(NULL, &names.capacity, 1, sizeof *names.items);
    names.items[0] = NULL;
    if (folder)
        names_of_folder(folder, kind->endings, "", &names);
    free(folder);
    names_sort(&names);
    *n_names = names.n;
    return names.items;
}

char **shipped_all_names(const struct shipped *kind, size_t *n_names)
{
    struct names names = {0};
    names.items = memory_grow(NULL, &names.capacity, 1, sizeof *names.items);
    names.items[0] = NULL;
    for (int place = 0; place < N_DATA_PLACES; place++) {
        char *folder = data_path_in((enum data_place)place, kind->folder);
        if (folder)
            names_of_folder(folder, kind->endings, "", &names);
        free(folder);
    }
    names_sort(&names);
    *n_names = names.n;
    return names.items;
}

const char *shipped_hint(const struct shipped *kind, const char *name, char *buffer, size_t size)
{
    size_t n;
    char **names = shipped_names(kind, &n), known[512] = "none are found; set MSIM_DATA to their folder";
    if (n)
        snprintf(known, sizeof known, "known are ");
    for (size_t i = 0; i < n; i++)
        text_append(known, sizeof known, "%s%s", i ? ", " : "", names[i]);
    if (n && kind->also)
        text_append(known, sizeof known, ", and %s", kind->also);
    name_hint(name, (const char *const *)names, n, known, buffer, size);
    names_free(names);
    return buffer;
}

struct yaml_node *shipped_yaml(const struct shipped *kind, const char *what, const char *name, struct arena *arena,
                               struct diags *diags)
{
    char hint[512], *path = shipped_path(kind, name, NULL);
    if (!path) {
        diag_error(diags, PLACE_NONE, "unknown %s '%s'; %s", what, name, shipped_hint(kind, name, hint, sizeof hint));
        return NULL;
    }
    struct yaml_node *root = yaml_read(path, arena, diags);
    free(path);
    return root;
}

static enum status read_root(struct yaml_node *root, struct arena *arena, tree_read_function *read, void *object,
                             struct diags *diags)
{
    enum status status = root ? read(root, object, diags) : STATUS_BAD_INPUT;
    arena_free(arena);
    return status;
}

enum status shipped_load(const struct shipped *kind, const char *what, const char *name, tree_read_function *read, void *object,
                         struct diags *diags)
{
    struct arena arena = {0};
    return read_root(shipped_yaml(kind, what, name, &arena, diags), &arena, read, object, diags);
}

enum status shipped_parse(const char *name, const char *bytes, size_t n, tree_read_function *read, void *object,
                          struct diags *diags)
{
    struct arena arena = {0};
    return read_root(yaml_parse(name, bytes, n, &arena, diags), &arena, read, object, diags);
}
