/* plan_ranking.c - ranks the best layouts of a search again by event simulation, and chooses the first one. */
#include "sim/search/plan_ranking.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/number_text.h"
#include "model/cost/memory/footprint.h"

enum { MAX_THREADS = 64 };

/* What the threads share: each takes the next plan of this process. */
struct ranking {
    const struct setting *setting;
    struct ranked_plan *plans;
    struct diags *diags; /* one list per plan */
    const struct ranking_options *options;
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

double plan_use(const struct ranked_plan *ranked, const struct setting *setting)
{
    return ranked->plan.estimate.memory_bytes / footprint_capacity(setting->cluster);
}

double plan_host_bytes(const struct ranked_plan *ranked, const struct setting *setting)
{
    struct footprint footprint;
    footprint_peak(&ranked->plan.layout, setting, &footprint, NULL);
    return footprint.host;
}

bool plan_is_uneven(const struct layout *layout, const struct setting *setting)
{
    return layout->pp > 1 && !layers_divide(setting->model, layout_virtual_stages(layout));
}

void plan_simulate(const struct plan *plan, const struct setting *setting, struct ranked_plan *ranked, struct diags *diags)
{
    const struct step_options options = {.detail = DETAIL_CHUNK};
    *ranked = (struct ranked_plan){.plan = *plan};
    if (step_is_long(&plan->layout, setting->job)) {
        diag_warning(diags, PLACE_NONE, "%lld micro-batches would take too long to simulate",
                     (long long)layout_micro_batches(&plan->layout, setting->job));
        return;
    }
    ranked->simulated = step_simulate(&plan->layout, setting, &options, &ranked->step, NULL, NULL, diags) == STATUS_OK;
}

/* Take plan after plan; false when there is none left. */
static bool rank_next(struct ranking *ranking)
{
    const struct processes *processes = &ranking->options->processes;
    int i = processes->rank + processes->size * atomic_fetch_add(&ranking->next, 1);
    if (i >= ranking->n_simulate)
        return false;
    struct plan plan = ranking->plans[i].plan;
    plan_simulate(&plan, ranking->setting, &ranking->plans[i], &ranking->diags[i]);
    return true;
}

static void *rank_in_thread(void *ranking)
{
    while (rank_next(ranking))
        ;
    return NULL;
}

static void rank_and_tell(struct ranking *ranking)
{
    const struct ranking_options *options = ranking->options;
    while (rank_next(ranking)) {
        int taken = options->processes.size * atomic_load(&ranking->next);
        watch_tell(&options->watch, taken < ranking->n_simulate ? taken : ranking->n_simulate, ranking->n_simulate);
    }
}

/* The calling thread works too. */
static void simulate_all(struct ranking *ranking)
{
    pthread_t others[MAX_THREADS];
    int n = ranking->options->threads - 1, started = 0;
    if (n > ranking->n_simulate - 1)
        n = ranking->n_simulate - 1;
    while (started < n && started < MAX_THREADS && pthread_create(&others[started], NULL, rank_in_thread, ranking) == 0)
        started++;
    rank_and_tell(ranking);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
}

/* Every process gets what the others simulated. */
static void share_simulated(struct ranking *ranking)
{
    const struct processes *processes = &ranking->options->processes;
    size_t ranks = (size_t)processes->size, n = (size_t)ranking->n_simulate, each = (n + ranks - 1) / ranks;
    if (ranks == 1)
        return;
    struct ranked_plan *own = memory_new(each, sizeof *own), *all = memory_new(each * ranks, sizeof *all);
    for (size_t i = (size_t)processes->rank; i < n; i += ranks)
        own[i / ranks] = ranking->plans[i];
    processes->gather(processes->context, own, each * sizeof *own, all);
    for (size_t i = 0; i < n; i++)
        ranking->plans[i] = all[i % ranks * each + i / ranks];
    free(own);
    free(all);
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
    int failed = 0, first = -1;
    for (int i = 0; i < ranking->n_simulate; i++) {
        failed += !ranking->plans[i].simulated;
        if (!ranking->plans[i].simulated && first < 0)
            first = i;
    }
    if (failed == 0)
        return;
    char text[LAYOUT_TEXT];
    struct diags *found = &ranking->diags[first];
    struct ranked_plan again;
    if (found->n_items == 0) /* another process met it */
        plan_simulate(&ranking->plans[first].plan, ranking->setting, &again, found);
    diag_warning(diags, PLACE_NONE, "%d of %d plan%s could not be simulated; their closed-form times are used; %s: %s", failed,
                 ranking->n_simulate, plural(ranking->n_simulate),
                 layout_format(&ranking->plans[first].plan.layout, text, sizeof text),
                 found->n_items > 0 ? found->items[0].text : "no reason given");
}

void plans_rank(const struct plan *plans, int n_plans, const struct setting *setting, const struct ranking_options *options,
                struct ranked_plan **ranked, struct diags *diags)
{
    struct ranking ranking = {.setting = setting, .options = options};
    ranking.n_simulate = options->n_simulate < n_plans ? options->n_simulate : n_plans;
    ranking.plans = memory_new((size_t)n_plans, sizeof *ranking.plans);
    ranking.diags = memory_new((size_t)n_plans, sizeof *ranking.diags);
    atomic_init(&ranking.next, 0);
    for (int i = 0; i < n_plans; i++)
        ranking.plans[i].plan = plans[i];
    if (ranking.n_simulate > 0)
        simulate_all(&ranking);
    share_simulated(&ranking);
    warn_of_failures(&ranking, diags);
    qsort(ranking.plans, (size_t)n_plans, sizeof *ranking.plans, compare_ranked);
    for (int i = 0; i < n_plans; i++)
        diags_free(&ranking.diags[i]);
    free(ranking.diags);
    *ranked = ranking.plans;
}
