/*
 * name_typo.h - whether a name is likely to be a misspelt other one.
 *
 *     seq_lenght    seq_length                        a typo: one word differs by two letters
 *     seq_len       seq_length                        a typo: one is the beginning of the other
 *     seqLength     seq_length                        a typo: underscores and capitals only
 *     micro_batch_per_gpu  train_micro_batch_size_per_gpu   words left out
 *     tp_size       cp_size                           another name: short words differ
 *
 * Two names are compared word by word. They have as many words, and those that differ begin alike and are at most two letters
 * apart (one, of four or five letters), or one is the beginning of the other. Numbers always make another name.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_NAME_TYPO_H
#define MSIM_TRACES_LAUNCH_JOB_NAME_TYPO_H

#include <stdbool.h>

/* How far `name` is from `meant`: 0 for another name or the same, else the smaller the nearer. `shortened`: words may be left
 * out, as long as those that are there are at least half of the known name's and stand in its order. */
int name_typo(const char *name, const char *meant, bool shortened);

#endif
