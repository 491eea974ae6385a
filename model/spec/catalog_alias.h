/*
 * catalog_alias.h - other spellings of the catalog's names.
 *
 * Example:
 *
 *     alias_table_find(&table, CATALOG_GPUS, "H100_SXM", &name)                         ALIAS_NAME, "h100-sxm"
 *     alias_table_find(&table, CATALOG_MODELS, "meta-llama/Llama-2-70b-hf", &name)      "llama2-70b"
 *
 * A text means an entry if it is one of the following, in this order. Case and punctuation are ignored, except between two
 * numbers:
 * qwen2-57b is not qwen2.5-7b.
 *
 *     the entry's name;
 *     another spelling, listed under `also` in catalog/aliases.yaml: it can mean nothing else;
 *     a short name of several parts for which this entry is `usual`: callers add a note.
 *
 * If the whole text means nothing, it is tried again without the organisation before its last '/' and without the words that
 * aliases.yaml lists as `around` a name (nvidia, hf, instruct). The aliases.yaml of MSIM_DATA comes before the program's own.
 * An exact name never gets here: the reader of entries asks only about names without a file.
 */
#ifndef MSIM_MODEL_SPEC_CATALOG_ALIAS_H
#define MSIM_MODEL_SPEC_CATALOG_ALIAS_H

#include "model/spec/catalog.h"
#include "model/spec/yaml.h"

enum { ALIAS_FILES_MAX = 2 };

/* How a text matched an entry, best first. */
enum alias_match { ALIAS_NAME, ALIAS_ALSO, ALIAS_USUAL, ALIAS_NONE };

/* The files of aliases, read once; all texts live in its arena. */
struct alias_table {
    struct arena arena;
    const struct yaml_node *files[ALIAS_FILES_MAX];
    size_t n_files;
    char **names[N_CATALOG_KINDS]; /* names of the catalog; NULL until needed */
    size_t n_names[N_CATALOG_KINDS];
};

/* A catalog without aliases.yaml has no aliases; this is no error. Free the table in any case. */
MUST_CHECK enum status alias_table_load(struct alias_table *table, struct diags *diags);
void alias_table_free(struct alias_table *table);

/* Finds the entry of a kind that `text` means. *name lives as long as the table; it is not written if there is none. */
enum alias_match alias_table_find(struct alias_table *table, enum catalog_kind kind, const char *text, const char **name);

/* The name or listed spelling nearest to `text`, and the *entry it means; NULL: none is near. Both live as long as the table. */
const char *alias_table_nearest(struct alias_table *table, enum catalog_kind kind, const char *text, const char **entry);

/* Fills in the listed spellings of an entry, `usual` ones first. Writes at most `max`, returns the number of all. */
size_t alias_table_of(const struct alias_table *table, enum catalog_kind kind, const char *name, const char **spellings,
                      size_t max);

#endif
