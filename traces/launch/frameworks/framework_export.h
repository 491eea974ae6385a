/*
 * framework_export.h - a layout as the configuration of another framework: the tables that read its keys, the other way round.
 *
 * The job becomes arguments (megatron_export.h), and arguments become keys. Written are the keys that msim knows, with their
 * values also where those are usual: recipes' own defaults differ. What the framework has no key for, or does otherwise whatever
 * one says, is told. Reading the file again (msim import) gives the same job where nothing was lost.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_H

#include <stdio.h>

#include "model/base/diag.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch.h"

/* The configuration of a framework, in its language: YAML of "NeMo" and "nanotron", TOML of "torchtitan", of "Megatron-Bridge"
 * and "NeMo 2" a program that changes a recipe (any other is a programmer's mistake); `heading` lines of comment in front. What
 * is lost goes to diags, too. Megatron-Bridge's says how many GPUs only in a comment: what starts it says so. */
void framework_write_config(const struct frameworks *frameworks, const char *framework, const struct launch_job *job,
                            const char *const *heading, int n_heading, FILE *out, struct diags *diags);

/* Layouts that one of these, or "Megatron-LM", can say of a model and a job with these features: restrictions of a search's
 * dimensions, as space_restrict reads them, NULL behind the last, and the modules that it cannot be told to repeat. */
struct framework_layouts {
    const char *restrictions[9];
    enum recompute_what unsaid;
};
struct framework_layouts framework_layouts_of(const char *framework, const struct transformer *model, feature_set features);

/* How many things of a job the file does not say. */
int framework_n_lost(const struct frameworks *frameworks, const char *framework, const struct launch_job *job);

#endif
