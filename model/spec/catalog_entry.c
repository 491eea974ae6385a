/* catalog_entry.c - load an entry of an unknown kind. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/units.h"
#include "model/spec/catalog_alias.h"
#include "model/spec/entry.h"

/* The key that only one kind has, most telling first. */
static const struct {
    const char *key;
    enum catalog_kind kind;
} tells[] = {
    {"model_type", CATALOG_MODELS},   {"architectures", CATALOG_MODELS},
    {"layers", CATALOG_MODELS},       {"hidden", CATALOG_MODELS},
    {"heads", CATALOG_MODELS},        {"moe", CATALOG_MODELS},
    {"vocab", CATALOG_MODELS},        {"gpu", CATALOG_CLUSTERS},
    {"nodes", CATALOG_CLUSTERS},      {"fabric", CATALOG_CLUSTERS},
    {"leaf_nodes", CATALOG_CLUSTERS}, {"nics_per_node", CATALOG_CLUSTERS},
    {"peak", CATALOG_GPUS},           {"hbm", CATALOG_GPUS},
    {"hbm_rate", CATALOG_GPUS},       {"sms", CATALOG_GPUS},
    {"gemm", CATALOG_GPUS},           {"nccl", CATALOG_GPUS},
};

static enum status unknown_name(const struct yaml_node *value, struct alias_table *table, struct diags *diags)
{
    const char *candidates[N_CATALOG_KINDS], *entry;
    size_t n_candidates = 0;
    for (int kind = 0; kind < N_CATALOG_KINDS; kind++) {
        const char *near = alias_table_nearest(table, (enum catalog_kind)kind, value->text, &entry);
        if (near)
            candidates[n_candidates++] = near;
    }
    const char *best = nearest_name(value->text, candidates, n_candidates);
    diag_error(diags, value->at, "the catalog has no '%.60s'%s%s%s", value->text, best ? "; did you mean '" : "",
               best ? best : "; `msim catalog` lists them", best ? "'?" : "");
    return STATUS_BAD_INPUT;
}

/* The kind of which a text that is no exact name is the closest spelling. */
static enum status kind_of_alias(const struct yaml_node *value, enum catalog_kind *kind, struct diags *diags)
{
    struct alias_table table;
    enum status status = alias_table_load(&table, diags);
    enum alias_match best = ALIAS_NONE;
    for (int k = 0; k < N_CATALOG_KINDS && status == STATUS_OK; k++) {
        const char *name;
        enum alias_match match = alias_table_find(&table, (enum catalog_kind)k, value->text, &name);
        if (match < best) {
            best = match;
            *kind = (enum catalog_kind)k;
        }
    }
    if (status == STATUS_OK && best == ALIAS_NONE)
        status = unknown_name(value, &table, diags);
    alias_table_free(&table);
    return status;
}

static enum status kind_of_name(const struct yaml_node *value, enum catalog_kind *kind, struct diags *diags)
{
    size_t n = strlen(value->text);
    bool node = n > 5 && strcmp(value->text + n - 5, "-node") == 0;
    for (int k = 0; k < N_CATALOG_KINDS; k++) {
        char *path = entry_catalog_file((enum catalog_kind)k, value->text);
        if (path || (node && k == CATALOG_CLUSTERS)) { /* whether that GPU exists is found out when it is loaded */
            free(path);
            *kind = (enum catalog_kind)k;
            return STATUS_OK;
        }
    }
    return kind_of_alias(value, kind, diags);
}

/* The kind of a file's tree by its keys, or by what it builds on. */
static enum status kind_of_tree(const struct yaml_node *tree, enum catalog_kind *kind, struct diags *diags)
{
    if (yaml_find(tree, "model") && yaml_find(tree, "cluster")) {
        diag_error(diags, tree->at, "this is an experiment, but a file with one model, GPU or cluster is expected");
        return STATUS_BAD_INPUT;
    }
    for (size_t i = 0; i < sizeof tells / sizeof tells[0]; i++) {
        if (yaml_find(tree, tells[i].key)) {
            *kind = tells[i].kind;
            return STATUS_OK;
        }
    }
    const struct yaml_node *base = yaml_find(tree, "base");
    if (base && base->kind == YAML_SCALAR && !entry_is_file_name(base->text))
        return kind_of_name(base, kind, diags);
    diag_error(diags, tree->at,
               "this is neither a model nor a GPU nor a cluster: it has none of the keys layers, peak, nodes, ...");
    return STATUS_BAD_INPUT;
}

static enum status kind_of_file(const char *path, struct arena *arena, enum catalog_kind *kind, struct diags *diags)
{
    struct yaml_node *tree = yaml_read(path, arena, diags);
    return tree ? kind_of_tree(tree, kind, diags) : STATUS_BAD_INPUT;
}

/* What can be read only once: its kind and its values from one tree. */
static enum status read_stream(const char *name, struct arena *arena, struct catalog_entry *entry, struct diags *diags)
{
    size_t before = diags->n_errors;
    enum catalog_kind kind;
    struct yaml_node *tree = yaml_read(name, arena, diags);
    if (!tree || kind_of_tree(tree, &kind, diags) != STATUS_OK)
        return STATUS_BAD_INPUT;
    tree = entry_of_tree(kind, tree, name, NULL, arena, diags);
    tree = tree ? entry_resolve(kind, tree, arena, diags) : NULL;
    struct catalog_entry got = {.kind = kind};
    void *object = kind == CATALOG_MODELS ? (void *)&got.model : kind == CATALOG_GPUS ? (void *)&got.gpu : (void *)&got.cluster;
    if (!tree || entry_read(kind, tree, object, diags) != STATUS_OK || diags->n_errors > before)
        return STATUS_BAD_INPUT;
    *entry = got;
    return STATUS_OK;
}

static enum status load(enum catalog_kind kind, const char *name, struct catalog_entry *entry, struct diags *diags)
{
    switch (kind) {
    case CATALOG_MODELS: return catalog_model(name, &entry->model, diags);
    case CATALOG_GPUS: return catalog_gpu(name, &entry->gpu, diags);
    default: return catalog_cluster(name, &entry->cluster, diags);
    }
}

/* The kind of what has no file's name: of the catalog first, else a model's folder. */
static enum status kind_of_word(const struct yaml_node *value, enum catalog_kind *kind, struct diags *diags)
{
    struct diags unknown = {0};
    bool folder = entry_is_folder(value->text);
    enum status status = kind_of_name(value, kind, folder ? &unknown : diags);
    diags_free(&unknown);
    if (!folder || status == STATUS_OK)
        return status;
    *kind = CATALOG_MODELS;
    return STATUS_OK;
}

enum status catalog_entry(const char *name, struct catalog_entry *entry, struct diags *diags)
{
    struct arena arena = {0};
    struct yaml_node value = {.kind = YAML_SCALAR, .text = name, .quoted = true};
    enum catalog_kind kind = CATALOG_MODELS;
    enum status status = STATUS_OK;
    bool repository = entry_is_repository(name) && access(name, F_OK) != 0;
    if (entry_is_stream(name)) {
        status = read_stream(name, &arena, entry, diags);
        arena_free(&arena);
        return status;
    }
    if (!entry_is_file_name(name))
        status = kind_of_word(&value, &kind, diags);
    else if (!repository && !entry_is_folder(name))
        status = kind_of_file(name, &arena, &kind, diags);
    arena_free(&arena);
    if (status == STATUS_OK)
        status = load(kind, name, entry, diags);
    if (status == STATUS_OK)
        entry->kind = kind;
    return status;
}
