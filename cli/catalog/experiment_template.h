/*
 * experiment_template.h - `msim catalog template experiment`: an experiment to start from, with every key.
 *
 *     msim catalog template experiment -o job.yaml
 */
#ifndef MSIM_CLI_CATALOG_EXPERIMENT_TEMPLATE_H
#define MSIM_CLI_CATALOG_EXPERIMENT_TEMPLATE_H

#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/status.h"

/* As YAML: a job of a known model on a known cluster, and all other keys as comments, each with what it means; from the tables
 * that the reader reads by. It can be read as it stands. Nothing is written where the catalog lacks those entries, which is
 * reported. */
MUST_CHECK enum status experiment_template_write(FILE *out, struct diags *diags);

#endif
