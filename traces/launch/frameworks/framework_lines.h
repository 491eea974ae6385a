/*
 * framework_lines.h - what an export says, key by key, and the languages in which files say it: YAML, TOML, Python's assignments.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_LINES_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include "model/base/memory.h"
#include "traces/launch/frameworks/framework_table.h"

enum { LINES_MAX = 128 };

struct framework_line {
    const char *path;     /* "model.optim.name"; lives as long as the lines */
    const char *value;    /* words between blanks */
    const char *verbatim; /* in its place, as it is to be written; NULL: none */
    bool is_list;         /* of one, perhaps */
    bool is_text;         /* though it looks like a number */
};

/* What a program assigns to: its name, and the one of its fields that is made whole, between two texts, by the values in it. */
struct framework_object {
    const char *name, *made, *before, *after;
};

struct framework_lines {
    struct framework_line items[LINES_MAX];
    int n;
    struct arena arena; /* of the values */
};

bool framework_lines_have(const struct framework_lines *lines, const char *path);
/* One more; a value of several words is a list. The line, for what else is to be said of it, until the next one. */
struct framework_line *framework_lines_add(struct framework_lines *lines, const char *path, const char *value);
void framework_lines_free(struct framework_lines *lines);
/* All of them by their paths: mappings in mappings, tables, or assignments to what an object names. */
void framework_lines_write(struct framework_lines *lines, enum framework_form form, const struct framework_object *object,
                           FILE *out);

#endif
