/* frameworks.c - loads the tables of all frameworks, in a fixed order. */
#include <stdlib.h>
#include <string.h>

#include "model/spec/shipped.h"
#include "traces/launch/frameworks/framework_table_internal.h"

static const struct shipped tables = {"traces/launch/frameworks", {".yaml", NULL}, NULL};
static const char shared_name[] = "shared";

/* Those with signs first, by their order, then by name. */
static int compare(const void *left, const void *right)
{
    const struct framework *a = left, *b = right;
    bool a_signed = a->signs[0] || a->any_sign, b_signed = b->signs[0] || b->any_sign;
    if (a_signed != b_signed)
        return a_signed ? -1 : 1;
    return a->order != b->order ? (a->order > b->order) - (a->order < b->order) : strcmp(a->name, b->name);
}

const struct framework *frameworks_find(const struct frameworks *frameworks, const char *name)
{
    for (int i = 0; i < frameworks->n; i++)
        if (strcmp(frameworks->items[i].name, name) == 0)
            return &frameworks->items[i];
    return NULL;
}

static const struct framework *needed(const struct frameworks *frameworks, const char *name, struct diags *diags)
{
    const struct framework *framework = frameworks_find(frameworks, name);
    if (!framework)
        diag_error(diags, PLACE_NONE, "no file of %s describes %s; MSIM_DATA can name the folder of msim's data", tables.folder,
                   name);
    return framework;
}

static void read_tables(struct frameworks *fs, char **names, size_t n_names, struct diags *diags)
{
    struct framework_shared shared;
    const struct yaml_node *root = shipped_yaml(&tables, "file of tables", shared_name, &fs->arena, diags);
    if (!root)
        return;
    framework_read_shared(root, &shared, &fs->arena, diags);
    fs->items = arena_new(&fs->arena, n_names + 1, sizeof *fs->items);
    for (size_t i = 0; i < n_names; i++) {
        if (strcmp(names[i], shared_name) == 0)
            continue;
        root = shipped_yaml(&tables, "framework", names[i], &fs->arena, diags);
        if (!root)
            continue;
        framework_read_table(root, &shared, &fs->items[fs->n], &fs->arena, diags);
        const char *name = fs->items[fs->n].name;
        if (name && frameworks_find(fs, name))
            diag_error(diags, yaml_find(root, "name")->at,
                       "another file has a table of '%s' too; to replace it, use its file name", name);
        fs->n += name != NULL;
    }
}

enum status frameworks_load(struct frameworks *frameworks, struct diags *diags)
{
    struct frameworks fs = {0};
    size_t n_names, errors = diags->n_errors;
    char **names = shipped_all_names(&tables, &n_names);
    read_tables(&fs, names, n_names, diags);
    names_free(names);
    if (diags->n_errors == errors) {
        qsort(fs.items, (size_t)fs.n, sizeof *fs.items, compare);
        while (fs.n_signed < fs.n && (fs.items[fs.n_signed].signs[0] || fs.items[fs.n_signed].any_sign))
            fs.n_signed++;
        fs.bridge = needed(&fs, FRAMEWORK_BRIDGE, diags);
        fs.nemo2 = needed(&fs, FRAMEWORK_NEMO2, diags);
        fs.trainer = needed(&fs, FRAMEWORK_TRAINER, diags);
        fs.recipe = needed(&fs, FRAMEWORK_RECIPE, diags);
        const struct framework *megatron = needed(&fs, "Megatron-LM", diags);
        fs.ignored = megatron ? megatron->ignored : NULL;
    }
    if (diags->n_errors > errors) {
        arena_free(&fs.arena);
        return STATUS_BAD_INPUT;
    }
    *frameworks = fs;
    return STATUS_OK;
}

void frameworks_free(struct frameworks *frameworks)
{
    arena_free(&frameworks->arena);
    *frameworks = (struct frameworks){0};
}
