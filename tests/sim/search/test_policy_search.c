/*
 * Campaigns of replicas and what is built of them: independence of processes and threads, resuming from a journal, the best
 * policy, and the points of a grid.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/search/policy_optimum.h"
#include "sim/search/run_grid.h"
#include "tests/sim/run/case.h"
#include "tests/sim/search/processes_of_threads.h"
#include "tests/suite.h"

enum { N = 12 };

/* A run that owns its parts: 1,536 nodes for 20 days under MegaScale's policy and fault model. */
struct owned_run {
    struct experiment experiment;
    struct run_options options;
    struct run_robust robust;
    struct run_failover failover;
    struct robust_policy policy;
    struct fault_model model;
    struct fault_trace trace;
    struct repairs repairs;
    struct startup startup;
    struct run_parts parts;
};

static struct owned_run *run_of(int spares)
{
    struct owned_run *r = calloc(1, sizeof *r);
    r->model = case_fault_model("megascale");
    r->policy = case_policy("megascale");
    r->robust = (struct run_robust){.policy = &r->policy, .restart = SECONDS(190), .restart_hot = SECONDS(120)};
    r->options = case_options(1536, 20 * 86400.0, 1800, 5, 0, spares);
    r->options.robust = &r->robust;
    r->repairs = repairs_of_model(&r->model);
    r->parts = (struct run_parts){&r->experiment, &r->options, &r->robust,  &r->failover,      &r->policy,        &r->model,
                                  &r->trace,      &r->repairs, &r->startup, .has_model = true, .has_policy = true};
    return r;
}

static void run_free(struct owned_run *r)
{
    repairs_free(&r->repairs);
    free(r);
}

static struct campaign campaign_of(const struct processes *processes, int threads)
{
    return (struct campaign){.version = "1", .seed = 7, .threads = threads, .processes = *processes};
}

static void run_all(const struct processes *processes, int threads, const char *path, struct replica_outcome *outcomes)
{
    struct diags diags = {0};
    struct owned_run *r = run_of(4);
    struct campaign campaign = campaign_of(processes, threads);
    memset(outcomes, 0, N * sizeof *outcomes);
    ck_assert(campaign_open(&campaign, &r->parts, path, NULL, &diags) == STATUS_OK);
    ck_assert(campaign_run(&campaign, &r->parts, N, outcomes, &diags) == STATUS_OK);
    campaign_close(&campaign);
    run_free(r);
    diags_free(&diags);
}

struct expected {
    struct replica_outcome outcomes[N];
    int threads;
};

static void run_as_one_of_several(void *context, const struct processes *processes)
{
    const struct expected *expected = context;
    struct replica_outcome outcomes[N];
    run_all(processes, expected->threads, NULL, outcomes);
    ck_assert_mem_eq(outcomes, expected->outcomes, sizeof outcomes);
}

START_TEST(processes_and_threads_change_nothing)
{
    static const int processes[] = {1, 2, 5}, threads[] = {3, 1, 2};
    struct expected expected = {.threads = threads[_i]};
    run_all(&one_process, 1, NULL, expected.outcomes);
    play_processes(processes[_i], run_as_one_of_several, &expected);
}
END_TEST

static size_t lines_of(const char *path)
{
    size_t n = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    for (int c; (c = fgetc(file)) != EOF;)
        n += c == '\n';
    fclose(file);
    return n;
}

/* All replicas are in the journal once; a second campaign takes them from it; a journal of another seed is refused. */
START_TEST(a_journal_is_taken_up_again)
{
    struct replica_outcome first[N], again[N];
    char path[] = "/tmp/msim-journal-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    run_all(&one_process, 2, path, first);
    ck_assert_uint_eq(lines_of(path), N);
    run_all(&one_process, 1, path, again);
    ck_assert_uint_eq(lines_of(path), N);
    ck_assert_mem_eq(first, again, sizeof first);
    struct diags diags = {0};
    struct owned_run *r = run_of(4);
    struct campaign other = campaign_of(&one_process, 1);
    other.seed++;
    ck_assert(campaign_open(&other, &r->parts, path, NULL, &diags) == STATUS_BAD_INPUT);
    campaign_close(&other);
    run_free(r);
    diags_free(&diags);
    unlink(path);
}
END_TEST

/* From a bad start the search finds a cheaper policy, leaves the run at it, and its price is that of the policy. */
START_TEST(the_best_policy_is_cheaper)
{
    struct diags diags = {0};
    struct owned_run *r = run_of(64);
    struct campaign campaign = campaign_of(&one_process, 2);
    struct policy_search search = {.run = &r->parts, .n = N, .campaign = &campaign, .diags = &diags};
    struct policy_optimum *o = calloc(1, sizeof *o);
    for (int i = 0; i < N_POLICY_LEVERS; i++)
        if (strcmp(policy_levers[i].name, "spares") == 0 || strcmp(policy_levers[i].name, "checkpoint-interval") == 0) {
            ck_assert_int_eq(policy_levers[i].refuse(&r->parts), LEVER_FREE);
            o->used[i] = true;
            o->n_used++;
        }
    ck_assert(campaign_open(&campaign, &r->parts, NULL, NULL, &diags) == STATUS_OK);
    policy_search_open(&search);
    policy_optimise(&search, o);
    ck_assert(search.status == STATUS_OK);
    ck_assert_double_lt(o->price_end, o->price_start);
    ck_assert_int_lt(o->best.recovery.spares, 64);
    ck_assert_int_eq(r->options.recovery.spares, o->best.recovery.spares);
    ck_assert_int_eq(r->options.checkpoint.interval, o->best.checkpoint.interval);
    double price = policy_price(&search);
    ck_assert_mem_eq(&price, &o->price_end, sizeof price);
    policy_search_close(&search);
    campaign_close(&campaign);
    free(o);
    run_free(r);
    diags_free(&diags);
}
END_TEST

/* Why levers cannot be searched. */
START_TEST(levers_say_why_not)
{
    struct owned_run *r = run_of(4);
    r->parts.has_policy = false;
    r->options.checkpoint.block = 0;
    for (int i = 0; i < N_POLICY_LEVERS; i++) {
        const struct policy_lever *lever = &policy_levers[i];
        enum lever_refusal refusal = lever->refuse(&r->parts);
        enum lever_refusal expected = strcmp(lever->name, "spares") == 0                ? LEVER_FREE
                                      : strcmp(lever->name, "checkpoint") == 0          ? LEVER_COST_UNKNOWN
                                      : strcmp(lever->name, "checkpoint-interval") == 0 ? LEVER_CHECKPOINTS_COST_NOTHING
                                                                                        : LEVER_WITHOUT_POLICY;
        ck_assert_int_eq(refusal, expected);
    }
    run_free(r);
}
END_TEST

struct sweep {
    struct owned_run *run;
    struct campaign *campaign;
    const struct run_grid *grid;
    struct run_point *points;
};

static enum status run_point(void *context, int i, struct replica_outcome *outcomes)
{
    struct sweep *sweep = context;
    struct diags diags = {0};
    run_grid_set(sweep->grid, i, &sweep->run->parts);
    sweep->points[i].options = sweep->run->options;
    enum status status = campaign_run_own(sweep->campaign, &sweep->run->parts, N, outcomes, &diags);
    diags_free(&diags);
    return status;
}

/* Every combination once, the first axis fastest; each point is what its run is by itself. */
START_TEST(points_are_runs)
{
    struct run_grid grid = {.n_axes = 2,
                            .n_points = 6,
                            .axes = {{.key = RUN_SWEEP_SPARES, .n = 3, .values = {0, 2, 8}},
                                     {.key = RUN_SWEEP_RESTART, .n = 2, .values = {60, 1200}}}};
    struct run_point points[6] = {0};
    struct diags diags = {0};
    struct owned_run *r = run_of(4);
    struct campaign campaign = campaign_of(&one_process, 2);
    struct sweep sweep = {r, &campaign, &grid, points};
    ck_assert(campaign_open(&campaign, &r->parts, NULL, NULL, &diags) == STATUS_OK);
    ck_assert(run_grid_run(&grid, N, &one_process, run_point, &sweep, points) == STATUS_OK);
    for (int i = 0; i < 6; i++) {
        struct replica_outcome outcomes[N] = {0};
        ck_assert_double_eq(run_grid_value(&grid, 0, i), grid.axes[0].values[i % 3]);
        ck_assert_double_eq(run_grid_value(&grid, 1, i), grid.axes[1].values[i / 3]);
        run_grid_set(&grid, i, &r->parts);
        ck_assert_int_eq(r->options.recovery.spares, (int)grid.axes[0].values[i % 3]);
        ck_assert(campaign_run(&campaign, &r->parts, N, outcomes, &diags) == STATUS_OK);
        double mean = outcomes_estimate(outcomes, N, outcome_goodput).mean;
        ck_assert_double_eq_tol(points[i].goodput.mean, 100 * mean, 1e-9);
    }
    ck_assert_double_lt(points[3].goodput.mean, points[0].goodput.mean); /* a longer restart */
    campaign_close(&campaign);
    run_free(r);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy_search");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, processes_and_threads_change_nothing, 0, 3);
    tcase_add_test(all, a_journal_is_taken_up_again);
    tcase_add_test(all, the_best_policy_is_cheaper);
    tcase_add_test(all, levers_say_why_not);
    tcase_add_test(all, points_are_runs);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
