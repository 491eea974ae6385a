/* plan_search.c - finds the best layouts of a space: a search in closed form, then a ranking by simulation. */
#include "sim/search/plan_search.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"

/* What one rank found, flat: search_result without its pointer, then `keep` plans. */
struct parcel {
    struct search_result found;
    struct plan plans[];
};

static size_t parcel_size(const struct search_options *options)
{
    return sizeof(struct parcel) + (size_t)options->keep * sizeof(struct plan);
}

static void pack(const struct search_result *result, struct parcel *parcel)
{
    parcel->found = *result;
    parcel->found.plans = NULL;
    if (result->n_plans > 0)
        memcpy(parcel->plans, result->plans, (size_t)result->n_plans * sizeof *result->plans);
}

static struct search_result unpack(const struct parcel *parcel)
{
    struct search_result part = parcel->found;
    part.plans = memory_new((size_t)part.n_plans, sizeof *part.plans);
    if (part.n_plans > 0)
        memcpy(part.plans, parcel->plans, (size_t)part.n_plans * sizeof *part.plans);
    return part;
}

void search_run_shared(const struct space *space, const struct search_options *options, const struct processes *processes,
                       struct search_result *result)
{
    struct search_options own = *options;
    own.share = (uint32_t)processes->rank;
    own.n_shares = (uint32_t)processes->size;
    search_run(space, &own, result);
    if (processes->size == 1)
        return;
    size_t size = parcel_size(options);
    struct parcel *own_parcel = memory_new(1, size);
    char *all = memory_new((size_t)processes->size, size);
    pack(result, own_parcel);
    processes->gather(processes->context, own_parcel, size, all);
    search_result_free(result);
    for (int rank = 0; rank < processes->size; rank++) {
        struct search_result part = unpack((const struct parcel *)(all + (size_t)rank * size));
        search_merge(result, &part, options);
    }
    free(own_parcel);
    free(all);
}

void plans_search(const struct space *space, const struct plan_search_options *options, struct plans_found *found,
                  struct diags *diags)
{
    double started_s = clock_seconds();
    const struct search_options search = {.keep = options->keep,
                                          .variants = options->variants,
                                          .threads = options->threads,
                                          .progress = options->searched.tell,
                                          .progress_context = options->searched.context};
    const struct ranking_options ranking = {.n_simulate = options->n_simulate,
                                            .threads = options->threads,
                                            .processes = options->processes,
                                            .watch = options->simulated};
    *found = (struct plans_found){0};
    search_run_shared(space, &search, &options->processes, &found->search);
    found->search_s = clock_seconds() - started_s;
    if (found->search.n_plans > 0)
        plans_rank(found->search.plans, found->search.n_plans, space_setting(space), &ranking, &found->plans, diags);
}

void plans_found_free(struct plans_found *found)
{
    search_result_free(&found->search);
    free(found->plans);
    *found = (struct plans_found){0};
}
