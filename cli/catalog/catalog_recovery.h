/*
 * catalog_recovery.h - fault models and recovery policies in `msim catalog`: the values of --fault-model, --preset and --policy.
 *
 *     msim catalog show policy megascale
 *
 * They follow the kinds of the catalog itself (catalog_kind), and can be names or files.
 */
#ifndef MSIM_CLI_CATALOG_CATALOG_RECOVERY_H
#define MSIM_CLI_CATALOG_CATALOG_RECOVERY_H

#include <jansson.h>

#include "cli/output/table.h"
#include "model/spec/catalog.h"
#include "model/spec/schema.h"

enum { KIND_FAULT_MODELS = N_CATALOG_KINDS, KIND_POLICIES, N_LISTED_KINDS };

/* Is a name in the program's own files of such a kind? Spelt as there. */
bool catalog_recovery_has(int kind, const char *name);

/* Of which of these kinds a file is, by its keys; -1: neither, or no file that can be read. */
int catalog_recovery_kind_of_file(const char *path);

/* An entry as its keys; NULL with a diagnostic. The caller releases it. */
json_t *catalog_recovery_keys(int kind, const char *name, struct diags *diags);
const struct schema *catalog_recovery_schema(int kind);

/* The name of these kinds nearest to one that is unknown, NULL: none is near. It lives as long as the buffer. */
const char *catalog_recovery_nearest(const char *name, char *buffer, size_t size);

/* Names in alphabetical order, NULL-terminated; free with names_free. */
char **catalog_recovery_names(int kind, size_t *n_names);

/* Columns and rows of a kind into an empty table. */
enum status catalog_recovery_table(struct table *table, int kind, struct diags *diags);

#endif
