/*
 * drawn.h - toys whose layout and features are drawn at random.
 */
#ifndef MSIM_TESTS_RUNTIME_DRAWN_H
#define MSIM_TESTS_RUNTIME_DRAWN_H

#include "tests/runtime/toys.h"

/* The same number gives the same toy; false: its layout is not legal, or has more than 16 ranks. */
bool draw_toy(uint64_t number, struct toy *toy);

#endif
