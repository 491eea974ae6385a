/*
 * catalog_alias.h - the spellings under which an entry of the catalog is known.
 *
 * Tables and users write `NVIDIA H100 80GB HBM3`, `H100_SXM`, `meta-llama/Llama-2-70b-hf`. A text means an entry when, case and
 * punctuation apart (which still parts two numbers: qwen2-57b is not qwen2.5-7b), it is, in this order,
 *
 *     the entry's name;
 *     one of its other spellings, `also` in catalog/aliases.yaml: they can mean nothing else;
 *     a short name of several parts of which this one is `usual`: worth a note.
 *
 * Where the whole text means nothing, it is tried without the organisation before its last '/' and without the words that
 * aliases.yaml lists as `around` a name (nvidia, hf, instruct). The aliases.yaml of MSIM_DATA comes before the program's own. An
 * exact name never gets here: the reader of entries asks only about names that have no file.
 */
#ifndef MSIM_MODEL_SPEC_CATALOG_ALIAS_H
#define MSIM_MODEL_SPEC_CATALOG_ALIAS_H

#include "model/spec/catalog.h"
#include "model/spec/yaml.h"

enum { ALIAS_FILES_MAX = 2 };

/* How a text means an entry, best first. */
enum alias_match { ALIAS_NAME, ALIAS_ALSO, ALIAS_USUAL, ALIAS_NONE };

/* The files of aliases, read once for many questions; all texts live in its arena. */
struct alias_table {
    struct arena arena;
    const struct yaml_node *files[ALIAS_FILES_MAX];
    size_t n_files;
    char **names[N_CATALOG_KINDS]; /* of the catalog; NULL until asked for */
    size_t n_names[N_CATALOG_KINDS];
};

/* A catalog without aliases.yaml has none. Free the table in any case. */
MUST_CHECK enum status alias_table_load(struct alias_table *table, struct diags *diags);
void alias_table_free(struct alias_table *table);

/* What `text` means among the entries of a kind. *name lives as long as the table; untouched when there is none. */
enum alias_match alias_table_find(struct alias_table *table, enum catalog_kind kind, const char *text, const char **name);

/* The name or listed spelling that is nearest to `text`, and the *entry that it stands for; NULL: none is near. Both live as long
 * as the table. */
const char *alias_table_nearest(struct alias_table *table, enum catalog_kind kind, const char *text, const char **entry);

/* The listed spellings of an entry, `usual` ones first; at most `max` are written, all are counted. */
size_t alias_table_of(const struct alias_table *table, enum catalog_kind kind, const char *name, const char **spellings,
                      size_t max);

#endif
