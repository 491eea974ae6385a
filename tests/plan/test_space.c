/*
 * The space of layouts against a brute force over all tuples.
 *
 * What is proved: every legal layout in its plainest form is in the space, once; a space holds nothing else that is legal;
 * indices and layouts map to each other; families tile the indices.
 */
#include <check.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/plan/candidates.h"
#include "tests/layout/offloaded.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

/* Ranges without the limits on plausible sizes: then the space is every legal layout. */
static const char *const unlimited = "tp=1..1000,cp=1..1000,pp=1..1000,vpp=1..1000,mb=1..1000,ep=1..1000";

static uint64_t count_legal(const struct space *space)
{
    uint64_t legal = 0;
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct layout layout;
        space_layout(space, i, &layout);
        legal += layout_check(&layout, space_setting(space), NULL, 0) == LAYOUT_LEGAL;
    }
    return legal;
}

/* --- the brute force --- */

struct brute {
    const struct space *space;
    const struct setting *setting;
    uint64_t n_legal;
};

/* Dimensions without meaning in their plainest value; in a pipeline ZeRO 2 is 1, or has to be named, as zb-2p has to be. */
static bool is_plain(const struct layout *l)
{
    if ((l->pp > 1 && l->zero == 2) || l->schedule == SCHEDULE_ZB2P)
        return false;
    if (l->tp == 1 && (l->sequence_parallel || (l->features & FEATURE_BIT(TP_OVERLAP))))
        return false;
    if (l->pp == 1 && (l->features & FEATURE_BIT(PP_OVERLAP)))
        return false;
    if (l->dp * l->cp == 1 && (l->zero > 0 || (l->features & FEATURE_BIT(DP_OVERLAP))))
        return false;
    return true;
}

static void brute_layout(struct brute *brute, const struct layout *layout)
{
    if (!is_plain(layout) || layout_check(layout, brute->setting, NULL, 0) != LAYOUT_LEGAL)
        return;
    brute->n_legal++;
    uint64_t index;
    struct layout back;
    char text[160];
    ck_assert_msg(space_find(brute->space, layout, &index), "%s (features %x) is legal but not in the space",
                  layout_format(layout, text, sizeof text), layout->features);
    space_layout(brute->space, index, &back);
    ck_assert(same_layout(&back, layout));
}

/* With FlashAttention and without fused operators. */
static const int LEVELS[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT, RECOMPUTE_FULL};
enum { N_LEVELS = sizeof LEVELS / sizeof LEVELS[0] };

static void brute_switches(struct brute *brute, struct layout layout)
{
    static const feature_set toggles[] = {FEATURE_BIT(TP_OVERLAP), FEATURE_BIT(PP_OVERLAP), FEATURE_BIT(DP_OVERLAP)};
    for (int i = 0; i < 2 * 4 * N_LEVELS * 8; i++) {
        int rest = i;
        layout.sequence_parallel = rest % 2, rest /= 2;
        layout.zero = rest % 4, rest /= 4;
        layout.recompute.what = (enum recompute_what)LEVELS[rest % N_LEVELS], rest /= N_LEVELS;
        if (brute->setting->model->moe.experts && layout.recompute.what & RECOMPUTE_MLP_ACT)
            layout.recompute.what = (enum recompute_what)(RECOMPUTE_LAYERNORM | RECOMPUTE_MOE_ACT);
        layout.features = FEATURE_BIT(FLASH_ATTENTION2);
        for (int j = 0; j < 3; j++)
            if (rest >> j & 1)
                layout.features |= toggles[j];
        brute_layout(brute, &layout);
    }
}

static void brute_inner(struct brute *brute, struct layout layout)
{
    const struct setting *setting = brute->setting;
    for (layout.vpp = 1; layout.vpp <= setting->model->layers + 2; layout.vpp++)
        for (layout.micro_batch = 1; layout.micro_batch <= setting->job->global_batch; layout.micro_batch++)
            for (int schedule = 0; schedule < SCHEDULE_ZBV; schedule++) /* folded ones: where asked for */
                for (layout.ep = 1; layout.ep <= setting->model->moe.experts + 1; layout.ep++) {
                    layout.schedule = (enum schedule)schedule;
                    brute_switches(brute, layout);
                }
}

static uint64_t brute_force(const struct space *space)
{
    struct brute brute = {.space = space, .setting = space_setting(space)};
    int gpus = brute.setting->gpus;
    struct layout layout;
    memset(&layout, 0, sizeof layout);
    for (layout.tp = 1; layout.tp <= gpus; layout.tp++)
        for (layout.cp = 1; layout.cp <= gpus; layout.cp++)
            for (layout.pp = 1; layout.pp <= gpus; layout.pp++)
                for (layout.dp = 1; layout.dp <= gpus; layout.dp++)
                    if (layout.tp * layout.cp * layout.pp * layout.dp == gpus)
                        brute_inner(&brute, layout);
    return brute.n_legal;
}

static void check_complete(const struct setting *setting)
{
    struct space *space = space_of(setting, unlimited);
    /* Every legal tuple was found and mapped back to itself, so distinct tuples have distinct indices; with equal numbers there
     * is nothing legal in the space twice, nor besides. */
    ck_assert_uint_eq(brute_force(space), count_legal(space));
    space_destroy(space);
}

START_TEST(dense_spaces_are_complete)
{
    static const struct {
        int layers, gpus, batch;
    } worlds[] = {{4, 1, 4}, {3, 2, 5}, {6, 4, 8}, {4, 6, 6}, {6, 8, 8}, {5, 12, 12}, {10, 16, 8}};
    struct job_case c;
    dense_case(&c, worlds[_i].layers, worlds[_i].gpus, worlds[_i].batch);
    check_complete(&c.setting);
}
END_TEST

START_TEST(mixture_spaces_are_complete)
{
    static const struct {
        int layers, experts, gpus, batch;
    } worlds[] = {{4, 4, 4, 4}, {2, 6, 6, 6}, {3, 8, 8, 4}};
    struct job_case c;
    mixture_case(&c, worlds[_i].layers, worlds[_i].experts, worlds[_i].gpus, worlds[_i].batch);
    check_complete(&c.setting);
}
END_TEST

START_TEST(folded_schedules_where_asked_for)
{
    struct job_case c;
    dense_case(&c, 8, 4, 32);
    struct space *space = space_of(&c.setting, "schedule=zb-v,dualpipe,dualpipe-v");
    bool legal[N_SCHEDULES] = {false};
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct layout layout;
        space_layout(space, i, &layout);
        ck_assert(schedule_is_folded(layout.schedule) && layout.vpp == 2 && layout.pp > 1);
        legal[layout.schedule] |= layout_check(&layout, &c.setting, NULL, 0) == LAYOUT_LEGAL;
    }
    for (int s = SCHEDULE_ZBV; s < N_SCHEDULES; s++)
        ck_assert(legal[s]);
    space_destroy(space);
}
END_TEST

START_TEST(deep_zero_bubble_where_asked_for)
{
    struct job_case c;
    dense_case(&c, 8, 4, 32);
    struct space *space[] = {space_of(&c.setting, NULL), space_of(&c.setting, "schedule=zb-2p")};
    for (int asked = 0; asked < 2; asked++) {
        for (uint64_t i = 0; i < space_size(space[asked]); i++) {
            struct layout layout;
            space_layout(space[asked], i, &layout);
            ck_assert((layout.schedule == SCHEDULE_ZB2P) == asked);
        }
        space_destroy(space[asked]);
    }
}
END_TEST

/* Of all layouts those that have one chunk per stage, or a multiple of pp micro-batches. */
START_TEST(whole_rounds_of_micro_batches)
{
    struct job_case c;
    dense_case(&c, 12, 12, 24);
    const struct space_limits whole = {.whole_rounds = true};
    struct diags diags = {0};
    struct space *all = space_of(&c.setting, NULL), *some;
    ck_assert_int_eq(space_create(&c.setting, &whole, &some, &diags), STATUS_OK);
    uint64_t kept = 0;
    for (uint64_t i = 0, at; i < space_size(all); i++) {
        struct layout layout;
        space_layout(all, i, &layout);
        bool keep = layout.vpp == 1 || 24 % (layout.dp * layout.micro_batch * layout.pp) == 0;
        ck_assert(space_find(some, &layout, &at) == keep);
        kept += keep;
    }
    ck_assert_uint_eq(space_size(some), kept);
    ck_assert_uint_lt(kept, space_size(all));
    space_destroy(all);
    space_destroy(some);
    diags_free(&diags);
}
END_TEST

/* Each layout once with each of them, and as before where nobody asks. */
START_TEST(offloading_where_asked_for)
{
    struct job_case c;
    dense_case(&c, 4, 4, 16);
    struct space *plain = space_of(&c.setting, NULL), *all = space_of(&c.setting, "offload=auto");
    struct space *one = space_of(&c.setting, "offload=activations+optimizer");
    struct layout layout;
    uint64_t counts[N_OFFLOAD_WHOLES] = {0};
    ck_assert_uint_eq(space_size(all), N_OFFLOAD_WHOLES * space_size(plain));
    ck_assert_uint_eq(space_size(one), space_size(plain));
    for (uint64_t i = 0; i < space_size(all); i++) {
        uint64_t index;
        space_layout(all, i, &layout);
        for (int o = 0; o < N_OFFLOAD_WHOLES; o++)
            counts[o] += offload_equal(&layout.offload, &offload_wholes[o]);
        ck_assert(space_find(all, &layout, &index) && index == i);
        ck_assert_int_eq(space_find(plain, &layout, &index), offload_is_none(&layout.offload));
        ck_assert_int_eq(space_find(one, &layout, &index), offload_equal(&layout.offload, &offload_wholes[3]));
    }
    for (int i = 0; i < N_OFFLOAD_WHOLES; i++)
        ck_assert_uint_eq(counts[i], space_size(plain));
    space_destroy(plain);
    space_destroy(all);
    space_destroy(one);
}
END_TEST

/* Shares in steps: of states and activations each, and of activations beside all states and parameters. Named ones in the order
 * of their amounts, each once. */
START_TEST(shares_where_asked_for)
{
    struct job_case c;
    dense_case(&c, 4, 4, 16);
    struct space *plain = space_of(&c.setting, NULL), *quarters = space_of(&c.setting, "offload=auto:25%");
    struct space *halves = space_of(&c.setting, "offload=auto:0.5");
    struct space *named = space_of(&c.setting, "offload=optimizer,optimizer:25%,activations:2,none,optimizer:0.25");
    struct space_family family;
    ck_assert_uint_eq(space_size(quarters), (5 * 5 + 5) * space_size(plain));
    ck_assert_uint_eq(space_size(halves), (3 * 3 + 3) * space_size(plain));
    ck_assert_uint_eq(space_size(named), 4 * space_size(plain));
    space_family(named, 0, &family);
    static const char *const texts[] = {"none", "optimizer:25%", "optimizer", "activations:2"};
    for (int i = 0; i < 4; i++) {
        struct offload set = offload_of_number(family.offloads[i]), meant = offloaded(texts[i]);
        ck_assert(offload_equal(&set, &meant));
    }
    for (uint64_t i = 0; i < space_size(quarters); i++) {
        struct layout layout;
        uint64_t index;
        space_layout(quarters, i, &layout);
        ck_assert(space_find(quarters, &layout, &index) && index == i);
    }
    space_destroy(plain);
    space_destroy(quarters);
    space_destroy(halves);
    space_destroy(named);
}
END_TEST

/* --- indices, families --- */

static void check_bijection(const struct space *space)
{
    struct layout previous;
    memset(&previous, 0, sizeof previous);
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct layout layout;
        uint64_t index;
        space_layout(space, i, &layout);
        ck_assert(space_find(space, &layout, &index));
        ck_assert_uint_eq(index, i);
        ck_assert(!same_layout(&layout, &previous));
        previous = layout;
    }
}

/* The nested loops of a family name the layouts of its indices in order. */
static uint64_t check_family(const struct space *space, uint32_t number, uint64_t first)
{
    struct space_family family;
    space_family(space, number, &family);
    ck_assert_uint_eq(family.first, first);
    uint64_t index = first;
    for (int a = 0; a < family.n_schedules; a++)
        for (int b = 0; b < family.n_recomputes; b++)
            for (int c = 0; c < family.n_shardings; c++)
                for (int d = 0; d < family.n_sps; d++)
                    for (int e = 0; e < family.n_features; e++) {
                        struct layout here, expected;
                        here = family.base;
                        here.schedule = (enum schedule)family.schedules[a];
                        here.recompute = recompute_of_number(family.recomputes[b]);
                        here.zero = family.shardings[c].zero;
                        here.shard = family.shardings[c].shard;
                        here.sequence_parallel = family.sps[d] != 0;
                        here.features = family.features[e];
                        space_layout(space, index++, &expected);
                        ck_assert(same_layout(&here, &expected));
                    }
    ck_assert_uint_eq(index - first, space_family_size(&family));
    return index;
}

START_TEST(indices_and_layouts_map_to_each_other)
{
    struct job_case c;
    mixture_case(&c, 6, 4, 24, 24);
    struct space *space = space_of(&c.setting, NULL);
    check_bijection(space);
    uint64_t index = 0;
    for (uint32_t family = 0; family < space_n_families(space); family++)
        index = check_family(space, family, index);
    ck_assert_uint_eq(index, space_size(space));
    space_destroy(space);
}
END_TEST

START_TEST(what_is_not_in_the_space_is_not_found)
{
    struct job_case c;
    dense_case(&c, 4, 8, 8);
    struct space *space = space_of(&c.setting, "tp=2");
    struct layout layout;
    uint64_t index = 77;
    space_layout(space, 0, &layout);
    ck_assert_int_eq(layout.tp, 2);
    struct layout other = layout;
    other.tp = 4;
    ck_assert(!space_find(space, &other, &index));
    other = layout;
    other.dp += 1;
    ck_assert(!space_find(space, &other, &index));
    other = layout;
    other.features ^= FEATURE_BIT(FLASH_ATTENTION2);
    ck_assert(!space_find(space, &other, &index));
    ck_assert_uint_eq(index, 77);
    space_destroy(space);
}
END_TEST

/* The default limits leave plausible sizes and take implausible ones: 2,048 tokens give at most 8 blocks of 128 to a rank pair.
 */
START_TEST(default_limits_are_those_documented)
{
    struct job_case c;
    gpt_175b_case(&c, 12288, 6144);
    struct space *space = space_of(&c.setting, NULL);
    int most_cp = 0, most_tp = 0, most_pp = 0, most_mb = 0;
    for (uint32_t i = 0; i < space_n_families(space); i++) {
        struct space_family family;
        space_family(space, i, &family);
        const struct layout *l = &family.base;
        most_cp = l->cp > most_cp ? l->cp : most_cp;
        most_tp = l->tp > most_tp ? l->tp : most_tp;
        most_pp = l->pp > most_pp ? l->pp : most_pp;
        most_mb = l->micro_batch > most_mb ? l->micro_batch : most_mb;
        ck_assert_int_eq((int64_t)l->tp * l->cp * l->pp * l->dp, 12288);
    }
    ck_assert_int_eq(most_cp, 8);
    ck_assert_int_eq(most_tp, 8);
    ck_assert_int_eq(most_pp, 96);
    ck_assert_int_eq(most_mb, 32);
    struct layout megascale = {.tp = 8,
                               .cp = 1,
                               .pp = 8,
                               .vpp = 6,
                               .dp = 192,
                               .ep = 1,
                               .zero = 1,
                               .sequence_parallel = true,
                               .micro_batch = 1,
                               .schedule = SCHEDULE_INTERLEAVED,
                               .features = c.job.features};
    uint64_t index;
    ck_assert(space_find(space, &megascale, &index));
    megascale.zero = 2;
    ck_assert(!space_find(space, &megascale, &index));
    space_destroy(space);
}
END_TEST

/* Are a layout's virtual stages all of one size, but for the first and the last where each has a layer less? */
static bool is_even(const struct layout *layout, const struct transformer *model, int *largest)
{
    int n = layout->pp * layout->vpp, first = layout_layers(layout, model, 0).count, inner = first;
    int last = layout_layers(layout, model, n - 1).count;
    bool same = true;
    *largest = first > last ? first : last;
    for (int v = 1; v < n - 1; v++) {
        inner = layout_layers(layout, model, v).count;
        same = same && inner == layout_layers(layout, model, 1).count;
        *largest = inner > *largest ? inner : *largest;
    }
    return same && first == last && (first == inner || first == inner - 1);
}

/* Chunks are even; where no number of them is, each number has a smaller largest chunk than all below it. */
START_TEST(chunks_are_even_or_the_fewest_of_their_size)
{
    static const int layers[] = {1, 7, 12, 32, 61, 96, 105};
    struct job_case c;
    dense_case(&c, layers[_i], 1, 1);
    c.job.features = FEATURE_BIT(FUSED_OPS);
    for (int pp = 2; pp <= layers[_i]; pp++) {
        struct int_list list = {0};
        struct layout layout = {.tp = 1, .cp = 1, .pp = pp, .dp = 1, .ep = 1, .schedule = SCHEDULE_INTERLEAVED};
        const struct space_limit unlimited_vpp = {0};
        int largest, smallest = layers[_i] + 1;
        size_t at = 0;
        bool stages_even = false;
        candidates_vpp(&list, &unlimited_vpp, &c.model, pp);
        for (layout.vpp = 1; pp * layout.vpp <= layers[_i] + 2; layout.vpp++) {
            if (layout.vpp > 1 && pp * layout.vpp == layers[_i] + 1)
                continue; /* not legal */
            bool even = is_even(&layout, &c.model, &largest);
            stages_even = layout.vpp == 1 ? even : stages_even;
            bool wanted = layout.vpp == 1 || even || (!stages_even && largest < smallest);
            ck_assert_msg(wanted == (at < list.n && list.items[at] == layout.vpp), "%d layers, pp %d, vpp %d", layers[_i], pp,
                          layout.vpp);
            at += wanted;
            smallest = largest < smallest ? largest : smallest;
        }
        ck_assert_uint_eq(at, list.n);
        int_list_free(&list);
    }
}
END_TEST

/* DeepSeek-V3: 61 layers and one of prediction are 62 places, with embedding and head 64; 5 divides neither. */
START_TEST(prediction_layers_take_places)
{
    static const struct {
        int pp, vpps[8];
    } cases[] = {{2, {1, 2, 4, 8, 16, 31}}, {5, {1, 2, 3, 4, 5, 7}}, {8, {1, 2, 4}}, {16, {1, 2}}, {31, {1, 2}}};
    const struct space_limit unlimited_vpp = {0};
    struct int_list list = {0};
    struct job_case c;
    size_t n = 0;
    dense_case(&c, 61, 1, 1);
    c.model.mtp_layers = 1;
    candidates_vpp(&list, &unlimited_vpp, &c.model, cases[_i].pp);
    while (cases[_i].vpps[n] > 0)
        n++;
    ck_assert_uint_eq(list.n, n);
    ck_assert_mem_eq(list.items, cases[_i].vpps, n * sizeof *list.items);
    int_list_free(&list);
}
END_TEST

/* --- restrictions --- */

/* Parts of the replicas only where they are named, and only with ZeRO. Of the legal layouts, those of the default space and the
 * same with each proper divisor of the replicas that was named. */
START_TEST(hybrid_sharding_where_it_is_named)
{
    struct job_case c;
    dense_case(&c, 8, 16, 16);
    struct space *all = space_of(&c.setting, NULL), *some = space_of(&c.setting, "shard=0,2..8"),
                 *named = space_of(&c.setting, "shard=4");
    uint64_t legal = 0, of_four = 0, index;
    for (uint64_t i = 0; i < space_size(all); i++) {
        struct layout l;
        space_layout(all, i, &l);
        ck_assert_int_eq(l.shard, 0);
        if (layout_check(&l, &c.setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        legal++;
        ck_assert(space_find(some, &l, &index));
        for (l.shard = 2; l.zero && l.shard <= 8; l.shard *= 2)
            legal += l.dp * l.cp > l.shard && (l.dp * l.cp) % l.shard == 0;
    }
    ck_assert_uint_eq(count_legal(some), legal);
    check_bijection(some);
    for (uint64_t i = 0; i < space_size(named); i++) {
        struct layout l;
        space_layout(named, i, &l);
        ck_assert_int_eq(l.shard, l.zero && l.dp * l.cp != 4 ? 4 : 0); /* four of four are all */
        of_four += l.zero && l.dp * l.cp == 4 && layout_check(&l, &c.setting, NULL, 0) == LAYOUT_LEGAL;
    }
    ck_assert_uint_gt(of_four, 0);
    check_bijection(named);
    space_destroy(all);
    space_destroy(some);
    space_destroy(named);
}
END_TEST

/* Long sequences with cp: a ring, a gather and an exchange of heads, of eight heads up to the ranks that tp leaves. Otherwise a
 * ring, and what is named where there is cp, in its plainest form. */
START_TEST(exchanges_where_sequences_are_long_or_named)
{
    struct job_case c;
    struct layout l;
    dense_case(&c, 2, 8, 8);
    struct space *brief = space_of(&c.setting, NULL), *named = space_of(&c.setting, "cp_comm=all_gather,a2a,a2a:4+ring");
    for (uint64_t i = 0; i < space_size(brief); i++) {
        space_layout(brief, i, &l);
        ck_assert_int_eq(l.cp_comm, CP_RING);
    }
    for (uint64_t i = 0; i < space_size(named); i++) {
        space_layout(named, i, &l);
        ck_assert_int_eq(l.cp_comm == CP_RING, l.cp == 1);
        ck_assert(l.cp != 4 || l.cp_comm == CP_ALL_GATHER || l.cp_comm == CP_A2A); /* the third says the same as the second */
    }
    c.job.seq_len = c.model.max_seq_len = 32768;
    struct space *all = space_of(&c.setting, NULL);
    check_bijection(all);
    int gathered = 0, swapped = 0, both = 0;
    for (uint64_t i = 0; i < space_size(all); i++) {
        space_layout(all, i, &l);
        ck_assert(l.cp > 1 || l.cp_comm == CP_RING);
        ck_assert_int_eq(cp_comm_settled(l.cp_comm, l.cp), l.cp_comm);
        ck_assert_int_ne(layout_check(&l, &c.setting, NULL, 0), LAYOUT_CP_COMM);
        gathered += l.cp_comm == CP_ALL_GATHER;
        swapped += l.cp_comm == CP_A2A;
        both += l.cp_comm != CP_A2A && layout_cp_heads(&l) > 1;
    }
    ck_assert(gathered > 0 && swapped > 0 && both == 0); /* tp cp is never more than the heads here */
    c.cluster.nvlink_domain = 2;                         /* the GPUs of an NVLink domain, in addition to all */
    struct space *apart = space_of(&c.setting, "tp=1,cp=8");
    for (uint64_t i = 0; i < space_size(apart); i++) {
        space_layout(apart, i, &l);
        both += l.cp_comm == cp_comm_of(2, false);
        ck_assert_int_ne(l.cp_comm, cp_comm_of(4, false));
    }
    ck_assert_int_eq(4 * both, (int)space_size(apart));
    c.cluster.nvlink_domain = 8;
    c.model.heads = c.model.kv_heads = 4, c.model.head_dim = 128;
    both = 0;
    struct space *few = space_of(&c.setting, "cp=8");
    for (uint64_t i = 0; i < space_size(few); i++) {
        space_layout(few, i, &l);
        both += l.cp_comm == cp_comm_of(4, false);
        ck_assert_int_ne(l.cp_comm, CP_A2A);
    }
    ck_assert_int_gt(both, 0);
    space_destroy(brief);
    space_destroy(named);
    space_destroy(all);
    space_destroy(apart);
    space_destroy(few);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan space");
    TCase *cases = tcase_create("space");
    suite_add_rounds(cases, dense_spaces_are_complete, THINNED == 1 ? 7 : 5, 0); /* the last are the largest */
    suite_add_rounds(cases, mixture_spaces_are_complete, 3, 0);
    tcase_add_test(cases, folded_schedules_where_asked_for);
    tcase_add_test(cases, deep_zero_bubble_where_asked_for);
    tcase_add_test(cases, whole_rounds_of_micro_batches);
    tcase_add_test(cases, offloading_where_asked_for);
    tcase_add_test(cases, shares_where_asked_for);
    tcase_add_test(cases, indices_and_layouts_map_to_each_other);
    tcase_add_test(cases, what_is_not_in_the_space_is_not_found);
    tcase_add_test(cases, default_limits_are_those_documented);
    tcase_add_loop_test(cases, chunks_are_even_or_the_fewest_of_their_size, 0, 7);
    tcase_add_loop_test(cases, prediction_layers_take_places, 0, 5);
    tcase_add_test(cases, hybrid_sharding_where_it_is_named);
    tcase_add_test(cases, exchanges_where_sequences_are_long_or_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
