/*
 * shipped.h - data files that come with the program and have names: catalog entries, fault traces, fault models, policies.
 *
 * Example: fault models are the YAML files of the folder "faults".
 *
 *     static const struct shipped kind = {"faults", {".yaml"}, "a file"};
 *     shipped_path(&kind, "llama3", &ours)          ".../faults/llama3.yaml", ours = true
 *     shipped_path(&kind, "./mine.yaml", &ours)     "./mine.yaml", ours = false
 */
#ifndef MSIM_MODEL_SPEC_SHIPPED_H
#define MSIM_MODEL_SPEC_SHIPPED_H

#include "model/spec/yaml.h"

/* A kind of files: its folder and the endings of its names; a constant of the caller. */
struct shipped {
    const char *folder;     /* relative, as for data_path */
    const char *endings[3]; /* ".yaml"; NULL after the last. Of files that differ only in the ending the first ending counts */
    const char *also;       /* the other meaning of a name, for messages; NULL: none */
};

/* The path that `name` means. It is a file of its own if its form says so (it contains '/' or '.', or is "-"), or if no shipped
 * file has this name but a file here does. *ours (may be NULL): whether it is a shipped one. NULL: neither. The caller frees
 * it. */
char *shipped_path(const struct shipped *kind, const char *name, bool *ours);

/* All names of a kind in alphabetical order, NULL-terminated; free with names_free. */
char **shipped_names(const struct shipped *kind, size_t *n_names);
/* The same over all folders of data_path, not only the first: shipped files and the user's own. */
char **shipped_all_names(const struct shipped *kind, size_t *n_names);

/* A hint for an unknown name: the nearest name or all names: "did you mean 'lanl'?". Returns buffer. */
const char *shipped_hint(const struct shipped *kind, const char *name, char *buffer, size_t size);

/* The tree of the YAML file that `name` means, in the arena. NULL with a diagnostic if there is none: "unknown WHAT 'NAME'". */
struct yaml_node *shipped_yaml(const struct shipped *kind, const char *what, const char *name, struct arena *arena,
                               struct diags *diags);

/* Reads a tree into an object; on failure the object does not change. */
typedef enum status tree_read_function(struct yaml_node *root, void *object, struct diags *diags);

/* Load an object from the file that `name` means, or from bytes to which messages give this name. */
MUST_CHECK enum status shipped_load(const struct shipped *kind, const char *what, const char *name, tree_read_function *read,
                                    void *object, struct diags *diags);
MUST_CHECK enum status shipped_parse(const char *name, const char *bytes, size_t n, tree_read_function *read, void *object,
                                     struct diags *diags);

/* Names of the files of a folder, without their endings; NULL-terminated if not empty. */
struct names {
    char **items;
    size_t n, capacity;
};
/* Adds those with one of `endings`, each followed by `suffix`; false with errno if the folder cannot be read. */
bool names_of_folder(const char *path, const char *const *endings, const char *suffix, struct names *names);
/* Sorts names alphabetically and removes repetitions. */
void names_sort(struct names *names);
void names_free(char **names); /* NULL-terminated; NULL: nothing */

#endif
