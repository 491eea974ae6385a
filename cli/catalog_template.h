/*
 * catalog_template.h - `msim catalog template`: an entry of a kind to start from, with every key that it may have.
 */
#ifndef MSIM_CLI_CATALOG_TEMPLATE_H
#define MSIM_CLI_CATALOG_TEMPLATE_H

#include <stdio.h>

#include "model/base/diag.h"

/* Of a kind (catalog_recovery.h), as YAML: the keys that most entries say, with values of a known entry, and all others as
 * comments, each with what it means. It can be read as it stands. Nothing is written where the catalog lacks those entries, which
 * is reported. */
MUST_CHECK enum status catalog_template_write(int kind, FILE *out, struct diags *diags);

#endif
