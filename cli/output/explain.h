/*
 * explain.h - what the kernels and exchanges of a layout cost: the leaves of one micro-batch's passes through the embedding, one
 * layer and the loss head, each with the parts of its cost. Shared by the commands that have --explain.
 */
#ifndef MSIM_CLI_OUTPUT_EXPLAIN_H
#define MSIM_CLI_OUTPUT_EXPLAIN_H

#include <jansson.h>

#include "cli/options/command.h"
#include "cli/output/result_row.h"
#include "model/cost/work/cost.h"
#include "model/layout/layout.h"
#include "traces/profile/profile.h"

/* Rows of a subject with a `cost`: its time and parts. */
#define EXPLAIN_COST_ROWS(ROW, SUBJECT)                                                                                          \
    ROW(SUBJECT, seconds, as_part(cost_seconds(s->cost)), "s", JSON, "time of one", .title = "time", EXPLAIN_US)                 \
    ROW(SUBJECT, launch_s, as_part(s->cost.launch_s), "s", JSON, "launches", .inside = "parts", .title = "launch", EXPLAIN_US)   \
    ROW(SUBJECT, compute_s, as_part(s->cost.compute_s), "s", JSON, "arithmetic", .inside = "parts", .title = "compute",          \
        EXPLAIN_US)                                                                                                              \
    ROW(SUBJECT, memory_s, as_part(s->cost.memory_s), "s", JSON, "traffic of the GPU's memory", .inside = "parts",               \
        .title = "memory", EXPLAIN_US)                                                                                           \
    ROW(SUBJECT, latency_s, as_part(s->cost.latency_s), "s", JSON, "latency of the network", .inside = "parts",                  \
        .title = "latency", EXPLAIN_US)                                                                                          \
    ROW(SUBJECT, bandwidth_s, as_part(s->cost.bandwidth_s), "s", JSON, "transfer at the bandwidth of the network",               \
        .inside = "parts", .title = "bandwidth", EXPLAIN_US)
#define EXPLAIN_US .text_unit = "us", .scale = 1e6, .show = "%.1f"
/* Seconds; "-" in text for none. */
struct value as_part(double seconds);

/* How many times as long an oversubscribed fabric makes the bandwidth part of an exchange; in text where that is noticed. */
#define EXPLAIN_OVER         1.005
#define EXPLAIN_OVER_MEANING "how many times as long links above leaves or pods make the bandwidth part of the exchange"
struct value as_over(double over, bool shown);

/* The layout must be legal. Text is a table on call->out. */
void explain_works_text(const struct layout *layout, const struct setting *setting, const struct invocation *call);
/* An array of objects with explain_work_rows. */
extern const struct result_row explain_work_rows[];
json_t *explain_works_json(const struct layout *layout, const struct setting *setting);

/* What the kernels of each class of work are, as a profile tells kernels apart: shares of the class's time that sum to 1, those
 * of the middle layer and both ends; 0 for a class without kernels. */
void explain_kinds(const struct layout *layout, const struct setting *setting, double share[N_WORK_CLASSES][N_PROFILE_KINDS]);

/* Seconds by class with their share and meaning, classes of no time left out. */
void explain_breakdown_text(const struct cost_by_class *by, const struct invocation *call);

#endif
