/* yaml_tree.c - functions on trees: find, merge, replace. */
#include "model/spec/yaml.h"

#include <string.h>

struct yaml_node *yaml_scalar(const char *name, const char *text, struct arena *arena)
{
    struct yaml_node *node = arena_new(arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = YAML_SCALAR, .text = arena_copy_text(arena, text)};
    node->at = (struct place){.file = arena_copy_text(arena, name)};
    return node;
}

struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key)
{
    if (!mapping || mapping->kind != YAML_MAPPING)
        return NULL;
    for (struct yaml_node *child = mapping->first; child; child = child->next)
        if (strcmp(child->key, key) == 0)
            return child;
    return NULL;
}

bool yaml_is_null(const struct yaml_node *node)
{
    if (node->kind != YAML_SCALAR || node->quoted)
        return false;
    return !*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

const char *yaml_kind_name(enum yaml_kind kind)
{
    static const char *const names[] = {"a single value", "a sequence", "a mapping"};
    return names[kind];
}

static struct yaml_node *copy_of(const struct yaml_node *node, struct arena *arena)
{
    struct yaml_node *copy = arena_new(arena, 1, sizeof *copy);
    *copy = *node;
    copy->next = NULL;
    return copy;
}

void yaml_append(struct yaml_node *parent, struct yaml_node **last, struct yaml_node *child)
{
    struct yaml_node **end = last && *last ? &(*last)->next : &parent->first;
    while (*end)
        end = &(*end)->next;
    *end = child;
    if (last)
        *last = child;
}

/* Recursion follows the nesting, which yaml_parse bounds by YAML_DEPTH_MAX. */
struct yaml_node *yaml_overlay(const struct yaml_node *under, const struct yaml_node *over, struct arena *arena)
{
    struct yaml_node *result = copy_of(over, arena);
    if (under->kind != YAML_MAPPING || over->kind != YAML_MAPPING)
        return result;
    struct yaml_node *last = NULL;
    result->first = NULL;
    for (const struct yaml_node *old = under->first; old; old = old->next) {
        const struct yaml_node *new = yaml_find(over, old->key);
        yaml_append(result, &last, new ? yaml_overlay(old, new, arena) : copy_of(old, arena));
    }
    for (const struct yaml_node *new = over->first; new; new = new->next)
        if (!yaml_find(under, new->key))
            yaml_append(result, &last, copy_of(new, arena));
    return result;
}

struct yaml_node *yaml_with(const struct yaml_node *mapping, const char *path, const struct yaml_node *value, struct arena *arena)
{
    struct yaml_node *tree = copy_of(value, arena);
    for (const char *end = path + strlen(path); end > path;) {
        const char *start = end;
        while (start > path && start[-1] != '.')
            start--;
        char *key = arena_copy_text(arena, start);
        key[end - start] = '\0';
        tree->key = key;
        tree->key_at = value->at;
        struct yaml_node *parent = arena_new(arena, 1, sizeof *parent);
        *parent = (struct yaml_node){.kind = YAML_MAPPING, .at = value->at, .first = tree};
        tree = parent;
        end = start > path ? start - 1 : path;
    }
    if (!mapping)
        return tree;
    tree = yaml_overlay(mapping, tree, arena);
    tree->at = mapping->at;
    return tree;
}

struct yaml_node *yaml_without(const struct yaml_node *mapping, const char *key, struct arena *arena)
{
    struct yaml_node *result = copy_of(mapping, arena), *last = NULL;
    result->first = NULL;
    for (const struct yaml_node *child = mapping->first; child; child = child->next)
        if (strcmp(child->key, key) != 0)
            yaml_append(result, &last, copy_of(child, arena));
    return result;
}

struct yaml_node *yaml_replace(const struct yaml_node *mapping, const char *key, const struct yaml_node *value,
                               struct arena *arena)
{
    return yaml_with(yaml_without(mapping, key, arena), key, value, arena);
}

struct place yaml_place(const struct yaml_node *tree, const char *key)
{
    const struct yaml_node *child = yaml_find(tree, key);
    return child ? child->at : tree->at;
}
