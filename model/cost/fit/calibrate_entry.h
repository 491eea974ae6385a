/*
 * calibrate_entry.h - the quantities of a GPU or cluster entry as parameters, by their names in YAML.
 *
 * Example:
 *
 *     entry_parameter_find(&gpu_schema, "gemm.bf16.peak_fraction", &parameter, diags);
 *     entry_parameter_get(&parameter, &gpu)                  0.71
 *     entry_parameter_text(&parameter, 0.7134, text, 48)     "0.7134"
 *
 * A parameter is a quantity row of a schema (model/spec/schema.h), named by its keys: gemm.bf16.peak_fraction, nccl.rate,
 * sustained_clock; in a cluster net_fraction and gpu.memory.bandwidth_fraction. It has the bounds of the row. Texts, counts and
 * choices are not parameters.
 */
#ifndef MSIM_MODEL_COST_FIT_CALIBRATE_ENTRY_H
#define MSIM_MODEL_COST_FIT_CALIBRATE_ENTRY_H

#include <stdio.h>

#include "model/spec/schema.h"

enum { ENTRY_PATH_SIZE = 96 };

struct entry_parameter {
    char path[ENTRY_PATH_SIZE];
    const struct field *row;
    size_t offset; /* of the double in the struct of the entry */
};

/* Finds the parameter of that name. False after adding the error "unknown parameter ...; did you mean ...?" without a place. */
bool entry_parameter_find(const struct schema *schema, const char *path, struct entry_parameter *parameter, struct diags *diags);

/* Every parameter of a schema, in the order of its rows. The caller frees the list. */
struct entry_parameter *entry_parameters(const struct schema *schema, size_t *n);

double entry_parameter_get(const struct entry_parameter *parameter, const void *entry);
void entry_parameter_set(const struct entry_parameter *parameter, void *entry, double value);

/* A value rounded to four significant digits, within the bounds of the row. This is the value that is written, and therefore
 * the value that counts. */
double entry_parameter_round(const struct entry_parameter *parameter, double value);
/* The value in YAML syntax: "1.31us"; times in microseconds, rates in GB/s. Returns buffer; 48 bytes are enough. */
char *entry_parameter_text(const struct entry_parameter *parameter, double value, char *buffer, size_t size);

/* Writes a tree of texts and trees (by key) as YAML: two levels of lines, deeper levels in braces. Texts that YAML could read
 * as another type are quoted. `notes` (NULL: none) is a tree of the same shape, written behind the lines as comments. */
void entry_write_yaml(const json_t *tree, const json_t *notes, FILE *out);
/* Sets `text` at "a.b.c" in such a tree. */
void entry_tree_set(json_t *tree, const char *path, const char *text);

#endif
