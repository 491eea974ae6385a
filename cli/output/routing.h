/*
 * routing.h - what an uneven router makes of a step, where the job says how uneven it is.
 */
#ifndef MSIM_CLI_OUTPUT_ROUTING_H
#define MSIM_CLI_OUTPUT_ROUTING_H

#include <jansson.h>
#include <stdio.h>

#include "model/layout/layout.h"

/* "experts  the busiest is sent 2 times the mean; ..." in a line; nothing where nothing is said. */
void routing_write(const struct setting *setting, FILE *out);
/* The busiest rank and what the others wait for it, in a line; nothing where ranks are alike. */
void routing_write_waiting(const struct setting *setting, const struct layout *layout, FILE *out);
/* What MFU counts beyond what is computed, under tables of it where copies of tokens are dropped. */
#define DROPPED_NOTE "MFU counts what dropped copies of tokens would have taken.\n"
/* "experts": {busiest_expert, busiest_rank, mean_rank (over the mean without a capacity), dropped_pct, waiting_s}. */
void routing_json(const struct setting *setting, const struct layout *layout, json_t *object);

#endif
