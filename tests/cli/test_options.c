/* Option rows: every default parses, every row is complete, bounds and units are kept, mistakes are named. */
#include <check.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options/experiment_options.h"
#include "cli/options/options.h"
#include "tests/suite.h"

/* --- every command's rows --------------------------------------------------------------------------------------------- */

START_TEST(every_default_parses)
{
    const struct option_row *rows[MAX_OPTIONS];
    int n = command_rows(commands[_i], rows);
    for (int i = 0; i < n; i++) {
        char why[512] = "";
        if (rows[i]->initial && rows[i]->type != OPTION_LIST)
            ck_assert_msg(option_check(rows[i], rows[i]->initial, NULL, why, sizeof why) == STATUS_OK, "%s --%s: %s",
                          commands[_i]->name, rows[i]->name, why);
    }
    char *argv[] = {"x", NULL};
    struct invocation call;
    int missing_operands = commands[_i]->min_operands > 0;
    ck_assert_int_eq(invocation_parse(commands, commands[_i], 1, argv, &call) == STATUS_USAGE, missing_operands);
    invocation_free(&call);
}
END_TEST

START_TEST(every_row_is_complete)
{
    const struct option_row *rows[MAX_OPTIONS];
    int n = command_rows(commands[_i], rows);
    ck_assert_int_lt(n, MAX_OPTIONS);
    for (int i = 0; i < n; i++) {
        const struct option_row *row = rows[i];
        ck_assert_msg(row->help && *row->help && row->help[strlen(row->help) - 1] != '.', "--%s: a help phrase", row->name);
        ck_assert_msg((row->type == OPTION_FLAG) == !row->argument, "--%s: an argument name, unless a flag", row->name);
        ck_assert_msg(row->type != OPTION_CHOICE || row->choices, "--%s: choices", row->name);
        for (int k = 0; k < i; k++) {
            ck_assert_msg(strcmp(row->name, rows[k]->name) != 0, "--%s twice in %s", row->name, commands[_i]->name);
            ck_assert_msg(!row->letter || row->letter != rows[k]->letter, "-%c twice in %s", row->letter, commands[_i]->name);
        }
    }
}
END_TEST

START_TEST(bounds_are_kept)
{
    const struct option_row *rows[MAX_OPTIONS];
    int n = command_rows(commands[_i], rows);
    for (int i = 0; i < n; i++) {
        const struct option_row *row = rows[i];
        char text[64], why[512];
        if (row->type == OPTION_COUNT) {
            ck_assert_int_ne(option_check(row, "-1", NULL, why, sizeof why), STATUS_OK);
            snprintf(text, sizeof text, "%.0f", row->high + 1);
            if (row->high > 0 && row->high < 0x1p53)
                ck_assert_int_ne(option_check(row, text, NULL, why, sizeof why), STATUS_OK);
        }
        if (row->type == OPTION_QUANTITY && row->dimension != DIM_COUNT && row->dimension != DIM_FRACTION)
            ck_assert_msg(option_check(row, "30", NULL, why, sizeof why) != STATUS_OK, "--%s takes a bare number", row->name);
    }
}
END_TEST

START_TEST(every_command_has_texts_and_examples)
{
    const struct command *command = commands[_i];
    ck_assert_ptr_nonnull(command->summary);
    ck_assert_ptr_nonnull(command->description);
    ck_assert(command->run != NULL);
    ck_assert_ptr_nonnull(command->examples);
    char start[64];
    snprintf(start, sizeof start, "msim %s", command->name);
    for (const struct example *e = command->examples; e->line; e++)
        ck_assert_msg(strncmp(e->line, start, strlen(start)) == 0 && e->what, "example '%s' of %s", e->line, command->name);
    ck_assert_ptr_nonnull(command->examples[0].line);
}
END_TEST

/* --- a command of the test's own ----------------------------------------------------------------------------------------- */

static const char *const metals[] = {"iron", "copper", "tin", NULL};
static const struct option_row own_rows[] = {
    {.name = "interval",
     .letter = 'i',
     .argument = "TIME",
     .type = OPTION_QUANTITY,
     .dimension = DIM_TIME,
     .low = 1,
     .high = 3600,
     .initial = "10min",
     .help = "h",
     .key = "faults.interval"},
    {.name = "spares", .argument = "N", .type = OPTION_COUNT, .high = 9, .help = "h"},
    {.name = "metal", .argument = "M", .type = OPTION_CHOICE, .choices = metals, .help = "h"},
    {.name = "metals", .argument = "M,...", .type = OPTION_LIST, .choices = metals, .help = "h", .key = "metals"},
    {.name = "trace", .argument = "FILE", .type = OPTION_TEXT, .help = "h", .key = "faults.trace", .verbatim = true},
    {.name = "name", .argument = "NAME", .type = OPTION_TEXT, .high = 8, .help = "h"},
    {.name = "fast", .letter = 'f', .type = OPTION_FLAG, .help = "h"},
    {0},
};
static const struct command own = {.name = "own", .options = own_rows, .experiment = true};

static char **split(const char *line, int *argc)
{
    static char buffer[512];
    static char *argv[32];
    snprintf(buffer, sizeof buffer, "own %s", line);
    *argc = 0;
    char *rest = buffer;
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        argv[(*argc)++] = word;
    argv[*argc] = NULL;
    return argv;
}

static enum status parse(const char *line, struct invocation *call)
{
    int argc;
    char **argv = split(line, &argc);
    return invocation_parse(commands, &own, argc, argv, call);
}

START_TEST(values_arrive_in_canonical_units)
{
    struct invocation call;
    ck_assert_int_eq(parse("-i 30min --spares=1_0 file.yaml", &call), STATUS_USAGE); /* 10 > 9 */
    invocation_free(&call);
    ck_assert_int_eq(parse("-i 30min --spares=7 file.yaml --metal tin -fvv", &call), STATUS_OK);
    ck_assert_double_eq(option_quantity(&call, "interval"), 1800);
    ck_assert_int_eq(option_count(&call, "spares"), 7);
    ck_assert_int_eq(option_choice(&call, "metal"), 2);
    ck_assert(option_flag(&call, "fast"));
    ck_assert_int_eq(call.verbosity, 2);
    ck_assert_int_eq(call.n_operands, 1);
    ck_assert_str_eq(experiment_flags_of(&call).file, "file.yaml");
    invocation_free(&call);
}
END_TEST

START_TEST(defaults_apply_and_are_not_overrides)
{
    struct invocation call;
    ck_assert_int_eq(parse("--fast", &call), STATUS_OK);
    ck_assert_double_eq(option_quantity(&call, "interval"), 600);
    ck_assert(!option_given(&call, "interval"));
    ck_assert_int_eq(option_choice(&call, "metal"), -1);
    ck_assert_ptr_null(option_text(&call, "model"));
    ck_assert_int_eq(call.n_overrides, 0);
    ck_assert_int_eq(call.seed, 1);
    invocation_free(&call);
}
END_TEST

START_TEST(the_last_value_wins_and_lists_add_up)
{
    struct invocation call;
    int n;
    ck_assert_int_eq(parse("-i 5s -i 7s --metals iron,tin --metals copper", &call), STATUS_OK);
    ck_assert_double_eq(option_quantity(&call, "interval"), 7);
    const char *const *list = option_list(&call, "metals", &n);
    ck_assert_int_eq(n, 3);
    ck_assert_str_eq(list[2], "copper");
    invocation_free(&call);
}
END_TEST

START_TEST(keys_become_overrides)
{
    struct invocation call;
    ck_assert_int_eq(parse("-i 5s --metals iron,tin --global-batch 6144 --set a.b=c --set d=[1,2] --seed 9", &call), STATUS_OK);
    static const char *const expected[] = {
        "faults.interval=5s", "metals=[iron, tin]", "job.global_batch=6144", "a.b=c", "d=[1,2]", "seed=9"};
    ck_assert_int_eq(call.n_overrides, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(call.overrides[i], expected[i]);
    ck_assert_int_eq(call.seed, 9);
    invocation_free(&call);
}
END_TEST

/* A file's name is no YAML, whatever it is made of. */
START_TEST(names_stay_as_they_are)
{
    struct invocation call;
    ck_assert_int_eq(parse("--trace it's{#1}:.csv", &call), STATUS_OK);
    ck_assert_int_eq(call.n_overrides, 1);
    ck_assert_str_eq(call.overrides[0], "=faults.trace=it's{#1}:.csv");
    invocation_free(&call);
}
END_TEST

/* A key may be given several times: the value that counts is reported once, with those that do not. */
START_TEST(what_goes_unheard_is_told_once)
{
    static const struct {
        const char *line;
        const char *told; /* NULL: nothing */
    } cases[] = {
        {"--set job.seq_len=64 --set job.seq_len=128 --set job.seq_len=256",
         "job.seq_len is given 3 times; msim uses the last value, 256, not 128"},
        {"--set layout.mb=1 --set layout.micro_batch=2 --set layout.mb=1",
         "micro_batch is given 3 times; msim uses the last value, 1, not 2"},
        {"--set job.seq_len=8 --set job.seq_len=8 --set job.seq_len=8", NULL},
        {"--trace a --set faults.trace=b --set faults.trace=c",
         "--trace and --set faults.trace=c set the same key; msim uses the last one, --set"},
        {"--set job.features=a --set job.features=b --features +async_tp",
         "job.features is given twice; msim uses the last value, b, not a"},
        {"--global-batch 8 --set job.batch_tokens=\t~\t", NULL},
        {"--trace a --set faults={trace:\tb,spares:\t3}",
         "--trace and --set faults.trace=b set the same key; msim uses the last one, --set"},
        {"--set faults={spares:\t3} --set faults={repair:\t3h}", NULL},
        {"--set faults={spares:\t3} --set faults={spares:\t4}",
         "--set faults.spares is given twice; msim uses the last value, 4, not 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct invocation call;
        ck_assert_int_eq(parse(cases[i].line, &call), STATUS_OK);
        ck_assert_uint_eq(call.diags.n_items, cases[i].told ? 1 : 0);
        if (cases[i].told)
            ck_assert_msg(strstr(call.diags.items[0].text, cases[i].told) != NULL, "%s", call.diags.items[0].text);
        invocation_free(&call);
    }
}
END_TEST

/* The last of two options for one value counts, option or --set, and this is reported; changes of a list add to earlier ones. */
START_TEST(the_last_counts)
{
    static const struct {
        const char *line, *first, *last;
        const char *told; /* NULL: nothing */
    } cases[] = {
        {"--set job.global_batch=8 --global-batch 16", "job.global_batch=8", "job.global_batch=16",
         "--global-batch and --set job.global_batch=8 set the same key; msim uses the last one, --global-batch"},
        {"--global-batch 16 --set job.global_batch=8", "job.global_batch=16", "job.global_batch=8", "the last one, --set"},
        {"--global-batch 16 --set job.global_batch=16", "job.global_batch=16", "job.global_batch=16", NULL},
        {"--global-batch 16 --set job.global_batches=8", "job.global_batch=16", "job.global_batches=8", NULL},
        {"--features +async_tp --seed 9", "job.features=[+async_tp]", "seed=9", NULL}, /* a shorter text */
        {"--set job.features=compile --features +async_tp", "job.features=compile", "job.features=[+async_tp]", NULL},
        {"--features +async_tp --set job.features=compile", "job.features=[+async_tp]", "job.features=compile", "--features and"},
        {"--features +async_tp --set job.features=[-compile]", "job.features=[+async_tp]", "job.features=[-compile]", NULL},
        {"--set job.features=compile --features async_tp", "job.features=compile", "job.features=[async_tp]", "--features and"},
        {"--set job.seq_len=8 --set job.seq_len=9", "job.seq_len=8", "job.seq_len=9",
         "--set job.seq_len is given twice; msim uses the last value, 9, not 8"},
        {"--set layout.mb=8 --set layout.micro_batch=9", "layout.mb=8", "layout.micro_batch=9",
         "--set layout.micro_batch is given twice; msim uses the last value, 9, not 8"},
        {"--set layout.tp=8 --set layout.pp=9", "layout.tp=8", "layout.pp=9", NULL},
        {"--set job.features=compile --set job.features=+async_tp", "job.features=compile", "job.features=+async_tp", NULL},
        {"--trace a --set faults.trace=a", "=faults.trace=a", "faults.trace=a", NULL},
        {"--global-batch 16 --set job.batch_tokens=null", "job.global_batch=16", "job.batch_tokens=null", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct invocation call;
        ck_assert_int_eq(parse(cases[i].line, &call), STATUS_OK);
        ck_assert_int_eq(call.n_overrides, 2);
        ck_assert_str_eq(call.overrides[0], cases[i].first);
        ck_assert_str_eq(call.overrides[1], cases[i].last);
        ck_assert_uint_eq(call.diags.n_items, cases[i].told ? 1 : 0);
        if (cases[i].told)
            ck_assert_msg(strstr(call.diags.items[0].text, cases[i].told) != NULL, "%s", call.diags.items[0].text);
        invocation_free(&call);
    }
}
END_TEST

struct refusal {
    const char *line;
    size_t n;         /* mistakes found in one go */
    const char *says; /* within the first of them */
};
static const struct refusal refusals[] = {
    {"--interval 30", 1, "has no unit"},
    {"--interval 30GiB", 1, "not a unit of a time"},
    {"--interval 2h", 1, "at most 1h"},
    {"--interval 1ms", 1, "at least 1s"},
    {"--spares 1.5", 1, "not a whole number"},
    {"--spares many", 1, "is not a number"},
    {"--spares -3", 1, "too small"},
    {"--spares nan", 1, "is not a number"},
    {"--metal coper", 1, "did you mean 'copper'?"},
    {"--metals iron,,tin", 1, "'' is not one of iron, copper, tin"},
    {"--optimizer=sgd", 1, "unknown option '--optimizer'; write --set job.optimizer=VALUE"},
    {"--mb=4", 1, "write --set layout.micro_batch=VALUE"},
    {"--seq_len=4", 1, "did you mean '--seq-len'?"},
    {"--gpsu=8", 1, "did you mean '--gpus'?"},
    {"--gpu 512", 1, "--gpus 512"},
    {"--sparse 3", 1, "unknown option '--sparse'; did you mean '--spares'?"},
    {"--spares", 1, "--spares needs a value: --spares N"},
    {"--fast=3", 1, "--fast takes no value"},
    {"--s 3", 1, "is ambiguous: --seq-len, --set, --spares, --seed"},
    {"-fz", 1, "unknown option '-z'"},
    {"--set nothing", 1, "is not KEY=VALUE"},
    {"--global-batch 8 --batch-tokens 4M", 1, "--global-batch and --batch-tokens say the same thing; keep one"},
    {"--set job.batch_tokens=4M --global-batch 8", 1, "--set job.batch_tokens and --global-batch say the same thing; keep one"},
    {"--set faults.model=x --trace y", 1, "--set faults.model and --trace both say what fails; keep one"},
    {"--set faults={model:\tx} --trace y", 1, "--set faults.model and --trace both say what fails; keep one"},
    {"--set faults={model:\tx} --set faults.model=x --trace y", 1, "--set faults.model and --trace both say what fails"},
    {"--name abcdefghi", 1, "'abcdefghi...' is longer than 8 bytes"},
    {"a b", 1, "unexpected operand 'b'"},
    {"--sparse 3 --interval 30 -x --metal coper --spares", 5, "unknown option '--sparse'"},
};

START_TEST(mistakes_are_named)
{
    const struct refusal *r = &refusals[_i];
    struct invocation call;
    ck_assert_int_eq(parse(r->line, &call), STATUS_USAGE);
    ck_assert_msg(strstr(call.diags.items[0].text, r->says), "'%s' gave '%s'", r->line, call.diags.items[0].text);
    if (r->n == 5) /* a value after an unknown option is taken for an operand: two of them are one too many */
        ck_assert_uint_ge(call.diags.n_errors, r->n);
    else
        ck_assert_uint_eq(call.diags.n_errors, r->n);
    invocation_free(&call);
}
END_TEST

START_TEST(help_wins_over_mistakes)
{
    struct invocation call;
    ck_assert_int_eq(parse("--nonsense --help", &call), STATUS_USAGE);
    ck_assert(call.help);
    invocation_free(&call);
}
END_TEST

int main(void)
{
    int n_commands = 0;
    while (commands[n_commands])
        n_commands++;
    Suite *suite = suite_create("options");
    TCase *rows = tcase_create("rows of every command");
    tcase_add_loop_test(rows, every_default_parses, 0, n_commands);
    tcase_add_loop_test(rows, every_row_is_complete, 0, n_commands);
    tcase_add_loop_test(rows, bounds_are_kept, 0, n_commands);
    tcase_add_loop_test(rows, every_command_has_texts_and_examples, 0, n_commands);
    suite_add_tcase(suite, rows);
    TCase *parsing = tcase_create("parsing");
    tcase_add_test(parsing, values_arrive_in_canonical_units);
    tcase_add_test(parsing, defaults_apply_and_are_not_overrides);
    tcase_add_test(parsing, the_last_value_wins_and_lists_add_up);
    tcase_add_test(parsing, keys_become_overrides);
    tcase_add_test(parsing, names_stay_as_they_are);
    tcase_add_test(parsing, the_last_counts);
    tcase_add_test(parsing, what_goes_unheard_is_told_once);
    tcase_add_loop_test(parsing, mistakes_are_named, 0, (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(parsing, help_wins_over_mistakes);
    suite_add_tcase(suite, parsing);
    return suite_run(suite);
}
