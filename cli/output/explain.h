/*
 * explain.h - what the kernels and exchanges of a layout cost: the leaves of one micro-batch's passes through the embedding, one
 * layer and the loss head, each with the parts of its cost. Shared by the commands that have --explain.
 */
#ifndef MSIM_CLI_OUTPUT_EXPLAIN_H
#define MSIM_CLI_OUTPUT_EXPLAIN_H

#include <jansson.h>

#include "cli/options/command.h"
#include "model/cost/work/cost.h"
#include "model/layout/layout.h"
#include "traces/profile/profile.h"

/* In tables of exchanges: how many times as long an oversubscribed fabric makes what bandwidth takes, where it is noticed. */
#define EXPLAIN_OVER       1.005
#define EXPLAIN_OVER_MEANS "fabric: how many times as long links above leaves or pods make the bandwidth part of the exchange\n"
struct table;
void explain_over_cell(struct table *table, double over);

/* The layout must be legal. Text is a table on call->out. */
void explain_works_text(const struct layout *layout, const struct setting *setting, const struct invocation *call);
/* An array of {pass class label times work seconds parts{launch_s compute_s memory_s latency_s bandwidth_s} fabric flops};
 * fabric: times as long, work_over. */
json_t *explain_works_json(const struct layout *layout, const struct setting *setting);

/* What the kernels of each class of work are, as a profile tells kernels apart: shares of the class's time that sum to 1, those
 * of the middle layer and both ends; 0 for a class without kernels. */
void explain_kinds(const struct layout *layout, const struct setting *setting, double share[N_WORK_CLASSES][N_PROFILE_KINDS]);

/* Seconds by class with their share and meaning, classes of no time left out. */
void explain_breakdown_text(const struct cost_by_class *by, const struct invocation *call);

#endif
