/*
 * framework_lines.h - the keys of an export, and the languages of files: YAML, TOML, assignments in Python.
 *
 *     model.optim.name = adamw      model:              [model.optim]       cfg.model.optim.name = "adamw"
 *                                     optim:            name = "adamw"
 *                                       name: adamw
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
    const char *value;    /* words separated by blanks */
    const char *verbatim; /* a text to write instead of the value, as it is; NULL: none */
    bool is_list;         /* a list, even of one word */
    bool is_text;         /* a text, even if it looks like a number */
};

/* The object that a program assigns to, and the one of its fields that is assigned whole: a call, written between two texts. */
struct framework_object {
    const char *name, *made, *before, *after;
};

struct framework_lines {
    struct framework_line items[LINES_MAX];
    int n;
    struct arena arena; /* of the values */
};

bool framework_lines_have(const struct framework_lines *lines, const char *path);
/* Adds a line; a value of several words is a list. Returns it for further settings; it is valid until the next one is added. */
struct framework_line *framework_lines_add(struct framework_lines *lines, const char *path, const char *value);
void framework_lines_free(struct framework_lines *lines);
/* Writes all lines by their paths: nested mappings, tables, or assignments to the object. */
void framework_lines_write(struct framework_lines *lines, enum framework_form form, const struct framework_object *object,
                           FILE *out);

#endif
