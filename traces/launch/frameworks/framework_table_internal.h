/*
 * framework_table_internal.h - reads one file of the frameworks' tables into a struct framework (private to framework_table.c
 * and frameworks.c).
 *
 * Example: the file litgpt.yaml in this folder.
 *
 *     framework_read_table(root, &shared, &framework, &arena, &diags);        framework.name is "LitGPT"
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_INTERNAL_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_INTERNAL_H

#include "traces/launch/frameworks/framework_table.h"

/* Parts that several tables share: lists of words, and sets of `fixed` rows. */
struct framework_shared {
    struct framework_list *lists, *sets;
    int n_lists, n_sets;
};

/* Reads the tree of a file as a table, or as parts that tables share; mistakes go to diags. Texts stay in the tree, arrays are
 * allocated in the arena. */
void framework_read_table(const struct yaml_node *root, const struct framework_shared *shared, struct framework *framework,
                          struct arena *arena, struct diags *diags);
void framework_read_shared(const struct yaml_node *root, struct framework_shared *shared, struct arena *arena,
                           struct diags *diags);

/* The function of a name; NULL: there is none. */
framework_more *framework_more_named(const char *name);

#endif
