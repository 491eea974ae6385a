/*
 * plan_levers.h - `msim plan --levers`: what would make a job faster, the best plan after one change at a time.
 *
 *     msim plan job.yaml --levers
 */
#ifndef MSIM_CLI_PLAN_PLAN_LEVERS_H
#define MSIM_CLI_PLAN_PLAN_LEVERS_H

#include "cli/output/result_row.h"
#include "sim/search/lever_search.h"

/* The option that makes this change of an experiment: "--space offload=auto"; "" where no one option does. Returns buffer. */
char *plan_lever_option(const struct plan_lever *lever, const struct experiment *experiment, char *buffer, size_t size);

extern const struct result_row lever_rows[];

MUST_CHECK enum status plan_levers(const struct experiment *experiment, struct invocation *call);

#endif
