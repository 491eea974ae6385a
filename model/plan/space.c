/* space.c - the space of layouts: blocks, and mixed-radix numbers within a block. */
#include "model/plan/space.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/plan/candidates.h"

enum {
    N_TOGGLE_CLASSES = 8,                /* (tp > 1, pp > 1, dp cp > 1) */
    MAX_FEATURE_SETS = 12 * SPACE_LOSSES /* none, tp_overlap, async_tp; times two; times two; for each loss */
};

/* A list that many blocks share. */
struct digit {
    int values[SPACE_RANGES];
    int n;
};

struct sharding_digit {
    struct sharding values[SPACE_SHARDINGS];
    int n;
};

struct feature_digit {
    feature_set sets[MAX_FEATURE_SETS];
    int n, n_losses; /* as many sets of each loss, one loss after the other */
};

enum pipeline_class { PIPELINE_NONE, PIPELINE_FLAT, PIPELINE_TWO_CHUNKS, PIPELINE_CHUNKED, N_PIPELINE_CLASSES };

struct block {
    uint64_t first;                          /* index of its first layout */
    uint32_t first_family;                   /* one family per micro-batch size */
    uint32_t micro_batches, n_micro_batches; /* in space.micro_batches */
    int tp, cp, cp_comm, pp, ep, etp, vpp, dp;
};

struct micro_batch_list {
    int dp, divisor;
    uint32_t first, n;
};

struct space {
    const struct setting *setting;
    struct space_limits limits;
    struct block *blocks; /* in lexicographic order of (tp, cp, cp_comm, pp, ep, etp, vpp) */
    size_t n_blocks, blocks_capacity;
    struct int_list micro_batches; /* the lists of all dp, one after the other */
    struct micro_batch_list *lists;
    size_t n_lists, lists_capacity;
    struct digit schedules[N_PIPELINE_CLASSES], offloads, recomputes, sps[2];
    struct int_list shards;              /* numbers of replicas to shard among; 0: all */
    struct sharding_digit *shardings[2]; /* without and with a pipeline, [2 + shards.n]: of one replica, of several, of one for
                                          * each shards.items[i] */
    struct feature_digit features[N_TOGGLE_CLASSES];
    uint64_t n_layouts;
    uint32_t n_families;
};

/* --- the lists that blocks share --- */

static const enum schedule flat_schedules[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_ZB1P};
/* Only where they are asked for: few frameworks have them. */
static const enum schedule folded_schedules[] = {SCHEDULE_ZBV, SCHEDULE_DUALPIPE, SCHEDULE_DUALPIPEV};

static void digit_add_allowed(struct digit *digit, const struct space_limit *limit, int value)
{
    if (space_limit_allows(limit, value))
        digit->values[digit->n++] = value;
}

/* What a restriction names above `last`, in ascending order, each once: sets of modules stand between none and full. */
static void add_sets(struct digit *digit, const struct space_limit *limit, int last)
{
    while (last >= -1) {
        int next = -1;
        for (int i = 0; i < limit->n; i++)
            if (limit->ranges[i].low > last && (next < 0 || limit->ranges[i].low < next))
                next = limit->ranges[i].low;
        if (next >= 0)
            digit->values[digit->n++] = next;
        last = next < 0 ? -2 : next;
    }
}

/* Selective recomputation of a kernel that keeps no scores saves nothing. */
static void build_recomputes(struct space *space)
{
    const struct space_limit *limit = &space->limits.dimensions[SPACE_RECOMPUTE];
    feature_set features = space->setting->job->features;
    bool flash = features & FEATURES_FLASH, by_need = !(features & FEATURE_BIT(FUSED_OPS));
    int light = (int)layout_light_modules(space->setting->model) & ~space->limits.modules_kept;
    struct digit *digit = &space->recomputes;
    digit_add_allowed(digit, limit, RECOMPUTE_NONE);
    if (limit->n > 0 || !flash || by_need)
        digit_add_allowed(digit, limit, RECOMPUTE_SELECTIVE);
    if (limit->n > 0)
        add_sets(digit, limit, N_RECOMPUTES);
    else if (flash && light)
        digit->values[digit->n++] = light;
    digit_add_allowed(digit, limit, RECOMPUTE_FULL);
}

/* Of layouts with n replicas (0: with none of the numbers named). Without ZeRO there is nothing to shard by. In a pipeline
 * ZeRO 2 is 1, or what few frameworks do (footprint.h). */
static void build_sharding_digit(const struct space *space, bool pipelined, int replicas, struct sharding_digit *digit)
{
    const struct space_limit *limits = space->limits.dimensions;
    struct int_list shards = {0};
    candidates_shard(&shards, &limits[SPACE_SHARD], space->setting->gpus, replicas);
    for (int zero = 0; zero <= 3; zero++) {
        bool rare = pipelined && zero == 2 && limits[SPACE_ZERO].n == 0;
        if (rare || !space_limit_allows(&limits[SPACE_ZERO], zero))
            continue;
        for (size_t i = 0; i < (zero ? shards.n : 1) && digit->n < SPACE_SHARDINGS; i++)
            digit->values[digit->n++] = (struct sharding){zero, zero ? shards.items[i] : 0};
    }
    int_list_free(&shards);
}

/* One replica has nothing to shard. */
static void build_shardings(struct space *space)
{
    candidates_shard(&space->shards, &space->limits.dimensions[SPACE_SHARD], space->setting->gpus, 0);
    for (int pipelined = 0; pipelined < 2; pipelined++) {
        struct sharding_digit *digits = memory_new(2 + space->shards.n, sizeof *digits);
        digits[0].n = 1;
        build_sharding_digit(space, pipelined, 0, &digits[1]);
        for (size_t i = 0; i < space->shards.n; i++)
            build_sharding_digit(space, pipelined, space->shards.items[i], &digits[2 + i]);
        space->shardings[pipelined] = digits;
    }
}

static void build_digits(struct space *space)
{
    const struct space_limit *limits = space->limits.dimensions;
    digit_add_allowed(&space->schedules[PIPELINE_NONE], &limits[SPACE_SCHEDULE], SCHEDULE_NONE);
    digit_add_allowed(&space->schedules[PIPELINE_TWO_CHUNKS], &limits[SPACE_SCHEDULE], SCHEDULE_INTERLEAVED);
    digit_add_allowed(&space->schedules[PIPELINE_CHUNKED], &limits[SPACE_SCHEDULE], SCHEDULE_INTERLEAVED);
    for (size_t i = 0; limits[SPACE_SCHEDULE].n > 0 && i < sizeof folded_schedules / sizeof folded_schedules[0]; i++)
        digit_add_allowed(&space->schedules[PIPELINE_TWO_CHUNKS], &limits[SPACE_SCHEDULE], (int)folded_schedules[i]);
    for (size_t i = 0; i < sizeof flat_schedules / sizeof flat_schedules[0]; i++)
        digit_add_allowed(&space->schedules[PIPELINE_FLAT], &limits[SPACE_SCHEDULE], (int)flat_schedules[i]);
    if (limits[SPACE_SCHEDULE].n > 0)
        digit_add_allowed(&space->schedules[PIPELINE_FLAT], &limits[SPACE_SCHEDULE], SCHEDULE_ZB2P);
    build_recomputes(space);
    if (limits[SPACE_OFFLOAD].n > 0)
        add_sets(&space->offloads, &limits[SPACE_OFFLOAD], -1);
    else
        digit_add_allowed(&space->offloads, &limits[SPACE_OFFLOAD], 0);
    build_shardings(space);
    space->sps[false] = (struct digit){.n = 1};
    for (int i = 0; i <= 1; i++)
        digit_add_allowed(&space->sps[true], &limits[SPACE_SEQUENCE_PARALLEL], i);
}

/* Off, and each way of being on that the job allows. */
static int toggle_choices(const struct space *space, bool meaningful, enum space_dimension dimension, feature_set ways,
                          feature_set choices[3])
{
    const struct space_limit *limit = &space->limits.dimensions[dimension];
    int n = 0;
    if (!meaningful || space_limit_allows(limit, 0))
        choices[n++] = 0;
    for (feature_set rest = meaningful && space_limit_allows(limit, 1) ? ways & space->setting->job->features : 0; rest != 0;
         rest &= rest - 1)
        choices[n++] = rest & -rest;
    return n;
}

static void build_features(struct space *space)
{
    const feature_set tp_ways = FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP);
    feature_set kept = space->setting->job->features & ~SPACE_TOGGLES;
    feature_set losses[SPACE_LOSSES] = {0};
    int n_losses = 1;
    for (feature_set rest = space->setting->job->features & FEATURES_LINEAR_LOSS; rest != 0; rest &= rest - 1)
        losses[n_losses++] = rest & -rest;
    for (int class = 0; class < N_TOGGLE_CLASSES; class ++) {
        feature_set tp[3], pp[3], dp[3];
        int n_tp = toggle_choices(space, class & 4, SPACE_TP_OVERLAP, tp_ways, tp);
        int n_pp = toggle_choices(space, class & 2, SPACE_PP_OVERLAP, FEATURE_BIT(PP_OVERLAP), pp);
        int n_dp = toggle_choices(space, class & 1, SPACE_DP_OVERLAP, FEATURE_BIT(DP_OVERLAP), dp);
        struct feature_digit *digit = &space->features[class];
        digit->n_losses = n_losses;
        for (int i = 0; i < n_losses * n_tp; i++)
            for (int j = 0; j < n_pp; j++)
                for (int k = 0; k < n_dp; k++)
                    digit->sets[digit->n++] = kept | losses[i / n_tp] | tp[i % n_tp] | pp[j] | dp[k];
    }
}

/* --- what a block's digits are --- */

static const struct digit *block_schedules(const struct space *space, const struct block *block)
{
    enum pipeline_class chunks = block->vpp == 1 ? PIPELINE_FLAT : block->vpp == 2 ? PIPELINE_TWO_CHUNKS : PIPELINE_CHUNKED;
    return &space->schedules[block->pp == 1 ? PIPELINE_NONE : chunks];
}

static const struct sharding_digit *block_shardings(const struct space *space, const struct block *block)
{
    int replicas = block->dp * block->cp;
    const struct sharding_digit *digits = space->shardings[block->pp > 1];
    if (replicas == 1)
        return &digits[0];
    for (size_t i = 0; i < space->shards.n; i++)
        if (space->shards.items[i] == replicas)
            return &digits[2 + i];
    return &digits[1];
}

static const struct digit *block_sps(const struct space *space, const struct block *block)
{
    return &space->sps[block->tp > 1];
}

static const struct feature_digit *block_features(const struct space *space, const struct block *block)
{
    return &space->features[(block->tp > 1) * 4 + (block->pp > 1) * 2 + (block->dp > 1 || block->cp > 1)];
}

static uint64_t family_size(const struct space *space, const struct block *block)
{
    return (uint64_t)block_schedules(space, block)->n * (uint64_t)space->offloads.n * (uint64_t)space->recomputes.n *
           (uint64_t)block_shardings(space, block)->n * (uint64_t)block_sps(space, block)->n *
           (uint64_t)block_features(space, block)->n;
}

/* --- building --- */

/* Sizes with which each of dp replicas has a multiple of `divisor` micro-batches. */
static const struct micro_batch_list *micro_batches_of(struct space *space, int dp, int divisor)
{
    for (size_t i = 0; i < space->n_lists; i++)
        if (space->lists[i].dp == dp && space->lists[i].divisor == divisor)
            return &space->lists[i];
    struct int_list list = {0};
    candidates_micro_batch(&list, &space->limits.dimensions[SPACE_MICRO_BATCH], space->setting->job, dp);
    struct micro_batch_list added = {.dp = dp, .divisor = divisor, .first = (uint32_t)space->micro_batches.n};
    for (size_t i = 0; i < list.n; i++)
        if (divisor == 1 || space->setting->job->global_batch % ((int64_t)dp * list.items[i] * divisor) == 0)
            int_list_add(&space->micro_batches, list.items[i]);
    added.n = (uint32_t)space->micro_batches.n - added.first;
    int_list_free(&list);
    space->lists = memory_grow(space->lists, &space->lists_capacity, space->n_lists + 1, sizeof *space->lists);
    space->lists[space->n_lists] = added;
    return &space->lists[space->n_lists++];
}

static void add_block(struct space *space, struct block block)
{
    int divisor = space->limits.whole_rounds && block.vpp > 1 ? block.pp : 1;
    const struct micro_batch_list *list = micro_batches_of(space, block.dp, divisor);
    uint64_t size = family_size(space, &block);
    if (list->n == 0 || size == 0)
        return;
    block.first = space->n_layouts;
    block.first_family = space->n_families;
    block.micro_batches = list->first;
    block.n_micro_batches = list->n;
    space->blocks = memory_grow(space->blocks, &space->blocks_capacity, space->n_blocks + 1, sizeof *space->blocks);
    space->blocks[space->n_blocks++] = block;
    space->n_layouts += size * list->n;
    space->n_families += list->n;
}

static void add_expert_blocks(struct space *space, struct block block)
{
    const struct space_limit *limits = space->limits.dimensions;
    struct int_list eps = {0}, etps = {0}, vpps = {0};
    candidates_ep(&eps, &limits[SPACE_EP], space->setting->model, (int64_t)block.tp * block.cp * block.dp);
    candidates_etp(&etps, &limits[SPACE_ETP], space->setting->model, block.tp);
    candidates_vpp(&vpps, &limits[SPACE_VPP], space->setting->model, block.pp);
    for (size_t i = 0; i < eps.n; i++)
        for (size_t j = 0; j < etps.n * vpps.n; j++) {
            block.ep = eps.items[i];
            block.etp = etps.items[j / vpps.n];
            block.vpp = vpps.items[j % vpps.n];
            add_block(space, block);
        }
    int_list_free(&eps);
    int_list_free(&etps);
    int_list_free(&vpps);
}

/* What is left of the GPUs; a product that does not divide them still has one layout, which layout_check refuses. */
static int gpus_left(const struct space *space, int64_t inner, int pp)
{
    int gpus = space->setting->gpus;
    bool enough = inner <= gpus && inner * pp <= gpus;
    return enough ? (int)(gpus / (inner * pp)) : 1;
}

static void add_pipeline_blocks(struct space *space, int tp, int cp, int cp_comm)
{
    const struct space_limit *limits = space->limits.dimensions;
    struct int_list pps = {0};
    int64_t inner = (int64_t)tp * cp;
    candidates_pp(&pps, &limits[SPACE_PP], space->setting->model->layers, space->setting->gpus, inner);
    for (size_t i = 0; i < pps.n; i++) {
        struct block block = {.tp = tp, .cp = cp, .cp_comm = cp_comm, .pp = pps.items[i]};
        block.dp = gpus_left(space, inner, block.pp);
        if (space_limit_allows(&limits[SPACE_DP], block.dp))
            add_expert_blocks(space, block);
    }
    int_list_free(&pps);
}

static void add_context_blocks(struct space *space, int tp, int cp)
{
    struct int_list comms = {0};
    candidates_cp_comm(&comms, &space->limits.dimensions[SPACE_CP_COMM], space->setting, tp, cp);
    for (size_t i = 0; i < comms.n; i++)
        add_pipeline_blocks(space, tp, cp, comms.items[i]);
    int_list_free(&comms);
}

static void build_blocks(struct space *space)
{
    const struct setting *setting = space->setting;
    const struct space_limit *limits = space->limits.dimensions;
    struct int_list tps = {0};
    int heads = setting->model->heads, domain = setting->cluster->nvlink_domain;
    candidates_tp(&tps, &limits[SPACE_TP], heads < domain ? heads : domain, setting->gpus);
    for (size_t i = 0; i < tps.n; i++) {
        struct int_list cps = {0};
        candidates_cp(&cps, &limits[SPACE_CP], setting->job->seq_len, setting->gpus, tps.items[i]);
        for (size_t j = 0; j < cps.n; j++)
            add_context_blocks(space, tps.items[i], cps.items[j]);
        int_list_free(&cps);
    }
    int_list_free(&tps);
}

enum status space_create(const struct setting *setting, const struct space_limits *limits, struct space **space,
                         struct diags *diags)
{
    struct space *built = memory_new(1, sizeof *built);
    built->setting = setting;
    built->limits = *limits;
    build_digits(built);
    build_features(built);
    build_blocks(built);
    if (built->n_layouts == 0) {
        diag_error(diags, PLACE_NONE,
                   "the restrictions leave no layout of %d GPUs; the product of tp, cp, pp and dp must be the number of GPUs, "
                   "schedule none needs pp=1, interleaved needs vpp above 1, zb-v and dualpipe need vpp=2, and an overlap needs "
                   "its feature in the job%s",
                   setting->gpus,
                   limits->whole_rounds ? "; the framework refuses several chunks per stage (vpp) unless pp divides the "
                                          "micro-batches of a replica, global_batch / (dp * mb)"
                                        : "");
        space_destroy(built);
        return STATUS_BAD_INPUT;
    }
    *space = built;
    return STATUS_OK;
}

void space_destroy(struct space *space)
{
    if (space == NULL)
        return;
    free(space->blocks);
    free(space->lists);
    int_list_free(&space->micro_batches);
    int_list_free(&space->shards);
    free(space->shardings[false]);
    free(space->shardings[true]);
    free(space);
}

const struct space_limits *space_limits_of(const struct space *space)
{
    return &space->limits;
}

const struct setting *space_setting(const struct space *space)
{
    return space->setting;
}

bool space_restricts(const struct space *space, enum space_dimension dimension)
{
    return space->limits.dimensions[dimension].n > 0;
}

uint64_t space_size(const struct space *space)
{
    return space->n_layouts;
}

uint32_t space_n_families(const struct space *space)
{
    return space->n_families;
}

/* --- from an index to a layout and back --- */

/* The last block that does not begin behind a layout, or behind a family (`from` takes its first one out of a block). */
static const struct block *block_at(const struct space *space, uint64_t number, uint64_t (*from)(const struct block *))
{
    size_t low = 0, high = space->n_blocks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (from(&space->blocks[middle]) <= number)
            low = middle;
        else
            high = middle;
    }
    return &space->blocks[low];
}

static uint64_t first_layout_of(const struct block *block)
{
    return block->first;
}

static uint64_t first_family_of(const struct block *block)
{
    return block->first_family;
}

static void fill_family(const struct space *space, const struct block *block, uint32_t micro_batch, struct space_family *out)
{
    const struct digit *schedules = block_schedules(space, block), *sps = block_sps(space, block);
    const struct sharding_digit *shardings = block_shardings(space, block);
    const struct feature_digit *features = block_features(space, block);
    memset(out, 0, sizeof *out);
    out->first = block->first + micro_batch * family_size(space, block);
    out->schedules = schedules->values, out->n_schedules = schedules->n;
    out->offloads = space->offloads.values, out->n_offloads = space->offloads.n;
    out->recomputes = space->recomputes.values, out->n_recomputes = space->recomputes.n;
    out->shardings = shardings->values, out->n_shardings = shardings->n;
    out->sps = sps->values, out->n_sps = sps->n;
    out->features = features->sets, out->n_features = features->n, out->n_losses = features->n_losses;
    struct layout *base = &out->base;
    base->tp = block->tp, base->cp = block->cp, base->pp = block->pp;
    base->cp_comm = (enum cp_comm)block->cp_comm;
    base->vpp = block->vpp, base->dp = block->dp, base->ep = block->ep, base->etp = block->etp;
    base->micro_batch = space->micro_batches.items[block->micro_batches + micro_batch];
    base->schedule = (enum schedule)out->schedules[0];
    base->offload = offload_of_number(out->offloads[0]);
    base->recompute = recompute_of_number(out->recomputes[0]);
    base->zero = out->shardings[0].zero, base->shard = out->shardings[0].shard;
    base->sequence_parallel = out->sps[0] != 0;
    base->features = out->features[0];
}

void space_family(const struct space *space, uint32_t family, struct space_family *out)
{
    const struct block *block = block_at(space, family, first_family_of);
    fill_family(space, block, family - block->first_family, out);
}

/* The lowest digit of a mixed-radix number, taken off it. */
static int take_digit(uint64_t *number, int radix)
{
    int digit = (int)(*number % (uint64_t)radix);
    *number /= (uint64_t)radix;
    return digit;
}

void space_layout(const struct space *space, uint64_t index, struct layout *layout)
{
    const struct block *block = block_at(space, index, first_layout_of);
    uint64_t size = family_size(space, block), within = index - block->first;
    struct space_family family;
    fill_family(space, block, (uint32_t)(within / size), &family);
    uint64_t number = within % size;
    memcpy(layout, &family.base, sizeof *layout);
    layout->features = family.features[take_digit(&number, family.n_features)];
    layout->sequence_parallel = family.sps[take_digit(&number, family.n_sps)] != 0;
    struct sharding sharding = family.shardings[take_digit(&number, family.n_shardings)];
    layout->zero = sharding.zero;
    layout->shard = sharding.shard;
    layout->recompute = recompute_of_number(family.recomputes[take_digit(&number, family.n_recomputes)]);
    layout->offload = offload_of_number(family.offloads[take_digit(&number, family.n_offloads)]);
    layout->schedule = (enum schedule)family.schedules[take_digit(&number, family.n_schedules)];
}

static int block_compare(const struct block *block, const struct layout *layout)
{
    const int a[] = {block->tp, block->cp, block->cp_comm, block->pp, block->ep, block->etp, block->vpp};
    const int b[] = {layout->tp, layout->cp, (int)layout->cp_comm, layout->pp, layout->ep, layout->etp, layout->vpp};
    for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static const struct block *block_of_layout(const struct space *space, const struct layout *layout)
{
    size_t low = 0, high = space->n_blocks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = block_compare(&space->blocks[middle], layout);
        if (order == 0)
            return space->blocks[middle].dp == layout->dp ? &space->blocks[middle] : NULL;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int position_of(const int *values, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (values[i] == value)
            return i;
    return -1;
}

static int position_of_sharding(const struct space_family *family, const struct layout *layout)
{
    for (int i = 0; i < family->n_shardings; i++)
        if (family->shardings[i].zero == layout->zero && family->shardings[i].shard == layout->shard)
            return i;
    return -1;
}

static int position_of_features(const struct space_family *family, feature_set features)
{
    for (int i = 0; i < family->n_features; i++)
        if (family->features[i] == features)
            return i;
    return -1;
}

bool space_find(const struct space *space, const struct layout *layout, uint64_t *index)
{
    const struct block *block = block_of_layout(space, layout);
    if (block == NULL)
        return false;
    int micro_batch =
        position_of(space->micro_batches.items + block->micro_batches, (int)block->n_micro_batches, layout->micro_batch);
    if (micro_batch < 0)
        return false;
    struct space_family family;
    fill_family(space, block, (uint32_t)micro_batch, &family);
    const int digits[] = {position_of(family.schedules, family.n_schedules, (int)layout->schedule),
                          position_of(family.offloads, family.n_offloads, offload_number(&layout->offload)),
                          position_of(family.recomputes, family.n_recomputes, recompute_number(layout->recompute)),
                          position_of_sharding(&family, layout),
                          position_of(family.sps, family.n_sps, layout->sequence_parallel),
                          position_of_features(&family, layout->features)};
    const int radices[] = {family.n_schedules, family.n_offloads, family.n_recomputes,
                           family.n_shardings, family.n_sps,      family.n_features};
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++) {
        if (digits[i] < 0)
            return false;
        number = number * (uint64_t)radices[i] + (uint64_t)digits[i];
    }
    *index = family.first + number;
    return true;
}
