/*
 * experiment_flags.h - apply the command line to the tree of an experiment's file: names, layout, overrides. Private to the
 * reader of experiments.
 *
 * Example: --set job.global_batch=512 over a file with `job: {global_batch: 6144}` gives a tree with 512; messages about it
 * name --set.
 */
#ifndef MSIM_MODEL_SPEC_EXPERIMENT_FLAGS_H
#define MSIM_MODEL_SPEC_EXPERIMENT_FLAGS_H

#include "model/spec/experiment.h"
#include "model/spec/yaml.h"

/* The mapping `root` with short forms expanded and the flags applied in the order --model, --cluster, --gpu, --layout,
 * overrides. Wrong flags are reported and left out. `root` and its children do not change. */
struct yaml_node *experiment_with_flags(struct yaml_node *root, const struct experiment_flags *flags, struct arena *arena,
                                        struct diags *diags);

#endif
