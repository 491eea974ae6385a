#include "tests/runtime/drawn.h"

#include "model/base/random.h"

enum { RANKS_MOST = 16 };

static int one_of(struct random_stream *random, const int *values, int n)
{
    return values[random_below(random, (uint64_t)n)];
}
#define ONE_OF(random, ...) one_of(random, (const int[]){__VA_ARGS__}, COUNT(((const int[]){__VA_ARGS__})))

static bool coin(struct random_stream *random)
{
    return random_below(random, 2);
}

/* Features that change what is executed; each is there or not, one generation of attention at most. */
static feature_set draw_features(struct random_stream *random)
{
    static const feature_set any[] = {FEATURE_BIT(FUSED_SOFTMAX), FEATURE_BIT(FUSED_OPS),  FEATURE_BIT(FUSED_RMSNORM),
                                      FEATURE_BIT(TP_OVERLAP),    FEATURE_BIT(ASYNC_TP),   FEATURE_BIT(PP_OVERLAP),
                                      FEATURE_BIT(DP_OVERLAP),    FEATURE_BIT(ASYNC_DATA), FEATURE_BIT(COMPILE),
                                      FEATURE_BIT(CUDA_GRAPHS),   FEATURE_BIT(EP_OVERLAP), FEATURE_BIT(SCATTER_GATHER_P2P)};
    static const feature_set attention[] = {0, FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(FLASH_ATTENTION2),
                                            FEATURE_BIT(FLASH_ATTENTION3)};
    feature_set features = attention[random_below(random, COUNT(attention))];
    for (int i = 0; i < COUNT(any); i++)
        features |= coin(random) ? any[i] : 0;
    features |= random_below(random, 4) == 0 ? FEATURE_BIT(PARALLEL_BLOCK) : 0;
    return features | (random_below(random, 8) == 0 ? FEATURE_BIT(SLIDING_WINDOW) : 0);
}

/* A word, some of the modules that the model has, or whole layers, but not all or not one by one. */
static struct recompute draw_recompute(struct random_stream *random, const struct transformer *model)
{
    int word = (int)random_below(random, N_RECOMPUTES + 4), set = (int)random_below(random, RECOMPUTE_MOE << 1);
    if (word > N_RECOMPUTES + 1)
        return (struct recompute){RECOMPUTE_FULL, (enum recompute_of)(RECOMPUTE_FIRST + random_below(random, 3)),
                                  2 - coin(random)};
    return (struct recompute){.what = (enum recompute_what)(word < N_RECOMPUTES ? word : set & (int)layout_modules_of(model))};
}

static struct layout draw_layout(struct random_stream *random, const struct transformer *model)
{
    struct layout l = {.tp = ONE_OF(random, 1, 2, 2, 4),
                       .cp = ONE_OF(random, 1, 1, 2, 2, 4),
                       .cp_comm = (enum cp_comm)ONE_OF(random, CP_RING, CP_ALL_GATHER, CP_A2A, 4, 5), /* a2a:2+ring, all_gather */
                       .pp = ONE_OF(random, 1, 1, 2, 2, 3, 4),
                       .vpp = 1,
                       .dp = ONE_OF(random, 1, 2, 2, 4),
                       .ep = ONE_OF(random, 1, 2),
                       .micro_batch = ONE_OF(random, 1, 1, 2),
                       .zero = ONE_OF(random, 0, 1, 2, 3),
                       .sequence_parallel = coin(random),
                       .recompute = draw_recompute(random, model),
                       .schedule = (enum schedule)random_below(random, N_SCHEDULES)};
    if (l.schedule == SCHEDULE_INTERLEAVED || schedule_is_folded(l.schedule))
        l.vpp = 2;
    l.etp = l.ep > 1 && coin(random) ? l.tp : l.ep > 1;
    l.features = draw_features(random);
    l.shard = l.zero && l.dp * l.cp > 2 && coin(random) ? 2 : 0;
    return l;
}

bool draw_toy(uint64_t number, struct toy *toy)
{
    struct random_stream random = random_stream_named(1, UINT64_C(0x647261776e), number);
    enum toy_model model = (enum toy_model)random_below(&random, N_TOY_MODELS);
    toy_make(toy, model);
    toy->layout = draw_layout(&random, &toy->model);
    toy->job.features |= toy->layout.features;
    toy->job.optimizer = OPTIMIZER_SGD; /* what Adam makes of a gradient next to nothing is its rounding */
    toy->job.dropout = random_below(&random, 4) == 0 ? 0.1 : 0;
    toy->cluster.gpu.peak_flops[PRECISION_FP8] = 1e11;
    toy->cluster.gpu.nccl_base_s = ONE_OF(&random, 0, 0, 30, 100) * 1e-9; /* products in four pieces, two, one */
    toy_complete(toy);
    if (toy->model.mixer.heads && toy->layout.cp > 1) /* whole sequences are on a rank */
        return false;
    return toy->setting.gpus <= RANKS_MOST && layout_check(&toy->layout, &toy->setting, NULL, 0) == LAYOUT_LEGAL;
}
