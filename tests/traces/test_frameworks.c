/* Tables of frameworks as files: those that come with the program, a user's own, and what is wrong with one. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/suite.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_tree.h"

#define HEAD "name: mine\nsource: a test\nchecked: 1.2\norder: 5\nsigns: [mine.batch, mine.width]\n"

static char folder[] = "/tmp/msim-frameworks-XXXXXX";

/* A file of tables in a folder of its own, which MSIM_DATA names. */
static void write_table(const char *text)
{
    static const char *const parts[] = {"", "/traces", "/traces/launch", "/traces/launch/frameworks"};
    char path[160];
    if (access(folder, F_OK) != 0)
        ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(path, sizeof path, "%s%s", folder, parts[i]);
        mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s%s/mine.yaml", folder, parts[3]);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    setenv("MSIM_DATA", folder, 1);
}

static void remove_tables(void)
{
    char command[160];
    static const char *const parts[] = {"/traces/launch/frameworks/mine.yaml", "/traces/launch/frameworks", "/traces/launch",
                                        "/traces", ""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(command, sizeof command, "%s%s", folder, parts[i]);
        remove(command);
    }
    setenv("MSIM_DATA", "", 1);
}

START_TEST(the_program_has_tables)
{
    struct frameworks fs;
    struct diags diags = {0};
    ck_assert_int_eq(frameworks_load(&fs, &diags), STATUS_OK);
    ck_assert_uint_eq(diags.n_items, 0);
    ck_assert_int_eq(fs.n_signed, 17);
    ck_assert_str_eq(fs.items[0].name, "OLMo-core");
    ck_assert_str_eq(fs.items[16].name, "DeepSpeed");
    for (int i = 0; i < fs.n; i++)
        ck_assert_ptr_nonnull(fs.items[i].source);
    ck_assert_ptr_null(frameworks_find(&fs, "nobody's"));
    ck_assert_ptr_nonnull(framework_list(fs.recipe, "bridge_precisions"));
    frameworks_free(&fs);
}
END_TEST

/* A framework that a user adds: keys, words, a truth that is the opposite, what the program always does. */
START_TEST(a_user_adds_one)
{
    static const char config[] = "mine:\n  batch: 8\n  width: 1024\n  kind: wide\n  bias: false\n";
    static const struct {
        const char *name, *value;
    } expected[] = {{"swiglu", "True"},
                    {"micro_batch_size", "8"},
                    {"hidden_size", "1024"},
                    {"num_layers", "80"},
                    {"add_bias_linear", "True"}};
    struct frameworks fs;
    struct diags diags = {0};
    struct launch_words words = {0};
    const struct framework *framework;
    write_table(HEAD "fixed:\n- [swiglu, True]\nkeys:\n- {key: mine.batch, is: micro_batch_size}\n"
                     "- {key: mine.width, is: hidden_size}\n- {key: mine.kind, words: kinds}\n"
                     "- {key: mine.bias, not: add_bias_linear}\nwords:\n  kinds:\n  - [wide, num_layers, 80]\n  - [flat]\n");
    ck_assert_int_eq(frameworks_load(&fs, &diags), STATUS_OK);
    ck_assert_int_eq(fs.n_signed, 18);
    ck_assert_int_eq(framework_config_parse(&fs, "c.yaml", config, strlen(config), &words, &framework, &diags), STATUS_OK);
    ck_assert_str_eq(framework->name, "mine");
    ck_assert_str_eq(framework->checked, "1.2");
    ck_assert_uint_eq(words.n, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < words.n; i++) {
        ck_assert_str_eq(words.items[i].name, expected[i].name);
        ck_assert_str_eq(words.items[i].value, expected[i].value);
    }
    launch_words_free(&words);
    frameworks_free(&fs);
    remove_tables();
}
END_TEST

/* Each mistake is named with its line and column. */
START_TEST(mistakes_have_places)
{
    static const struct {
        const char *text, *said;
        int line, column;
    } cases[] = {
        {"name: mine\nchecked: no\n", "no 'source': it says where the table is from", 1, 1},
        {"source: a test\nname: DeepSpeed\nchecked: no\n",
         "another file has a table of 'DeepSpeed' too; to replace it, use its file name", 2, 7},
        {"name: mine\nsource: a test\n", "no 'checked': it says the version of the program that it was checked against, or no", 1,
         1},
        {HEAD "sings: [a]\n", "unknown key 'sings'; did you mean 'signs'?", 6, 1},
        {HEAD "keys:\n- {key: a, is: num_layer}\n", "'num_layer' is no argument of Megatron-LM; did you mean 'num-layers'?", 7,
         16},
        {HEAD "keys:\n- {key: a, words: kinds}\n", "no list 'kinds' under words, here or in shared.yaml", 7, 19},
        {HEAD "keys:\n- {key: a}\n", "a key is {key: PATH, is: ARGUMENT}, or not, inside or words instead of is", 7, 3},
        {HEAD "keys:\n- {key: a, was: b}\n", "'was' is none of key, is, not, inside, words", 7, 12},
        {HEAD "fixed:\n- nothing\n", "shared.yaml has no set 'nothing'", 7, 3},
        {HEAD "fixed:\n- [swiglu]\n", "a row is [argument, value]", 7, 3},
        {HEAD "words:\n  kinds:\n  - [a, b]\n", "a row is [word, argument, value] or [word]", 8, 5},
        {HEAD "more: mine\n", "the program has no function 'mine'", 6, 7},
        {HEAD "form: xml\n", "'xml' is none of yaml, toml, python", 6, 7},
        {HEAD "ignored: lr\n", "a list of texts is wanted here, not a single value", 6, 10},
        {"name: mine\nsource: a test\nchecked: no\nsigns: [a]\n",
         "order is a number from 1 to 100000: of frameworks that fit, the lowest is taken", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct frameworks fs;
        struct diags diags = {0};
        write_table(cases[i].text);
        ck_assert_int_eq(frameworks_load(&fs, &diags), STATUS_BAD_INPUT);
        ck_assert_str_eq(diags.items[0].text, cases[i].said);
        ck_assert_msg(diags.items[0].line == cases[i].line && diags.items[0].column == cases[i].column, "%s: %d:%d",
                      cases[i].said, diags.items[0].line, diags.items[0].column);
        diags_free(&diags);
    }
    remove_tables();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frameworks");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_program_has_tables);
    tcase_add_test(all, a_user_adds_one);
    tcase_add_test(all, mistakes_have_places);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
