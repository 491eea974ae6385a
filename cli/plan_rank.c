#include "cli/plan_rank.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "model/base/memory.h"

enum { MAX_THREADS = 64 };

/* What the threads share: each takes the next plan. */
struct ranking {
    const struct setting *setting;
    struct ranked_plan *plans;
    struct diags *diags; /* one list per plan */
    int n_simulate;
    atomic_int next;
};

double ranked_step_s(const struct ranked_plan *plan)
{
    return plan->simulated ? plan->step.step_time_s : plan->plan.estimate.step_s;
}

double ranked_mfu(const struct ranked_plan *plan, const struct setting *setting)
{
    return plan->simulated ? plan->step.mfu : plan_mfu(&plan->plan.layout, setting, plan->plan.estimate.step_s);
}

const struct cost_by_class *ranked_breakdown(const struct ranked_plan *plan)
{
    return plan->simulated ? &plan->step.breakdown : &plan->plan.estimate.by_class;
}

double ranked_exposed_s(const struct ranked_plan *plan)
{
    static const enum work_class kinds[] = {CLASS_TP_COMM, CLASS_CP_COMM, CLASS_EP_COMM, CLASS_PP_COMM, CLASS_DP_COMM};
    double sum = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        sum += ranked_breakdown(plan)->s[kinds[i]];
    return sum;
}

void plan_simulate(const struct plan *plan, const struct setting *setting, struct ranked_plan *ranked, struct diags *diags)
{
    const struct step_options options = {.detail = DETAIL_CHUNK};
    *ranked = (struct ranked_plan){.plan = *plan};
    ranked->simulated = step_simulate(&plan->layout, setting, &options, &ranked->step, NULL, NULL, diags) == STATUS_OK;
}

static void *rank_in_thread(void *context)
{
    struct ranking *ranking = context;
    for (;;) {
        int i = atomic_fetch_add(&ranking->next, 1);
        if (i >= ranking->n_simulate)
            return NULL;
        struct plan plan = ranking->plans[i].plan;
        plan_simulate(&plan, ranking->setting, &ranking->plans[i], &ranking->diags[i]);
    }
}

static int processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* The calling thread works too. */
static void simulate_all(struct ranking *ranking, int threads)
{
    pthread_t others[MAX_THREADS];
    int n = (threads > 0 ? threads : processors()) - 1, started = 0;
    if (n > ranking->n_simulate - 1)
        n = ranking->n_simulate - 1;
    while (started < n && started < MAX_THREADS && pthread_create(&others[started], NULL, rank_in_thread, ranking) == 0)
        started++;
    rank_in_thread(ranking);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

/* Simulated before not simulated; then by time, to the nanosecond, and what the search said. */
static int compare_ranked(const void *a, const void *b)
{
    const struct ranked_plan *left = a, *right = b;
    if (left->simulated != right->simulated)
        return left->simulated ? -1 : 1;
    if (left->simulated && left->step.step != right->step.step)
        return left->step.step < right->step.step ? -1 : 1;
    return plan_compare(&left->plan, &right->plan);
}

static void warn_of_failures(const struct ranking *ranking, struct diags *diags)
{
    for (int i = 0; i < ranking->n_simulate; i++) {
        if (ranking->plans[i].simulated)
            continue;
        char text[160];
        const struct diags *said = &ranking->diags[i];
        diag_warning(diags, (struct place){0}, "%s could not be simulated and keeps its closed-form time: %s",
                     layout_format(&ranking->plans[i].plan.layout, text, sizeof text),
                     said->n_items > 0 ? said->items[0].text : "no reason given");
    }
}

void plans_rank(const struct plan *plans, int n_plans, int n_simulate, const struct setting *setting, int threads,
                struct ranked_plan **ranked, struct diags *diags)
{
    struct ranking ranking = {.setting = setting, .n_simulate = n_simulate < n_plans ? n_simulate : n_plans};
    ranking.plans = memory_new((size_t)n_plans, sizeof *ranking.plans);
    ranking.diags = memory_new((size_t)n_plans, sizeof *ranking.diags);
    atomic_init(&ranking.next, 0);
    for (int i = 0; i < n_plans; i++)
        ranking.plans[i].plan = plans[i];
    if (ranking.n_simulate > 0)
        simulate_all(&ranking, threads);
    warn_of_failures(&ranking, diags);
    qsort(ranking.plans, (size_t)n_plans, sizeof *ranking.plans, compare_ranked);
    for (int i = 0; i < n_plans; i++)
        diags_free(&ranking.diags[i]);
    free(ranking.diags);
    *ranked = ranking.plans;
}
