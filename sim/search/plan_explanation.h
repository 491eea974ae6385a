/*
 * plan_explanation.h - one layout in full: is it legal, does it fit, how long does a step take.
 *
 * Example: the best layout with tp = 4 and 16 pipeline stages, and why it is not the best of all:
 *
 *     struct ranked_plan plan = {0};
 *     plan_complete("tp=4,pp=16", at, &setting, threads, &plan.plan, &diags);
 *     plan_explain(&plan, &setting, &explanation, &diags);
 *     explanation.reason, explanation.why               LAYOUT_LEGAL, or the rule that it breaks with its numbers
 *     explanation.memory.total                          bytes of the fullest stage
 *     ranked_step_s(&explanation.plan)                  simulated
 */
#ifndef MSIM_SIM_SEARCH_PLAN_EXPLANATION_H
#define MSIM_SIM_SEARCH_PLAN_EXPLANATION_H

#include "sim/search/plan_ranking.h"

struct explanation {
    struct ranked_plan plan;
    enum layout_reason reason; /* LAYOUT_LEGAL, or why not; then nothing but the layout and `why` counts */
    char why[256];             /* the reason with its numbers */
    struct footprint memory;
    int memory_stage;
    double capacity_bytes;
};

/* The layout that a text means: "tp=4,pp=16" is completed in the best way that fits, in the smallest way where none fits, and by
 * layout_complete where none is legal; "tp4 pp16 mb1 z1", as tables print layouts, leaves nothing open. `at`: where the text came
 * from. STATUS_USAGE with a diagnostic when it is no layout. */
MUST_CHECK enum status plan_complete(const char *text, struct place at, const struct setting *setting, int threads,
                                     struct plan *plan, struct diags *diags);
/* Simulates the plan if it is legal and not simulated yet. */
void plan_explain(const struct ranked_plan *plan, const struct setting *setting, struct explanation *explanation,
                  struct diags *diags);

#endif
