/*
 * toml.h - a TOML 1.0 text as a tree, the same that model/spec/yaml.h has for YAML.
 *
 *     [training]                  training:
 *     seq_len = 8192                seq_len: 8192
 *     tags = ["a", "b"]             tags: [a, b]
 *
 * Tables are mappings, arrays are sequences, and each value keeps the place where it is written. The reader knows comments, bare,
 * quoted and dotted keys, tables, arrays of tables, inline tables, strings of all four kinds, and arrays over several lines.
 * Numbers, booleans and dates stay texts; the caller decides what they mean. Mistakes are reported with their place: a key or
 * table given twice, an invalid value, text after a value.
 *
 * Everything lives in the caller's arena. Cost: linear in the text, times the keys of a table.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_TOML_H
#define MSIM_TRACES_LAUNCH_JOB_TOML_H

#include "model/spec/yaml.h"

/* Parses n bytes. `name` is the name of the text in diagnostics and must outlive the tree. NULL after a diagnostic. */
struct yaml_node *toml_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags);

/* Does a text begin like TOML? After comments: the name of a table in brackets, or a key and an equals sign between blanks. */
bool toml_begins(const char *bytes, size_t n);

#endif
