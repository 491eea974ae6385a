/*
 * plan_world.h - the search of `msim plan` over the ranks of the world: each goes through its share of the families, and all get
 * what all found. The result is that of one process, to the last bit.
 */
#ifndef MSIM_CLI_JOB_PLAN_WORLD_H
#define MSIM_CLI_JOB_PLAN_WORLD_H

#include "model/plan/search.h"

/* As search_run, on every rank of the world together. options->share and n_shares are set here. */
void search_run_on_world(const struct space *space, const struct search_options *options, struct search_result *result);

#endif
