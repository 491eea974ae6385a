/* Figures of many: sweeps of runs and of plans, replicas, ends of trainings, causes of faults. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "tests/plots/figure_samples.h"
#include "tests/suite.h"

static const char step_replicas_json[] =
    "{\"replicas\": 3, \"estimates\": {\"step_time_s\": {\"mean\": 2.033333333, \"ci95_low\": 1.9, \"ci95_high\": 2.1, \"p05\": "
    "2, "
    "\"p95\": 2.1}}, \"outcomes\": [{\"step_time_s\": 2.0}, {\"step_time_s\": 2.1}, {\"step_time_s\": 2.0}]}";

static const char words_json[] =
    "{\"scaling\": {\"axes\": [{\"keys\": [\"cluster\"], \"values\": 2}], \"points\": ["
    "{\"values\": {\"cluster\": \"a\"}, \"gpus\": 8, \"fits\": true, \"tokens_per_s\": 10, \"plan\": {\"mfu_pct\": 50}},"
    "{\"values\": {\"cluster\": \"b\"}, \"gpus\": 8, \"fits\": true, \"tokens_per_s\": 20, \"plan\": {\"mfu_pct\": 40}}]}}";

/* Names that gnuplot could take for formats of numbers, and too long for the axis; several models, none of which is the title. */
static const char names_json[] =
    "{\"config\": {\"model\": {\"name\": \"m\"}}, "
    "\"scaling\": {\"axes\": [{\"keys\": [\"memory-margin\", \"model\"], \"values\": 2}], \"points\": ["
    "{\"values\": {\"memory-margin\": \"10%\"}, \"gpus\": 8, \"fits\": true, \"tokens_per_s\": 10, \"plan\": {\"mfu_pct\": 5}},"
    "{\"values\": {\"memory-margin\": \"%s%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%\"}, \"gpus\": "
    "8, "
    "\"fits\": true, \"tokens_per_s\": 20, \"plan\": {\"mfu_pct\": 40}}]}}";

/* A number larger than gnuplot reads is a name. */
static const char huge_json[] =
    "{\"scaling\": {\"axes\": [{\"keys\": [\"gpus\"], \"values\": 2}], \"points\": ["
    "{\"values\": {\"gpus\": \"8\"}, \"gpus\": 8, \"fits\": true, \"tokens_per_s\": 10, \"plan\": {\"mfu_pct\": 5}},"
    "{\"values\": {\"gpus\": \"1e300\"}, \"gpus\": 8, \"fits\": false}]}}";

/* Times get the unit that suits the axis; shares are percent. */
START_TEST(weeks)
{
    const struct {
        const char *json, *part;
        enum figure_kind kind;
    } cases[] = {
        {figure_samples[FIGURE_SWEEP], "$points << EOD\n5\t90\t89\t91\t90.5\n30\t80\t79\t81\t81\nEOD\n", FIGURE_SWEEP},
        {figure_samples[FIGURE_SWEEP], "key = \"restart time [min]\"\n", FIGURE_SWEEP},
        {figure_samples[FIGURE_SWEEP], "bottom = 70\n", FIGURE_SWEEP},
        {figure_samples[FIGURE_SWEEP], "$shares << EOD\n5\t4\t10\n30\t4\t20\nEOD\n", FIGURE_SWEEP},
        {figure_samples[FIGURE_REPLICAS], "mean = 90\n", FIGURE_REPLICAS},
        {figure_samples[FIGURE_REPLICAS], "quantity = 'goodput'\nunit = '%'\n", FIGURE_REPLICAS},
        {step_replicas_json, "$bins << EOD\n2.00208333\t2\n", FIGURE_REPLICAS},
        {step_replicas_json, "quantity = 'step time'\nunit = 's'\nof = 'steps'\ndigits = 4\nreplicas = 3\nmean = 2.03333333\n",
         FIGURE_REPLICAS},
        {figure_samples[FIGURE_END],
         "$ends << EOD\n12\t0\n12\t33.3333\n13\t66.6667\nEOD\nfirst = 12\nlast = 13\nreplicas = 3\ntokens = \"300 B\"\n",
         FIGURE_END},
        {figure_samples[FIGURE_END], "fault_free = 10\nmean = NaN\np05 = 12\n", FIGURE_END},
        {figure_samples[FIGURE_END], "median = 13\np95 = NaN\nlikely_low = 11.83\nlikely_high = 14.17\n", FIGURE_END},
        {figure_samples[FIGURE_SCALING],
         "$points << EOD\n256\t1000\t1000\t50\t0\n512\t1900\t2000\t47.5\t0\n512\t3000\t3000\t40\t1\nEOD\n", FIGURE_SCALING},
        {words_json, "$points << EOD\n0\t10\t10\t50\t0\n1\t20\t10\t40\t0\nEOD\n", FIGURE_SCALING},
        {words_json, "$words << EOD\n0\ta\n1\tb\nEOD\n", FIGURE_SCALING},
        {figure_samples[FIGURE_SCALING], "key = \"GPUs\"\nothers = \"precision\"\n", FIGURE_SCALING},
        {words_json, "others = \"\"\n", FIGURE_SCALING},
        {names_json, "$words << EOD\n0\t10%%\n1\t%%s%%%%", FIGURE_SCALING},
        {names_json, "figure_title = ''\n", FIGURE_SCALING},
        {huge_json, "is_word = 1\n", FIGURE_SCALING},
        {figure_samples[FIGURE_FAULTS], "$causes << EOD\n0\t2\t0.0166667\tGPU\n1\t1\t0\tunknown\nEOD\n", FIGURE_FAULTS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x", cases[i].json);
        char *text = NULL;
        ck_assert_int_eq(figure_kind_of(&input, &diags), cases[i].kind);
        ck_assert_int_eq(script_written(&(struct figure_options){.kind = cases[i].kind}, &input, 1, &text, &diags), STATUS_OK);
        ck_assert_msg(strstr(text, cases[i].part), "%s", text);
        free(text);
        diags_free(&diags);
        figure_input_free(&input);
    }
}
END_TEST

/* A table of replicas is known for one, and not taken for a timeline that lacks its columns. */
START_TEST(replicas_as_csv)
{
    static const char csv[] = "replica,seed,step_time_s,slowest_rank,slowest_pace\n0,1,2.5,3,1.02\n";
    struct diags diags = {0};
    struct figure_input input = input_of("x.csv", csv);
    char *text = NULL;
    ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_REPLICAS);
    ck_assert_int_eq(script_written(&(struct figure_options){.kind = FIGURE_REPLICAS}, &input, 1, &text, &diags),
                     STATUS_BAD_INPUT);
    free(text);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "only JSON is drawn, no CSV; draw what 'msim step --replicas N'"));
    diags_free(&diags);
    figure_input_free(&input);
}
END_TEST

enum { GRID_TEXT = 1 << 17 };

/* A sweep of restart (minutes), spares and repair (hours) with these numbers of values: the first changes fastest, and the
 * goodput of a point identifies it, 0.1 and 0.001 of its number of spares and of minutes. */
static char *grid_json(char *text, int restarts, int spares, int repairs)
{
    snprintf(text, GRID_TEXT,
             "{\"sweep\": {\"key\": \"restart\", \"unit\": \"s\", \"replicas\": 8, \"axes\": [{\"key\": \"restart\", \"unit\": "
             "\"s\", \"values\": %d, \"logarithmic\": false}, {\"key\": \"spares\", \"unit\": \"\", \"values\": %d}",
             restarts, spares);
    if (repairs > 1)
        text_append(text, GRID_TEXT, ", {\"key\": \"repair\", \"unit\": \"s\", \"values\": %d}", repairs);
    text_append(text, GRID_TEXT, "], \"points\": [");
    for (int i = 0; i < restarts * spares * repairs; i++) {
        int restart = i % restarts, spare = i / restarts % spares;
        double goodput = 0.1 * spare + 0.001 * restart;
        text_append(text, GRID_TEXT,
                    "%s{\"value\": %d, \"goodput\": %g, \"ci95_low\": %g, \"ci95_high\": %g, \"values\": {\"restart\": %d, "
                    "\"spares\": %d, \"repair\": %d}}",
                    i ? ", " : "", 300 + 60 * restart, goodput, goodput, goodput + 0.01, 300 + 60 * restart, spare,
                    3600 * (1 + i / restarts / spares));
    }
    text_append(text, GRID_TEXT, "]}}");
    return text;
}

/* Curves run along the longest axis; many of them are a map, and many of more than two axes nothing. */
START_TEST(sweeps_of_two_things)
{
    static char json[GRID_TEXT];
    static const struct {
        int restarts, spares, repairs;
        const char *part; /* NULL: refused */
    } cases[] = {
        {2, 3, 1, "$points << EOD\n0\t0\t0\t1\t0\t0\n1\t10\t10\t11\t0\t1\n2\t20\t20\t21\t0\t2\n0\t0.1\t0.1\t1.1\t1\t0\n"},
        {2, 3, 1, "0\t29362\t5.00 min\n1\t13983232\t6.00 min\nEOD\n"},
        {2, 3, 1, "key = \"spare nodes\"\nothers = \"restart time\"\n"},
        {3, 2, 1, "$points << EOD\n5\t0\t0\t1\t0\t0\n6\t0.1\t0.1\t1.1\t0\t1\n7\t0.2\t0.2\t1.2\t0\t2\n5\t10\t10\t11\t1\t0\n"},
        {3, 2, 1, "key = \"restart time [min]\"\n"},
        {3, 2, 1, "low = 5\nhigh = 7\n"},
        {2, 3, 2, "6.00 min, 60.0 min\n2\t40563\t5.00 min, 2.00 h\n"},
        {8, 8, 1, "n_series = 8\nn_columns = 8\nis_map = 0\n"},
        {9, 9, 1, "n_series = 9\nn_columns = 9\nis_map = 1\n"},
        {4, 9, 3, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x", grid_json(json, cases[i].restarts, cases[i].spares, cases[i].repairs));
        struct figure_options options = {.kind = FIGURE_SWEEP, .terminal = TERMINAL_PNG};
        char *text = NULL, *picture = NULL;
        size_t size;
        ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_SWEEP);
        enum status status = script_written(&options, &input, 1, &text, &diags);
        ck_assert_int_eq(status, cases[i].part ? STATUS_OK : STATUS_BAD_INPUT);
        if (cases[i].part)
            ck_assert_msg(strstr(text, cases[i].part), "%zu: %s", i, text);
        else
            ck_assert_msg(strncmp(diags.items[0].text, "12 curves are too many", 22) == 0, "%s", diags.items[0].text);
        if (cases[i].part) {
            status = figure_draw(&options, &input, 1, &picture, &size, &diags);
            ck_assert_msg(status == STATUS_OK || status == STATUS_MISSING, "%zu: %d", i, (int)status);
            ck_assert(status != STATUS_OK || size > 5000);
            free(picture);
        }
        free(text);
        diags_free(&diags);
        figure_input_free(&input);
    }
}
END_TEST

/* Fewer points than the axes have places for are no sweep. */
START_TEST(sweeps_that_are_cut)
{
    static char json[GRID_TEXT];
    struct diags diags = {0};
    char *spares = strstr(grid_json(json, 2, 3, 1), "\"values\": 3");
    spares[strlen("\"values\": ")] = '4';
    struct figure_input input = input_of("x", json);
    char *text = NULL;
    ck_assert_int_eq(script_written(&(struct figure_options){.kind = FIGURE_SWEEP}, &input, 1, &text, &diags), STATUS_BAD_INPUT);
    ck_assert_msg(strncmp(diags.items[0].text, "this result has no sweep", 24) == 0, "%s", diags.items[0].text);
    free(text);
    diags_free(&diags);
    figure_input_free(&input);
}
END_TEST

/* Where nothing fits there is nothing to draw, and names draw as numbers do. */
START_TEST(points_of_a_sweep)
{
    static const struct {
        const char *json;
        enum status status;
    } cases[] = {
        {names_json, STATUS_OK},
        {huge_json, STATUS_OK},
        {"{\"scaling\": {\"axes\": [{\"keys\": [\"gpus\"], \"values\": 1}], \"points\": [{\"values\": {\"gpus\": \"8\"}, "
         "\"gpus\": 8, \"fits\": false}]}}",
         STATUS_BAD_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int terminal = TERMINAL_TEXT; terminal <= TERMINAL_PNG; terminal++) {
            struct diags diags = {0};
            struct figure_input input = input_of("x", cases[i].json);
            struct figure_options options = {.kind = FIGURE_SCALING, .terminal = (enum figure_terminal)terminal};
            char *picture = NULL;
            size_t n;
            enum status status = figure_draw(&options, &input, 1, &picture, &n, &diags);
            diags_print(&diags, stdout, false);
            ck_assert_msg(status == cases[i].status || status == STATUS_MISSING, "%zu: %d", i, (int)status);
            if (status == STATUS_OK)
                free(picture);
            diags_free(&diags);
            figure_input_free(&input);
        }
}
END_TEST

/* What the curves differ in is read in full above them, where there is room for twenty letters a line. */
START_TEST(keys_of_curves_are_whole)
{
    static const char keys_json[] =
        "{\"scaling\": {\"axes\": [{\"keys\": [\"gpus\"], \"values\": 2}, {\"keys\": [\"precision\"], \"values\": 1}, "
        "{\"keys\": [\"memory-margin\"], \"values\": 1}], \"points\": ["
        "{\"values\": {\"gpus\": \"8\", \"precision\": \"bf16\", \"memory-margin\": \"0\"}, \"gpus\": 8, \"fits\": true, "
        "\"tokens_per_s\": 10, \"plan\": {\"mfu_pct\": 50}},"
        "{\"values\": {\"gpus\": \"16\", \"precision\": \"bf16\", \"memory-margin\": \"0\"}, \"gpus\": 16, \"fits\": true, "
        "\"tokens_per_s\": 20, \"plan\": {\"mfu_pct\": 50}}]}}";
    struct diags diags = {0};
    struct figure_input input = input_of("x", keys_json);
    struct figure_options options = {.kind = FIGURE_SCALING, .terminal = TERMINAL_SVG};
    char *picture = NULL;
    size_t n;
    enum status status = figure_draw(&options, &input, 1, &picture, &n, &diags);
    ck_assert(status == STATUS_OK || status == STATUS_MISSING);
    if (status == STATUS_OK) {
        ck_assert_ptr_nonnull(strstr(picture, ">precision,<"));
        ck_assert_ptr_nonnull(strstr(picture, ">memory-margin<"));
        free(picture);
    }
    diags_free(&diags);
    figure_input_free(&input);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plots_sweeps");
    TCase *data = tcase_create("data");
    TCase *pictures = tcase_create("pictures");
    tcase_add_test(data, weeks);
    tcase_add_test(data, replicas_as_csv);
    tcase_add_test(pictures, sweeps_of_two_things);
    tcase_add_test(data, sweeps_that_are_cut);
    tcase_add_test(pictures, points_of_a_sweep);
    tcase_add_test(pictures, keys_of_curves_are_whole);
    suite_add_tcase(suite, data);
    suite_add_tcase(suite, pictures);
    return suite_run(suite);
}
