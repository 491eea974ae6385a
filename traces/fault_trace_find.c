#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/spec/catalog.h"
#include "traces/fault_trace.h"

#define FOLDER "traces/faults"

static char *shipped_path(const char *name)
{
    char relative[512];
    int n = snprintf(relative, sizeof relative, FOLDER "/%s.csv", name);
    char *path = n < (int)sizeof relative ? data_path(relative) : NULL;
    if (path || n >= (int)sizeof relative - 3)
        return path;
    snprintf(relative, sizeof relative, FOLDER "/%s.csv.gz", name);
    return data_path(relative);
}

/* --- names for the message --- */

struct names {
    char **items;
    size_t n, capacity;
};

static void keep_name(struct names *names, const char *file)
{
    const char *end = strstr(file, ".csv");
    if (!end || end == file)
        return;
    names->items = memory_grow(names->items, &names->capacity, names->n + 1, sizeof *names->items);
    names->items[names->n] = memory_copy_text(file);
    names->items[names->n++][end - file] = '\0';
}

static struct names shipped_names(void)
{
    struct names names = {0};
    char *folder = data_path(FOLDER);
    DIR *directory = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        keep_name(&names, entry->d_name);
    if (directory)
        closedir(directory);
    free(folder);
    if (names.n > 1)
        qsort(names.items, names.n, sizeof *names.items, text_compare);
    return names;
}

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

/* "known are a, b" */
static void join_names(const struct names *names, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "known are ");
    for (size_t i = 0; i < names->n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", names->items[i]);
}

static void report_unknown(const char *name, struct diags *diags)
{
    struct names names = shipped_names();
    char known[512], hint[512];
    join_names(&names, known, sizeof known);
    diag_error(diags, (struct place){0}, "no fault trace '%s' is shipped, and no such file is here; %s", name,
               name_hint(name, (const char *const *)names.items, names.n, known, hint, sizeof hint));
    names_free(&names);
}

enum status fault_trace_find(const char *name, char **path, bool *shipped, struct diags *diags)
{
    if (strchr(name, '/') || strchr(name, '.') || strcmp(name, "-") == 0) {
        *path = memory_copy_text(name);
        *shipped = false;
        return STATUS_OK;
    }
    char *found = shipped_path(name);
    if (!found && access(name, R_OK) == 0) {
        *path = memory_copy_text(name);
        *shipped = false;
        return STATUS_OK;
    }
    if (!found) {
        report_unknown(name, diags);
        return STATUS_BAD_INPUT;
    }
    *path = found;
    *shipped = true;
    return STATUS_OK;
}
