/*
 * remedy.h - when no layout fits: how far off it is, and what would help.
 *
 * Each remedy is tried, not guessed: the space is searched again with one thing changed (one restriction lifted, twice the GPUs,
 * fused attention, fp8) for the layout that needs least memory. Step times are not estimated, so a try costs a fraction of a
 * search.
 */
#ifndef MSIM_MODEL_PLAN_REMEDY_H
#define MSIM_MODEL_PLAN_REMEDY_H

#include "model/plan/search.h"

enum { REMEDIES_MAX = 24 };

struct remedy {
    char what[160];       /* "24576 GPUs", "recompute=full" */
    char option[96];      /* "--gpus 24576": what to type for it; "" where `what` is that */
    struct layout layout; /* that then needs least memory */
    double bytes;         /* what it needs */
    bool fits;
};

/* What would help, in the order tried: restrictions first, then the margin of memory, offloading, software, then more GPUs (the
 * smallest multiple that fits). Only remedies that suffice, or lower the need by 2 % and more, are kept; their number is
 * returned. */
int remedies_find(const struct setting *setting, const struct space_limits *limits, int threads, double closest_bytes,
                  struct remedy remedies[REMEDIES_MAX]);

/* The error for a search without plans, with notes: how many GiB the closest layout misses and what would help; or, when no
 * layout is even legal, which checks refused them. */
void remedies_report(const struct space *space, const struct space_limits *limits, int threads,
                     const struct search_result *result, struct diags *diags);

#endif
