/*
 * megatron_mistakes.h - flags and values that a program would refuse: as argparse does without abbreviations, which is how
 * Megatron-LM has it. Private to megatron_arguments.c.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_MISTAKES_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_MISTAKES_H

#include "traces/launch/megatron/megatron_arguments.h"

/* A flag's name that is likely to be meant by a slip of one or two letters; NULL: none is near. */
const char *megatron_meant(const char *name);

/* Reports a flag that nobody knows and that is spelt, word by word, nearly as one that is modelled; false where none is. */
bool megatron_refuse(const struct launch_word *word, struct diags *diags);

/* Why what a word says of an argument cannot be told: the word's own reason, or that a flag has no value, or one that is none of
 * its choices; NULL: it can. Of a key or a log *text becomes the choice that is meant, or NULL where it is a plain no, or, with a
 * warning, what is near to none. Texts are of the words' arena. */
const char *megatron_wrong(struct launch_words *words, const struct argument_row *row, const struct launch_word *word,
                           const char **text, struct diags *diags);

#endif
