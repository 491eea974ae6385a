#include "tests/sim/step/drawn_layouts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "model/plan/space.h"

enum { TRIES = 100000 };

/* ZeRO 2 in pipelines, too, and zb-2p: a search tries them only where they are named. */
#define EVERY_ZERO "zero=0,1,2,3,schedule=none,gpipe,1f1b,interleaved,zb-1p,zb-2p"

/* The next that is legal. Returns 32 random bits. */
static uint64_t draw_legal(const struct space *space, const struct setting *setting, const char *with,
                           struct random_stream *random, struct layout *layout)
{
    struct diags diags = {0};
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t bits = random_bits(random);
        space_layout(space, bits % space_size(space), layout);
        if (with)
            ck_assert_int_eq(layout_parse(with, layout, &diags), STATUS_OK);
        if (layout_check(layout, setting, NULL, 0) == LAYOUT_LEGAL)
            return bits >> 32;
    }
    ck_abort_msg("none of %d layouts with %s is legal", TRIES, with ? with : "what they have");
}

void each_layout(struct job_case *c, struct drawing drawing, check_layout *check)
{
    struct random_stream random = {.key = drawing.seed};
    struct space *space = space_of(&c->setting, EVERY_ZERO);
    for (int i = 0; i < drawing.n; i++) {
        struct layout layout;
        uint64_t draw = draw_legal(space, &c->setting, drawing.with, &random, &layout);
        check(c, &layout, draw);
    }
    space_destroy(space);
}

struct step_result simulated(const struct job_case *c, const struct layout *layout, struct step_options options)
{
    struct step_result result;
    struct breakdown own, *stages = options.stages ? options.stages : &own;
    struct diags diags = {0};
    char text[LAYOUT_TEXT];

    options.stages = stages;
    options.verify = true;
    enum status status = step_simulate(layout, &c->setting, &options, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s: %s", layout_format(layout, text, sizeof text),
                  diags.n_items > 0 ? diags.items[0].text : "");
    ck_assert(breakdown_sums(stages));
    if (stages == &own)
        breakdown_free(&own);
    diags_free(&diags);
    return result;
}

enum detail drawn_detail(uint64_t draw)
{
    return draw % 8 == 0 ? DETAIL_KERNEL : draw % 8 == 1 ? DETAIL_LAYER : DETAIL_CHUNK;
}

void check_folding(struct job_case *c, const struct layout *layout, uint64_t draw)
{
    const int64_t alike = c->setting.gpus / layout->pp;
    struct breakdown folded, all, ordered;
    struct step_options options = {.detail = drawn_detail(draw), .stages = &folded};
    struct step_result f = simulated(c, layout, options);
    options.all_ranks = true;
    options.stages = &all;
    struct step_result a = simulated(c, layout, options);
    options.time_order = true;
    options.stages = &ordered;
    struct step_result o = simulated(c, layout, options);
    char text[LAYOUT_TEXT];

    ck_assert_msg(f.step == a.step, "%s: %lld folded, %lld with all ranks", layout_format(layout, text, sizeof text),
                  (long long)f.step, (long long)a.step);
    ck_assert_int_eq(a.step, o.step);
    ck_assert_int_eq(a.actors, c->setting.gpus);
    ck_assert_int_eq(f.actors, layout->pp);
    ck_assert_uint_eq(a.events, f.events * (uint64_t)alike);
    ck_assert_double_eq_tol(f.hfu, a.hfu, 1e-9);
    for (int s = 0; s < layout->pp; s++)
        for (int class = 0; class < N_WORK_CLASSES; class ++) {
            ck_assert_int_eq(folded.stages[s].by_class.ns[class] * alike, all.stages[s].by_class.ns[class]);
            ck_assert_int_eq(all.stages[s].by_class.ns[class], ordered.stages[s].by_class.ns[class]);
        }
    breakdown_free(&folded);
    breakdown_free(&all);
    breakdown_free(&ordered);
}

static double closed_form_error(const struct job_case *c, const struct layout *layout)
{
    struct closed_form *form = closed_form_create(&c->setting);
    struct step_estimate estimate;
    struct footprint peak;
    closed_form_estimate(form, layout, &estimate);
    closed_form_destroy(form);
    footprint_peak(layout, &c->setting, &peak, NULL);
    ck_assert_double_eq_tol(estimate.memory_bytes, peak.total, 1);
    return estimate.step_s / simulated(c, layout, (struct step_options){0}).step_time_s - 1;
}

void check_closed_form(struct job_case *c, struct drawing drawing, struct population_error most)
{
    struct random_stream random = {.key = drawing.seed};
    struct space *space = space_of(&c->setting, EVERY_ZERO);
    double *errors = memory_new((size_t)drawing.n, sizeof *errors);
    for (int i = 0; i < drawing.n; i++) {
        struct layout layout;
        (void)draw_legal(space, &c->setting, drawing.with, &random, &layout);
        errors[i] = closed_form_error(c, &layout);
        char text[LAYOUT_TEXT];
        if (fabs(errors[i]) > most.largest)
            printf("%+.1f %%: %s\n", 100 * errors[i], layout_format(&layout, text, sizeof text));
    }
    space_destroy(space);
    struct population_error e = population_error_of(errors, drawing.n);
    free(errors);
    printf("%s: median %.2f %%, 90th percentile %.1f %%, largest %.1f %%\n", drawing.with, 100 * e.median, 100 * e.p90,
           100 * e.largest);
    ck_assert_double_lt(e.median, most.median);
    ck_assert_double_lt(e.p90, most.p90);
    ck_assert_double_lt(e.largest, most.largest);
}
