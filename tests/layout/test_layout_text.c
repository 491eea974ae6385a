/* The text form of layouts. */
#include <check.h>
#include <string.h>

#include "model/layout/layout.h"
#include "model/spec/layout_request.h"
#include "tests/suite.h"

static const struct layout MEGASCALE = {
    .tp = 8,
    .cp = 1,
    .pp = 8,
    .vpp = 6,
    .dp = 192,
    .ep = 1,
    .zero = 2,
    .sequence_parallel = true,
    .micro_batch = 1,
    .schedule = SCHEDULE_INTERLEAVED,
};

/* Every word and its synonyms, and what becomes of them where cp says the same more plainly. */
START_TEST(exchanges_of_context_parallelism)
{
    static const struct {
        const char *written, *text;
        int cp, heads;
        bool gathers;
        const char *settled;
    } cases[] = {
        {"ring", "ring", 8, 1, false, "ring"},
        {"p2p", "ring", 8, 1, false, "ring"},
        {"all_gather", "all_gather", 8, 1, true, "all_gather"},
        {"all_gather", "all_gather", 1, 1, true, "ring"},
        {"a2a", "a2a", 8, 8, false, "a2a"},
        {"ulysses", "a2a", 1, 1, false, "ring"},
        {"a2a:8+ring", "a2a:8+ring", 8, 8, false, "a2a"},
        {"a2a:8+all_gather", "a2a:8+all_gather", 8, 8, true, "a2a"},
        {"a2a:4", "a2a:4+ring", 8, 4, false, "a2a:4+ring"},
        {"ulysses:2+p2p", "a2a:2+ring", 8, 2, false, "a2a:2+ring"},
        {"a2a:2+all_gather", "a2a:2+all_gather", 8, 2, true, "a2a:2+all_gather"},
    };
    static const char *const wrong[] = {"",      "rings",  "a2a:",      "a2a:1",           "a2a:0+ring",      "a2a:+8",
                                        "a2a+8", "a2a:8+", "a2a:8+a2a", "ring:8",          "a2a:8 +ring",     "a2a:9999999",
                                        "auto",  "a2a:-8", "a2a: 8",    "a2a:8+ring+ring", "all_gather+ring", "0"};
    char text[CP_COMM_TEXT], why[CP_COMM_WHY];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int comm = cp_comm_parse(cases[i].written, why, sizeof why);
        ck_assert_int_ge(comm, 0);
        ck_assert(cp_comm_is_known(comm));
        ck_assert_str_eq(cp_comm_format((enum cp_comm)comm, text, sizeof text), cases[i].text);
        ck_assert_int_eq(cp_comm_parse(text, NULL, 0), comm);
        ck_assert_int_eq(cp_comm_heads((enum cp_comm)comm, cases[i].cp), cases[i].heads);
        ck_assert_int_eq(cp_comm_gathers((enum cp_comm)comm), cases[i].gathers);
        enum cp_comm settled = cp_comm_settled((enum cp_comm)comm, cases[i].cp);
        ck_assert_str_eq(cp_comm_format(settled, text, sizeof text), cases[i].settled);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(cp_comm_parse(wrong[i], why, sizeof why) == -1, "'%s' is taken", wrong[i]);
        ck_assert_ptr_nonnull(strstr(why, "a2a:8+ring"));
    }
    struct layout layout = {.tp = 1};
    struct diags diags = {0};
    ck_assert_int_eq(layout_parse("cp=8,cp_comm=ulysses:4+all_gather", &layout, &diags), STATUS_OK);
    ck_assert_int_eq(layout_cp_heads(&layout), 4);
    ck_assert_int_eq(layout_cp_keys(&layout), 2);
    char whole[LAYOUT_TEXT];
    ck_assert_ptr_nonnull(strstr(layout_format(&layout, whole, sizeof whole), "cp=8,cp_comm=a2a:4+all_gather,pp="));
    ck_assert_ptr_nonnull(strstr(layout_brief(&layout, whole, sizeof whole), "cp8 a2a:4+all_gather "));
}
END_TEST

START_TEST(format_and_back)
{
    char text[160];
    ck_assert_str_eq(layout_format(&MEGASCALE, text, sizeof text),
                     "tp=8,cp=1,pp=8,vpp=6,dp=192,ep=1,mb=1,zero=2,sp=1,recompute=none,schedule=interleaved");
    struct layout layout = {0};
    struct diags diags = {0};
    ck_assert_int_eq(layout_parse(text, &layout, &diags), STATUS_OK);
    ck_assert_uint_eq(diags.n_items, 0);
    char again[160];
    ck_assert_str_eq(layout_format(&layout, again, sizeof again), text);
}
END_TEST

START_TEST(hybrid_sharding)
{
    struct layout layout = MEGASCALE;
    struct diags diags = {0};
    char text[LAYOUT_TEXT];
    ck_assert_int_eq(layout_parse("zero=1,shard=16", &layout, &diags), STATUS_OK);
    ck_assert_str_eq(layout_format(&layout, text, sizeof text),
                     "tp=8,cp=1,pp=8,vpp=6,dp=192,ep=1,mb=1,zero=1,shard=16,sp=1,recompute=none,schedule=interleaved");
    ck_assert_str_eq(layout_brief(&layout, text, sizeof text), "tp8 pp8 vpp6 mb1 z1/16");
    ck_assert_int_eq(layout_parse("hybrid_shard=0", &layout, &diags), STATUS_OK);
    ck_assert_int_eq(layout.shard, 0);
}
END_TEST

START_TEST(subset_keeps_the_rest)
{
    struct layout layout = MEGASCALE;
    struct diags diags = {0};
    ck_assert_int_eq(layout_parse(" tp = 4, micro_batch=2 ,sequence_parallel=off,recompute=selective", &layout, &diags),
                     STATUS_OK);
    ck_assert_int_eq(layout.tp, 4);
    ck_assert_int_eq(layout.micro_batch, 2);
    ck_assert(!layout.sequence_parallel);
    ck_assert_int_eq(layout.recompute.what, RECOMPUTE_SELECTIVE);
    ck_assert_int_eq(layout.pp, 8);
    ck_assert_int_eq(layout.vpp, 6);
}
END_TEST

START_TEST(every_word)
{
    for (int i = 0; i < N_SCHEDULES; i++)
        ck_assert_int_eq(schedule_parse(schedule_name((enum schedule)i)), i);
    ck_assert_int_eq(schedule_parse("1F1B"), -1);
    for (int i = 0; i < N_LAYOUT_REASONS; i++) {
        ck_assert_ptr_nonnull(layout_reason_key((enum layout_reason)i));
        ck_assert_ptr_nonnull(layout_reason_text((enum layout_reason)i));
    }
    for (int i = 0; i < N_GROUP_KINDS; i++)
        ck_assert_ptr_nonnull(group_kind_name((enum group_kind)i));
}
END_TEST

/* Every word and every set of modules, there and back. */
START_TEST(every_recomputation)
{
    char text[RECOMPUTE_TEXT], line[LAYOUT_TEXT];
    for (int i = 0; i < 1 << (2 + N_RECOMPUTE_MODULES); i++) {
        const struct recompute set = {.what = (enum recompute_what)i};
        struct recompute said;
        if (!recompute_is_known(set)) {
            ck_assert_int_ne(i & 3, 0);
            continue;
        }
        recompute_format(set, text, sizeof text);
        ck_assert_uint_lt(strlen(text), sizeof text - 1);
        ck_assert(recompute_parse(text, &said, NULL, 0) && recompute_equal(said, set));
        recompute_brief(set, text, sizeof text);
        ck_assert(recompute_parse(text, &said, NULL, 0) && recompute_equal(said, set));
        ck_assert(recompute_equal(recompute_of_number(recompute_number(set)), set));
        struct layout layout = MEGASCALE, back = {0};
        struct diags diags = {0};
        layout.recompute = set;
        layout.dp = layout.tp = layout.pp = layout.etp = 999999;
        ck_assert_int_eq(layout_parse(layout_format(&layout, line, sizeof line), &back, &diags), STATUS_OK);
        ck_assert(recompute_equal(back.recompute, set));
    }
    struct recompute some;
    ck_assert(recompute_parse("selective:moe_act+layernorm", &some, NULL, 0));
    ck_assert_int_eq(some.what, RECOMPUTE_LAYERNORM | RECOMPUTE_MOE_ACT);
    ck_assert(recompute_parse("layernorm+mla_up_proj+mlp_act+moe_act", &some, NULL, 0));
    ck_assert_str_eq(recompute_brief(some, text, sizeof text), "norm+mla+act+moe_act");
    ck_assert_int_eq(RECOMPUTE_MOE, 1 << (1 + N_RECOMPUTE_MODULES));
}
END_TEST

/* Of some layers: the text, what it is, and as it is written. */
static const struct {
    const char *text, *written;
    struct recompute is;
} SOME_LAYERS[] = {
    {"full", "full", {.what = RECOMPUTE_FULL}},
    {"full:4", "full:4", {RECOMPUTE_FULL, RECOMPUTE_FIRST, 4}},
    {"full:1", "full:1", {RECOMPUTE_FULL, RECOMPUTE_FIRST, 1}},
    {"full:every2", "full:every2", {RECOMPUTE_FULL, RECOMPUTE_EVERY, 2}},
    {"full:groups999", "full:groups999", {RECOMPUTE_FULL, RECOMPUTE_GROUPS, 999}},
    {"full:every1", "full", {.what = RECOMPUTE_FULL}},
    {"full:groups1", "full", {.what = RECOMPUTE_FULL}},
};

START_TEST(some_layers)
{
    char text[RECOMPUTE_TEXT];
    struct recompute said;
    ck_assert(recompute_parse(SOME_LAYERS[_i].text, &said, NULL, 0) && recompute_equal(said, SOME_LAYERS[_i].is));
    ck_assert(recompute_is_known(said));
    ck_assert_str_eq(recompute_format(said, text, sizeof text), SOME_LAYERS[_i].written);
    ck_assert_str_eq(recompute_brief(said, text, sizeof text), SOME_LAYERS[_i].written);
    ck_assert(recompute_equal(recompute_of_number(recompute_number(said)), said));
}
END_TEST

/* Which layers of a stage of `layers` are repeated, and with which: by hand. '.': none; equal letters: together. */
static const struct {
    const char *text, *stage;
    int checkpoints, kept_behind;
} STAGES[] = {
    {"none", ".....", 0, 5},        {"full", "abcde", 5, 0},       {"full:2", "ab...", 2, 3},   {"full:7", "abcde", 5, 0},
    {"full:every2", ".a.b.", 2, 1}, {"full:every2", ".a.b", 2, 0}, {"full:every3", "..", 0, 2}, {"full:groups2", "aabbc", 3, 0},
    {"full:groups9", "aaa", 1, 0},  {"mlp_act", "abc", 3, 0},
};

START_TEST(layers_of_a_stage)
{
    const char *stage = STAGES[_i].stage;
    int layers = (int)strlen(stage), repeated = 0;
    struct recompute r;
    ck_assert(recompute_parse(STAGES[_i].text, &r, NULL, 0));
    for (int i = 0; i < layers; i++) {
        int first, count = recompute_group(r, layers, i, &first);
        ck_assert_int_eq(count > 0, stage[i] != '.');
        repeated += count > 0;
        for (int j = 0; count > 0 && j < layers; j++)
            ck_assert_int_eq(j >= first && j < first + count, stage[j] == stage[i]);
    }
    ck_assert_int_eq(recompute_layers(r, layers), repeated);
    ck_assert_int_eq(recompute_checkpoints(r, layers), STAGES[_i].checkpoints);
    ck_assert_int_eq(recompute_kept_behind(r, layers), STAGES[_i].kept_behind);
}
END_TEST

static const struct {
    const char *text, *part;
} NO_RECOMPUTATIONS[] = {
    {"", "a word is missing; write none, selective, full, or core_attn, "},
    {"selective:", "a word is missing"},
    {"+", "a word is missing"},
    {"moe_act+", "a word is missing"},
    {"norm+act+", "a word is missing"},
    {"norm + act", "'norm ' has a blank; join words with '+' only"},
    {"norm+ act", "' act' has a blank"},
    {"layernorm+none", "'none' cannot be combined with others"},
    {"norm+sel", "'sel' cannot be combined with others"},
    {"selective:full", "'full' cannot be combined with others"},
    {"layernorm+mla_up_prj+moe", "'mla_up_prj' is unknown; did you mean 'mla_up_proj'?"},
    {"full:",
     "'full:' has no number of layers; write full:4 (the first four of each virtual stage), full:every2 or full:groups4"},
    {"full:0", "'full:0' has no number of layers"},
    {"full:1000", "'full:1000' has no number of layers"},
    {"full:4x", "'full:4x' has no number of layers"},
    {"full:every", "'full:every' has no number of layers"},
    {"full: 4", "'full: 4' has no number of layers"},
    {"moe:4", "'moe:4': a number of layers applies to whole layers only, as in full:4; modules are repeated in all layers"},
    {"selective:4", "'selective:4': a number of layers applies to whole layers only"},
    {"Full", "'Full' is unknown; did you mean 'full'?"},
};

START_TEST(no_recomputation)
{
    char why[RECOMPUTE_WHY] = "";
    struct recompute unread = {.what = RECOMPUTE_FULL};
    ck_assert(!recompute_parse(NO_RECOMPUTATIONS[_i].text, &unread, why, sizeof why));
    ck_assert(!recompute_parse(NO_RECOMPUTATIONS[_i].text, &unread, NULL, 0));
    ck_assert(unread.what == RECOMPUTE_FULL && unread.of == RECOMPUTE_ALL);
    ck_assert_msg(strstr(why, NO_RECOMPUTATIONS[_i].part) == why, "%s", why);
    ck_assert_uint_lt(strlen(why), sizeof why - 1);
}
END_TEST

static const struct {
    const char *text;
    int errors;
    const char *part; /* of the first message */
} WRONG[] = {
    {"tpp=8", 1, "unknown key 'tpp'"},
    {"shedule=1f1b", 1, "did you mean 'schedule'"},
    {"tp=8,banana=1", 1, "known are tp, cp"},
    {"tp=0", 1, "tp=0 is not a whole number of at least 1"},
    {"dp=-4", 1, "at least 1"},
    {"tp=8x", 1, "tp=8x"},
    {"tp=99999999999", 1, "not a whole number"},
    {"tp=", 1, "tp= is not"},
    {"zero=-1", 1, "at least 0"},
    {"shard=-8", 1, "at least 0"},
    {"tp", 1, "neither key=value nor"},
    {"=8", 1, "not a key=value"},
    {"tp=8,,pp=2", 1, "has a comma with nothing before it"},
    {",tp=8", 1, "has a comma with nothing before it"},
    {"tp=8,", 1, "'tp=8,' ends with a comma"},
    {"tp8 pp2 , ", 1, "ends with a comma"},
    {"tp8 ppp2", 1, "unknown key 'ppp'"},
    {"tp8x pp2", 1, "'tp8x' is neither key=value nor a short form of one; write for example tp=8,pp=8"},
    {"tp8 tp0", 1, "tp=0 is not a whole number of at least 1"},
    {"tp8 8", 1, "'8' is neither key=value nor a short form"},
    {"tp = 8 8", 1, "'8' is neither key=value nor a short form"},
    {"tp8 z1/", 1, "'z1/' is neither key=value nor a short form"},
    {"tp8 z/8", 1, "'z/8' is neither key=value nor a short form"},
    {"tp8 mb1/8", 1, "'mb1/8' is neither key=value nor a short form"},
    {"tp8 norm+atc", 1, "recompute=norm+atc: 'atc' is unknown"},
    {"tp8 full:0", 1, "recompute=full:0: 'full:0' has no number of layers"},
    {"cp8 a2a:1", 1, "cp_comm=a2a:1: "},
    {"tp8 none", 1, "'none' is ambiguous"},
    {"pp8 interleavd", 1, "did you mean 'interleaved'?"},
    {"tp8 z1 pp=x nonsense", 2, "pp=x"},
    {"sp=maybe", 1, "neither on nor off"},
    {"schedule=1f1c", 1, "did you mean '1f1b'"},
    {"recompute=everything", 1, "none, selective, full, or core_attn"},
    {"recompute=layernorm+mla_up_prj", 1, "did you mean 'mla_up_proj'"},
    {"recompute=layernorm+full", 1, "'full' cannot be combined with others"},
    {"tp=a,pp=b,qq=1", 3, "tp=a"},
    {"recompute=norm + act", 1, "'norm + act' has a blank next to a '+', but blanks separate items; write norm+act"},
    {"tp8 norm +act mb1", 1, "'norm +act' has a blank next to a '+'"},
    {"tp8 recompute = norm+\tact + mla,mb1", 1, "write norm+act+mla"},
    {"cp8 a2a:2 + ring", 1, "write a2a:2+ring"},
    {"offload=optimizer + activations zz=1", 2, "write optimizer+activations"},
    {"norm+, mb1", 1, "recompute=norm+: a word is missing"},
    {"recompute=norm++act", 1, "a word is missing"},
    {"recompute=", 1, "a word is missing"},
};

START_TEST(refused_with_a_reason)
{
    struct layout layout = MEGASCALE;
    struct diags diags = {0};
    ck_assert_int_eq(layout_parse(WRONG[_i].text, &layout, &diags), STATUS_BAD_INPUT);
    ck_assert_int_eq((int)diags.n_errors, WRONG[_i].errors);
    ck_assert_msg(strstr(diags.items[0].text, WRONG[_i].part) != NULL, "'%s' has no '%s'", diags.items[0].text, WRONG[_i].part);
    ck_assert_int_eq(layout.tp, MEGASCALE.tp); /* untouched, also by the good parts */
    diags_free(&diags);
}
END_TEST

/* The same layout in both forms. */
static const struct {
    const char *brief, *text;
} SHORT_FORMS[] = {
    {"tp8 pp32 vpp4 mb1 z1 norm+act", "tp=8,pp=32,vpp=4,mb=1,zero=1,recompute=layernorm+mlp_act"},
    {"tp8,pp32,vpp4,mb1,z1,norm+act", "tp=8,pp=32,vpp=4,mb=1,zero=1,recompute=layernorm+mlp_act"},
    {" tp8 ,pp=32\tmicro_batch2 ~", "tp=8,pp=32,mb=2"},
    {"tp8 mb1 z3/16 sp0 full:every2", "tp=8,mb=1,zero=3,shard=16,sp=0,recompute=full:every2"},
    {"cp8 ulysses:2+p2p mb1 z0 sel", "cp=8,cp_comm=a2a:2+ring,mb=1,zero=0,recompute=selective"},
    {"pp8 vpp2 mb1 zb-v offload=optimizer:50%", "pp=8,vpp=2,mb=1,schedule=zb-v,offload=optimizer:50%"},
    {"ep8 etp1 dp16 moe+attn", "ep=8,etp=1,dp=16,recompute=core_attn+moe"},
    {"", ""},
    {" ~ ", ""},
};

START_TEST(short_forms)
{
    char texts[2][LAYOUT_TEXT];
    struct layout short_form = layout_defaults, layout = layout_defaults;
    struct diags diags = {0};
    ck_assert_int_eq(layout_parse(SHORT_FORMS[_i].brief, &short_form, &diags), STATUS_OK);
    ck_assert_int_eq(layout_parse(SHORT_FORMS[_i].text, &layout, &diags), STATUS_OK);
    ck_assert_str_eq(layout_format(&short_form, texts[0], sizeof texts[0]), layout_format(&layout, texts[1], sizeof texts[1]));
}
END_TEST

static int draw(unsigned *state, int n)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)((*state >> 8) % (unsigned)n);
}

/* Any layout that is complete, legal or not. */
static struct layout draw_layout(unsigned *state)
{
    static const int sizes[] = {1, 1, 2, 3, 8, 64};
    struct layout l = {.tp = sizes[draw(state, 6)], .cp = sizes[draw(state, 6)], .pp = sizes[draw(state, 6)]};
    l.vpp = 1 + draw(state, 4);
    l.dp = 1 + draw(state, 300);
    l.ep = sizes[draw(state, 6)];
    l.etp = draw(state, 3) == 0 ? 0 : draw(state, 2) ? 1 : l.tp;
    l.zero = draw(state, 4);
    l.shard = draw(state, 3) ? 0 : 2 + draw(state, 20);
    l.sequence_parallel = draw(state, 2);
    l.micro_batch = 1 + draw(state, 12);
    do
        l.recompute = recompute_of_number(draw(state, 2) ? draw(state, 1 << 10) : draw(state, 4 << 20));
    while (!recompute_is_known(l.recompute));
    do
        l.offload = offload_of_number(draw(state, 2) ? 0 : draw(state, 1 << 24));
    while (!offload_is_known(&l.offload));
    if (draw(state, 2))
        l.cp_comm = cp_comm_of(sizes[draw(state, 6)], draw(state, 2));
    l.schedule = (enum schedule)draw(state, N_SCHEDULES);
    return l;
}

/* Whatever a table prints is the layout it was printed of, through the parser and through an experiment. */
START_TEST(brief_and_back)
{
    static const struct job job = {.features = FEATURE_BIT(DP_OVERLAP)};
    unsigned state = 1;
    int changed = 0;
    for (int i = 0; i < 20000; i++) {
        struct layout drawn = draw_layout(&state);
        struct setting setting = {.job = &job, .gpus = drawn.tp * drawn.cp * drawn.pp * drawn.dp};
        char brief[LAYOUT_TEXT], before[LAYOUT_TEXT], after[LAYOUT_TEXT];
        struct diags diags = {0};
        struct arena arena = {0};
        struct layout_request request = {0};
        struct layout back[2] = {layout_defaults, layout_defaults};
        layout_complete(&drawn, &setting);
        layout_brief(&drawn, brief, sizeof brief);
        ck_assert_uint_lt(strlen(brief), sizeof brief - 1);
        layout_request_read(layout_request_tree(yaml_scalar("t", brief, &arena), &arena, &diags), &request, &diags);
        ck_assert_int_eq(layout_parse(brief, &back[0], &diags), STATUS_OK);
        ck_assert_int_eq(layout_parse(request.text, &back[1], &diags), STATUS_OK);
        ck_assert_uint_eq(diags.n_errors, 0);
        for (int j = 0; j < 2; j++) {
            layout_complete(&back[j], &setting);
            ck_assert_msg(layout_expert_tp(&drawn) == layout_expert_tp(&back[j]), "%s", brief);
            back[j].etp = drawn.etp;
            layout_format(&drawn, before, sizeof before);
            ck_assert_str_eq(layout_format(&back[j], after, sizeof after), before);
        }
        changed += strcmp(brief, before) != 0;
        arena_free(&arena);
    }
    ck_assert_int_eq(changed, 20000);
}
END_TEST

START_TEST(completion)
{
    struct job job = {.global_batch = 6144, .seq_len = 2048, .features = FEATURE_BIT(DP_OVERLAP)};
    struct setting setting = {.job = &job, .gpus = 12288};
    struct layout layout = {.tp = 8, .pp = 8, .vpp = 6};
    layout_complete(&layout, &setting);
    ck_assert_int_eq(layout.dp, 192);
    ck_assert_int_eq(layout.cp, 1);
    ck_assert_int_eq(layout.ep, 1);
    ck_assert_int_eq(layout.micro_batch, 1);
    ck_assert_int_eq(layout.schedule, SCHEDULE_INTERLEAVED);
    ck_assert_uint_eq(layout.features, FEATURE_BIT(DP_OVERLAP));

    layout = (struct layout){.pp = 4};
    layout_complete(&layout, &setting);
    ck_assert_int_eq(layout.schedule, SCHEDULE_1F1B);
    ck_assert_int_eq(layout.vpp, 1);
    ck_assert_int_eq(layout.dp, 3072);

    layout = (struct layout){.dp = 7, .features = FEATURE_BIT(FUSED_OPS)};
    layout_complete(&layout, &setting);
    ck_assert_int_eq(layout.schedule, SCHEDULE_NONE);
    ck_assert_int_eq(layout.dp, 7);
    ck_assert_uint_eq(layout.features, FEATURE_BIT(FUSED_OPS));

    layout = (struct layout){.pp = 2, .schedule = SCHEDULE_ZB1P};
    layout_complete(&layout, &setting);
    ck_assert_int_eq(layout.schedule, SCHEDULE_ZB1P);

    layout = (struct layout){.tp = 100000, .pp = 100000}; /* the check says what is wrong with it */
    layout_complete(&layout, &setting);
    ck_assert_int_eq(layout.dp, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout_text");
    TCase *tcase = tcase_create("text");
    tcase_add_test(tcase, exchanges_of_context_parallelism);
    tcase_add_test(tcase, format_and_back);
    tcase_add_test(tcase, hybrid_sharding);
    tcase_add_test(tcase, subset_keeps_the_rest);
    tcase_add_test(tcase, every_word);
    tcase_add_test(tcase, every_recomputation);
    tcase_add_loop_test(tcase, some_layers, 0, sizeof SOME_LAYERS / sizeof SOME_LAYERS[0]);
    tcase_add_loop_test(tcase, layers_of_a_stage, 0, sizeof STAGES / sizeof STAGES[0]);
    tcase_add_loop_test(tcase, no_recomputation, 0, sizeof NO_RECOMPUTATIONS / sizeof NO_RECOMPUTATIONS[0]);
    tcase_add_loop_test(tcase, refused_with_a_reason, 0, sizeof WRONG / sizeof WRONG[0]);
    tcase_add_loop_test(tcase, short_forms, 0, sizeof SHORT_FORMS / sizeof SHORT_FORMS[0]);
    tcase_add_test(tcase, brief_and_back);
    tcase_add_test(tcase, completion);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
