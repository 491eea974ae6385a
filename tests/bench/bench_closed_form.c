/*
 * bench_closed_form [LAYOUTS [WORST [SCHEDULE]]] - how far the closed form is from the simulation, for each schedule: LAYOUTS
 * layouts of each job and schedule (default 12; tests/plan/population.h), and the WORST of each schedule (default 0). The
 * command:
 *
 *     build/tests/bench/bench_closed_form
 *     build/tests/bench/bench_closed_form regret
 *
 * The second simulates every layout of part of each job's space: how much slower than the fastest is what `msim plan` chooses.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/plan/population.h"

struct drawn {
    const char *model;
    struct layout layout;
    struct population_times times;
    double error;
};

static struct drawn *draw_all(enum schedule schedule, int n, int *count)
{
    struct drawn *all = memory_new((size_t)(n * population_n_jobs), sizeof *all);
    struct layout *layouts = memory_new((size_t)n, sizeof *layouts);
    *count = 0;
    for (int j = 0; j < population_n_jobs; j++) {
        struct job_case c;
        if (!population_case(&population_jobs[j], &c))
            continue;
        int found = population_draw(&c.setting, schedule, 1, n, layouts);
        for (int i = 0; i < found; i++) {
            struct drawn *at = &all[*count];
            *at = (struct drawn){.model = population_jobs[j].model, .layout = layouts[i]};
            if (!population_time(&c.setting, &layouts[i], &at->times))
                continue;
            at->error = at->times.formula_s / at->times.simulated_s - 1;
            ++*count;
        }
    }
    free(layouts);
    return all;
}

static int by_error(const void *a, const void *b)
{
    double x = fabs(((const struct drawn *)a)->error), y = fabs(((const struct drawn *)b)->error);
    return (x < y) - (x > y);
}

static void print_worst(const struct drawn *all, int n)
{
    for (int i = 0; i < n; i++) {
        char text[192];
        const struct drawn *d = &all[i];
        printf("    %+6.1f %%  %s %s features %x: %.4f against %.4f s\n            ", 100 * d->error, d->model,
               layout_format(&d->layout, text, sizeof text), d->layout.features, d->times.formula_s, d->times.simulated_s);
        for (int c = 0; c < N_WORK_CLASSES; c++)
            if (fabs(d->times.formula.s[c] - d->times.simulated.s[c]) > 0.003 * d->times.simulated_s)
                printf(" %s %.4f/%.4f", work_class_name((enum work_class)c), d->times.formula.s[c], d->times.simulated.s[c]);
        printf("\n");
    }
}

static void measure(enum schedule schedule, int n, int worst)
{
    int count;
    struct drawn *all = draw_all(schedule, n, &count);
    double *errors = memory_new((size_t)count, sizeof *errors), bias = 0;
    for (int i = 0; i < count; i++) {
        errors[i] = all[i].error;
        bias += all[i].error / count;
    }
    struct population_error e = population_error_of(errors, count);
    printf("%-12s %4d layouts  median %5.2f %%  p90 %5.2f %%  max %5.2f %%  bias %+5.2f %%\n", schedule_name(schedule), count,
           100 * e.median, 100 * e.p90, 100 * e.largest, 100 * bias);
    qsort(all, (size_t)count, sizeof *all, by_error);
    print_worst(all, worst < count ? worst : count);
    free(errors);
    free(all);
}

static void print_regrets(void)
{
    static const char parts[] =
        "cp=1,mb=1,2,4,recompute=none,full,sp=1,zero=1,schedule=none,gpipe,1f1b,interleaved,zb-1p,zb-2p,zb-v,dualpipe,dualpipe-v";
    for (int j = 0; j < population_n_jobs; j++) {
        struct job_case c;
        if (!population_case(&population_jobs[j], &c) || c.setting.gpus > 64)
            continue;
        struct population_regret r = population_regret_of(&c.setting, parts, 20);
        printf("%-18s %6d layouts  fastest %8.4f s  plan %+5.2f %%  closed form alone %+5.2f %%\n", c.model.name, r.layouts,
               r.best_s, 100 * (r.planned_s / r.best_s - 1), 100 * (r.formula_s / r.best_s - 1));
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "regret") == 0) {
        print_regrets();
        return 0;
    }
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 12, worst = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    int only = argc > 3 ? schedule_parse(argv[3]) : -1;
    for (int schedule = 0; schedule < N_SCHEDULES; schedule++)
        if (only < 0 || only == schedule)
            measure((enum schedule)schedule, n, worst);
    return 0;
}
