/*
 * population.h - jobs of the catalog and layouts drawn from their spaces: what the closed form is held against the simulation
 * with, in a test (test_closed_form_error.c) and at length in a benchmark (tests/bench/bench_closed_form.c).
 *
 * Jobs differ in what decides a step: large products on many nodes, small ones that the host paces, experts between nodes, no
 * overlap at all. Layouts are drawn evenly from those of a space that are legal, fit the memory and are not too long to simulate;
 * the same seed draws the same.
 */
#ifndef MSIM_TESTS_PLAN_POPULATION_H
#define MSIM_TESTS_PLAN_POPULATION_H

#include "model/cost/work/cost.h"
#include "model/plan/space.h"
#include "tests/plan/settings.h"

struct population_job {
    const char *model, *cluster; /* catalog names */
    int gpus;
    int64_t global_batch, seq_len;
    feature_set features;
};
extern const struct population_job population_jobs[];
extern const int population_n_jobs;

/* A job's setting, with what it points to. False: the catalog does not have it. */
bool population_case(const struct population_job *job, struct job_case *c);

/* Draw up to n layouts of one schedule; how many there are. */
int population_draw(const struct setting *setting, enum schedule schedule, uint64_t seed, int n, struct layout *layouts);

/* What choosing by the closed form costs: of all layouts under `restrictions` that fit, the fastest by simulation; the fastest of
 * the `simulated` best of the closed form, as `msim plan` takes them; and the closed form's own first. Seconds. */
struct population_regret {
    int layouts;
    double best_s, planned_s, formula_s;
};
struct population_regret population_regret_of(const struct setting *setting, const char *restrictions, int simulated);

/* Seconds of one layout, by the closed form and by simulation; false when it could not be simulated. */
struct population_times {
    double formula_s, simulated_s;
    struct cost_by_class formula, simulated;
};
bool population_time(const struct setting *setting, const struct layout *layout, struct population_times *out);

/* Of the absolute values of n errors, which are sorted by it. */
struct population_error {
    double median, p90, largest;
};
struct population_error population_error_of(double *errors, int n);

#endif
