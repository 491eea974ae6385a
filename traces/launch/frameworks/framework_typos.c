/* framework_typos.c - finds misspelt keys of a configuration. */
#include "traces/launch/frameworks/framework_typos.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/base/units.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/job/name_typo.h"
#include "traces/launch/megatron/megatron_arguments.h"

enum { NAME_SIZE_MAX = 96, TYPOS_MAX = 32 };

/* --- a file --- */

struct typo {
    const struct yaml_node *node;
    char meant[NAME_SIZE_MAX];
    int distance;
};

struct typos {
    const struct yaml_node *root;
    const struct framework *framework;
    struct typo items[TYPOS_MAX];
    int n;
};

/* The i-th path that a reader of the framework looks at; NULL behind the last. */
static const char *known_path(const struct framework *f, size_t i)
{
    size_t n_keys = 0, n_model = 0;
    while (f->keys && f->keys[n_keys].path)
        n_keys++;
    if (i < n_keys)
        return f->keys[i].path;
    while (n_model < 3 && f->model[n_model])
        n_model++;
    i -= n_keys;
    return i < n_model ? f->model[i] : i == n_model && f->described ? f->described : NULL;
}

/* A known path, or the beginning of one. */
static bool is_known(const struct framework *f, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; known_path(f, i); i++) {
        const char *known = known_path(f, i);
        if (strncmp(known, path, length) == 0 && (known[length] == '.' || !known[length]))
            return true;
    }
    for (const char *const *group = f->groups; group && *group; group++)
        if (strncmp(*group, path, length) == 0 && ((*group)[length] == '.' || !(*group)[length]))
            return true;
    for (int i = 0; i < 3 && f->signs[i]; i++)
        if (strcmp(f->signs[i], path) == 0)
            return true;
    return framework_looks_at(path);
}

static void note(struct typos *typos, const struct yaml_node *node, const char *meant, size_t length, bool shortened)
{
    char name[NAME_SIZE_MAX];
    snprintf(name, sizeof name, "%.*s", (int)length, meant);
    int distance = name_typo(node->key, name, shortened), i = 0;
    if (distance == 0)
        return;
    while (i < typos->n && typos->items[i].node != node)
        i++;
    if (i == TYPOS_MAX || (i < typos->n && typos->items[i].distance <= distance))
        return;
    typos->n += i == typos->n;
    typos->items[i] = (struct typo){.node = node, .distance = distance};
    memcpy(typos->items[i].meant, name, sizeof name);
}

/* Keys of a mapping at `path` (of `n` letters), or of those in a list, that nobody knows, for one that is missing there. */
static void compare_with(struct typos *typos, const struct yaml_node *mapping, const char *path, size_t n, const char *missing,
                         size_t length)
{
    const struct yaml_node *item = mapping->kind == YAML_SEQUENCE ? mapping->first : NULL;
    for (; item; item = item->next)
        if (item->kind == YAML_MAPPING)
            compare_with(typos, item, path, n, missing, length);
    for (const struct yaml_node *node = mapping->first; node && mapping->kind == YAML_MAPPING; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        snprintf(whole, sizeof whole, "%.*s%s%.*s", (int)n, path, n ? "." : "", NAME_SIZE_MAX, node->key);
        if (!yaml_is_null(node) && !is_known(typos->framework, whole))
            note(typos, node, missing, length, true);
    }
}

/* Where a path leaves the file. */
static void follow_path(struct typos *typos, const char *path)
{
    const struct yaml_node *node = typos->root;
    const char *at = path;
    while (*at) {
        char part[NAME_SIZE_MAX];
        size_t length = strcspn(at, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        const struct yaml_node *next = node->kind == YAML_SCALAR ? NULL : framework_find(node, part);
        if (!next) {
            compare_with(typos, node, path, at > path ? (size_t)(at - path - 1) : 0, at, length);
            return;
        }
        node = next;
        at += length + (at[length] == '.');
    }
}

static void compare_argument(struct typos *typos, const struct yaml_node *mapping, const char *path, const char *name)
{
    for (const struct yaml_node *node = mapping->first; node; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        snprintf(whole, sizeof whole, "%s.%.*s", path, NAME_SIZE_MAX, node->key);
        if (!yaml_is_null(node) && megatron_find(node->key, true) < 0 && !is_known(typos->framework, whole))
            note(typos, node, name, strlen(name), false);
    }
}

/* Mappings whose keys are Megatron-LM's: of those that describe a job. */
static void follow_group(struct typos *typos, const char *path)
{
    const struct yaml_node *group = framework_find(typos->root, path);
    for (int i = 0; group && i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        char name[NAME_SIZE_MAX];
        snprintf(name, sizeof name, "%s", row->dest ? row->dest : row->flag);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        if (!row->key || framework_find(group, name))
            continue;
        if (group->kind == YAML_MAPPING)
            compare_argument(typos, group, path, name);
        for (const struct yaml_node *item = group->kind == YAML_SEQUENCE ? group->first : NULL; item; item = item->next)
            if (item->kind == YAML_MAPPING)
                compare_argument(typos, item, path, name);
    }
}

static bool is_slip(const struct typos *typos, const struct yaml_node *node)
{
    for (int i = 0; i < typos->n; i++)
        if (typos->items[i].node == node)
            return true;
    return false;
}

/* Is a key there that switches nothing on? */
static bool is_off(const struct yaml_node *node)
{
    static const char *const words[] = {"", "false", "False", "none", "None", "0", "0.0", "-1", "-1.0", "default"};
    for (size_t i = 0; node->kind == YAML_SCALAR && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(node->text, words[i]) == 0)
            return true;
    return node->kind != YAML_SCALAR && !node->first;
}

/* Unknown keys of a mapping and of the known mappings in it, in the order of the file. */
static void tell_unknown(const struct typos *typos, const struct yaml_node *mapping, const char *path, const char *file,
                         struct diags *diags)
{
    for (const struct yaml_node *node = mapping->first; node; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        int n = snprintf(whole, sizeof whole, "%s%s%s", path, *path ? "." : "", node->key);
        struct place at = {.file = file, .line = node->key_at.line, .column = node->key_at.column};
        if (n >= (int)sizeof whole || yaml_is_null(node) || framework_ignores(typos->framework, whole) || is_slip(typos, node))
            continue;
        if (!is_known(typos->framework, whole) && !is_off(node))
            diag_note(diags, at, "%.120s is unknown to msim and left out", whole);
        else if (is_known(typos->framework, whole) && node->kind == YAML_MAPPING)
            tell_unknown(typos, node, whole, file, diags);
    }
}

void framework_report_typos(const struct yaml_node *root, const struct framework *framework, const char *file,
                            struct diags *diags)
{
    struct typos typos = {.root = root, .framework = framework};
    for (size_t i = 0; known_path(framework, i); i++)
        follow_path(&typos, known_path(framework, i));
    for (const char *const *group = framework->groups; group && *group; group++)
        follow_group(&typos, *group);
    for (int i = 0; i < typos.n; i++) {
        struct place at = typos.items[i].node->key_at;
        at.file = file;
        diag_warning(diags, at, "%s is unknown to msim and left out; did you mean '%s'?", typos.items[i].node->key,
                     typos.items[i].meant);
    }
    if (framework->ignored)
        tell_unknown(&typos, root, "", file, diags);
}
