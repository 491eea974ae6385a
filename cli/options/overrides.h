/*
 * overrides.h - the settings that options and --set make in the experiment, and their contradictions.
 *
 *     --gpus 8 --set job.seq_len=4096         two overrides, "cluster.gpus=8" and "job.seq_len=4096"
 *     --gpus 8 --set cluster.gpus=16          the last one counts, with a note
 *     --global-batch 8 --batch-tokens 4M      an error: two keys for the same thing
 */
#ifndef MSIM_CLI_OPTIONS_OVERRIDES_H
#define MSIM_CLI_OPTIONS_OVERRIDES_H

#include "cli/options/command.h"

/*
 * call->overrides from the call's values, in the order of the command line, so that of two that say the same thing the last
 * counts and a suggestion works behind a command as it stands. What goes unheard so is told once a key, against what counts in
 * the end; two keys for one thing are refused, unless null takes one of them back. The keys of a mapping, --set 'faults={spares:
 * 2}', count as if each were said by itself.
 */
void overrides_collect(struct invocation *call);

#endif
