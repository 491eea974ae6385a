/*
 * framework_tree.h - keys of a configuration and words of a table by their names.
 *
 *     model:                          framework_find(root, "model.optim.name")      the node "adamw"
 *       optim:                        framework_find(root, "callbacks.budget")      of a list the first mapping with the key
 *         name: adamw
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TREE_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TREE_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch_words.h"

/* The node at "a.b.c"; of a list the first mapping that has the key. NULL: none. */
const struct yaml_node *framework_find(const struct yaml_node *node, const char *path);

/* A copy of a scalar, or of the scalars of a list, separated by blanks. */
const char *framework_text(struct launch_words *words, const struct yaml_node *node);
/* true, True */
bool framework_is_true(const char *text);

/* Adds a word of a key, for what a table cannot say; adds an unknown value, unless it is a plain no. Texts are not copied. */
void framework_add(struct launch_words *words, const struct yaml_node *node, const char *path, const char *name,
                   const char *value);
void framework_add_strange(struct launch_words *words, const struct yaml_node *node, const char *path, const char *text);

/* The words of a list, of the table itself or shared; NULL: there is none of that name. */
const struct framework_word *framework_list(const struct framework *framework, const char *name);

#endif
