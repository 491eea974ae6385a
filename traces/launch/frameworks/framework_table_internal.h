/*
 * framework_table_internal.h - one file of a table into a struct framework.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_INTERNAL_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TABLE_INTERNAL_H

#include "traces/launch/frameworks/framework_table.h"

/* What several tables share: lists of words, and sets of `fixed` rows. */
struct framework_shared {
    struct framework_list *lists, *sets;
    int n_lists, n_sets;
};

/* A file's tree into a table, or into what tables share; mistakes go to diags. Texts stay in the tree, arrays are made in the
 * arena. */
void framework_read_table(const struct yaml_node *root, const struct framework_shared *shared, struct framework *framework,
                          struct arena *arena, struct diags *diags);
void framework_read_shared(const struct yaml_node *root, struct framework_shared *shared, struct arena *arena,
                           struct diags *diags);

/* The function of a name; NULL: there is none. */
framework_more *framework_more_named(const char *name);

#endif
