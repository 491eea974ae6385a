/*
 * framework_lines.h - what an export says, key by key, and the languages in which files say it: YAML, TOML, Python's assignments.
 */
#ifndef MSIM_TRACES_FRAMEWORK_LINES_H
#define MSIM_TRACES_FRAMEWORK_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include "traces/launch/framework_tables.h"

enum { LINES_MAX = 128, LINE_TEXT = 128 };

struct framework_line {
    const char *path; /* "model.optim.name"; lives as long as the lines */
    char value[LINE_TEXT];
    const char *verbatim; /* in its place, as it is to be written; NULL: none */
    bool is_list;         /* of one, perhaps */
    bool is_text;         /* though it looks like a number */
};

struct framework_lines {
    struct framework_line items[LINES_MAX];
    int n;
};

bool framework_lines_have(const struct framework_lines *lines, const char *path);
/* One more; a value of several words is a list. The line, for what else is to be said of it. */
struct framework_line *framework_lines_add(struct framework_lines *lines, const char *path, const char *value);
/* All of them by their paths: mappings in mappings, tables, or assignments to what `object` names. */
void framework_lines_write(struct framework_lines *lines, enum framework_form form, const char *object, FILE *out);

#endif
