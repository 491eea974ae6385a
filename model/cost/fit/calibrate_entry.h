/*
 * calibrate_entry.h - the quantities of a GPU or cluster entry as parameters, by the names they have in its YAML.
 *
 * A parameter is any quantity row of a schema (model/spec/schema.h), named by its keys: gemm.bf16.peak_fraction, nccl.rate,
 * sustained_clock; in a cluster net_fraction and gpu.memory.bandwidth_fraction. Its bounds are the row's. Text, counts and
 * choices are no parameters.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_ENTRY_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_ENTRY_H

#include <stdio.h>

#include "model/spec/schema.h"

enum { ENTRY_PATH_SIZE = 96 };

struct entry_parameter {
    char path[ENTRY_PATH_SIZE];
    const struct field *row;
    size_t offset; /* of the double in the entry's struct */
};

/* The parameter of that name; false after the error "unknown parameter ...; did you mean ...?" at no place. */
bool entry_parameter_find(const struct schema *schema, const char *path, struct entry_parameter *parameter, struct diags *diags);

/* Every parameter of a schema in the order of its rows. The caller frees the list. */
struct entry_parameter *entry_parameters(const struct schema *schema, size_t *n);

double entry_parameter_get(const struct entry_parameter *parameter, const void *entry);
void entry_parameter_set(const struct entry_parameter *parameter, void *entry, double value);

/* A value rounded to four significant digits, kept within the row's bounds: what is written, and therefore what counts. */
double entry_parameter_round(const struct entry_parameter *parameter, double value);
/* The value as YAML: "1.31us"; times in microseconds, rates in GB/s. Returns buffer; 48 bytes always suffice. */
char *entry_parameter_text(const struct entry_parameter *parameter, double value, char *buffer, size_t size);

/* A tree of texts and trees (by key) as YAML: two levels of lines, deeper ones in braces. Texts that YAML could take for
 * something else are quoted. `notes` (NULL: none) is a tree of texts of the same shape, written behind their lines as comments.
 */
void entry_write_yaml(const json_t *tree, const json_t *notes, FILE *out);
/* Put `text` at "a.b.c" into such a tree. */
void entry_tree_set(json_t *tree, const char *path, const char *text);

#endif
