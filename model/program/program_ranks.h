/*
 * program_ranks.h - assign scripts, peers and groups to ranks (private to the program folder).
 *
 * Example: tp=2, pp=2, dp=2. Rank 1 runs script 0; its next peer is rank 5, and its GROUP_DP is {1, 3}.
 */
#ifndef MSIM_MODEL_PROGRAM_RANKS_H
#define MSIM_MODEL_PROGRAM_RANKS_H

#include "model/program/program.h"

/* Fills ranks, groups and members of a program with complete scripts, one per stage. Only groups that scripts use are listed.
 * O(ranks) per kind of group. */
void program_ranks_build(struct program *program, bool folded);

#endif
