/* catalog_names.c - the names of entries: those of the catalog, and the name of an entry in a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/utf8.h"
#include "model/spec/catalog.h"
#include "model/spec/entry.h"
#include "model/spec/shipped.h"

static const char *const folders[N_CATALOG_KINDS] = {
    [CATALOG_MODELS] = "catalog/models", [CATALOG_GPUS] = "catalog/gpus", [CATALOG_CLUSTERS] = "catalog/clusters"};

const char *entry_name(const char *text, struct arena *arena)
{
    char name[NAME_SIZE] = "", *copy = utf8_copy(text);
    text_append(name, sizeof name, "%s", copy);
    free(copy);
    return arena_copy_text(arena, name);
}

/* Adds every NAME.yaml of a kind as NAME and `ending`, from all places where entries are looked for. */
static enum status names_of_kind(enum catalog_kind kind, const char *ending, struct names *names, struct diags *diags)
{
    static const char *const endings[] = {".yaml", NULL};
    enum status status = STATUS_OK;
    bool any = false;
    for (int place = 0; place < N_DATA_PLACES && status == STATUS_OK; place++) {
        char *path = data_path_in((enum data_place)place, folders[kind]);
        any = any || path;
        if (path && !names_of_folder(path, endings, ending, names)) {
            diag_error(diags, (struct place){.file = path}, "cannot read the catalog: %s; set MSIM_DATA to its folder",
                       strerror(errno));
            status = STATUS_BAD_INPUT;
        }
        free(path);
    }
    if (any)
        return status;
    diag_error(diags, (struct place){.file = folders[kind]}, "cannot find the catalog; set MSIM_DATA to its folder");
    return STATUS_BAD_INPUT;
}

enum status catalog_names(enum catalog_kind kind, char ***names, size_t *n_names, struct diags *diags)
{
    struct names found = {0};
    found.items = memory_grow(NULL, &found.capacity, 1, sizeof *found.items);
    found.items[0] = NULL;
    enum status status = names_of_kind(kind, "", &found, diags);
    if (status == STATUS_OK && kind == CATALOG_CLUSTERS)
        status = names_of_kind(CATALOG_GPUS, "-node", &found, diags);
    if (status != STATUS_OK) {
        names_free(found.items);
        return status;
    }
    names_sort(&found);
    *names = found.items;
    *n_names = found.n;
    return STATUS_OK;
}
