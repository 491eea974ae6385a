/*
 * catalog_show.h - `msim catalog show`: an entry with all its keys.
 *
 *     msim catalog show h100-sxm
 */
#ifndef MSIM_CLI_CATALOG_CATALOG_SHOW_H
#define MSIM_CLI_CATALOG_CATALOG_SHOW_H

#include "cli/catalog/catalog_recovery.h"
#include "cli/options/command.h"
#include "model/spec/catalog_alias.h"

/* How kinds of entries are called: as operands, as a key of JSON, in headings and in sentences. */
struct catalog_listed {
    const char *one, *many, *key, *title, *title_of_one;
};
extern const struct catalog_listed catalog_kinds[N_LISTED_KINDS];

/* "policy" or "policies" as its kind; -1: no kind. */
int catalog_kind_of_word(const char *word);

/* One entry of a kind, as --format json has it; NULL with a diagnostic. */
json_t *catalog_entry_json(int kind, const char *name, const struct alias_table *aliases, struct diags *diags);

/* The entries that the operands behind `show` name, of the kind that the first of them may be. */
enum status catalog_show(struct invocation *call, const struct alias_table *aliases);

#endif
