/* What is offloaded and how much of it: as text, as layers, and what a search looks at. */
#include <check.h>
#include <string.h>

#include "model/spec/offload.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"

static struct offload parsed(const char *text)
{
    struct offload set = offloaded(text);
    ck_assert(offload_is_known(&set));
    return set;
}

static const struct {
    const char *text, *said; /* NULL: as it is */
    struct offload set;
} texts[] = {
    {"none", NULL, {.of = {{0}, {0}, {0}}}},
    {"optimizer", NULL, {.of = {{.percent = 100}, {0}, {0}}}},
    {"activations+optimizer", "optimizer+activations", {.of = {{.percent = 100}, {.percent = 100}, {0}}}},
    {"optimizer:50%+activations:16", NULL, {.of = {{.percent = 50}, {.layers = 16}, {0}}}},
    {"optimizer:0.5", "optimizer:50%", {.of = {{.percent = 50}, {0}, {0}}}},
    {"optimizer:100%", "optimizer", {.of = {{.percent = 100}, {0}, {0}}}},
    {"optimizer:1.0", "optimizer", {.of = {{.percent = 100}, {0}, {0}}}},
    {"activations:1", NULL, {.of = {{0}, {.layers = 1}, {0}}}},
    {"activations:923", NULL, {.of = {{0}, {.layers = 923}, {0}}}},
    {"activations:1%", NULL, {.of = {{0}, {.percent = 1}, {0}}}},
    {"parameters:25%+optimizer+activations:0.07",
     "optimizer+activations:7%+parameters:25%",
     {.of = {{.percent = 100}, {.percent = 7}, {.percent = 25}}}},
};

START_TEST(texts_are_read_and_written)
{
    char text[OFFLOAD_TEXT];
    struct offload set = parsed(texts[_i].text), again, numbered = offload_of_number(offload_number(&set));
    ck_assert(offload_equal(&set, &texts[_i].set));
    ck_assert_str_eq(offload_format(&set, text, sizeof text), texts[_i].said ? texts[_i].said : texts[_i].text);
    again = parsed(text);
    ck_assert(offload_equal(&again, &set));
    ck_assert(offload_equal(&numbered, &set));
}
END_TEST

static const struct {
    const char *text, *said;
} mistakes[] = {
    {"optimiser", "unknown 'optimiser'; did you mean 'optimizer'?"},
    {"all", "unknown 'all'; write none, or optimizer, activations, parameters joined by '+', each with an amount if it is not "
            "all, as in optimizer:50%; auto only in a layout that is auto"},
    {"auto:10%", "auto (all of a part or nothing) and auto:25% (steps of at least 25 %) need a search"},
    {"optimizer+none", "'none' cannot be combined with others"},
    {"optimizer+optimizer:50%", "optimizer is given twice"},
    {"optimizer:16", "'optimizer:16' is not an amount of optimizer; write a share in whole percents, as in optimizer:50%"},
    {"optimizer:0%", "'optimizer:0%' is not an amount of optimizer; write a share in whole percents, as in optimizer:50%"},
    {"parameters:101%", "'parameters:101%' is not an amount of parameters; write a share in whole percents, as in optimizer:50%"},
    {"activations:0", "'activations:0' is not an amount of activations; write a share in whole percents (activations:25%) or a "
                      "number of a stage's layers (activations:16)"},
};

START_TEST(mistakes_are_explained)
{
    char why[OFFLOAD_WHY];
    struct offload set = offload_all(OFFLOAD_PARAMETERS), before = set;
    ck_assert(!offload_parse(mistakes[_i].text, &set, why, sizeof why));
    ck_assert_str_eq(why, mistakes[_i].said);
    ck_assert(!offload_parse(mistakes[_i].text, &set, NULL, 0) && offload_equal(&set, &before));
}
END_TEST

START_TEST(amounts_that_are_none)
{
    struct offload set;
    static const char *const none[] = {"",
                                       "+",
                                       "optimizer:",
                                       "optimizer:.",
                                       "optimizer:0.005",
                                       "optimizer:-1%",
                                       "optimizer:5e1%",
                                       "optimizer:50%%",
                                       "optimizer:nan",
                                       "activations:924",
                                       "activations:1.5%",
                                       "optimizer: 50%",
                                       "activations+"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_msg(!offload_parse(none[i], &set, NULL, 0), "%s", none[i]);
}
END_TEST

static int layers_of(const char *text, int layers)
{
    struct offload set = parsed(text);
    return offload_layers(&set, layers);
}

/* Rounded up; and in equal parts of chunks, which add up to it. */
START_TEST(layers_of_a_share)
{
    ck_assert_int_eq(layers_of("activations:25%", 8), 2);
    ck_assert_int_eq(layers_of("activations:25%", 9), 3);
    ck_assert_int_eq(layers_of("activations:5", 8), 5);
    ck_assert_int_eq(layers_of("activations:9", 8), 8);
    ck_assert_int_eq(layers_of("activations", 8), 8);
    ck_assert_int_eq(layers_of("optimizer", 8), 0);
    for (int percent = 1; percent <= 100; percent++)
        for (int chunk = 1; chunk <= 4; chunk++) {
            struct offload set = {.of = {[OFFLOAD_ACTIVATIONS] = {.percent = (int16_t)percent}}};
            int sum = 0;
            for (int i = 0; i < 5; i++) {
                int among = offload_layers_among(&set, 5 * chunk, i * chunk, chunk);
                ck_assert(among >= 0 && among <= chunk);
                sum += among;
            }
            ck_assert_int_eq(sum, offload_layers(&set, 5 * chunk));
        }
}
END_TEST

START_TEST(sets_of_a_search)
{
    struct offload sets[OFFLOAD_SETS];
    int n;
    ck_assert(offload_sets_of("auto", sets, &n) && n == N_OFFLOAD_WHOLES);
    for (int i = 0; i < n; i++)
        ck_assert(offload_equal(&sets[i], &offload_wholes[i]));
    ck_assert(offload_sets_of("auto:30%", sets, &n) && n == 30); /* 0 30 60 90 100 */
    ck_assert(offload_sets_of("auto:0.5", sets, &n) && n == 12);
    for (int i = 0; i < n; i++) {
        ck_assert(i == 0 || offload_number(&sets[i]) > offload_number(&sets[i - 1]));
        ck_assert(offload_share(&sets[i], OFFLOAD_PARAMETERS) <= offload_share(&sets[i], OFFLOAD_OPTIMIZER));
    }
    struct offload sixth = parsed("optimizer+activations:50%");
    ck_assert(offload_equal(&sets[5], &sixth));
    static const char *const none[] = {"automatic", "auto:", "auto:10%", "auto:0", "auto:2", "optimizer"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_msg(!offload_sets_of(none[i], sets, &n), "%s", none[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offload");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, texts_are_read_and_written, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(all, mistakes_are_explained, 0, sizeof mistakes / sizeof *mistakes);
    tcase_add_test(all, amounts_that_are_none);
    tcase_add_test(all, layers_of_a_share);
    tcase_add_test(all, sets_of_a_search);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
