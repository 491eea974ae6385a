/*
 * framework_export.h - a layout as the configuration of another framework: its table (framework_table.h) read backwards.
 *
 *     [parallelism]
 *     tensor_parallel_degree = 8
 *     pipeline_parallel_degree = 4
 *
 * The job becomes arguments (megatron_export.h), and the arguments become keys. All keys that msim knows are written, also with
 * default values, because the defaults of recipes differ. A comment and a warning name whatever the framework has no key for, or
 * always does differently. Reading the file again (msim import) gives the same job if nothing was lost.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_H

#include <stdio.h>

#include "model/base/diag.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch.h"

/* Writes the configuration of a framework in its language: YAML of "NeMo" and "nanotron", TOML of "torchtitan", a program that
 * changes a recipe of "Megatron-Bridge" and "NeMo 2". Any other name is a programmer's mistake. `heading` are lines of comment
 * at the top. What is lost goes to diags, too. The file of Megatron-Bridge has the number of GPUs only in a comment, because
 * its launcher sets it. */
void framework_write_config(const struct frameworks *frameworks, const char *framework, const struct launch_job *job,
                            const char *const *heading, int n_heading, FILE *out, struct diags *diags);

/* The layouts that a framework, or "Megatron-LM", can express for a model and a job with these features: restrictions of
 * dimensions of the search, as space_restrict reads them, NULL after the last, the modules that it cannot recompute, and whether
 * it interleaves only multiples of pp micro-batches. */
struct framework_layouts {
    const char *restrictions[9];
    enum recompute_what unsaid;
    bool whole_rounds;
};
struct framework_layouts framework_layouts_of(const char *framework, const struct transformer *model, feature_set features);

/* Whether the framework refuses to start with this layout, a legal one for msim; writes why. Interleaved, with m micro-batches
 * per replica: Megatron-Core (and all built on it) refuses groups of N = pp micro-batches where 0 < m % N < pp, or N > m;
 * PyTorch's Interleaved1F1B has max(1, m / pp) rounds, rounded down, and refuses an m that they do not divide. In PyTorch each
 * round has m / rounds micro-batches, which is msim's order only where pp divides m: a search for torchtitan keeps to these
 * (whole_rounds). */
bool framework_refuses(const char *framework, const struct launch_job *job, char *why, size_t size);

/* The number of things of a job that the file cannot express. */
int framework_n_lost(const struct frameworks *frameworks, const char *framework, const struct launch_job *job);

#endif
