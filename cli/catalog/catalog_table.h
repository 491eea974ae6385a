/*
 * catalog_table.h - the lists of `msim catalog`: one row per entry.
 *
 *     msim catalog gpus
 */
#ifndef MSIM_CLI_CATALOG_CATALOG_TABLE_H
#define MSIM_CLI_CATALOG_CATALOG_TABLE_H

#include "cli/output/table.h"
#include "model/spec/catalog_alias.h"

/* Columns and rows of a kind into an empty table. An entry that cannot be read is reported and left out; the others are there. */
enum status catalog_table_fill(struct table *table, enum catalog_kind kind, const struct alias_table *aliases,
                               struct diags *diags);

/* The other spellings of an entry, "h100, h100-80gb"; empty when it has none. */
void catalog_also_text(const struct alias_table *aliases, enum catalog_kind kind, const char *name, char *text, size_t size);

#endif
