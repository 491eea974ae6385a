/*
 * settings.h - small jobs, their spaces, and what is found in them, for the tests of the search.
 */
#ifndef MSIM_TESTS_PLAN_SETTINGS_H
#define MSIM_TESTS_PLAN_SETTINGS_H

#include "model/layout/layout.h"
#include "model/plan/search.h"
#include "model/plan/space.h"

/* A setting that owns what it points to. */
struct job_case {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct setting setting;
};

/* A dense model of `layers` layers, 8 heads and width 512 on nodes of 8 A100s; all overlaps allowed. The case is set up
 * in place because its setting points into it. */
void dense_case(struct job_case *c, int layers, int gpus, int64_t global_batch);
/* The same with `experts` experts in every layer. */
void mixture_case(struct job_case *c, int layers, int experts, int gpus, int64_t global_batch);
/* A GPT of 175 billion parameters (96 layers, width 12,288, 128 heads). */
void gpt_175b_case(struct job_case *c, int gpus, int64_t global_batch);

/* The space of a job under `restrictions`, such as "tp=1..8,pp=4"; NULL none. The test fails where there is no such space. */
struct space *space_of(const struct setting *setting, const char *restrictions);

/* Equal in every dimension. */
bool same_layout(const struct layout *a, const struct layout *b);

/* What a search finds; free with search_result_free. */
struct search_result search(const struct space *space, struct search_options options);
/* Finds the best layouts of a setting under restrictions (space_restrict; NULL: none). If nothing fits: STATUS_BAD_INPUT, with
 * the remedies among `diags`. */
enum status plans_best(const struct setting *setting, const char *restrictions, const struct search_options *options,
                       struct search_result *result, struct diags *diags);
/* Ends the test where two searches count other layouts, or find other plans, to the last bit. */
void check_same_plans(const struct search_result *a, const struct search_result *b);

#endif
