/*
 * remedy.h - find changes with which a job fits into memory when no layout does.
 *
 * Example: a 70B model on 8 GPUs, no layout fits.
 *
 *     remedies_find(...)      "16 GPUs" (option "--gpus 16", fits), "recompute=full" (lowers the need by 12 %), ...
 *
 * Each remedy is tried: the space is searched again with one change (one restriction lifted, twice the GPUs, fused attention,
 * fp8) for the layout that needs the least memory. Step times are not estimated, so a try costs a fraction of a search.
 */
#ifndef MSIM_MODEL_PLAN_REMEDY_H
#define MSIM_MODEL_PLAN_REMEDY_H

#include "model/plan/search.h"

enum { REMEDIES_MAX = 24 };

struct remedy {
    char what[160];       /* "24576 GPUs", "recompute=full" */
    char option[96];      /* "--gpus 24576": the option that makes the change; "" if `what` is the option */
    struct layout layout; /* the layout that then needs the least memory */
    double bytes;         /* bytes that it needs */
    bool fits;
};

/* Fills in remedies in the order tried and returns their number: restrictions, the margin of memory, offloading, software, then
 * more GPUs (the smallest multiple that fits). Remedies are kept if they suffice or lower the need by at least 2 %. */
int remedies_find(const struct setting *setting, const struct space_limits *limits, int threads, double closest_bytes,
                  struct remedy remedies[REMEDIES_MAX]);

/* Reports the error of a search without plans. Notes say how many GiB the closest layout lacks and which changes would help,
 * or, if no layout is legal, which checks refused them. */
void remedies_report(const struct space *space, const struct space_limits *limits, int threads,
                     const struct search_result *result, struct diags *diags);

#endif
