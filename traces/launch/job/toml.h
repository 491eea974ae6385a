/*
 * toml.h - a TOML 1.0 text as the same tree as YAML's (model/spec/yaml.h): tables are mappings, arrays are sequences, and every
 * value knows where it was written.
 *
 * Read are comments, keys bare, quoted and dotted, tables and arrays of tables, inline tables, strings of all four kinds, arrays
 * over several lines. Numbers, truths and dates stay the text that they are written as, once they look like one; what they mean
 * is their reader's. Mistakes are reported where they stand: a key or a table that is said twice, a value that is none, what
 * follows a value in its line.
 *
 * Everything lives in the caller's arena. Cost: linear in the text, times the keys of a table.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_TOML_H
#define MSIM_TRACES_LAUNCH_JOB_TOML_H

#include "model/spec/yaml.h"

/* Parse n bytes; `name` is what diagnostics call the text, and must outlive the tree. NULL after a diagnostic. */
struct yaml_node *toml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

/* Does a text begin as TOML does: behind comments a table's name in brackets, or a key and an equals sign between blanks? */
bool toml_begins(const char *bytes, size_t n);

#endif
