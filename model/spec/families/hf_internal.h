/*
 * hf_internal.h - a Hugging Face config.json on its way to a model entry.
 *
 * The row of a family renames keys. A key that has no counterpart of its own is renamed to a name that begins with '@', under
 * which a step finds it, uses it and takes it away:
 *
 *     {"layer_types": ["sliding_attention", "full_attention", ...]}     the file
 *     keys: {layer_types: "@layers"}                                    the row of its family
 *     window_every: 2                                                   what the step makes of it
 */
#ifndef MSIM_MODEL_SPEC_FAMILIES_HF_INTERNAL_H
#define MSIM_MODEL_SPEC_FAMILIES_HF_INTERNAL_H

#include "model/spec/entry.h"

struct hf_reading {
    const struct yaml_node *file;   /* the whole configuration */
    const struct yaml_node *config; /* the part of it that describes the language model */
    const struct yaml_node *rows;   /* all families */
    const struct yaml_node *row;    /* this one, with those that it is like */
    const char *family;             /* its name */
    const struct yaml_node *as;     /* who asked for this family; NULL: the configuration itself */
    struct yaml_node *entry;        /* the model so far */
    struct arena *arena;
    struct diags *diags;
};

/* --- hf_family.c: rows of families */

/* All rows as one mapping; NULL after reporting that there are none. */
const struct yaml_node *hf_families(struct arena *arena, struct diags *diags);
/* The row of a model_type, by its own name or one of `names`, laid over those that it is like; NULL: there is none. */
const struct yaml_node *hf_family(const struct yaml_node *rows, const char *model_type, struct arena *arena);
/* Whether the row is of a family that can be read: of layers, not of a wrapper or the reason why not. */
bool hf_family_reads(const struct yaml_node *row);
/* Whether a text matches one of the patterns ("*_token_id") in a sequence. */
bool hf_matches(const struct yaml_node *patterns, const char *text);

/* --- hf_tree.c: values of trees */

/* "a.b" is a key of a mapping inside; NULL: there is none, or null. */
const struct yaml_node *hf_find(const struct yaml_node *tree, const char *path);
/* The number that a value is, within +-10^12; 0: none. */
double hf_number(const struct yaml_node *value);
int64_t hf_integer(const struct yaml_node *tree, const char *path);
bool hf_true(const struct yaml_node *tree, const char *path);
/* Null, false, 0, an empty text, list or mapping: what a key says that changes nothing. */
bool hf_is_neutral(const struct yaml_node *value);
/* Sets a key of the entry; reports about it name `theirs` at the place of `value`. */
void hf_set(struct hf_reading *r, const char *path, const struct yaml_node *value, const char *theirs);
void hf_set_integer(struct hf_reading *r, const char *path, int64_t value, const struct yaml_node *from);
void hf_set_text(struct hf_reading *r, const char *path, const char *text, const struct yaml_node *from);
void hf_remove(struct hf_reading *r, const char *path);
/* The value under a name with '@', which is taken away; NULL: there is none. */
const struct yaml_node *hf_take(struct hf_reading *r, const char *name);
/* The same of what must be a single value; reports an error where it is a list or a mapping. */
const struct yaml_node *hf_take_single(struct hf_reading *r, const char *name);
/* What the file calls that value. */
const char *hf_name(const struct yaml_node *value);

/* --- steps, in this order */

void hf_shape(struct hf_reading *r);   /* hf_shape.c: heads, widths, windows that single values decide */
void hf_layers(struct hf_reading *r);  /* hf_layers.c: which layers attend, and how far */
void hf_mixture(struct hf_reading *r); /* hf_mixture.c: which layers have experts */
void hf_unread(struct hf_reading *r);  /* hf_unread.c: reports keys that no row has */

/* Whether the family has a counterpart for a key of the configuration, or knows that it changes nothing. */
bool hf_understands(const struct yaml_node *rows, const struct yaml_node *row, const char *key);
/* How many keys that decide about the structure of layers (`*expert*`) the family would leave unread; the first of them, in
 * words. */
int hf_lost(const struct yaml_node *rows, const struct yaml_node *row, const struct yaml_node *config, char *words, size_t size);

/* --- hf_towers.c: configurations of several models */

/* The part that is the language model, and its family where it does not say it itself (NULL: it does, or there is none). */
const struct yaml_node *hf_text_part(const struct yaml_node *rows, const struct yaml_node *file, const char **family,
                                     struct arena *arena);
/* Reports the other parts, which are not modelled, with their share of all parameters. `text`: those of the language model. */
void hf_towers(const struct hf_reading *r, double text);

/* --- hf_advice.c: a model_type without a row */

void hf_advise(const struct yaml_node *rows, const struct yaml_node *config, const struct yaml_node *type, bool asked,
               struct arena *arena, struct diags *diags);

#endif
