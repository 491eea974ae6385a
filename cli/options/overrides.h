/*
 * overrides.h - what options and --set say of the experiment, and whether they contradict one another.
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
