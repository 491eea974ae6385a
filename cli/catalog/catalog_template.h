/*
 * catalog_template.h - `msim catalog template KIND`: an entry to start from, with every key.
 *
 *     msim catalog template cluster -o ours.yaml
 */
#ifndef MSIM_CLI_CATALOG_CATALOG_TEMPLATE_H
#define MSIM_CLI_CATALOG_CATALOG_TEMPLATE_H

#include <jansson.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/spec/schema.h"

/* Of a kind (catalog_recovery.h), as YAML: the keys that most entries say, with values of a known entry, and all others as
 * comments, each with what it means. It can be read as it stands. Nothing is written where the catalog lacks those entries, which
 * is reported. */
MUST_CHECK enum status catalog_template_write(int kind, FILE *out, struct diags *diags);

/* --- for templates of other files --------------------------------------------------------------------------------- */

enum { TEMPLATE_EXAMPLES = 4 };

/* A key with its value ("": none) and what it means; a comment unless it is said. */
void template_line(const char *key, const char *value, const char *help, bool said, int depth, FILE *out);

/* Every key of a schema, at a depth of nesting: no comments are those named in `said_keys`, NULL-terminated (NULL: none). Values
 * are those of the first of the trees that has one (NULL: no tree), what is taken when a key is left out otherwise. */
void template_rows(const struct schema *schema, const char *const *said_keys, json_t *const trees[TEMPLATE_EXAMPLES], int depth,
                   FILE *out);

#endif
