/*
 * shipped.h - data files that come with the program and go by name: catalog entries, fault traces, fault models, policies.
 */
#ifndef MSIM_MODEL_SPEC_SHIPPED_H
#define MSIM_MODEL_SPEC_SHIPPED_H

#include "model/spec/yaml.h"

/* Where the files of a kind are and how their names end; the caller's constant. */
struct shipped {
    const char *folder;     /* as data_path takes it */
    const char *endings[3]; /* ".yaml"; NULL after the last. Of files that differ in it alone the first counts */
    const char *also;       /* what else a name may be, for messages; NULL: nothing */
};

/* The path that `name` means: its own where it is a file's by its form (a '/' or a '.' in it, or "-") or where nothing that is
 * shipped has this name but a file here does; *ours (may be NULL) says whether it is a shipped one. NULL: neither. The caller
 * frees it. */
char *shipped_path(const struct shipped *kind, const char *name, bool *ours);

/* All names of a kind in alphabetical order, NULL-terminated; free with names_free. */
char **shipped_names(const struct shipped *kind, size_t *n_names);
/* The same of all folders that data_path looks into, not only the first: files that come with the program and a user's own. */
char **shipped_all_names(const struct shipped *kind, size_t *n_names);

/* What is near an unknown name, or all that is known: "did you mean 'lanl'?". Returns buffer. */
const char *shipped_hint(const struct shipped *kind, const char *name, char *buffer, size_t size);

/* The tree of the YAML file that `name` means, in the arena; NULL with a diagnostic where there is none: "unknown WHAT 'NAME'".
 */
struct yaml_node *shipped_yaml(const struct shipped *kind, const char *what, const char *name, struct arena *arena,
                               struct diags *diags);

/* Reads what a tree says into an object; on failure the object is as it was. */
typedef enum status tree_read_function(struct yaml_node *root, void *object, struct diags *diags);

/* An object from the file that `name` means, or from bytes that are called so. */
MUST_CHECK enum status shipped_load(const struct shipped *kind, const char *what, const char *name, tree_read_function *read,
                                    void *object, struct diags *diags);
MUST_CHECK enum status shipped_parse(const char *name, const char *bytes, size_t n, tree_read_function *read, void *object,
                                     struct diags *diags);

/* Names of the files of a folder, without their endings; NULL-terminated as soon as there is one. */
struct names {
    char **items;
    size_t n, capacity;
};
/* Adds those that end in one of `endings`, each with `suffix` behind it; false with errno where the folder cannot be read. */
bool names_of_folder(const char *path, const char *const *endings, const char *suffix, struct names *names);
/* In alphabetical order, without repetitions. */
void names_sort(struct names *names);
void names_free(char **names); /* NULL-terminated; NULL: nothing */

#endif
