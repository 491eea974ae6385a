/*
 * framework_typos.h - keys of a configuration that no table has and that are spelt nearly like one that matters.
 *
 *     train.yaml:4:1: warning: gradient_acumulation_steps is unknown to msim and left out; did you mean
 * 'gradient_accumulation_steps'?
 *
 * A table has the keys for parallelism, batch, sequence, precision, recomputation and optimizer, and not the hundreds of others,
 * so an unknown key is no mistake by itself. It is reported if it is a typo (name_typo.h) of a known key of the same mapping that
 * is missing. Words may be left out (micro_batch_per_gpu for train_micro_batch_size_per_gpu), but not in groups with all of
 * Megatron-LM's names, which are many.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TYPOS_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TYPOS_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"

/* Warns of each such key of a file. For a framework whose table knows all keys (`ignored`), a note names each other unknown
 * key. */
void framework_report_typos(const struct yaml_node *root, const struct framework *framework, const char *file,
                            struct diags *diags);

#endif
