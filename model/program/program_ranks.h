/*
 * program_ranks.h - who runs which script, with whom (private to the program folder).
 */
#ifndef MSIM_MODEL_PROGRAM_RANKS_H
#define MSIM_MODEL_PROGRAM_RANKS_H

#include "model/program/program.h"

/* Fill ranks, groups and members of a program whose scripts (one per stage) are complete. Only groups that scripts use are
 * listed. O(ranks) per kind of group. */
void program_ranks_build(struct program *program, bool folded);

#endif
