/*
 * yaml.h - a YAML 1.2 or JSON text as a small tree in which every value knows its place in the file.
 *
 * Example:
 *
 *     struct yaml_node *root = yaml_read("job.yaml", &arena, diags);
 *     struct yaml_node *tp = yaml_find(yaml_find(root, "layout"), "tp");
 *     tp->text "8", tp->at job.yaml:3:13
 *
 * The tree is msim's own. Parsing (libfyaml), inheritance and overrides (merging trees) and reading (schema.h) meet only here.
 * Keys are scalars and differ within a mapping; a text is one document. Aliases are refused: a specification spells values out,
 * and a tree without sharing can neither loop nor explode.
 *
 * Everything lives in the caller's arena. Cost: linear in the text.
 */
#ifndef MSIM_MODEL_SPEC_YAML_H
#define MSIM_MODEL_SPEC_YAML_H

#include <stdbool.h>

#include "model/base/diag.h"
#include "model/base/memory.h"

enum { YAML_DEPTH_MAX = 32, YAML_BYTES_MAX = 2 << 20, YAML_KEYS_MAX = 2048 };

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    bool quoted;             /* a scalar in quotes or a block: always text, never null */
    const char *text;        /* scalar */
    const char *key;         /* in a mapping */
    const char *alias;       /* the key in the file, if a reader renamed it; else NULL */
    struct place at, key_at; /* of the value; of the key */
    struct yaml_node *first, *next;
};

/* Parses n bytes; diagnostics call the text `name`. NULL: there is no tree. Mistakes that leave one (a repeated key) are only
 * reported. */
struct yaml_node *yaml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

/* The same from a file ("-": standard input). */
struct yaml_node *yaml_read(const char *path, struct arena *arena, struct diags *diags);

/* A scalar with the value of a flag; `name` is the flag. */
struct yaml_node *yaml_scalar(const char *name, const char *text, struct arena *arena);

/* The tree of a flag's YAML value; its nodes have the place of the flag `name`. NULL after reporting mistakes. */
struct yaml_node *yaml_value(const char *name, const char *text, struct arena *arena, struct diags *diags);

/* The first child with this key, NULL when there is none or `mapping` is none. */
struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key);

/* The place of `key` in a mapping, or of the mapping itself where it has no such key. */
struct place yaml_place(const struct yaml_node *mapping, const char *key);

/* Plain `null`, `~` or nothing at all. */
bool yaml_is_null(const struct yaml_node *node);

/* "a mapping", "a sequence", "a value": for messages. */
const char *yaml_kind_name(enum yaml_kind kind);

/*
 * Merges `over` into `under`: mappings merge key by key, all else is replaced. Returns a new tree that shares unchanged parts;
 * neither argument is modified.
 */
struct yaml_node *yaml_overlay(const struct yaml_node *under, const struct yaml_node *over, struct arena *arena);

/* `mapping` (NULL: empty) with `value` at the path "a.b.c", whose last part becomes its key. Missing mappings on the way are
 * created. */
struct yaml_node *yaml_with(const struct yaml_node *mapping, const char *path, const struct yaml_node *value,
                            struct arena *arena);

/* Appends a child to a mapping or a sequence. `last`: the last child, kept up to date so that many appends do not each walk the
 * list (may be NULL, or point to NULL at first). */
void yaml_append(struct yaml_node *parent, struct yaml_node **last, struct yaml_node *child);

/* `mapping` without a key. */
struct yaml_node *yaml_without(const struct yaml_node *mapping, const char *key, struct arena *arena);

/* `mapping` with `value` at a key, replacing all that was there. */
struct yaml_node *yaml_replace(const struct yaml_node *mapping, const char *key, const struct yaml_node *value,
                               struct arena *arena);

#endif
