/* compare_base.c - `msim compare --base`: rows of a GPU on an entry of one's own, as msim calibrate writes them. */
#include <string.h>

#include "cli/compare.h"
#include "model/spec/catalog.h"

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

enum status compare_take_base(struct comparing *comparing, struct invocation *call)
{
    const char *base = option_text(call, "base"), *gpu = option_text(call, "gpu");
    struct catalog_entry entry;
    enum status status = catalog_entry(base, &entry, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (entry.kind == CATALOG_MODELS) {
        diag_error(&call->diags, (struct place){0}, "--base: %.60s is a model; runs are predicted on a GPU or a cluster", base);
        return STATUS_BAD_INPUT;
    }
    const char *name = entry.kind == CATALOG_CLUSTERS ? entry.cluster.gpu.name : entry.gpu.name;
    if (!gpu)
        gpu = has_rows_of(comparing, name) ? name : only_gpu(comparing);
    if (!gpu || !has_rows_of(comparing, gpu)) {
        diag_error(&call->diags, (struct place){0},
                   "--base: no row is of the GPU '%.60s'; --gpu says which of the tables' GPUs the entry is", gpu ? gpu : name);
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
