/*
 * drawn_layouts.h - steps of legal layouts that are drawn from the space of a job, and what has to hold of each.
 */
#ifndef MSIM_TESTS_DRAWN_LAYOUTS_H
#define MSIM_TESTS_DRAWN_LAYOUTS_H

#include "sim/step/step.h"
#include "tests/plan/population.h"

/* `n` layouts, with what a text says of all of them ("recompute=full:2"); NULL: as they are drawn. */
struct drawing {
    uint64_t seed;
    int n;
    const char *with;
};

/* `draw`: 32 random bits beside the layout. */
typedef void check_layout(struct job_case *c, const struct layout *layout, uint64_t draw);
void each_layout(struct job_case *c, struct drawing drawing, check_layout *check);

/* Kernels for one draw in eight, layers for another, else chunks. */
enum detail drawn_detail(uint64_t draw);

/* A step that has to be possible, its program verified, and its stages' times summing to it. */
struct step_result simulated(const struct job_case *c, const struct layout *layout, struct step_options options);

/* Neither folding nor the order of events changes a nanosecond of the step or of any stage's classes, nor what is computed. */
void check_folding(struct job_case *c, const struct layout *layout, uint64_t draw);

/* The closed form's errors over drawn layouts are below `most` (which is what it does and a little more); its memory is that of
 * the footprint. */
void check_closed_form(struct job_case *c, struct drawing drawing, struct population_error most);

#endif
