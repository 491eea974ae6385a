/* compare_base.c - `msim compare --base`: rows of a GPU on an entry of one's own, as msim calibrate writes them. */
#include <string.h>

#include "cli/compare.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/spec/catalog_alias.h"

/* The GPU that all rows have; NULL: they have several. */
static const char *only_gpu(const struct comparing *comparing)
{
    const char *only = NULL;
    for (size_t t = 0; t < comparing->n_tables; t++)
        for (size_t i = 0; i < comparing->tables[t].n_items; i++) {
            const char *name = comparing->tables[t].items[i].cluster.gpu.name;
            if (only && strcmp(only, name) != 0)
                return NULL;
            only = name;
        }
    return only;
}

/* "h100-sxm, b200": the GPUs that the tables have, as many as there is room for. */
static const char *gpus_of(const struct comparing *comparing, char *text, size_t size)
{
    const char *last = "";
    text[0] = '\0';
    for (size_t t = 0; t < comparing->n_tables; t++)
        for (size_t i = 0; i < comparing->tables[t].n_items; i++) {
            const char *name = comparing->tables[t].items[i].cluster.gpu.name;
            bool again = strcmp(name, last) == 0;
            for (size_t u = 0; u <= t && !again; u++)
                for (size_t k = 0; k < (u < t ? comparing->tables[u].n_items : i) && !again; k++)
                    again = strcmp(comparing->tables[u].items[k].cluster.gpu.name, name) == 0;
            if (!again)
                text_append(text, size, "%s%s", text[0] ? ", " : "", name);
            last = name;
        }
    return text;
}

static bool has_rows_of(const struct comparing *comparing, const char *gpu)
{
    for (size_t t = 0; t < comparing->n_tables; t++)
        for (size_t i = 0; i < comparing->tables[t].n_items; i++)
            if (strcmp(comparing->tables[t].items[i].cluster.gpu.name, gpu) == 0)
                return true;
    return false;
}

/* As msim calibrate predicts runs: on a cluster as large as the run needs; of a GPU only that is replaced. The GPU keeps the name
 * that the table gives it. */
static void place(struct measurement *run, const struct catalog_entry *entry)
{
    char name[sizeof run->cluster.gpu.name];
    memcpy(name, run->cluster.gpu.name, sizeof name);
    if (entry->kind == CATALOG_CLUSTERS) {
        run->cluster = entry->cluster;
        run->cluster.nodes = (run->gpus + run->cluster.gpus_per_node - 1) / run->cluster.gpus_per_node;
    } else {
        run->cluster.gpu = entry->gpu;
    }
    memcpy(run->cluster.gpu.name, name, sizeof name);
}

/* A GPU as the catalog calls it, which is how tables are read, and how it is meant; ALIAS_NONE, `name` as it is: it has none. */
static enum alias_match find_gpu(struct invocation *call, const char *text, const char **name)
{
    struct alias_table table;
    enum alias_match match = ALIAS_NONE;
    *name = text;
    if (alias_table_load(&table, &call->diags) == STATUS_OK)
        match = alias_table_find(&table, CATALOG_GPUS, text, name);
    *name = arena_copy_text(call->texts, *name);
    alias_table_free(&table);
    return match;
}

/* Which of the tables' GPUs the entry is: what --gpu says, the one of its name, or the only one, when the entry's name is that of
 * no other GPU. NULL: none. */
static const char *gpu_meant(const struct comparing *comparing, struct invocation *call, const char *name)
{
    const char *given = option_text(call, "gpu"), *text = given ? given : name, *known;
    if (has_rows_of(comparing, text))
        return text;
    enum alias_match match = find_gpu(call, text, &known);
    if ((given || match == ALIAS_NAME) && has_rows_of(comparing, known))
        return known;
    return given || match == ALIAS_NAME ? NULL : only_gpu(comparing);
}

enum status compare_take_base(struct comparing *comparing, struct invocation *call)
{
    const char *base = option_text(call, "base");
    struct catalog_entry entry;
    enum status status = catalog_entry(base, &entry, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (entry.kind == CATALOG_MODELS) {
        diag_error(&call->diags, (struct place){0}, "--base: %.60s is a model; runs are predicted on a GPU or a cluster", base);
        return STATUS_BAD_INPUT;
    }
    const char *name = entry.kind == CATALOG_CLUSTERS ? entry.cluster.gpu.name : entry.gpu.name;
    const char *gpu = gpu_meant(comparing, call, name);
    if (!gpu) {
        char gpus[160];
        diag_error(&call->diags, (struct place){0},
                   "--base: no row is of the GPU '%.60s'; the tables have %s (--gpu says which of them the entry is)",
                   option_text(call, "gpu") ? option_text(call, "gpu") : name, gpus_of(comparing, gpus, sizeof gpus));
        return STATUS_BAD_INPUT;
    }
    size_t n = 0, others = 0;
    for (size_t t = 0; t < comparing->n_tables; t++)
        for (size_t i = 0; i < comparing->tables[t].n_items; i++) {
            struct measurement *run = &comparing->tables[t].items[i];
            if (strcmp(run->cluster.gpu.name, gpu) == 0)
                place(run, &entry), n++;
            else
                others++;
        }
    diag_note(&call->diags, (struct place){0}, "--base: %zu row%s of %s %s predicted on %.60s%s", n, n == 1 ? "" : "s", gpu,
              n == 1 ? "is" : "are", base, others ? ", the others on their own" : "");
    comparing->base = base;
    return STATUS_OK;
}
