/* Division of layers, rank order, groups, and how groups lie on the machine. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/layout/layout.h"
#include "model/layout/ranks.h"
#include "tests/suite.h"

static int count_of(int layers, int pp, int vpp, int v)
{
    struct layout layout = {.pp = pp, .vpp = vpp};
    struct transformer model = {.layers = layers};
    return layout_layers(&layout, &model, v).count;
}

START_TEST(layers_by_hand)
{
    for (int v = 0; v < 48; v++)
        ck_assert_int_eq(count_of(96, 8, 6, v), 2);
    /* Llama 3.1 405B: 126 + 2 = 128 over 16 x 4 */
    ck_assert_int_eq(count_of(126, 16, 4, 0), 1);
    ck_assert_int_eq(count_of(126, 16, 4, 1), 2);
    ck_assert_int_eq(count_of(126, 16, 4, 62), 2);
    ck_assert_int_eq(count_of(126, 16, 4, 63), 1);
    /* the embedding and the head alone */
    ck_assert_int_eq(count_of(22, 8, 3, 0), 0);
    ck_assert_int_eq(count_of(22, 8, 3, 1), 1);
    ck_assert_int_eq(count_of(22, 8, 3, 23), 0);
    /* DeepSeek-V3 61 over 2 x 4: five of eight have 8 */
    static const int deepseek[8] = {7, 7, 8, 8, 8, 8, 8, 7};
    for (int v = 0; v < 8; v++)
        ck_assert_int_eq(count_of(61, 2, 4, v), deepseek[v]);
    /* its prediction layer is the last stage's 62nd: 7, six times 8, 6 and 1; over 8 x 4 the last chunk holds nothing else */
    struct transformer predicting = {.layers = 61, .mtp_layers = 1};
    struct layout two = {.pp = 2, .vpp = 4}, eight = {.pp = 8, .vpp = 4};
    ck_assert_int_eq(layout_layers(&two, &predicting, 0).count, 7);
    ck_assert_int_eq(layout_layers(&two, &predicting, 6).count, 8);
    ck_assert_int_eq(layout_layers(&two, &predicting, 7).count, 6);
    ck_assert_int_eq(layout_layers(&eight, &predicting, 1).count, 2);
    ck_assert_int_eq(layout_layers(&eight, &predicting, 31).first, 61);
    ck_assert_int_eq(layout_layers(&eight, &predicting, 31).count, 0);
    /* as many stages as layers and one for the embedding, one for prediction and the head: all others hold one */
    struct layout single = {.pp = 7, .vpp = 9};
    for (int v = 0; v < 63; v++)
        ck_assert_int_eq(layout_layers(&single, &predicting, v).count, v > 0 && v < 62);
    /* one lighter: the last */
    ck_assert_int_eq(count_of(11, 4, 1, 0), 3);
    ck_assert_int_eq(count_of(11, 4, 1, 3), 2);
}
END_TEST

/* LLaMA 13B and 65B with 128,000 words in an eager stack: a table weighs 2.07 and 1.30 layers. */
START_TEST(eager_stacks_divide_by_parameters)
{
    static const int small[4] = {9, 11, 11, 9}, large[8] = {9, 11, 11, 11, 11, 11, 11, 5}, halves[2] = {20, 20};
    struct transformer model = {.layers = 40,
                                .hidden = 5120,
                                .ffn_hidden = 13824,
                                .heads = 40,
                                .kv_heads = 40,
                                .head_dim = 128,
                                .vocab = 128000,
                                .gated_mlp = true,
                                .norm = NORM_RMS};
    struct layout four = {.pp = 4, .vpp = 1}, two = {.pp = 2, .vpp = 1}, eight = {.pp = 8, .vpp = 1};
    for (int v = 0; v < 4; v++)
        ck_assert_int_eq(layout_layers(&four, &model, v).count, small[v]);
    for (int v = 0; v < 2; v++)
        ck_assert_int_eq(layout_layers(&two, &model, v).count, halves[v]);
    four.vpp = 2; /* two chunks of a rank: alike */
    for (int v = 0; v < 8; v++)
        ck_assert_int_eq(layout_layers(&four, &model, v).count, 5);
    four.vpp = 1, four.features = FEATURE_BIT(FUSED_OPS);
    ck_assert_int_eq(layout_layers(&four, &model, 0).count, 10);
    four.features = 0;
    model.vocab = 100000000; /* 1600 layers each */
    ck_assert_int_eq(layout_layers(&two, &model, 0).count, 20);
    ck_assert_int_eq(layout_layers(&four, &model, 0).count, 0);
    ck_assert_int_eq(layout_layers(&four, &model, 1).count, 20);
    model.vocab = 128000;
    model.layers = 80, model.hidden = 8192, model.ffn_hidden = 22016, model.heads = model.kv_heads = 64;
    for (int v = 0; v < 8; v++)
        ck_assert_int_eq(layout_layers(&eight, &model, v).count, large[v]);
}
END_TEST

/* Layers of 64 experts outweigh a table that a dense one, as the first is here, does not: all of them, or the rank's of 16. */
START_TEST(experts_are_weighed)
{
    struct transformer model = {.layers = 32,
                                .hidden = 4096,
                                .ffn_hidden = 14336,
                                .heads = 32,
                                .kv_heads = 8,
                                .head_dim = 128,
                                .vocab = 128000,
                                .gated_mlp = true,
                                .norm = NORM_RMS,
                                .moe = {.experts = 64, .top_k = 2, .expert_ffn = 1792, .every = 1, .first_dense_layers = 1}};
    struct layout whole = {.tp = 1, .pp = 4, .vpp = 1, .ep = 1}, shared = {.tp = 1, .pp = 4, .vpp = 1, .ep = 16};
    ck_assert_int_eq(layout_layers(&whole, &model, 0).count, 8);  /* 0.36 of a layer */
    ck_assert_int_eq(layout_layers(&shared, &model, 0).count, 6); /* 4.0 */
    model.moe.experts = 0;
    ck_assert_int_eq(layout_layers(&whole, &model, 0).count, 7); /* 2.4 */
}
END_TEST

/* Weight of the heaviest stage of the best division, by trying all numbers of layers of the first and the last. */
static double least_of_all(int n, int layers, double table)
{
    double least = 2 * (layers + table);
    for (int first = 0; first <= layers; first++)
        for (int last = 0; first + last <= layers; last++) {
            int inner = layers - first - last;
            if (n == 2 && inner > 0)
                continue;
            double heaviest = fmax(fmax(first, last) + table, n > 2 ? ceil(inner / (n - 2.0)) : 0);
            least = fmin(least, heaviest);
        }
    return least;
}

START_TEST(eager_division_is_a_partition_and_the_best)
{
    for (int n = 2; n <= 9; n++)
        for (int layers = n; layers <= 40; layers++)
            for (int64_t vocab = 1000; vocab < 4000000; vocab *= 3) {
                struct layout layout = {.pp = n, .vpp = 1};
                struct transformer model = {.layers = layers,
                                            .hidden = 1024,
                                            .ffn_hidden = 2816,
                                            .heads = 8,
                                            .kv_heads = 8,
                                            .head_dim = 128,
                                            .vocab = vocab,
                                            .gated_mlp = true};
                double table = (double)vocab * 1024 / transformer_layer_parameters(&model, 0, false), heaviest = 0;
                int next = 0;
                for (int v = 0; v < n; v++) {
                    struct layer_range range = layout_layers(&layout, &model, v);
                    ck_assert_int_eq(range.first, next);
                    ck_assert_int_ge(range.count, v == n - 1 ? 1 : 0);
                    heaviest = fmax(heaviest, range.count + (v == 0 || v == n - 1 ? table : 0));
                    next += range.count;
                }
                ck_assert_int_eq(next, layers);
                /* each stage keeps a layer: a table that outweighs all can cost one */
                ck_assert_double_le(heaviest, fmax(least_of_all(n, layers, table), table + 1) + 1e-9);
            }
}
END_TEST

START_TEST(layers_partition)
{
    for (int n = 1; n <= 40; n++) {
        for (int layers = n; layers <= 130; layers++) {
            struct layout layout = {.pp = n, .vpp = 1};
            struct transformer model = {.layers = layers};
            int next = 0;
            int last = layout_layers(&layout, &model, n - 1).count, first = layout_layers(&layout, &model, 0).count;
            for (int v = 0; v < n; v++) {
                struct layer_range range = layout_layers(&layout, &model, v);
                ck_assert_int_eq(range.first, next);
                ck_assert_int_ge(range.count, last);
                ck_assert_int_le(range.count - last, 1);
                next += range.count;
            }
            ck_assert_int_eq(next, layers);
            if (layers % n != n - 1)
                ck_assert_int_eq(first, last);
        }
    }
}
END_TEST

/* With prediction layers too every layer is somewhere, in order. */
START_TEST(layers_partition_beside_prediction)
{
    for (int n = 1; n <= 40; n++)
        for (int mtp = 1; mtp <= 4; mtp++)
            for (int layers = n > mtp ? n - mtp : 1; layers <= 70; layers++) {
                struct layout layout = {.pp = n, .vpp = 1};
                struct transformer model = {.layers = layers, .mtp_layers = mtp};
                int next = 0;
                for (int v = 0; v < n; v++) {
                    struct layer_range range = layout_layers(&layout, &model, v);
                    ck_assert_int_eq(range.first, next);
                    ck_assert_int_ge(range.count, 0);
                    next += range.count;
                }
                ck_assert_int_eq(next, layers);
            }
}
END_TEST

START_TEST(virtual_stages)
{
    struct layout layout = {.pp = 4, .vpp = 3, .schedule = SCHEDULE_INTERLEAVED};
    ck_assert_int_eq(layout_virtual_stage(&layout, 2, 1), 6);
    struct layout v_shaped = {.pp = 4, .vpp = 2, .schedule = SCHEDULE_ZBV};
    ck_assert_int_eq(layout_virtual_stage(&v_shaped, 0, 1), 7);
    ck_assert_int_eq(layout_virtual_stage(&v_shaped, 3, 1), 4);
    struct layout twice = {.pp = 4, .vpp = 2, .schedule = SCHEDULE_DUALPIPE};
    static const int held[4][2] = {{0, 3}, {1, 2}, {1, 2}, {0, 3}}; /* by both of a pair, alike */
    for (int s = 0; s < 4; s++)
        for (int c = 0; c < 2; c++)
            ck_assert_int_eq(layout_virtual_stage(&twice, s, c), held[s][c]);
    ck_assert_int_eq(layout_virtual_stages(&twice), 4);
    const struct layout *all[] = {&layout, &v_shaped, &twice};
    for (int i = 0; i < 3; i++) {
        for (int v = 0; v < layout_virtual_stages(all[i]); v++) {
            int stage = layout_stage_of(all[i], v), chunk = layout_chunk_of(all[i], v);
            ck_assert_int_eq(layout_virtual_stage(all[i], stage, chunk), v);
        }
    }
}
END_TEST

START_TEST(rank_order)
{
    struct layout layout = {.tp = 8, .cp = 1, .pp = 8, .vpp = 6, .dp = 192, .ep = 1};
    struct coordinates at = layout_coordinates(&layout, 8 * 192 * 3 + 8 * 5 + 7);
    ck_assert_int_eq(at.tp, 7);
    ck_assert_int_eq(at.cp, 0);
    ck_assert_int_eq(at.dp, 5);
    ck_assert_int_eq(at.pp, 3);
    struct layout odd = {.tp = 2, .cp = 3, .pp = 5, .vpp = 1, .dp = 7, .ep = 1};
    for (int rank = 0; rank < 2 * 3 * 5 * 7; rank++)
        ck_assert_int_eq(layout_rank(&odd, layout_coordinates(&odd, rank)), rank);
    ck_assert_int_eq(layout_rank(&odd, (struct coordinates){.cp = 1}), 2);
}
END_TEST

START_TEST(groups_by_hand)
{
    struct layout layout = {.tp = 2, .cp = 2, .pp = 3, .vpp = 1, .dp = 2, .ep = 2, .etp = 2};
    static const struct {
        enum group_kind kind;
        int rank, n, members[8];
    } cases[] = {
        {GROUP_TP, 5, 2, {4, 5}},          {GROUP_CP, 5, 2, {5, 7}},
        {GROUP_DP, 5, 4, {1, 3, 5, 7}},    {GROUP_EP, 5, 2, {5, 7}},
        {GROUP_EXPERT_DP, 5, 2, {1, 5}},   {GROUP_PP, 5, 3, {5, 13, 21}},
        {GROUP_EMBEDDING, 21, 2, {5, 21}}, {GROUP_MODEL, 21, 6, {4, 5, 12, 13, 20, 21}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int members[8];
        ck_assert_int_eq(layout_group_size(&layout, cases[i].kind), cases[i].n);
        layout_group_members(&layout, cases[i].kind, cases[i].rank, members);
        for (int j = 0; j < cases[i].n; j++)
            ck_assert_int_eq(members[j], cases[i].members[j]);
    }
    layout.etp = 0;
    layout.ep = 8; /* more than dp * cp = 4: the whole stage */
    int members[8];
    ck_assert_int_eq(layout_expert_tp(&layout), 1);
    ck_assert_int_eq(layout_group_size(&layout, GROUP_EP), 8);
    ck_assert_int_eq(layout_group_size(&layout, GROUP_EXPERT_DP), 1);
    layout_group_members(&layout, GROUP_EP, 13, members);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(members[i], 8 + i);
}
END_TEST

/* Two stages of tp * dp * cp = 2 * 8 ranks; four neighbours of a tensor-parallel index divide the dense weights, and the ep = 4
 * of the tp * shard = 8 ranks that hold a stage leave two to divide an expert's. */
START_TEST(hybrid_groups_by_hand)
{
    struct layout layout = {.tp = 2, .cp = 2, .pp = 2, .vpp = 1, .dp = 4, .ep = 4, .zero = 1, .shard = 4};
    static const struct {
        enum group_kind kind;
        int rank, n, members[4];
    } cases[] = {
        {GROUP_DP, 5, 4, {1, 3, 5, 7}},     {GROUP_DP, 29, 4, {25, 27, 29, 31}}, {GROUP_REPLICA, 5, 2, {5, 13}},
        {GROUP_REPLICA, 26, 2, {18, 26}},   {GROUP_EP, 5, 4, {4, 5, 6, 7}},      {GROUP_EXPERT_DP, 5, 2, {1, 5}},
        {GROUP_EXPERT_DP, 14, 2, {10, 14}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int members[4];
        ck_assert_int_eq(layout_group_size(&layout, cases[i].kind), cases[i].n);
        layout_group_members(&layout, cases[i].kind, cases[i].rank, members);
        for (int j = 0; j < cases[i].n; j++)
            ck_assert_int_eq(members[j], cases[i].members[j]);
    }
    struct layout all = layout;
    all.shard = 0;
    ck_assert_int_eq(layout_shard_ranks(&all), 8);
    ck_assert_int_eq(layout_group_size(&all, GROUP_REPLICA), 1);
}
END_TEST

/* A small generator of our own, so that the cases are the same everywhere. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int pick(uint64_t *state, const int *values, int n)
{
    return values[next_random(state) % (uint32_t)n];
}

static int world_of(const struct layout *l)
{
    return l->tp * l->cp * l->pp * l->dp;
}

static struct layout random_layout(uint64_t *state)
{
    static const int tps[] = {1, 2, 3, 4, 6, 8, 16}, cps[] = {1, 1, 2, 4}, pps[] = {1, 2, 3, 4, 8}, dps[] = {1, 2, 3, 5, 8, 12};
    struct layout layout = {.vpp = 1, .ep = 1};
    do {
        layout.tp = pick(state, tps, 7);
        layout.cp = pick(state, cps, 4);
        layout.pp = pick(state, pps, 5);
        layout.dp = pick(state, dps, 6);
    } while (world_of(&layout) > 768);
    int stage = world_of(&layout) / layout.pp;
    do
        layout.ep = 1 + (int)(next_random(state) % (uint32_t)stage);
    while (stage % layout.ep);
    int replicas = layout.dp * layout.cp, parts = 1 + (int)(next_random(state) % 6);
    bool divides = replicas % parts == 0 && layout.tp * (replicas / parts) % layout.ep == 0;
    layout.shard = divides ? replicas / parts : 0;
    return layout;
}

/* Groups of a kind hold every rank exactly once, and all members agree on the list. */
START_TEST(groups_partition)
{
    uint64_t state = 1;
    for (int round = 0; round < 40; round++) {
        struct layout layout = random_layout(&state);
        int world = world_of(&layout);
        for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
            int n = layout_group_size(&layout, (enum group_kind)kind);
            int *members = memory_new((size_t)n, sizeof *members), *others = memory_new((size_t)n, sizeof *others);
            for (int rank = 0; rank < world; rank++) {
                layout_group_members(&layout, (enum group_kind)kind, rank, members);
                int found = 0;
                for (int i = 0; i < n; i++) {
                    found += members[i] == rank;
                    ck_assert_int_ge(members[i], i ? members[i - 1] + 1 : 0);
                    ck_assert_int_lt(members[i], world);
                }
                int stage = layout_coordinates(&layout, rank).pp;
                bool outside = kind == GROUP_EMBEDDING && stage != 0 && stage != layout.pp - 1;
                ck_assert_int_eq(found, outside ? 0 : 1);
                layout_group_members(&layout, (enum group_kind)kind, members[n - 1], others);
                ck_assert_mem_eq(members, others, (size_t)n * sizeof *members);
            }
            free(members);
            free(others);
        }
    }
}
END_TEST

/* What the header says, by looking at every member of every group. */
static void measure(const struct layout *layout, enum group_kind kind, int unit, int *units, int *per_unit)
{
    int world = world_of(layout), n = layout_group_size(layout, kind);
    int *members = memory_new((size_t)n, sizeof *members);
    *units = *per_unit = 0;
    for (int rank = 0; rank < world; rank++) {
        layout_group_members(layout, kind, rank, members);
        int touched = 0, run = 0;
        for (int i = 0; i < n; i++) { /* members ascend, so units do */
            bool fresh = i == 0 || members[i] / unit != members[i - 1] / unit;
            touched += fresh;
            run = fresh ? 1 : run + 1;
            *per_unit = run > *per_unit ? run : *per_unit;
        }
        *units = touched > *units ? touched : *units;
    }
    free(members);
}

START_TEST(spans_against_brute_force)
{
    static const int nodes[] = {4, 8, 8, 8, 6};
    uint64_t state = 7;
    for (int round = 0; round < 150; round++) {
        struct layout layout = random_layout(&state);
        int node = pick(&state, nodes, 5), leaf_nodes = 1 + (int)(next_random(&state) % 6);
        struct cluster cluster = {.gpus_per_node = node,
                                  .nvlink_domain = node,
                                  .nics_per_node = node,
                                  .leaf_nodes = leaf_nodes,
                                  .pod_nodes = leaf_nodes * 3};
        for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
            /* Of the two-level group only what is regular is exact: stages that are whole units. */
            int stage = layout.tp * layout.cp * layout.dp;
            if (kind == GROUP_MODEL && stage % (3 * leaf_nodes * node))
                continue;
            struct group_span span = layout_span(&layout, &cluster, (enum group_kind)kind);
            int units, per_unit;
            measure(&layout, (enum group_kind)kind, node, &units, &per_unit);
            ck_assert_int_eq(span.ranks, layout_group_size(&layout, (enum group_kind)kind));
            ck_assert_int_eq(span.domains, units);
            ck_assert_int_eq(span.ranks_per_domain, per_unit);
            measure(&layout, (enum group_kind)kind, leaf_nodes * node, &units, &per_unit);
            ck_assert_int_eq(span.leaves, span.domains == 1 ? 1 : units);
            measure(&layout, (enum group_kind)kind, 3 * leaf_nodes * node, &units, &per_unit);
            ck_assert_int_eq(span.pods, span.domains == 1 ? 1 : units);
        }
    }
}
END_TEST

static struct group_span lies(int ranks, int per_domain, int domains, int leaves, int pods, int sharing, int islands)
{
    return (struct group_span){.ranks = ranks,
                               .ranks_per_domain = per_domain,
                               .domains = domains,
                               .leaves = leaves,
                               .pods = pods,
                               .sharing = sharing,
                               .islands = islands};
}

static void expect_span(struct group_span got, struct group_span want)
{
    ck_assert_int_eq(got.ranks, want.ranks);
    ck_assert_int_eq(got.ranks_per_domain, want.ranks_per_domain);
    ck_assert_int_eq(got.domains, want.domains);
    ck_assert_int_eq(got.leaves, want.leaves);
    ck_assert_int_eq(got.pods, want.pods);
    ck_assert_int_eq(got.sharing, want.sharing);
    ck_assert_int_eq(got.islands, want.islands);
}

/* The part of a unit's GPUs that sends beyond it, rank by rank, in the unit where it is most: each to the next domain of its
 * group in order (pipeline: the next rank), or to all members in other domains alike. */
static struct group_exits count_exits(const struct layout *layout, enum group_kind kind, int node, int size)
{
    int n = layout_group_size(layout, kind), world = layout->tp * layout->cp * layout->dp * layout->pp, members[1024];
    double *next = memory_new((size_t)world, sizeof *next), *all = memory_new((size_t)world, sizeof *all);
    struct group_exits most = {0};
    for (int r = 0; r < world; r++) {
        layout_group_members(layout, kind, r, members);
        int own = 0, elsewhere = 0, beyond = 0;
        while (members[own] != r)
            own++;
        int to = (own + 1) % n;
        while (kind != GROUP_PP && members[to] / node == r / node)
            to = (to + 1) % n;
        for (int i = 0; i < n; i++) {
            elsewhere += members[i] / node != r / node;
            beyond += members[i] / size != r / size;
        }
        next[r / size] += members[to] / size != r / size;
        all[r / size] += (double)beyond / elsewhere;
    }
    for (int unit = 0; unit * size < world; unit++) {
        most.to_next = fmax(most.to_next, next[unit] / size);
        most.to_all = fmax(most.to_all, all[unit] / size);
    }
    free(next);
    free(all);
    return most;
}

/* Groups that fill domains, or have one rank in each; units of whole domains, however groups fall on them. */
START_TEST(exits_match_counting)
{
    static const enum group_kind kinds[] = {GROUP_TP, GROUP_CP, GROUP_DP, GROUP_EP, GROUP_EXPERT_DP, GROUP_REPLICA, GROUP_PP};
    static const int nodes[] = {1, 2, 4, 8};
    uint64_t state = 29;
    int counted = 0, uneven = 0;
    for (int round = 0; round < 600; round++) {
        struct layout layout = random_layout(&state);
        int node = pick(&state, nodes, 4), leaf_nodes = 1 + (int)(next_random(&state) % 6), size = leaf_nodes * node;
        struct cluster cluster = {.gpus_per_node = node, .nvlink_domain = node, .nics_per_node = node, .leaf_nodes = leaf_nodes};
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            struct group_span span = layout_span(&layout, &cluster, kinds[i]);
            struct group_shape shape = group_shape_of(&layout, kinds[i]);
            ck_assert(span.leaf_exits.to_next >= 0 && span.leaf_exits.to_next <= 1);
            ck_assert(span.leaf_exits.to_all >= 0 && span.leaf_exits.to_all <= 1 + 1e-12);
            bool whole = shape.block % node == 0 && (shape.stride % node == 0 || node % shape.stride == 0);
            if (span.leaves == 1) {
                ck_assert(span.leaf_exits.to_next <= 0 && span.leaf_exits.to_all <= 0);
                continue;
            }
            if (!whole || shape.n > 1024)
                continue;
            struct group_exits want = count_exits(&layout, kinds[i], node, size);
            ck_assert_double_eq_tol(span.leaf_exits.to_next, want.to_next, 1e-12);
            counted++;
            uneven += shape.block % size != 0 && size % shape.block != 0;
            /* every group has the same number of members in a unit */
            int step = shape.stride > node ? shape.stride : node;
            if (size % step == 0 && kinds[i] != GROUP_PP)
                ck_assert_double_eq_tol(span.leaf_exits.to_all, want.to_all, 1e-12);
        }
    }
    ck_assert_int_gt(counted, 300);
    ck_assert_int_gt(uneven, 30);
}
END_TEST

START_TEST(spans_by_hand)
{
    struct layout megascale = {.tp = 8, .cp = 1, .pp = 8, .vpp = 6, .dp = 192, .ep = 1};
    struct cluster a100 = {.gpus_per_node = 8, .nvlink_domain = 8, .nics_per_node = 8, .leaf_nodes = 64};
    expect_span(layout_span(&megascale, &a100, GROUP_TP), lies(8, 8, 1, 1, 1, 1, 1));
    expect_span(layout_span(&megascale, &a100, GROUP_DP), lies(192, 1, 192, 3, 1, 1, 1));
    expect_span(layout_span(&megascale, &a100, GROUP_PP), lies(8, 1, 8, 8, 1, 1, 1));
    expect_span(layout_span(&megascale, &a100, GROUP_MODEL), lies(64, 8, 8, 8, 1, 1, 1));
    expect_span(layout_span(&megascale, &a100, GROUP_EP), lies(1, 1, 1, 1, 1, 1, 1));

    a100.nics_per_node = 4; /* two data-parallel groups on each NIC */
    expect_span(layout_span(&megascale, &a100, GROUP_DP), lies(192, 1, 192, 3, 1, 2, 1));
    struct layout fsdp = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 128, .ep = 1};
    expect_span(layout_span(&fsdp, &a100, GROUP_DP), lies(128, 8, 16, 1, 1, 1, 1));
    struct layout half = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 64, .ep = 1};
    expect_span(layout_span(&half, &a100, GROUP_DP), lies(64, 4, 16, 1, 1, 2, 1));
    struct layout part = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 2, .ep = 1}; /* two of eight GPUs */
    expect_span(layout_span(&part, &a100, GROUP_DP), lies(2, 2, 1, 1, 1, 1, 1));
    /* Two stages of four ranks a node, half of a stage in the group: ranks 0, 1, 4, 5, 8, 9, 12 and 13. The two such groups of
     * a node have eight members on four NICs. */
    struct layout small = {.tp = 2, .cp = 1, .pp = 4, .vpp = 1, .dp = 2, .ep = 1};
    expect_span(layout_span(&small, &a100, GROUP_MODEL), lies(8, 4, 2, 1, 1, 2, 1));
}
END_TEST

/* Jean Zay: nodes of two boards of four GPUs. */
START_TEST(spans_of_boards)
{
    struct cluster boards = {.gpus_per_node = 8, .nvlink_domain = 4, .nics_per_node = 4, .leaf_nodes = 16};
    struct layout wide = {.tp = 8, .cp = 1, .pp = 6, .vpp = 1, .dp = 8, .ep = 1};
    expect_span(layout_span(&wide, &boards, GROUP_TP), lies(8, 8, 1, 1, 1, 1, 2));
    struct layout narrow = {.tp = 4, .cp = 1, .pp = 12, .vpp = 1, .dp = 8, .ep = 1};
    expect_span(layout_span(&narrow, &boards, GROUP_TP), lies(4, 4, 1, 1, 1, 1, 1));
    expect_span(layout_span(&narrow, &boards, GROUP_DP), lies(8, 2, 4, 1, 1, 2, 2));
}
END_TEST

/* NVL72: nodes of four GPUs in domains of 72, of which a job of 256 uses 64. */
START_TEST(spans_of_large_domains)
{
    struct cluster nvl72 = {.gpus_per_node = 4, .nvlink_domain = 72, .nics_per_node = 4, .leaf_nodes = 0};
    struct layout moe = {.tp = 1, .cp = 1, .pp = 4, .vpp = 4, .dp = 64, .ep = 64};
    expect_span(layout_span(&moe, &nvl72, GROUP_EP), lies(64, 64, 1, 1, 1, 1, 1));
    expect_span(layout_span(&moe, &nvl72, GROUP_PP), lies(4, 1, 4, 1, 1, 1, 1));
    struct layout fsdp = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 256, .ep = 1};
    expect_span(layout_span(&fsdp, &nvl72, GROUP_DP), lies(256, 64, 4, 1, 1, 1, 1));
    struct layout whole = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 144, .ep = 1};
    expect_span(layout_span(&whole, &nvl72, GROUP_DP), lies(144, 72, 2, 1, 1, 1, 1));
    struct layout small = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 40, .ep = 1};
    expect_span(layout_span(&small, &nvl72, GROUP_DP), lies(40, 40, 1, 1, 1, 1, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout_ranks");
    TCase *tcase = tcase_create("ranks");
    tcase_add_test(tcase, layers_by_hand);
    tcase_add_test(tcase, eager_stacks_divide_by_parameters);
    tcase_add_test(tcase, experts_are_weighed);
    tcase_add_test(tcase, eager_division_is_a_partition_and_the_best);
    tcase_add_test(tcase, layers_partition);
    tcase_add_test(tcase, layers_partition_beside_prediction);
    tcase_add_test(tcase, virtual_stages);
    tcase_add_test(tcase, rank_order);
    tcase_add_test(tcase, groups_by_hand);
    tcase_add_test(tcase, hybrid_groups_by_hand);
    tcase_add_test(tcase, groups_partition);
    tcase_add_test(tcase, spans_against_brute_force);
    tcase_add_test(tcase, exits_match_counting);
    tcase_add_test(tcase, spans_by_hand);
    tcase_add_test(tcase, spans_of_large_domains);
    tcase_add_test(tcase, spans_of_boards);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
