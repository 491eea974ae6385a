/* Rows of families, from the files of this folder. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"
#include "model/spec/shipped.h"

static const struct shipped files = {.folder = "families", .endings = {".yaml"}};

const struct yaml_node *hf_families(struct arena *arena, struct diags *diags)
{
    size_t n;
    char **names = shipped_all_names(&files, &n);
    struct yaml_node *rows = NULL;
    for (size_t i = 0; i < n; i++) {
        char *path = shipped_path(&files, names[i], NULL);
        struct yaml_node *tree = path ? yaml_read(arena_copy_text(arena, path), arena, diags) : NULL;
        if (tree && tree->kind == YAML_MAPPING)
            rows = rows ? yaml_overlay(rows, tree, arena) : tree;
        free(path);
    }
    names_free(names);
    if (!rows)
        diag_error(diags, (struct place){.file = "families"},
                   "cannot find the families of models; set MSIM_DATA to their folder");
    return rows;
}

static const struct yaml_node *own_row(const struct yaml_node *rows, const char *model_type)
{
    const struct yaml_node *row = *model_type == '_' ? NULL : yaml_find(rows, model_type);
    for (const struct yaml_node *other = rows->first; other && !row; other = other->next) {
        const struct yaml_node *names = yaml_find(other, "names");
        for (const struct yaml_node *name = names ? names->first : NULL; name && !row; name = name->next)
            if (name->kind == YAML_SCALAR && strcmp(name->text, model_type) == 0)
                row = other;
    }
    return row;
}

/* A row with the library's defaults under its own. */
static const struct yaml_node *with_defaults(const struct yaml_node *rows, const struct yaml_node *row, struct arena *arena)
{
    const struct yaml_node *defaults = yaml_find(yaml_find(rows, "_defaults"), row->key);
    if (!defaults)
        return row;
    return yaml_overlay(yaml_with(NULL, "defaults", defaults, arena), row, arena);
}

/* Laid over what it is like, and that over what that is like. Rows form no circle; a mistake there ends at the depth of trees. */
static const struct yaml_node *resolved(const struct yaml_node *rows, const struct yaml_node *row, int depth, struct arena *arena)
{
    const struct yaml_node *like = yaml_find(row, "like");
    const struct yaml_node *under = like && depth < YAML_DEPTH_MAX ? yaml_find(rows, like->text) : NULL;
    row = with_defaults(rows, row, arena);
    if (!under)
        return row;
    under = resolved(rows, under, depth + 1, arena);
    return yaml_overlay(yaml_without(under, "names", arena), row, arena);
}

const struct yaml_node *hf_family(const struct yaml_node *rows, const char *model_type, struct arena *arena)
{
    const struct yaml_node *row = own_row(rows, model_type);
    return row ? resolved(rows, row, 0, arena) : NULL;
}

bool hf_family_reads(const struct yaml_node *row)
{
    return row && yaml_find(row, "keys");
}

bool hf_matches(const struct yaml_node *patterns, const char *text)
{
    for (const struct yaml_node *p = patterns ? patterns->first : NULL; p; p = p->next)
        if (p->kind == YAML_SCALAR && fnmatch(p->text, text, 0) == 0)
            return true;
    return false;
}
