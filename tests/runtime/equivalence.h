/*
 * equivalence.h - a layout divides the work and changes nothing else: loss and every gradient of any layout equal those of one
 * rank, to 1e-5 of the largest gradient of each tensor (fp32), at every detail of the program.
 */
#ifndef MSIM_TESTS_RUNTIME_EQUIVALENCE_H
#define MSIM_TESTS_RUNTIME_EQUIVALENCE_H

#include "tests/runtime/toys.h"

struct variant {
    const char *layout;   /* as layout_parse reads it */
    feature_set features; /* turned over: those the toy has are taken away */
};
#define PP       FEATURE_BIT(PP_OVERLAP)
#define DP       FEATURE_BIT(DP_OVERLAP)
#define TP       FEATURE_BIT(TP_OVERLAP)
#define PARALLEL FEATURE_BIT(PARALLEL_BLOCK)
#define PAIRS    FEATURE_BIT(EP_OVERLAP)
#define PYTORCH  (FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(COMPILE)) /* compiled instead of fused by hand */

/* Ends the test where a toy differs from one rank with the same model and batch, in either of two steps. */
void check_toy(const struct toy *toy, enum detail detail);
/* The same of one step, where rounding differs from the first on: Adam makes more of it. */
void check_first_step(const struct toy *toy, enum detail detail);
/* Ends the test where three steps of a toy that keeps something in the memory of the host differ from those of one that does not:
 * in a bit, or, where sums are taken in another order, by more than check_toy allows. */
void check_offloaded(const struct toy *toy, enum detail detail);
/* The same for layouts of a model, at every detail. Ends the test where a layout differs from one rank with the same model and
 * batch. */
void check_variants(enum toy_model model, const struct variant *variants, size_t n);
#endif
