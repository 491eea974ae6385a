/* What is offloaded and how much of it: as text, as layers, and what a search looks at. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/offload.h"

static enum offload parsed(const char *text)
{
    char why[OFFLOAD_WHY] = "";
    int set = offload_parse(text, why, sizeof why);
    ck_assert_msg(set >= 0, "%s: %s", text, why);
    ck_assert(offload_is_known(set));
    return (enum offload)set;
}

static const struct {
    const char *text, *said; /* NULL: as it is */
    int optimizer, activations, parameters;
} texts[] = {
    {"none", NULL, 0, 0, 0},
    {"optimizer", NULL, 100, 0, 0},
    {"activations+optimizer", "optimizer+activations", 100, 100, 0},
    {"optimizer:50%+activations:16", NULL, 50, 116, 0},
    {"optimizer:0.5", "optimizer:50%", 50, 0, 0},
    {"optimizer:100%", "optimizer", 100, 0, 0},
    {"optimizer:1.0", "optimizer", 100, 0, 0},
    {"activations:1", NULL, 0, 101, 0},
    {"activations:923", NULL, 0, 1023, 0},
    {"activations:1%", NULL, 0, 1, 0},
    {"parameters:25%+optimizer+activations:0.07", "optimizer+activations:7%+parameters:25%", 100, 7, 25},
};

START_TEST(texts_are_read_and_written)
{
    char text[OFFLOAD_TEXT];
    enum offload set = parsed(texts[_i].text);
    ck_assert_int_eq(offload_amount(set, OFFLOAD_OPTIMIZER), texts[_i].optimizer);
    ck_assert_int_eq(offload_amount(set, OFFLOAD_ACTIVATIONS), texts[_i].activations);
    ck_assert_int_eq(offload_amount(set, OFFLOAD_PARAMETERS), texts[_i].parameters);
    ck_assert_str_eq(offload_format(set, text, sizeof text), texts[_i].said ? texts[_i].said : texts[_i].text);
    ck_assert_int_eq((int)parsed(text), (int)set);
}
END_TEST

static const struct {
    const char *text, *said;
} mistakes[] = {
    {"optimiser", "unknown 'optimiser'; did you mean 'optimizer'?"},
    {"all", "unknown 'all'; known are none, and joined by '+' optimizer, activations, parameters, each with an amount where not "
            "all of it goes, as optimizer:50%; auto in a layout that is auto"},
    {"auto:10%", "only a search takes auto (all of a part or nothing), or auto:25% (in such steps, of at least 25 %)"},
    {"optimizer+none", "'none' stands alone"},
    {"optimizer+optimizer:50%", "optimizer stands there twice"},
    {"optimizer:16", "'optimizer:16' says no amount of optimizer; write a share in whole percents, as in optimizer:50%"},
    {"optimizer:0%", "'optimizer:0%' says no amount of optimizer; write a share in whole percents, as in optimizer:50%"},
    {"parameters:101%", "'parameters:101%' says no amount of parameters; write a share in whole percents, as in optimizer:50%"},
    {"activations:0", "'activations:0' says no amount of activations; write a share in whole percents (activations:25%) or a "
                      "number of a stage's layers (activations:16)"},
};

START_TEST(mistakes_are_explained)
{
    char why[OFFLOAD_WHY];
    ck_assert_int_eq(offload_parse(mistakes[_i].text, why, sizeof why), -1);
    ck_assert_str_eq(why, mistakes[_i].said);
    ck_assert_int_eq(offload_parse(mistakes[_i].text, NULL, 0), -1);
}
END_TEST

START_TEST(amounts_that_are_none)
{
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
        ck_assert_msg(offload_parse(none[i], NULL, 0) == -1, "%s", none[i]);
}
END_TEST

/* Rounded up; and in equal parts of chunks, which add up to it. */
START_TEST(layers_of_a_share)
{
    ck_assert_int_eq(offload_layers(parsed("activations:25%"), 8), 2);
    ck_assert_int_eq(offload_layers(parsed("activations:25%"), 9), 3);
    ck_assert_int_eq(offload_layers(parsed("activations:5"), 8), 5);
    ck_assert_int_eq(offload_layers(parsed("activations:9"), 8), 8);
    ck_assert_int_eq(offload_layers(parsed("activations"), 8), 8);
    ck_assert_int_eq(offload_layers(parsed("optimizer"), 8), 0);
    for (int percent = 1; percent <= 100; percent++)
        for (int chunk = 1; chunk <= 4; chunk++) {
            enum offload set = offload_of(OFFLOAD_ACTIVATIONS, percent);
            int sum = 0;
            for (int i = 0; i < 5; i++) {
                int among = offload_layers_among(set, 5 * chunk, i * chunk, chunk);
                ck_assert(among >= 0 && among <= chunk);
                sum += among;
            }
            ck_assert_int_eq(sum, offload_layers(set, 5 * chunk));
        }
}
END_TEST

START_TEST(sets_of_a_search)
{
    enum offload sets[OFFLOAD_SETS];
    int n;
    ck_assert(offload_sets_of("auto", sets, &n) && n == N_OFFLOAD_WHOLES);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq((int)sets[i], (int)offload_wholes[i]);
    ck_assert(offload_sets_of("auto:30%", sets, &n) && n == 30); /* 0 30 60 90 100 */
    ck_assert(offload_sets_of("auto:0.5", sets, &n) && n == 12);
    for (int i = 0; i < n; i++) {
        ck_assert(i == 0 || sets[i] > sets[i - 1]);
        ck_assert(offload_share(sets[i], OFFLOAD_PARAMETERS) <= offload_share(sets[i], OFFLOAD_OPTIMIZER));
    }
    ck_assert_int_eq((int)sets[5], (int)(OFFLOAD_OPTIMIZER | offload_of(OFFLOAD_ACTIVATIONS, 50)));
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
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
