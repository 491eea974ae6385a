/*
 * experiment_flags.h - the tree of an experiment's file with what the command line says laid over it: names, layout, overrides.
 * Private to the reader of experiments.
 */
#ifndef MSIM_MODEL_SPEC_EXPERIMENT_FLAGS_H
#define MSIM_MODEL_SPEC_EXPERIMENT_FLAGS_H

#include "model/spec/experiment.h"
#include "model/spec/yaml.h"

/* The mapping `root` with its short forms in their long ones and the flags over it, in the order --model, --cluster, --gpu,
 * --layout, overrides; what is wrong with them is reported and left out. `root` and all of it stay as they are. */
struct yaml_node *experiment_with_flags(struct yaml_node *root, const struct experiment_flags *flags, struct arena *arena,
                                        struct diags *diags);

#endif
