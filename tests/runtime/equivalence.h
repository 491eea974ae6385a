/*
 * equivalence.h - a layout divides the work and changes nothing else: loss and every gradient of any layout equal those of one
 * rank, to 1e-5 of the largest gradient of each tensor (fp32). Cases take the details of a program in turn. Over the layouts of a
 * suite, each model meets all details; a layout meets one per model.
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
/* Whose turn it is in case number n. */
enum detail detail_in_turn(int n);
/* Ends the test where the first step of a layout of a model differs from one rank's, at the detail whose turn is in case n. */
void check_variant(enum toy_model model, const struct variant *variant, int n);

#endif
