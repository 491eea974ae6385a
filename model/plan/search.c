/* search.c - the search: families of layouts are handed out to threads; each has its own cost model and shortlist. */
#include "model/plan/search.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/processors.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/min_recompute_layers.h"
#include "model/cost/work/work.h"
#include "model/plan/shortlist.h"

enum {
    MAX_THREADS = 256,
    BATCHES_PER_THREAD =
        32, /* families are handed out in about this number of batches per thread: even ends, few repeated cache entries */
    MAX_BATCH = 64,
    DEAL = 8 /* families in a block of a share: the same on every machine that has one */
};

/* What the threads of one search share. */
struct search_shared {
    const struct space *space;
    const struct search_options *options;
    double limit_bytes;
    uint32_t first_family, end_family, batch;
    uint32_t share, n_shares;
    uint64_t n_layouts; /* of all shares */
    atomic_uint next_batch;
    atomic_uint_fast64_t decided;
};

struct worker {
    struct search_shared *shared;
    struct closed_form *form;
    struct shortlist shortlist;
    struct search_counts counts;
    struct layout least;
    uint64_t least_index;
    double least_bytes;
    struct plan family_best; /* of the family under way */
    bool family_has_best;
    pthread_t thread;
    bool started;
};

const char *overflow_class_text(enum overflow_class overflow)
{
    static const char *const texts[N_OVERFLOW_CLASSES] = {
#define X(id, text, limit) text,
        OVERFLOW_CLASSES(X)
#undef X
    };
    return texts[overflow];
}

static enum overflow_class overflow_class_of(double bytes, double limit_bytes)
{
    static const double limits[N_OVERFLOW_CLASSES] = {
#define X(id, text, limit) limit,
        OVERFLOW_CLASSES(X)
#undef X
    };
    int class = 0;
    while (class < N_OVERFLOW_CLASSES - 1 && bytes > limits[class] * limit_bytes)
        class ++;
    return (enum overflow_class) class;
}

double memory_limit(const struct setting *setting)
{
    return footprint_capacity(setting->cluster) * (1 - setting->job->memory_margin);
}

double plan_mfu(const struct layout *layout, const struct setting *setting, double step_s)
{
    double peak = setting->cluster->gpu.peak_flops[setting->job->precision] * setting->gpus;
    return model_flops_per_step(setting, layout->features, FLOPS_FULL) / (step_s * peak);
}

/* --- one layout --- */

/* Is this the smallest so far? An order that does not depend on which thread asks when. */
static bool is_least(double bytes, uint64_t index, double least_bytes, uint64_t least_index)
{
    return least_bytes <= 0 || bytes < least_bytes || (bytes <= least_bytes && index < least_index);
}

static void note_memory(struct worker *worker, const struct layout *layout, uint64_t index, double bytes)
{
    if (!is_least(bytes, index, worker->least_bytes, worker->least_index))
        return;
    memcpy(&worker->least, layout, sizeof *layout);
    worker->least_bytes = bytes;
    worker->least_index = index;
}

/* The plan goes to the shortlist, or waits until its family has shown its best. */
static void offer(struct worker *worker, const struct plan *plan)
{
    if (worker->shared->options->variants) {
        shortlist_offer(&worker->shortlist, plan);
    } else if (!worker->family_has_best || plan_compare(plan, &worker->family_best) < 0) {
        worker->family_best = *plan;
        worker->family_has_best = true;
    }
}

/* Slower plans than this are of no use: those kept are faster, or the family has shown a faster one. */
static double slowest_wanted(const struct worker *worker)
{
    double limit = shortlist_slowest(&worker->shortlist);
    bool one_of_family = !worker->shared->options->variants && worker->family_has_best;
    return one_of_family ? fmin(limit, worker->family_best.estimate.step_s) : limit;
}

static bool estimate(struct worker *worker, const struct layout *layout, double limit_s, struct plan *plan)
{
    if (!closed_form_within(worker->form, layout, limit_s, &plan->estimate))
        return false;
    memcpy(&plan->layout, layout, sizeof *layout);
    return true;
}

/* Estimates of steps that are as long as each other differ by less. */
#define ROUNDING 1e-9
/* A step that repeats all layers takes at most this number of times as long as one that repeats none: what is repeated is a
 * forward pass, and backward passes take no less than those. */
#define LONGEST 1.5

/* Steps longer than this are of no use where those are not that are longer than limit_s: where `fewest` layers may take the place
 * of all (0: none), that of all decides nothing yet. */
static double slowest_looked_at(double limit_s, int fewest)
{
    return fewest == 0 ? limit_s : limit_s * LONGEST * (1 + 2 * ROUNDING);
}

/* Instead of all layers of `full`, a plan, only the `fewest` (negative: not yet known) that must be repeated; false: none are, or
 * the step would take longer than limit_s. A step that repeats nothing takes no longer: asked first, it saves most searches for
 * the fewest. Where exchanges cover what is repeated it may by a little, and all layers stay, so that what was found before
 * decides nothing. */
static bool estimate_min_layers(struct worker *worker, const struct plan *full, double limit_s, int *fewest, struct plan *plan)
{
    const struct search_shared *shared = worker->shared;
    struct layout layout;
    struct step_estimate least;
    memcpy(&layout, &full->layout, sizeof layout);
    layout.recompute = (struct recompute){.what = RECOMPUTE_NONE};
    if (!closed_form_within(worker->form, &layout, limit_s * (1 + 2 * ROUNDING), &least))
        return false;
    if (*fewest < 0)
        *fewest = min_recompute_layers(worker->form, space_setting(shared->space), &full->layout, shared->limit_bytes);
    if (*fewest == 0)
        return false;
    layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, *fewest};
    double shortest = fmax(least.step_s, full->estimate.step_s / LONGEST) * (1 - ROUNDING);
    return estimate(worker, &layout, limit_s, plan) && plan->estimate.step_s >= shortest;
}

/* Offers a layout that needs `bytes`, or instead the one that repeats the `fewest` layers (0: there is none) where
 * that is faster. */
static void offer_faster(struct worker *worker, const struct layout *layout, uint64_t index, double bytes, int *fewest)
{
    struct plan plan, fewer;
    double limit_s = slowest_wanted(worker);
    if (!estimate(worker, layout, slowest_looked_at(limit_s, *fewest), &plan))
        return;
    plan.estimate.memory_bytes = bytes;
    double step_s = plan.estimate.step_s;
    if (*fewest != 0 && estimate_min_layers(worker, &plan, fmin(limit_s, step_s), fewest, &fewer) &&
        fewer.estimate.step_s < step_s)
        plan = fewer;
    plan.index = index;
    if (plan.estimate.step_s <= limit_s)
        offer(worker, &plan);
}

/* All of a group of sets of features, from `index` on. The most elaborate one is asked first, as it is mostly the fastest; those
 * that share a bound are asked for it once. */
static void offer_all(struct worker *worker, const feature_set *features, int n, struct layout *layout, uint64_t index,
                      double bytes, int fewest)
{
    double least_s = 0;
    for (int i = n - 1; i >= 0; i--) {
        layout->features = features[i];
        if (i == n - 1 || ((features[i] ^ features[i + 1]) & ~CLOSED_FORM_BOUND_IGNORES))
            least_s = closed_form_at_least(worker->form, layout);
        if (least_s <= slowest_looked_at(slowest_wanted(worker), fewest))
            offer_faster(worker, layout, index + (uint64_t)i, bytes, &fewest);
    }
}

enum asked { ASKED_MEMORY, ASKED_TIME, ASKED_TIME_OF_FEWEST };

/* Layouts `index` and following, whose division is legal, one for each set of features, which differ in the overlaps that they
 * use of those the job allows: no question but the last depends on them. Whether they fit. */
static bool examine(struct worker *worker, const feature_set *features, int n_features, struct layout *layout, uint64_t index,
                    enum asked asked)
{
    const struct search_shared *shared = worker->shared;
    struct search_counts *counts = &worker->counts;
    uint64_t n = (uint64_t)n_features;
    layout->features = features[0];
    counts->examined += n;
    enum layout_reason reason = layout_check_states(layout, space_setting(shared->space));
    if (reason != LAYOUT_LEGAL) {
        counts->rejected[reason] += n;
        return false;
    }
    counts->legal += n;
    double bytes = memory_needed(worker->form, space_setting(shared->space), layout, shared->limit_bytes);
    note_memory(worker, layout, index, bytes);
    if (bytes > shared->limit_bytes) {
        counts->over_memory[overflow_class_of(bytes, shared->limit_bytes)] += n;
        return false;
    }
    counts->fit += n;
    if (asked != ASKED_MEMORY)
        offer_all(worker, features, n_features, layout, index, bytes, asked == ASKED_TIME_OF_FEWEST ? -1 : 0);
    return true;
}

/* --- one family --- */

/* Reasons that precede all others in layout_check and look at nothing but a family's own dimensions. */
static bool condemns_family(enum layout_reason reason)
{
    return reason == LAYOUT_WORLD || reason == LAYOUT_HEADS || reason == LAYOUT_KV_HEADS || reason == LAYOUT_HIDDEN ||
           reason == LAYOUT_VOCAB;
}

/* Of one sharding and loss: does it fit that recomputes nothing, with what is offloaded, and with nothing offloaded? */
struct fitted {
    bool whole, plain;
};
struct fitted_family {
    struct fitted of[SPACE_SHARDINGS][2][SPACE_LOSSES];
};

/* Layouts that recompute and offload nothing beat others, which only add work, so where one plan of a family is enough the others
 * are not estimated. Where nothing restricts what is recomputed, all layers are no more than must be. */
static enum asked asked_of(const struct worker *worker, const struct layout *layout, const struct fitted *fitted)
{
    const struct search_shared *shared = worker->shared;
    if (shared->options->memory_only || (!shared->options->variants && fitted->plain))
        return ASKED_MEMORY;
    bool all = layout->recompute.what == RECOMPUTE_FULL && !space_restricts(shared->space, SPACE_RECOMPUTE);
    return all && !fitted->whole ? ASKED_TIME_OF_FEWEST : ASKED_TIME;
}

/* The layouts of one schedule, offloading, recomputation and way of sequence parallelism, from `index` on. Sharding, on which
 * activations do not depend, changes last. */
static void examine_sp(struct worker *worker, const struct space_family *family, struct layout *layout, uint64_t index, int sp,
                       struct fitted_family *fitted)
{
    int n = family->n_features / family->n_losses;
    bool is_whole = layout->recompute.what == RECOMPUTE_NONE, is_plain = is_whole && offload_is_none(&layout->offload);
    layout->sequence_parallel = family->sps[sp] != 0;
    for (int loss = 0; loss < family->n_losses; loss++)
        for (int i = 0; i < family->n_shardings; i++) {
            struct fitted *f = &fitted->of[i][sp][loss];
            uint64_t at = index + ((uint64_t)i * (uint64_t)family->n_sps + (uint64_t)sp) * (uint64_t)family->n_features;
            layout->zero = family->shardings[i].zero;
            layout->shard = family->shardings[i].shard;
            bool fits =
                examine(worker, family->features + loss * n, n, layout, at + (uint64_t)(loss * n), asked_of(worker, layout, f));
            f->whole = is_whole ? fits : f->whole;
            f->plain = f->plain || (is_plain && fits);
        }
}

/* All layouts of one schedule with or without sequence parallelism, of an illegal division. */
static void count_illegal(struct search_counts *counts, const struct space_family *family, enum layout_reason reason)
{
    uint64_t n = (uint64_t)family->n_offloads * (uint64_t)family->n_recomputes * (uint64_t)family->n_shardings *
                 (uint64_t)family->n_features;
    counts->examined += n;
    counts->rejected[reason] += n;
}

/* The layouts of one schedule, from `index` on. */
static uint64_t examine_schedule(struct worker *worker, const struct space_family *family, struct layout *layout, uint64_t index)
{
    struct fitted_family fitted;
    bool legal[2];
    memset(fitted.of, 0, (size_t)family->n_shardings * sizeof fitted.of[0]);
    for (int sp = 0; sp < family->n_sps; sp++) {
        layout->sequence_parallel = family->sps[sp] != 0;
        enum layout_reason reason = layout_check_division(layout, space_setting(worker->shared->space));
        legal[sp] = reason == LAYOUT_LEGAL;
        if (!legal[sp])
            count_illegal(&worker->counts, family, reason);
    }
    uint64_t n = (uint64_t)family->n_shardings * (uint64_t)family->n_sps * (uint64_t)family->n_features;
    for (int offload = 0; offload < family->n_offloads; offload++) {
        layout->offload = offload_of_number(family->offloads[offload]);
        for (int recompute = 0; recompute < family->n_recomputes; recompute++, index += n) {
            layout->recompute = recompute_of_number(family->recomputes[recompute]);
            for (int sp = 0; sp < family->n_sps; sp++)
                if (legal[sp])
                    examine_sp(worker, family, layout, index, sp, &fitted);
        }
    }
    return index;
}

static void examine_members(struct worker *worker, const struct space_family *family)
{
    struct layout layout;
    memcpy(&layout, &family->base, sizeof layout);
    uint64_t index = family->first;
    for (int schedule = 0; schedule < family->n_schedules; schedule++) {
        layout.schedule = (enum schedule)family->schedules[schedule];
        index = examine_schedule(worker, family, &layout, index);
    }
}

static uint64_t examine_family(struct worker *worker, uint32_t number)
{
    struct space_family family;
    space_family(worker->shared->space, number, &family);
    uint64_t size = space_family_size(&family);
    worker->counts.in_space += size;
    enum layout_reason reason = layout_check(&family.base, space_setting(worker->shared->space), NULL, 0);
    if (condemns_family(reason)) {
        worker->counts.ruled_out += size;
        worker->counts.rejected[reason] += size;
        return size;
    }
    worker->family_has_best = false;
    examine_members(worker, &family);
    if (worker->family_has_best)
        shortlist_offer(&worker->shortlist, &worker->family_best);
    return size;
}

/* --- threads --- */

static void report_progress(const struct search_shared *shared, uint64_t decided)
{
    if (shared->options->progress != NULL)
        shared->options->progress(shared->options->progress_context, (double)decided, (double)shared->n_layouts);
}

/* Families [*first, *end) are the caller's; false when there are none left. */
static bool next_batch(struct search_shared *shared, uint32_t *first, uint32_t *end)
{
    uint64_t batch = shared->share + (uint64_t)shared->n_shares * atomic_fetch_add(&shared->next_batch, 1);
    uint64_t from = shared->first_family + batch * shared->batch;
    if (from >= shared->end_family)
        return false;
    *first = (uint32_t)from;
    *end = shared->end_family - *first < shared->batch ? shared->end_family : *first + shared->batch;
    return true;
}

static void work(struct worker *worker, bool reports)
{
    struct search_shared *shared = worker->shared;
    worker->form = closed_form_create(space_setting(shared->space));
    uint32_t first, end;
    while (next_batch(shared, &first, &end)) {
        uint64_t decided = 0;
        for (uint32_t family = first; family < end; family++)
            decided += examine_family(worker, family);
        decided += atomic_fetch_add(&shared->decided, decided);
        if (reports)
            report_progress(shared, decided * shared->n_shares);
    }
    closed_form_destroy(worker->form);
}

static void *work_in_thread(void *worker)
{
    work(worker, false);
    return NULL;
}

static int thread_count(const struct search_options *options, uint32_t n_families)
{
    int n = options->threads > 0 ? options->threads : processors_available();
    if (n > MAX_THREADS)
        n = MAX_THREADS;
    if ((uint32_t)n > n_families)
        n = (int)n_families;
    return n > 0 ? n : 1;
}

static struct search_shared search_shared_of(const struct space *space, const struct search_options *options)
{
    uint32_t n = space_n_families(space);
    uint32_t end = options->end_family == 0 || options->end_family > n ? n : options->end_family;
    uint32_t first = options->first_family < end ? options->first_family : end;
    struct search_shared shared = {.space = space,
                                   .options = options,
                                   .first_family = first,
                                   .end_family = end,
                                   .share = options->n_shares > 1 ? options->share : 0,
                                   .n_shares = options->n_shares > 1 ? options->n_shares : 1};
    shared.limit_bytes = memory_limit(space_setting(space));
    atomic_init(&shared.next_batch, 0);
    atomic_init(&shared.decided, 0);
    struct space_family family;
    uint64_t first_layout = space_size(space), end_layout = space_size(space);
    if (first < n) {
        space_family(space, first, &family);
        first_layout = family.first;
    }
    if (end < n) {
        space_family(space, end, &family);
        end_layout = family.first;
    }
    shared.n_layouts = end_layout - first_layout;
    return shared;
}

/* --- putting together --- */

static void counts_add(struct search_counts *sum, const struct search_counts *part)
{
    sum->in_space += part->in_space;
    sum->examined += part->examined;
    sum->ruled_out += part->ruled_out;
    sum->legal += part->legal;
    sum->fit += part->fit;
    for (int i = 0; i < N_LAYOUT_REASONS; i++)
        sum->rejected[i] += part->rejected[i];
    for (int i = 0; i < N_OVERFLOW_CLASSES; i++)
        sum->over_memory[i] += part->over_memory[i];
}

static void take_least(struct search_result *result, const struct search_result *part)
{
    if (part->least_bytes <= 0 || !is_least(part->least_bytes, part->least_index, result->least_bytes, result->least_index))
        return;
    memcpy(&result->least, &part->least, sizeof result->least);
    result->least_index = part->least_index;
    result->least_bytes = part->least_bytes;
}

void search_merge(struct search_result *result, struct search_result *part, const struct search_options *options)
{
    struct shortlist list;
    shortlist_init(&list, options->keep);
    for (int i = 0; i < result->n_plans; i++)
        shortlist_offer(&list, &result->plans[i]);
    for (int i = 0; i < part->n_plans; i++)
        shortlist_offer(&list, &part->plans[i]);
    free(result->plans);
    result->plans = shortlist_take(&list, &result->n_plans);
    counts_add(&result->counts, &part->counts);
    take_least(result, part);
    if (result->limit_bytes <= 0)
        result->limit_bytes = part->limit_bytes;
    search_result_free(part);
}

static void gather(struct worker *worker, struct search_result *result, const struct search_options *options)
{
    struct search_result part = {
        .counts = worker->counts, .least_index = worker->least_index, .least_bytes = worker->least_bytes};
    memcpy(&part.least, &worker->least, sizeof part.least);
    part.plans = shortlist_take(&worker->shortlist, &part.n_plans);
    search_merge(result, &part, options);
}

void search_run(const struct space *space, const struct search_options *options, struct search_result *result)
{
    struct search_shared shared = search_shared_of(space, options);
    uint32_t n_families = (shared.end_family - shared.first_family) / shared.n_shares;
    int n = thread_count(options, n_families);
    shared.batch = n_families / ((uint32_t)n * BATCHES_PER_THREAD) + 1;
    if (shared.batch > MAX_BATCH)
        shared.batch = MAX_BATCH;
    if (shared.n_shares > 1)
        shared.batch = DEAL;

    struct worker *workers = memory_new((size_t)n, sizeof *workers);
    for (int i = 0; i < n; i++) {
        workers[i].shared = &shared;
        shortlist_init(&workers[i].shortlist, options->keep);
    }
    for (int i = 1; i < n; i++) /* a thread that cannot be had leaves its share to the others */
        workers[i].started = pthread_create(&workers[i].thread, NULL, work_in_thread, &workers[i]) == 0;
    work(&workers[0], true);

    struct search_result found = {.limit_bytes = shared.limit_bytes};
    for (int i = 0; i < n; i++) {
        if (workers[i].started)
            pthread_join(workers[i].thread, NULL);
        gather(&workers[i], &found, options);
    }
    free(workers);
    *result = found;
}

void search_result_free(struct search_result *result)
{
    free(result->plans);
    *result = (struct search_result){0};
}
