/*
 * framework_typos.h - keys of a configuration that nobody reads and that are spelt nearly as one that matters.
 *
 * A reader knows a framework's words for parallelism, batch, sequence, precision, recomputation and optimizer, and not the
 * hundreds of others, so an unknown key is not a mistake. It is told where a known key of the same mapping is missing and the two
 *
 *     have as many words, of which those that differ begin alike and are at most two letters apart (one, of four or five
 * letters), or one is the other's beginning (seq_length, seq_len); or differ by underscores and capitals only; or the words of
 * one are, in order, at least half of the known one's (micro_batch_per_gpu, train_micro_batch_size_per_gpu).
 *
 * Short words are other things (tp_size, cp_size), and numbers are, too. Of groups that have all of Megatron-LM's words, which
 * are many, a part of a name's words is no typo.
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TYPOS_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_TYPOS_H

#include "model/spec/yaml.h"
#include "traces/launch/frameworks/framework_table.h"

/* A warning for each such key of the file; of a framework whose keys are all known, read or ignored, a note for each other. */
void framework_report_typos(const struct yaml_node *root, const struct framework *framework, const char *file,
                            struct diags *diags);

#endif
