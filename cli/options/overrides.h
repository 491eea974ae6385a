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
 * Makes call->overrides from the values of the call, in the order of the command line. Of two values for one key the last counts,
 * so a suggestion works when it is appended to a command. One note per key reports the value that is not used. Two keys for one
 * thing are refused, unless null removes one of them. The keys of a mapping, --set 'faults={spares: 2}', count separately.
 */
void overrides_collect(struct invocation *call);

#endif
