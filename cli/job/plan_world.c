#include "cli/job/plan_world.h"

#include <stdlib.h>
#include <string.h>

#include "cli/world/world.h"
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

void search_run_on_world(const struct space *space, const struct search_options *options, struct search_result *result)
{
    struct search_options own = *options;
    int ranks = world_size();
    own.share = (uint32_t)world_rank();
    own.n_shares = (uint32_t)ranks;
    search_run(space, &own, result);
    if (ranks == 1)
        return;
    size_t size = parcel_size(options);
    struct parcel *mine = memory_new(1, size);
    char *all = memory_new((size_t)ranks, size);
    pack(result, mine);
    world_gather(mine, size, all);
    search_result_free(result);
    for (int rank = 0; rank < ranks; rank++) {
        struct search_result part = unpack((const struct parcel *)(all + (size_t)rank * size));
        search_merge(result, &part, options);
    }
    free(mine);
    free(all);
}
