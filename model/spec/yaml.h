/*
 * yaml.h - a YAML 1.2 or JSON text as a small tree in which every value knows where it was written.
 *
 * The tree is msim's own: parsing (libfyaml), inheritance and overrides (trees laid over trees) and reading (schema.h) meet here
 * and nowhere else. Keys are scalars and differ within a mapping; a text is one document. Aliases are refused: a specification
 * says what it means where it says it, and a tree without sharing can neither loop nor explode.
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
    const char *alias;       /* what the file calls the key, where a reader renamed it; NULL otherwise */
    struct place at, key_at; /* of the value; of the key */
    struct yaml_node *first, *next;
};

/* Parse n bytes; `name` is what diagnostics call the text. NULL when there is no tree; mistakes that leave one (a key given
 * twice) are only reported. */
struct yaml_node *yaml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

/* The same from a file ("-": standard input). */
struct yaml_node *yaml_read(const char *path, struct arena *arena, struct diags *diags);

/* A scalar for what a flag says; `name` is the flag. */
struct yaml_node *yaml_scalar(const char *name, const char *text, struct arena *arena);

/* Any YAML that a flag says; its nodes stand nowhere but in the flag `name`. NULL after reporting what is wrong. */
struct yaml_node *yaml_value(const char *name, const char *text, struct arena *arena, struct diags *diags);

/* The first child with this key, NULL when there is none or `mapping` is none. */
struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key);

/* Plain `null`, `~` or nothing at all. */
bool yaml_is_null(const struct yaml_node *node);

/* "a mapping", "a sequence", "a value": for messages. */
const char *yaml_kind_name(enum yaml_kind kind);

/*
 * `over` laid over `under`: mappings merge key by key, anything else is replaced. Returns a new tree that shares what did not
 * change; neither argument is modified.
 */
struct yaml_node *yaml_overlay(const struct yaml_node *under, const struct yaml_node *over, struct arena *arena);

/* `mapping` (NULL: empty) with `value` at the path "a.b.c", whose last part becomes its key. Mappings on the way are made where
 * there are none. */
struct yaml_node *yaml_with(const struct yaml_node *mapping, const char *path, const struct yaml_node *value,
                            struct arena *arena);

/* A child behind those of a mapping or a sequence. `last`: that which is the last one, followed up here so that many in a row do
 * not walk the list each (it may be NULL, or point to NULL at first). */
void yaml_append(struct yaml_node *parent, struct yaml_node **last, struct yaml_node *child);

/* `mapping` without a key. */
struct yaml_node *yaml_without(const struct yaml_node *mapping, const char *key, struct arena *arena);

/* `mapping` with `value` alone at a key: nothing of what was there stays under it. */
struct yaml_node *yaml_replace(const struct yaml_node *mapping, const char *key, const struct yaml_node *value,
                               struct arena *arena);

#endif
