/*
 * compare_base.c - `msim compare --base`: predict the rows of one GPU with another entry, such as one from msim calibrate.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/spec/catalog_alias.h"

/* The GPUs that the tables have, each once. */
struct table_gpus {
    const char **names;
    size_t n, capacity;
};

static bool has_gpu(const struct table_gpus *gpus, const char *name)
{
    for (size_t i = 0; i < gpus->n; i++)
        if (strcmp(gpus->names[i], name) == 0)
            return true;
    return false;
}

static struct table_gpus gpus_of(const struct comparison_set *set)
{
    struct table_gpus gpus = {0};
    for (size_t t = 0; t < set->n_tables; t++)
        for (size_t i = 0; i < set->tables[t].n_items; i++) {
            const char *name = set->tables[t].items[i].cluster.gpu.name;
            if (has_gpu(&gpus, name))
                continue;
            gpus.names = memory_grow(gpus.names, &gpus.capacity, gpus.n + 1, sizeof *gpus.names);
            gpus.names[gpus.n++] = name;
        }
    return gpus;
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
static const char *gpu_meant(const struct table_gpus *gpus, struct invocation *call, const char *name)
{
    const char *given = option_text(call, "gpu"), *text = given ? given : name, *known;
    if (has_gpu(gpus, text))
        return text;
    bool says = find_gpu(call, text, &known) == ALIAS_NAME || given;
    if (says)
        return has_gpu(gpus, known) ? known : NULL;
    return gpus->n == 1 ? gpus->names[0] : NULL;
}

/* "the tables have h100-sxm, b200", cut where the buffer ends. */
static void report_no_rows(const struct table_gpus *gpus, const char *name, struct diags *diags)
{
    char text[160] = "";
    for (size_t i = 0; i < gpus->n; i++)
        text_append(text, sizeof text, "%s%s", i ? ", " : "", gpus->names[i]);
    diag_error(diags, PLACE_NONE, "--base: no row is from the GPU '%.60s'; the tables have %s; specify one of them with --gpu",
               name, text);
}

enum status compare_take_base(struct comparison_set *set, struct invocation *call)
{
    const char *base = option_text(call, "base");
    struct catalog_entry entry;
    enum status status = catalog_entry(base, &entry, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (entry.kind == CATALOG_MODELS) {
        diag_error(&call->diags, PLACE_NONE, "--base: %.60s is a model; specify a GPU or cluster entry", base);
        return STATUS_BAD_INPUT;
    }
    const char *name = entry.kind == CATALOG_CLUSTERS ? entry.cluster.gpu.name : entry.gpu.name;
    struct table_gpus gpus = gpus_of(set);
    const char *gpu = gpu_meant(&gpus, call, name);
    if (!gpu)
        report_no_rows(&gpus, option_text(call, "gpu") ? option_text(call, "gpu") : name, &call->diags);
    free(gpus.names);
    if (!gpu)
        return STATUS_BAD_INPUT;
    size_t n = 0, others = 0;
    for (size_t t = 0; t < set->n_tables; t++)
        for (size_t i = 0; i < set->tables[t].n_items; i++) {
            struct measurement *run = &set->tables[t].items[i];
            if (strcmp(run->cluster.gpu.name, gpu) == 0)
                place(run, &entry), n++;
            else
                others++;
        }
    diag_note(&call->diags, PLACE_NONE, "--base: %zu row%s of %s %s predicted on %.60s%s", n, n == 1 ? "" : "s", gpu,
              n == 1 ? "is" : "are", base, others ? ", the others with their own entries" : "");
    set->base = base;
    return STATUS_OK;
}
