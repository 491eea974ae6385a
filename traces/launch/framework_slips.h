/*
 * framework_slips.h - keys of a configuration that nobody reads and that are spelt nearly as one that matters.
 *
 * A reader knows a framework's words for parallelism, batch, sequence, precision, recomputation and optimizer, and not the
 * hundreds of others, so an unknown key is not a mistake. It is told where a known key of the same mapping is missing and the two
 *
 *     have as many words, of which those that differ begin alike and are at most two letters apart (one, of four or five
 * letters), or one is the other's beginning (seq_length, seq_len); or differ by underscores and capitals only; or the words of
 * one are, in order, at least half of the known one's (micro_batch_per_gpu, train_micro_batch_size_per_gpu).
 *
 * Short words are other things (tp_size, cp_size), and numbers are, too. Of groups that have all of Megatron-LM's words, which
 * are many, a part of a name's words is no slip.
 */
#ifndef MSIM_TRACES_FRAMEWORK_SLIPS_H
#define MSIM_TRACES_FRAMEWORK_SLIPS_H

#include "model/spec/yaml.h"
#include "traces/launch/framework_tables.h"

/* How far a key's name is from the one that is meant: 0 for another thing, else the smaller the nearer. `shortened`: words may be
 * left out. */
int framework_slip(const char *name, const char *meant, bool shortened);

/* A warning for each such key of the file; of a framework whose keys are all known, read or ignored, a note for each other. */
void framework_tell_slips(const struct yaml_node *root, const struct framework *framework, const char *file, struct diags *diags);

#endif
