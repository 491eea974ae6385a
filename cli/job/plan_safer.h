/*
 * plan_safer.h - where the fastest plan may well run out of memory: the fastest one that hardly does.
 *
 * A search ranks by time what fits by prediction, and the fastest often fills the memory, where the record of real runs
 * (model/cost/step/track_record.h) has two in five that failed. Nobody should take it unaware: beside a first plan above
 * SHARE_RISKY stands what --memory-margin puts first with the room that leaves SHARE_WITH_MARGIN (cli/output/expectation.h). That
 * is a search of its own, as what a family of layouts recomputes follows from the memory there is.
 *
 * `layout: auto` and --export take the first plan all the same, with a warning. The record is mostly of eager stacks, the share
 * the higher one of two that can be argued for (model/cost/step/RECORD.md), and what auto means should be what the table shows
 * first, not depend on a threshold; who wants room says so, once, with --memory-margin or job.memory_margin. Nor does the table
 * put the safer one of two plans first that are nearly as fast: it would no longer be in order, and a faster link could make the
 * first plan slower, by as much as counts as nearly.
 */
#ifndef MSIM_CLI_JOB_PLAN_SAFER_H
#define MSIM_CLI_JOB_PLAN_SAFER_H

#include <jansson.h>

#include "cli/job/plan_find.h"
#include "cli/options/command.h"

/* Of runs as full as a plan this share runs out of memory: above it the plan needs a word. */
#define SHARE_RISKY 0.2

struct safer_plan {
    bool wanted;           /* the first plan is risky; the rest only then */
    bool found;            /* some plan leaves as much room */
    double share, first_s; /* of the first plan: of runs as full, what share runs out of memory; its step */
    double safer_share;    /* the same of the other plan */
    struct ranked_plan plan;
};

/* Beside the first plan of an experiment, shared over the ranks of the world, with the call's options of the search. */
void safer_plan_find(const struct ranked_plan *first, const struct setting *setting, const struct space_limits *limits,
                     struct invocation *call, struct safer_plan *safer);
/* Beside the one that plan_choose chose under the same restrictions, by this process alone. */
void safer_plan_choose(const struct ranked_plan *chosen, const struct setting *setting, const char *restrictions,
                       struct safer_plan *safer);

/* A line below a table of plans: the plan's place among them, where it has one. Nothing where it is not wanted. */
void safer_plan_write(const struct safer_plan *safer, const struct ranked_plan *plans, int n_plans, FILE *out);
/* The same as a warning about `what` ("layout: auto on 512 GPUs"), once. */
void safer_plan_warn(const struct safer_plan *safer, const char *what, struct diags *diags);
/* {"memory_margin_pct", "slower_pct", "plan"}, where plan is null if none leaves as much room; NULL where it is not wanted. */
json_t *safer_plan_json(const struct safer_plan *safer, const struct setting *setting);

#endif
