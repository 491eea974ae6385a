#include "tests/plan/population.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/random.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form.h"
#include "model/plan/search.h"
#include "model/spec/catalog.h"
#include "sim/step/step.h"

#define OVERLAPS (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA))
#define KERNELS  (FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS))

const struct population_job population_jobs[] = {
    {"gpt-175b-megascale", "megascale-a100", 256, 256, 2048, KERNELS | OVERLAPS},
    {"llama3-70b", "dgx-h100", 64, 128, 8192, KERNELS | OVERLAPS},
    {"llama2-13b", "megascale-a100", 64, 512, 2048, FEATURE_BIT(FLASH_ATTENTION2)},
    {"llama3.2-1b", "dgx-h100", 32, 128, 4096, KERNELS | OVERLAPS},
    {"gpt-oss-120b", "dgx-h100", 64, 256, 4096, KERNELS | OVERLAPS},
    {"nemotron-h-8b", "dgx-h100", 64, 256, 8192, KERNELS | OVERLAPS},
    {"qwen3-next-80b-a3b", "dgx-h100", 128, 512, 4096, KERNELS | OVERLAPS},
    {"deepseek-v3", "dgx-h100", 512, 1024, 4096, KERNELS | OVERLAPS | FEATURE_BIT(EP_OVERLAP)},
};
const int population_n_jobs = sizeof population_jobs / sizeof population_jobs[0];

bool population_case(const struct population_job *job, struct job_case *c)
{
    struct diags diags = {0};
    memset(c, 0, sizeof *c);
    bool known = catalog_model(job->model, &c->model, &diags) == STATUS_OK &&
                 catalog_cluster(job->cluster, &c->cluster, &diags) == STATUS_OK;
    diags_free(&diags);
    c->job = (struct job){
        .global_batch = job->global_batch,
        .seq_len = job->seq_len,
        .precision = PRECISION_BF16,
        .gradient_precision = PRECISION_FP32,
        .optimizer = OPTIMIZER_ADAM,
        .features = job->features,
    };
    c->setting = (struct setting){&c->model, &c->cluster, &c->job, job->gpus};
    return known;
}

/* Passes of all stages: what a simulation of chunks takes. */
static int64_t passes_of(const struct layout *layout, const struct setting *setting)
{
    return layout_micro_batches(layout, setting->job) * layout->pp * layout->vpp;
}

/* NULL: there is none. */
static struct space *space_under(const struct setting *setting, const char *restrictions)
{
    struct space_limits limits = {0};
    struct space *space = NULL;
    struct diags diags = {0};
    if (space_restrict(&limits, restrictions, PLACE_NONE, &diags) != STATUS_OK ||
        space_create(setting, &limits, &space, &diags) != STATUS_OK)
        space = NULL;
    diags_free(&diags);
    return space;
}

int population_draw(const struct setting *setting, enum schedule schedule, uint64_t seed, int n, struct layout *layouts)
{
    enum { TRIES = 4000, PASSES_MAX = 1 << 15 };
    char restriction[64];
    int drawn = 0;
    snprintf(restriction, sizeof restriction, "zero=0,1,2,3,schedule=%s", schedule_name(schedule));
    struct space *space = space_under(setting, restriction);
    if (space == NULL)
        return 0;
    struct random_stream random = random_stream_named(seed, (uint64_t)schedule, (uint64_t)setting->gpus);
    double capacity = footprint_capacity(setting->cluster);
    for (int i = 0; i < TRIES && drawn < n; i++) {
        struct layout *layout = &layouts[drawn];
        struct footprint footprint;
        space_layout(space, random_below(&random, space_size(space)), layout);
        if (layout_check(layout, setting, NULL, 0) != LAYOUT_LEGAL || passes_of(layout, setting) > PASSES_MAX)
            continue;
        footprint_peak(layout, setting, &footprint, NULL);
        drawn += footprint.total <= capacity;
    }
    space_destroy(space);
    return drawn;
}

bool population_time(const struct setting *setting, const struct layout *layout, struct population_times *out)
{
    struct closed_form *form = closed_form_create(setting);
    struct step_estimate estimate;
    closed_form_estimate(form, layout, &estimate);
    closed_form_destroy(form);
    struct step_options options = {.detail = DETAIL_CHUNK};
    struct step_result result;
    struct diags diags = {0};
    bool simulated = step_simulate(layout, setting, &options, &result, NULL, NULL, &diags) == STATUS_OK;
    diags_free(&diags);
    if (simulated)
        *out = (struct population_times){estimate.step_s, result.step_time_s, estimate.by_class, result.breakdown};
    return simulated;
}

static int size_compare(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

struct population_error population_error_of(double *errors, int n)
{
    if (n == 0)
        return (struct population_error){0};
    qsort(errors, (size_t)n, sizeof *errors, size_compare);
    return (struct population_error){fabs(errors[n / 2]), fabs(errors[n * 9 / 10]), fabs(errors[n - 1])};
}

static double simulated_seconds(const struct setting *setting, const struct layout *layout)
{
    struct population_times times;
    return population_time(setting, layout, &times) ? times.simulated_s : HUGE_VAL;
}

struct population_regret population_regret_of(const struct setting *setting, const char *restrictions, int simulated)
{
    struct population_regret regret = {.best_s = HUGE_VAL, .planned_s = HUGE_VAL};
    struct space *space = space_under(setting, restrictions);
    if (space == NULL)
        return regret;
    struct search_options all = {.keep = (int)space_size(space), .variants = true, .threads = 1},
                          first = {.keep = simulated, .threads = 1};
    struct search_result result;
    search_run(space, &all, &result);
    regret.layouts = result.n_plans;
    for (int i = 0; i < result.n_plans; i++)
        regret.best_s = fmin(regret.best_s, simulated_seconds(setting, &result.plans[i].layout));
    search_result_free(&result);
    search_run(space, &first, &result);
    for (int i = 0; i < result.n_plans; i++) {
        double seconds = simulated_seconds(setting, &result.plans[i].layout);
        regret.planned_s = fmin(regret.planned_s, seconds);
        regret.formula_s = i ? regret.formula_s : seconds;
    }
    search_result_free(&result);
    space_destroy(space);
    return regret;
}
