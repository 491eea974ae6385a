/* What ways over a dragonfly are like. */
#ifndef MSIM_TESTS_SIM_DRAGONFLY_WAYS_H
#define MSIM_TESTS_SIM_DRAGONFLY_WAYS_H

#include "sim/fabric/route.h"

/* Asserts that each link of a way between two ports begins where the one before ended, by the arithmetic of links, and is up;
 * returns how many cables there are between switches. */
int assert_way(const struct fabric *f, const struct path *path, int from, int to);
/* Cables between groups. */
int globals_of(const struct fabric *f, const struct path *path);

#endif
