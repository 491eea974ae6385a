/* Restrictions of the space: they keep exactly what they name, and bad ones say what is wrong. */
#include <check.h>
#include <string.h>

#include "tests/plan/settings.h"
#include "tests/suite.h"

START_TEST(restrictions_keep_what_they_name)
{
    struct job_case c;
    dense_case(&c, 8, 16, 16);
    struct space *all = space_of(&c.setting, NULL);
    struct space *some =
        space_of(&c.setting, "tp=2,4,pp=2..8,zero=1,schedule=1f1b,interleaved,sp=1,recompute=full,dp_overlap=on");
    uint64_t expected = 0, index;
    for (uint64_t i = 0; i < space_size(all); i++) {
        struct layout l;
        space_layout(all, i, &l);
        bool shared = l.dp * l.cp > 1;
        bool named = (l.tp == 2 || l.tp == 4) && l.pp >= 2 && l.pp <= 8 && l.sequence_parallel &&
                     (l.schedule == SCHEDULE_1F1B || l.schedule == SCHEDULE_INTERLEAVED) && l.recompute.what == RECOMPUTE_FULL &&
                     (!shared || (l.zero == 1 && (l.features & FEATURE_BIT(DP_OVERLAP))));
        expected += named;
        ck_assert_int_eq(space_find(some, &l, &index), named);
    }
    ck_assert_uint_gt(expected, 0);
    ck_assert_uint_eq(space_size(some), expected);
    space_destroy(all);
    space_destroy(some);
}
END_TEST

START_TEST(the_text_of_a_layout_is_a_restriction)
{
    struct job_case c;
    dense_case(&c, 8, 16, 16);
    struct space *all = space_of(&c.setting, NULL);
    for (uint64_t i = 0; i < space_size(all); i += 97) {
        struct layout layout;
        char text[160];
        uint64_t index;
        space_layout(all, i, &layout);
        struct space *one = space_of(&c.setting, layout_format(&layout, text, sizeof text));
        ck_assert(space_find(one, &layout, &index));
        ck_assert_uint_eq(space_n_families(one), 1);
        ck_assert_uint_le(space_size(one), 8); /* subsets of the three overlaps, which the text does not say */
        space_destroy(one);
    }
    space_destroy(all);
}
END_TEST

/* Split experts are there where they are asked for, and where tp leaves something to split. */
START_TEST(split_experts_where_asked_for)
{
    struct job_case c;
    mixture_case(&c, 8, 8, 16, 16);
    struct space *usual = space_of(&c.setting, "tp=4"), *split = space_of(&c.setting, "tp=4,etp=4");
    struct space *either = space_of(&c.setting, "tp=4,etp=1,4"), *without = space_of(&c.setting, "tp=1,etp=1");
    struct layout layout;
    uint64_t index;
    ck_assert_uint_eq(space_size(split), space_size(usual));
    ck_assert_uint_eq(space_size(either), 2 * space_size(usual));
    for (uint64_t i = 0; i < space_size(split); i++) {
        space_layout(split, i, &layout);
        ck_assert_int_eq(layout.etp, 4);
        ck_assert(space_find(split, &layout, &index) && index == i && space_find(either, &layout, &index));
        ck_assert(!space_find(usual, &layout, &index));
    }
    space_layout(usual, 0, &layout);
    ck_assert_int_eq(layout.etp, 0);
    space_layout(without, 0, &layout);
    ck_assert_int_eq(layout.etp, 0);
    space_destroy(usual);
    space_destroy(split);
    space_destroy(either);
    space_destroy(without);
}
END_TEST

/* A number stands for itself: 3 divides nothing here, and the check says so. */
START_TEST(a_named_number_is_examined_even_when_illegal)
{
    struct job_case c;
    dense_case(&c, 8, 16, 16);
    struct space *space = space_of(&c.setting, "tp=3");
    ck_assert_uint_gt(space_size(space), 0);
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct layout layout;
        space_layout(space, i, &layout);
        ck_assert_int_eq(layout_check(&layout, &c.setting, NULL, 0), LAYOUT_WORLD);
    }
    space_destroy(space);
}
END_TEST

/* Products far beyond any number of GPUs are refused like any other, without overflow. */
START_TEST(absurd_numbers_are_examined_too)
{
    static const char *const texts[] = {"tp=2147483647,cp=2147483647,pp=2147483647,vpp=2147483647,mb=2147483647",
                                        "tp=1..2147483647,pp=1..2147483647,cp=1..2147483647,vpp=1..2147483647,mb=1..2147483647",
                                        "ep=2147483647,vpp=2147483647"};
    struct job_case c;
    mixture_case(&c, 4, 4, 8, 8);
    struct space *space = space_of(&c.setting, texts[_i]);
    for (uint64_t i = 0; i < space_size(space); i++) {
        struct layout layout;
        space_layout(space, i, &layout);
        enum layout_reason reason = layout_check(&layout, &c.setting, NULL, 0);
        ck_assert(_i == 1 || reason != LAYOUT_LEGAL);
    }
    space_destroy(space);
}
END_TEST

static const struct {
    const char *text, *hint;
} bad[] = {
    {"tpp=8", "did you mean 'tp'"},
    {"tp=0", "'0' is not a value of tp"},
    {"tp=8..4", "'8..4'"},
    {"tp=", "'' is not a value"},
    {"8", "has no dimension"},
    {"zero=4", "zero"},
    {"schedule=1f2b", "1f1b"},
    {"recompute=2", "none, selective, full"},
    {"recompute=layernorm,norm+atc", "'atc' is unknown"},
    {"recompute=", "none, selective, full"},
    {"tp=99999999999999999999", "tp"},
    {"sp=2", "sp"},
    {"", "has no dimension"},
    {"tp=8,,pp=2", "'' is not a value of tp"},
};

START_TEST(bad_restrictions_are_refused)
{
    struct space_limits limits = {0}, untouched = {0};
    struct diags diags = {0};
    ck_assert_int_eq(space_restrict(&limits, bad[_i].text, PLACE_NONE, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_ge(diags.n_errors, 1);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, bad[_i].hint));
    ck_assert_mem_eq(&limits, &untouched, sizeof limits);
    diags_free(&diags);
}
END_TEST

START_TEST(several_mistakes_are_reported_at_once)
{
    struct space_limits limits = {0};
    struct diags diags = {0};
    ck_assert_int_eq(space_restrict(&limits, "tpp=8,9,pq=1,zero=9", PLACE_NONE, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 3);
    diags_free(&diags);
}
END_TEST

START_TEST(restrictions_that_leave_nothing_are_refused)
{
    struct job_case c;
    dense_case(&c, 8, 16, 16);
    struct space_limits limits = {0};
    struct diags diags = {0};
    struct space *space = NULL;
    ck_assert_int_eq(space_restrict(&limits, "pp=1,schedule=interleaved", PLACE_NONE, &diags), STATUS_OK);
    ck_assert_int_eq(space_create(&c.setting, &limits, &space, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_null(space);
    ck_assert_uint_eq(diags.n_errors, 1);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan space limits");
    TCase *cases = tcase_create("limits");
    tcase_add_test(cases, restrictions_keep_what_they_name);
    tcase_add_test(cases, the_text_of_a_layout_is_a_restriction);
    tcase_add_test(cases, split_experts_where_asked_for);
    tcase_add_test(cases, a_named_number_is_examined_even_when_illegal);
    tcase_add_loop_test(cases, absurd_numbers_are_examined_too, 0, 3);
    tcase_add_loop_test(cases, bad_restrictions_are_refused, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(cases, several_mistakes_are_reported_at_once);
    tcase_add_test(cases, restrictions_that_leave_nothing_are_refused);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
