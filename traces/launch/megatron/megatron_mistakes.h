/*
 * megatron_mistakes.h - flags and values that Megatron-LM would refuse, as argparse does without abbreviations.
 *
 *     --num-layer 80                     no argument; did you mean --num-layers?
 *     --recompute-granularity ful        'ful' is not one of full, selective (did you mean 'full'?)
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_MISTAKES_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_MISTAKES_H

#include "traces/launch/megatron/megatron_arguments.h"

/* The flag that a misspelt one, wrong by one or two letters, is likely to be; NULL: none is near. */
const char *megatron_meant(const char *name);

/* Reports an unknown flag that is spelt, word by word, nearly like a modelled one; false if it is not. */
bool megatron_refuse(const struct launch_word *word, struct diags *diags);

/* Why the value of a word is not known: the word's own reason, a missing value, or a value that is none of the choices; NULL:
 * it is known. For a key or a log, *text becomes the choice that is meant. It becomes NULL for a plain no and, with a warning,
 * for a value near to no choice. Texts live in the words' arena. */
const char *megatron_wrong(struct launch_words *words, const struct argument_row *row, const struct launch_word *word,
                           const char **text, struct diags *diags);

#endif
