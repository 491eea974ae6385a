#include "sim/network/placement.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"

enum { PURPOSE_PLACEMENT = 0x706c };

const char *placement_name(enum placement placement)
{
    static const char *const names[N_PLACEMENTS] = {"data_first", "pipeline_first", "random", "fragmented"};
    return names[placement];
}

static void shuffle(int *values, int n, uint64_t seed)
{
    struct random_stream stream = random_stream_named(seed, PURPOSE_PLACEMENT, 0);

    for (int i = n - 1; i > 0; i--) {
        int j = (int)random_below(&stream, (uint64_t)i + 1), keep = values[i];
        values[i] = values[j];
        values[j] = keep;
    }
}

/* A block of ranks that shares a host, with the replica and stage of its first rank. */
struct block {
    int dp, pp, number;
};

static int replica_first(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    if (x->dp != y->dp)
        return x->dp < y->dp ? -1 : 1;
    if (x->pp != y->pp)
        return x->pp < y->pp ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void hosts_pipeline_first(const struct layout *layout, int per_host, int *hosts, int n)
{
    struct block *blocks = memory_new((size_t)n, sizeof *blocks);

    for (int b = 0; b < n; b++) {
        struct coordinates at = layout_coordinates(layout, b * per_host);
        blocks[b] = (struct block){at.dp, at.pp, b};
    }
    qsort(blocks, (size_t)n, sizeof *blocks, replica_first);
    for (int h = 0; h < n; h++)
        hosts[blocks[h].number] = h;
    free(blocks);
}

static void hosts_fragmented(const struct fabric *fabric, uint64_t seed, int *hosts, int n)
{
    int all = fabric->shape.hosts, n_runs = (all + FRAGMENT_HOSTS - 1) / FRAGMENT_HOSTS, filled = 0;
    int *runs = memory_new((size_t)n_runs, sizeof *runs);

    for (int i = 0; i < n_runs; i++)
        runs[i] = i;
    shuffle(runs, n_runs, seed);
    for (int i = 0; i < n_runs && filled < n; i++)
        for (int h = runs[i] * FRAGMENT_HOSTS; h < (runs[i] + 1) * FRAGMENT_HOSTS && h < all && filled < n; h++)
            hosts[filled++] = h;
    free(runs);
}

void placement_fill(enum placement placement, const struct layout *layout, const struct fabric *fabric, uint64_t seed, int *gpus)
{
    int ranks = layout->tp * layout->cp * layout->dp * layout->pp, per_host = fabric->shape.gpus_per_host;
    int n = (ranks + per_host - 1) / per_host;
    int *hosts = memory_new((size_t)n, sizeof *hosts);

    for (int b = 0; b < n; b++)
        hosts[b] = b;
    if (placement == PLACEMENT_PIPELINE_FIRST)
        hosts_pipeline_first(layout, per_host, hosts, n);
    if (placement == PLACEMENT_RANDOM)
        shuffle(hosts, n, seed);
    if (placement == PLACEMENT_FRAGMENTED)
        hosts_fragmented(fabric, seed, hosts, n);
    for (int r = 0; r < ranks; r++)
        gpus[r] = hosts[r / per_host] * per_host + r % per_host;
    free(hosts);
}
