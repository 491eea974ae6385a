/* What context parallelism exchanges, by hand. */
#include "shapes.h"

#include <check.h>

#include "model/cost/work/work.h"

/* Sixteen heads of 128, four of keys and values, without tensor parallelism. */
static void context_shape(struct shape *s, int cp, enum cp_comm comm)
{
    shape_megascale(s);
    s->model.heads = 16, s->model.kv_heads = 4, s->model.head_dim = 128, s->model.hidden = 2048, s->model.ffn_hidden = 8192;
    s->job.seq_len = 8192;
    s->layout = (struct layout){.tp = 1, .cp = cp, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1, .cp_comm = comm};
    s->layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
    s->setting.gpus = cp;
}

/* Bytes of the exchanges of a kind in one layer's pass, and how many there are. */
struct exchanged {
    double bytes;
    int n;
};

static struct exchanged exchanged_in(const struct shape *s, enum pass pass, enum collective collective, enum group_kind group)
{
    struct work_table table = {0};
    struct exchanged sum = {0};
    work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++) {
        const struct work *work = &table.items[i];
        if (work->kind != WORK_COLLECTIVE || work->collective.collective != collective || work->collective.group != group)
            continue;
        sum.bytes += work->collective.bytes;
        sum.n++;
    }
    work_table_free(&table);
    return sum;
}

static struct work_attention attention_of(const struct shape *s)
{
    struct work_table table = {0};
    struct work_attention found = {0};
    work_add_pass(&table, &s->layout, &s->setting, PASS_FORWARD, (struct layer_range){0, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_ATTENTION)
            found = table.items[i].attention;
    work_table_free(&table);
    return found;
}

/* Of T = 2,048 tokens: all keys and values of 8,192 around a ring, their gradients with them on the way back; or gathered, again,
 * and reduced; or T (q + k + v) elements to heads and T context back, either way round. */
START_TEST(exchanges_by_hand)
{
    struct shape s;
    double kv = 8192.0 * 4 * 256 * 2, qkv = 2048.0 * (16 + 2 * 4) * 128 * 2, context = 2048.0 * 16 * 128 * 2;
    context_shape(&s, 4, CP_RING);
    ck_assert_double_eq(exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes, kv);
    ck_assert_double_eq(exchanged_in(&s, PASS_BACKWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes, 2 * kv);
    s.layout.cp_comm = CP_ALL_GATHER;
    ck_assert_double_eq(exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes, kv);
    ck_assert_double_eq(exchanged_in(&s, PASS_BACKWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes, kv);
    ck_assert_double_eq(exchanged_in(&s, PASS_BACKWARD, COLLECTIVE_REDUCE_SCATTER, GROUP_CP).bytes, kv);
    s.layout.cp_comm = CP_A2A;
    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
        struct exchanged swaps = exchanged_in(&s, pass, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS);
        ck_assert_int_eq(swaps.n, 2);
        ck_assert_double_eq(swaps.bytes, qkv + context);
        ck_assert_int_eq(exchanged_in(&s, pass, COLLECTIVE_ALL_GATHER, GROUP_CP).n, 0);
    }
    s.layout.recompute.what = RECOMPUTE_CORE_ATTN; /* the forward pass's once more */
    ck_assert_double_eq(exchanged_in(&s, PASS_BACKWARD, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS).bytes, 2 * (qkv + context));
}
END_TEST

/* Key/value heads that are fewer than ranks go to several: eight ranks get one of four each. */
START_TEST(few_key_heads_go_to_several)
{
    struct shape s;
    context_shape(&s, 8, CP_A2A);
    double sent = 1024.0 * (16 + 2 * 8) * 128 * 2, context = 1024.0 * 16 * 128 * 2;
    ck_assert_double_eq(exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS).bytes, sent + context);
    struct work_attention a = attention_of(&s);
    ck_assert_int_eq(a.heads, 2);
    ck_assert_int_eq(a.kv_heads, 1);
    ck_assert_int_eq(a.query_tokens, 8192);
    s.layout.tp = 8, s.layout.cp = 2; /* a rank has two heads and one of keys, of four that it shares with another */
    ck_assert_int_eq(attention_of(&s).heads, 1);
    ck_assert_int_eq(attention_of(&s).kv_heads, 1);
}
END_TEST

/* DeepSpeed-Ulysses (arXiv:2309.14509, section 3.2): an all-to-all among P ranks moves a link 4 N h / P, so a sequence that grows
 * with the ranks costs each the same; what a ring or a gather moves to each grows with the sequence. */
START_TEST(volume_stays_where_sequence_and_ranks_grow)
{
    struct shape s;
    double first = 0, gathered = 0;
    for (int cp = 2; cp <= 16; cp *= 2) {
        context_shape(&s, cp, CP_A2A);
        s.model.kv_heads = 16;
        s.job.seq_len = 1024LL * cp;
        double bytes = exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS).bytes;
        ck_assert_double_eq(bytes, 2 * 4 * 1024.0 * cp * 2048 / cp); /* bf16 */
        s.layout.cp_comm = CP_ALL_GATHER;
        double all = exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes;
        ck_assert(first == 0 || (bytes == first && all == 2 * gathered));
        first = bytes, gathered = all;
    }
}
END_TEST

/* However it is exchanged, a rank computes as many scores, and all of them together the triangle. */
START_TEST(scores_are_divided_alike)
{
    static const enum cp_comm comms[] = {CP_RING, CP_ALL_GATHER, CP_A2A, 2 * 2, 2 * 2 + 1, 2 * 4};
    for (size_t i = 0; i < sizeof comms / sizeof comms[0]; i++) {
        struct shape s;
        context_shape(&s, 8, comms[i]);
        s.model.kv_heads = 16;
        struct work_attention a = attention_of(&s);
        ck_assert_double_eq_tol(a.pairs * a.heads * 8, attended_pairs(8192, 0) * 16, 1e-3);
        ck_assert_int_eq(a.query_tokens * a.heads * 8, 8192 * 16);
    }
}
END_TEST

/* A part that exchanges heads inside the node, and a ring between nodes of what those have together. */
START_TEST(both_levels_have_their_groups)
{
    struct shape s;
    context_shape(&s, 16, cp_comm_of(4, false));
    double kv = 8192.0 * 1 * 256 * 2; /* of one of four heads */
    ck_assert_double_eq(exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_GATHER, GROUP_CP).bytes, kv);
    ck_assert_int_eq(exchanged_in(&s, PASS_FORWARD, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS).n, 2);
    ck_assert_int_eq(layout_group_size(&s.layout, GROUP_CP_HEADS), 4);
    ck_assert_int_eq(layout_group_size(&s.layout, GROUP_CP), 4);
    ck_assert_int_eq(layout_span(&s.layout, &s.cluster, GROUP_CP_HEADS).domains, 1);
    ck_assert_int_eq(layout_span(&s.layout, &s.cluster, GROUP_CP).domains, 2);
}
END_TEST

Suite *suite_context(void)
{
    Suite *suite = suite_create("context");
    TCase *all = tcase_create("all");
    tcase_add_test(all, exchanges_by_hand);
    tcase_add_test(all, few_key_heads_go_to_several);
    tcase_add_test(all, volume_stays_where_sequence_and_ranks_grow);
    tcase_add_test(all, scores_are_divided_alike);
    tcase_add_test(all, both_levels_have_their_groups);
    suite_add_tcase(suite, all);
    return suite;
}
