/*
 * plan_sweep_report.h - shared by the reports of a sweep: plan_sweep_report.c (table), plan_sweep_notes.c (text below the table)
 * and plan_sweep_record.c (JSON and CSV). Private to them.
 */
#ifndef MSIM_CLI_PLAN_PLAN_SWEEP_REPORT_H
#define MSIM_CLI_PLAN_PLAN_SWEEP_REPORT_H

#include <stdio.h>

#include "cli/plan/plan_sweep.h"

/* What some point of a sweep has: whether there is a column of it, or a note. */
struct sweep_traits {
    bool grown, usual;          /* as of a point (plan_sweep.h) */
    bool fits;                  /* a plan; the rest only of plans */
    bool uneven, drops, masks;  /* as of a plan */
    bool costs, energy;         /* a price, a budget and published power */
    bool offloads;              /* to the memory of the host */
    bool rates_differ;          /* by the convention of MFU */
    bool batch_follows;         /* varies between points, in sequences, without being asked to */
    bool batch_is_one_sequence; /* of each GPU, everywhere, and so varies */
};

const struct sweep_key *sweep_key_at(const struct plan_axes *axes, int axis, int key);
/* Of a key, at a point. */
const char *sweep_value_at(const struct plan_axes *axes, int axis, int key, int point);
/* The first point that is an experiment; there is one. */
const struct sweep_point *sweep_first_real(const struct plan_sweep *sweep);
/* Tokens a second and GPU over those of the first GPU count that fits, everything else the same; 0: not a question of GPUs. */
double sweep_scaling(const struct plan_sweep *sweep, int point);
/* Are there prices, but none of this point's GPU? */
bool sweep_is_unpriced(const struct plan_sweep *sweep, int point);
/* Why a point has no plan: there is no such experiment, or no layout is legal or fits. Returns buffer. */
char *sweep_point_why(const struct sweep_point *point, char *buffer, size_t size);

void sweep_notes_write(const struct plan_sweep *sweep, const struct sweep_traits *some, FILE *out);
MUST_CHECK enum status sweep_write_json(const struct plan_sweep *sweep, struct invocation *call);
void sweep_write_csv(const struct plan_sweep *sweep, const struct invocation *call);

#endif
