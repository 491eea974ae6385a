/* Figures: the data sent to gnuplot, to the letter; and that gnuplot draws something of it in every format. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "plots/figure.h"
#include "plots/palette.h"
#include "tests/suite.h"

static const char timeline_csv[] = "rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n"
                                   "0,0,compute,compute,forward,0,0,0.000,0.100\n"
                                   "0,0,send,send,forward,0,0,0.100,0.110\n"
                                   "0,0,compute,compute,backward,0,0,0.300,0.500\n"
                                   "0,0,dp,all_reduce,dp_comm,-1,-1,0.450,0.600\n"
                                   "0,0,compute,compute,optimizer,-1,-1,0.600,0.800\n"
                                   "8,1,compute,compute,forward,0,0,0.110,0.210\n"
                                   "8,1,compute,compute,backward,0,0,0.210,0.290\n";
static const char step_json[] = "{\"command\": \"step\", \"config\": {\"model\": {\"name\": \"tiny\"}}, \"step_time_s\": 4,"
                                " \"breakdown\": {\"gemm\": 3.0, \"attention\": 0.0, \"bubble\": 1.0}}";
static const char run_json[] =
    "{\"command\": \"run\", \"horizon_s\": 172800, \"goodput\": 0.75, \"ettr\": 0.75, \"mfu_pct\": 30.0, \"interruptions\": 1,"
    " \"breakdown\": {\"training\": 129600, \"checkpoint\": 0, \"lost\": 43200},"
    " \"incidents\": [{\"time_s\": 43200, \"interrupted\": true, \"lost_s\": 3600}, {\"time_s\": 50000, \"interrupted\": false,"
    " \"lost_s\": 0}],"
    " \"series\": [{\"start_s\": 0, \"length_s\": 86400, \"goodput\": 1.0, \"mfu_pct\": 40.0, \"breakdown\": {\"training\": "
    "86400,"
    " \"checkpoint\": 0, \"lost\": 0}},"
    " {\"start_s\": 86400, \"length_s\": 86400, \"goodput\": 0.5, \"mfu_pct\": 20.0, \"breakdown\": {\"training\": 43200,"
    " \"checkpoint\": 0, \"lost\": 43200}}]}";
static const char compare_json[] =
    "{\"command\": \"compare\", \"summary\": {\"n\": 2, \"mape_pct\": 15, \"macro_mape_pct\": 15},"
    " \"sources\": [{\"source\": \"dir/one.csv\", \"n\": 1, \"mape_pct\": 10, \"median_ape_pct\": 10, \"p90_ape_pct\": 10,"
    " \"bias_pct\": -10}, {\"source\": \"two.csv.gz\", \"n\": 1, \"mape_pct\": 20, \"median_ape_pct\": 20, \"p90_ape_pct\": 25,"
    " \"bias_pct\": 20}],"
    " \"rows\": [{\"source\": \"dir/one.csv\", \"measured_s\": 10, \"predicted_s\": 9}, {\"source\": \"two.csv.gz\","
    " \"measured_s\": 5, \"predicted_s\": 6}, {\"source\": \"two.csv.gz\", \"measured_s\": null, \"predicted_s\": null}]}";

static struct figure_input input_of(const char *name, const char *text)
{
    struct figure_input input = {.name = name};
    struct diags diags = {0};
    if (*text == '{')
        input.result = json_loads(text, 0, NULL);
    else
        ck_assert_int_eq(csv_table_parse(name, text, strlen(text), &input.csv, &diags), STATUS_OK);
    ck_assert(input.result || input.csv.n_rows);
    return input;
}

static char *script_of(const struct figure_options *options, const struct figure_input *inputs, size_t n)
{
    char *script = NULL;
    size_t size = 0;
    struct diags diags = {0};
    FILE *out = open_memstream(&script, &size);
    enum status status = figure_script(options, inputs, n, out, &diags);
    fclose(out);
    diags_print(&diags, stdout, false);
    ck_assert_int_eq(status, STATUS_OK);
    return script;
}

/* The script holds each of the parts. */
static void expect_script(const struct figure_options *options, const char *name, const char *text, const char *const *parts)
{
    struct figure_input input = input_of(name, text);
    char *script = script_of(options, &input, 1);
    for (; *parts; parts++)
        ck_assert_msg(strstr(script, *parts) != NULL, "the script has no\n%s\nbut is\n%s", *parts, script);
    free(script);
    figure_input_free(&input);
}

/* Boxes sorted by lane, exchanges in the lower strip, messages left out, times in ms because the step takes less than a second.
 * Colours: forward 0x0072B2 = 29362, backward 0xD55E00 = 13983232, optimizer 0xCC79A7 = 13400487, gradients 0xE69F00 = 15113984.
 */
START_TEST(timeline)
{
    static const char *const parts[] = {
        "time_unit = 'ms'\nstep_time = 800.000000\nstart_time = 0.000000\nend_time = 800.000000\nwindowed = 0\n",
        "n_lanes = 2\nn_bars = 6\n",
        "$bars << EOD\n"
        "-0.40\t0.22\t0.000000\t100.000000\t29362\n"
        "-0.40\t0.22\t300.000000\t500.000000\t13983232\n"
        "0.26\t0.42\t450.000000\t600.000000\t15113984\n"
        "-0.40\t0.22\t600.000000\t800.000000\t13400487\n"
        "0.60\t1.22\t110.000000\t210.000000\t29362\n"
        "0.60\t1.22\t210.000000\t290.000000\t13983232\n"
        "EOD\n",
        "$lanes << EOD\n0\tstage 0\n1\tstage 1\nEOD\n", "$labels << EOD\n50.000000\t-0.09\t1\n", "EOD\nn_labels = 4\n",
        "29362\tforward\tF\n13983232\tbackward\tB\n13400487\toptimizer\tO\n15113984\tgradient and parameter exchange\td\nEOD\n",
        /* eight columns of 100 ms; backward of the second stage takes 80 ms of its column */
        "$strips << EOD\n0\tF..BBdOO\n1\t.FB.....\nEOD\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_TIMELINE, .terminal = TERMINAL_TEXT, .width = 21}, "t.csv",
                  timeline_csv, parts);
}
END_TEST

/* Copies are told from other work beside compute. */
START_TEST(timeline_of_copies)
{
    static const char text[] = "rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n"
                               "0,0,down,compute,host,0,0,0.0,0.1\n"
                               "0,0,up,compute,host,0,0,0.1,0.2\n"
                               "0,0,host,compute,optimizer,-1,-1,0.2,0.4\n";
    static const char *const parts[] = {
        "0.26\t0.42\t0.000000\t100.000000\t15787074\n0.26\t0.42\t100.000000\t200.000000\t15787074\n"
        "0.26\t0.42\t200.000000\t400.000000\t13400487\n",
        "13400487\toptimizer\tO\n15787074\thost copies\th\nEOD\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_TIMELINE}, "t.csv", text, parts);
}
END_TEST

START_TEST(timeline_window)
{
    static const char *const parts[] = {"step_time = 800.000000\nstart_time = 200.000000\nend_time = 400.000000\nwindowed = 1\n",
                                        "$bars << EOD\n"
                                        "-0.40\t0.22\t300.000000\t400.000000\t13983232\n"
                                        "0.60\t1.22\t200.000000\t210.000000\t29362\n"
                                        "0.60\t1.22\t210.000000\t290.000000\t13983232\n"
                                        "EOD\n",
                                        NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_TIMELINE, .from_s = 0.2, .to_s = 0.4}, "t.csv", timeline_csv, parts);
}
END_TEST

/* Two lanes a rank, pairs of them apart. Kernels of one pass that touch are one box; the exchange between them is none of them.
 */
START_TEST(timelines_of_two_sources)
{
    static const char text[] = "source,rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n"
                               "predicted,0,0,compute,compute,forward,0,0,0.0,0.1\n"
                               "predicted,0,0,compute,compute,forward,0,0,0.1,0.2\n"
                               "predicted,1,0,compute,compute,forward,0,0,0.0,0.2\n"
                               "measured,0,0,compute,compute,forward,0,0,0.0,0.2\n"
                               "measured,0,0,tp,all_gather,forward,0,0,0.2,0.3\n"
                               "measured,0,0,compute,compute,forward,0,0,0.3,0.4\n"
                               "measured,1,0,compute,compute,forward,0,0,0.0,0.3\n";
    static const char *const parts[] = {
        "predicted_time = 200.000000\nmeasured_time = 400.000000\nn_lanes = 4.35\nn_bars = 6\n",
        "$bars << EOD\n"
        "-0.40\t0.22\t0.000000\t200.000000\t29362\n"
        "0.60\t1.22\t0.000000\t200.000000\t29362\n"
        "1.26\t1.42\t200.000000\t300.000000\t",
        "0.60\t1.22\t300.000000\t400.000000\t29362\n"
        "1.95\t2.57\t0.000000\t200.000000\t29362\n"
        "2.95\t3.57\t0.000000\t300.000000\t29362\nEOD\n",
        "$lanes << EOD\n0.00\trank 0  predicted\n1.00\tmeasured\n2.35\trank 1  predicted\n3.35\tmeasured\nEOD\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_TIMELINE, .terminal = TERMINAL_PNG}, "both.csv", text, parts);
}
END_TEST

/* Classes that take no time are left out. */
START_TEST(breakdown)
{
    static const char *const parts[] = {"figure_title = 'tiny'\n", "time_unit = 's'\nn_columns = 1\nn_classes = 2\n",
                                        "$bars << EOD\n0\t0\t29362\t0\t3\t75\tgemm\n0\t1\t12895428\t3\t1\t25\tbubble\nEOD\n",
                                        "$names << EOD\n0\tstep\t4\nEOD\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_BREAKDOWN, .terminal = TERMINAL_PNG}, "some/step.json", step_json,
                  parts);
}
END_TEST

/* Two results side by side share the classes of both. */
START_TEST(breakdowns)
{
    struct figure_input inputs[] = {input_of("a.json", step_json),
                                    input_of("b.json", "{\"breakdown\": {\"bubble\": 2.0, \"host\": 2.0}}")};
    char *script = script_of(&(struct figure_options){.kind = FIGURE_BREAKDOWN, .title = "it's both"}, inputs, 2);
    ck_assert_ptr_nonnull(strstr(script, "figure_title = 'it''s both'\n"));
    ck_assert_ptr_nonnull(
        strstr(script, "1\t0\t29362\t0\t0\t0\tgemm\n1\t1\t12895428\t0\t2\t50\tbubble\n1\t2\t8178096\t2\t2\t50\thost\n"));
    free(script);
    figure_input_free(&inputs[0]);
    figure_input_free(&inputs[1]);
}
END_TEST

/* Seconds of different work stand beside one another with a word of what differs, behind each name and in the title; where
 * nothing does there is none. */
START_TEST(breakdowns_of_different_work)
{
    static const char text[] = "{\"config\": {\"model\": {\"name\": \"tiny\"}, \"cluster\": {\"gpus\": 8}, \"job\": "
                               "{\"global_batch\": %d, \"precision\": \"%s\"}}, \"breakdown\": {\"gemm\": 2}}";
    char results[3][256];
    snprintf(results[0], sizeof results[0], text, 128, "bf16");
    snprintf(results[1], sizeof results[1], text, 256, "bf16");
    snprintf(results[2], sizeof results[2], text, 256, "fp8");
    static const struct {
        int first, second;
        const char *differs, *names;
    } cases[] = {{0, 1, "differs = 'batch'\n", "$names << EOD\n0\ta, batch 128\t2\n1\tb, batch 256\t2\nEOD\n"},
                 {1, 2, "differs = 'precision'\n", "$names << EOD\n0\ta, bf16\t2\n1\tb, fp8\t2\nEOD\n"},
                 {0, 2, "differs = 'batch, precision'\n", "\ta, batch 128, bf16\t2\n1\tb, batch 256, fp8\t2\n"},
                 {1, 1, "differs = ''\n", "$names << EOD\n0\ta\t2\n1\tb\t2\nEOD\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct figure_input inputs[] = {input_of("a.json", results[cases[i].first]),
                                        input_of("b.json", results[cases[i].second])};
        char *script = script_of(&(struct figure_options){.kind = FIGURE_BREAKDOWN}, inputs, 2);
        ck_assert_msg(strstr(script, cases[i].differs) && strstr(script, cases[i].names), "%s", script);
        free(script);
        figure_input_free(&inputs[0]);
        figure_input_free(&inputs[1]);
    }
}
END_TEST

/* The plans of a search are bars named by their layouts; one without a breakdown is left out. */
START_TEST(plans)
{
    static const char *const parts[] = {"n_columns = 2\n", "$names << EOD\n0\ttp8 pp4 vpp2 mb2 z1\t2\n1\ttp4 z0\t3\nEOD\n",
                                        "0\t0\t29362\t0\t2\t100\tgemm\n1\t0\t29362\t0\t3\t100\tgemm\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_BREAKDOWN}, "plan.json",
                  "{\"plans\": [{\"layout\": {\"tp\": 8, \"pp\": 4, \"vpp\": 2, \"cp\": 1, \"micro_batch\": 2, \"zero\": 1}, "
                  "\"breakdown\": "
                  "{\"gemm\": 2.0}}, {\"layout\": {\"tp\": 2}}, {\"layout\": {\"tp\": 4, \"micro_batch\": 1}, \"breakdown\": "
                  "{\"gemm\": 3.0}}]}",
                  parts);
}
END_TEST

/* A step beside a profile of the real one: two bars instead of its own. */
START_TEST(profiles)
{
    static const char *const parts[] = {"n_columns = 2\n", "$names << EOD\n0\tpredicted\t4\n1\tmeasured\t5\nEOD\n",
                                        "0\t0\t29362\t0\t3\t75\tproducts\n0\t1\t10132122\t3\t1\t25\tidle\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_BREAKDOWN}, "step.json",
                  "{\"breakdown\": {\"gemm\": 4.0}, \"profile\": {\"predicted\": {\"products\": 3.0, \"idle\": 1.0}, "
                  "\"measured\": {\"products\": 3.5, \"idle\": 1.5}}}",
                  parts);
}
END_TEST

/* Days and percent; uses besides training pile up; the last step is repeated where it ends. */
START_TEST(run)
{
    static const char *const parts[] = {
        "$shares << EOD\n0\t100\t40\t0\n1\t50\t20\t50\n2\t50\t20\t50\nEOD\n", "$uses << EOD\n13983232\tlost\nEOD\n",
        "$incidents << EOD\n0.5\t1\nEOD\n",
        "n_uses = 1\nhas_mfu = 1\nhorizon = 2\ngoodput = 75\nettr = 75\nmfu = 30\ninterruptions = 1\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_RUN}, "run.json", run_json, parts);
}
END_TEST

START_TEST(scatter)
{
    static const char *const parts[] = {"$points << EOD\n10\t9\t0\n5\t6\t1\nEOD\n",
                                        "$groups << EOD\n0\t29362\t0\tone\t1\t10.0\n1\t13983232\t1\ttwo\t1\t20.0\nEOD\n",
                                        "low = 5\nhigh = 10\nn_groups = 2\nn_points = 2\nmape = 15\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_SCATTER}, "c.json", compare_json, parts);
}
END_TEST

START_TEST(errors)
{
    static const char *const parts[] = {"$errors << EOD\n0\t10\t10\t10\t-10\t1\tone\n1\t20\t20\t25\t20\t1\ttwo\nEOD\n",
                                        "mape = 15\nmacro_mape = 15\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_ERRORS}, "c.json", compare_json, parts);
}
END_TEST

START_TEST(kinds_by_content)
{
    static const struct {
        const char *text;
        enum figure_kind kind;
    } cases[] = {{timeline_csv, FIGURE_TIMELINE},
                 {step_json, FIGURE_BREAKDOWN},
                 {run_json, FIGURE_RUN},
                 {compare_json, FIGURE_SCATTER},
                 {"{\"timeline\": [], \"breakdown\": {}}", FIGURE_TIMELINE},
                 {"{\"entries\": []}", N_FIGURE_KINDS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x", cases[i].text);
        ck_assert_int_eq(figure_kind_of(&input, &diags), cases[i].kind);
        ck_assert_uint_eq(diags.n_errors, cases[i].kind == N_FIGURE_KINDS);
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
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_REPLICAS);
    ck_assert_int_eq(figure_script(&(struct figure_options){.kind = FIGURE_REPLICAS}, &input, 1, out, &diags), STATUS_BAD_INPUT);
    fclose(out);
    free(text);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "only JSON is drawn, no CSV; draw what 'msim step --replicas N'"));
    diags_free(&diags);
    figure_input_free(&input);
}
END_TEST

/* A figure that the result cannot give is refused with the file's name. */
START_TEST(wrong_result)
{
    for (int kind = 0; kind < N_FIGURE_KINDS; kind++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x.json", "{\"breakdown\": {}, \"series\": [], \"rows\": [], \"sources\": []}");
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        ck_assert_int_eq(figure_script(&(struct figure_options){.kind = (enum figure_kind)kind}, &input, 1, out, &diags),
                         STATUS_BAD_INPUT);
        fclose(out);
        free(text);
        ck_assert_uint_eq(diags.n_errors, 1);
        ck_assert_str_eq(diags.items[0].file, "x.json");
        diags_free(&diags);
        figure_input_free(&input);
    }
}
END_TEST

static const char sweep_json[] =
    "{\"sweep\": {\"key\": \"restart\", \"unit\": \"s\", \"logarithmic\": false, \"replicas\": 8, \"points\": ["
    "{\"value\": 300, \"goodput\": 0.9, \"ci95_low\": 0.89, \"ci95_high\": 0.91, \"memoryless\": 0.905, "
    "\"breakdown\": {\"training\": 0.9, \"lost\": 0.04, \"restart\": 0.06, \"waiting\": 0}},"
    "{\"value\": 1800, \"goodput\": 0.8, \"ci95_low\": 0.79, \"ci95_high\": 0.81, \"memoryless\": 0.81, "
    "\"breakdown\": {\"training\": 0.8, \"lost\": 0.04, \"restart\": 0.16, \"waiting\": 0}}]}}";
static const char step_replicas_json[] =
    "{\"replicas\": 3, \"estimates\": {\"step_time_s\": {\"mean\": 2.033333333, \"ci95_low\": 1.9, \"ci95_high\": 2.1, \"p05\": "
    "2, "
    "\"p95\": 2.1}}, \"outcomes\": [{\"step_time_s\": 2.0}, {\"step_time_s\": 2.1}, {\"step_time_s\": 2.0}]}";

static const char replicas_json[] =
    "{\"estimates\": {\"goodput_pct\": {\"mean\": 90, \"ci95_low\": 89, \"ci95_high\": 91, \"p05\": 88, \"p95\": 92}},"
    "\"outcomes\": [{\"goodput\": 0.88}, {\"goodput\": 0.9}, {\"goodput\": 0.92}]}";
/* One of three has not ended: the 95th percentile is not known. */
static const char end_json[] =
    "{\"config\": {\"job\": {\"tokens\": 3e11}}, \"reached\": 2, \"fault_free_s\": 864000, \"likely\": {\"end_low_s\": 1022112, "
    "\"end_high_s\": "
    "1224288}, \"estimates\": {\"goodput_pct\": "
    "{\"mean\": 90}, \"end_s\": "
    "{\"mean\": null, \"ci95_low\": null, \"ci95_high\": null, \"p05\": 1036800, \"median\": 1123200, \"p95\": null}},"
    "\"outcomes\": [{\"end_s\": 1123200}, {\"end_s\": null}, {\"end_s\": 1036800}]}";
static const char faults_json[] =
    "{\"failures\": 3, \"mtbf_s\": 3600, \"per_node_day\": 0.1, \"gaps\": {\"shape\": 0.8}, \"top_nodes\": [],"
    "\"causes\": [{\"detail\": \"GPU\", \"faults\": 2, \"mean_down_s\": 60}, {\"detail\": \"\", \"faults\": 1, \"mean_down_s\": "
    "0}]}";

/* The second GPU count is missing in fp8: its line begins at 512. */
static const char scaling_json[] =
    "{\"scaling\": {\"axes\": [{\"keys\": [\"gpus\", \"global-batch\"], \"values\": 2}, {\"keys\": [\"precision\"], "
    "\"values\": 2}], \"points\": ["
    "{\"values\": {\"gpus\": \"256\", \"precision\": \"bf16\"}, \"gpus\": 256, \"fits\": true, \"tokens_per_s\": 1000, "
    "\"plan\": {\"mfu_pct\": 50}},"
    "{\"values\": {\"gpus\": \"512\", \"precision\": \"bf16\"}, \"gpus\": 512, \"fits\": true, \"tokens_per_s\": 1900, "
    "\"plan\": {\"mfu_pct\": 47.5}},"
    "{\"values\": {\"gpus\": \"256\", \"precision\": \"fp8\"}, \"gpus\": 256, \"fits\": false},"
    "{\"values\": {\"gpus\": \"512\", \"precision\": \"fp8\"}, \"gpus\": 512, \"fits\": true, \"tokens_per_s\": 3000, "
    "\"plan\": {\"mfu_pct\": 40}}]}}";
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
    static const struct {
        const char *json, *part;
        enum figure_kind kind;
    } cases[] = {{sweep_json, "$points << EOD\n5\t90\t89\t91\t90.5\n30\t80\t79\t81\t81\nEOD\n", FIGURE_SWEEP},
                 {sweep_json, "key = \"restart time [min]\"\n", FIGURE_SWEEP},
                 {sweep_json, "bottom = 70\n", FIGURE_SWEEP},
                 {sweep_json, "$shares << EOD\n5\t4\t10\n30\t4\t20\nEOD\n", FIGURE_SWEEP},
                 {replicas_json, "mean = 90\n", FIGURE_REPLICAS},
                 {replicas_json, "quantity = 'goodput'\nunit = '%'\n", FIGURE_REPLICAS},
                 {step_replicas_json, "$bins << EOD\n2.00208333\t2\n", FIGURE_REPLICAS},
                 {step_replicas_json,
                  "quantity = 'step time'\nunit = 's'\nof = 'steps'\ndigits = 4\nreplicas = 3\nmean = 2.03333333\n",
                  FIGURE_REPLICAS},
                 {end_json,
                  "$ends << EOD\n12\t0\n12\t33.3333\n13\t66.6667\nEOD\nfirst = 12\nlast = 13\nreplicas = 3\ntokens = \"300 B\"\n",
                  FIGURE_END},
                 {end_json, "fault_free = 10\nmean = NaN\np05 = 12\n", FIGURE_END},
                 {end_json, "median = 13\np95 = NaN\nlikely_low = 11.83\nlikely_high = 14.17\n", FIGURE_END},
                 {scaling_json, "$points << EOD\n256\t1000\t1000\t50\t0\n512\t1900\t2000\t47.5\t0\n512\t3000\t3000\t40\t1\nEOD\n",
                  FIGURE_SCALING},
                 {words_json, "$points << EOD\n0\t10\t10\t50\t0\n1\t20\t10\t40\t0\nEOD\n", FIGURE_SCALING},
                 {words_json, "$words << EOD\n0\ta\n1\tb\nEOD\n", FIGURE_SCALING},
                 {scaling_json, "key = \"GPUs\"\nothers = \"precision\"\n", FIGURE_SCALING},
                 {words_json, "others = \"\"\n", FIGURE_SCALING},
                 {names_json, "$words << EOD\n0\t10%%\n1\t%%s%%%%", FIGURE_SCALING},
                 {names_json, "figure_title = ''\n", FIGURE_SCALING},
                 {huge_json, "is_word = 1\n", FIGURE_SCALING},
                 {faults_json, "$causes << EOD\n0\t2\t0.0166667\tGPU\n1\t1\t0\tunknown\nEOD\n", FIGURE_FAULTS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x", cases[i].json);
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        ck_assert_int_eq(figure_kind_of(&input, &diags), cases[i].kind);
        ck_assert_int_eq(figure_script(&(struct figure_options){.kind = cases[i].kind}, &input, 1, out, &diags), STATUS_OK);
        fclose(out);
        ck_assert_msg(strstr(text, cases[i].part), "%s", text);
        free(text);
        diags_free(&diags);
        figure_input_free(&input);
    }
}
END_TEST

enum { GRID_TEXT = 1 << 17 };

/* A sweep of restart (minutes), spares and repair (hours), of so many values each: the first changes fastest, and a point's
 * goodput tells which it is, 0.1 and 0.001 of its number of spares and of minutes. */
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
        FILE *out = open_memstream(&text, &size);
        ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_SWEEP);
        enum status status = figure_script(&options, &input, 1, out, &diags);
        fclose(out);
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
    FILE *out = fopen("/dev/null", "w");
    ck_assert_int_eq(figure_script(&(struct figure_options){.kind = FIGURE_SWEEP}, &input, 1, out, &diags), STATUS_BAD_INPUT);
    ck_assert_msg(strncmp(diags.items[0].text, "this result has no sweep", 24) == 0, "%s", diags.items[0].text);
    fclose(out);
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

static const char links_csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                                "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> tor 0\n"
                                "nic_up,1,0.25,0,1,host 0 nic 1 port 0 -> tor 0\n"
                                "nic_up,2,0,0,1,host 1 nic 0 port 0 -> tor 0\n"
                                "nic_up,3,0.125,0,1,host 1 nic 1 port 0 -> tor 0\n"
                                "nic_down,0,0.5,0,1,tor 0 -> host 0 nic 0 port 0\n";

/* A script that draws the table holds all these parts. */
static void assert_links_drawn(const char *csv, const char *const *parts, size_t n)
{
    struct diags diags = {0};
    struct figure_input input = input_of("x.csv", csv);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(figure_kind_of(&input, &diags), FIGURE_LINKS);
    ck_assert_int_eq(figure_script(&(struct figure_options){.kind = FIGURE_LINKS}, &input, 1, out, &diags), STATUS_OK);
    fclose(out);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(strstr(text, parts[i]), "%s", text);
    free(text);
    figure_input_free(&input);
}

/* The second NIC of the second host is across 1, down 1; what goes down has the place of what goes up. */
START_TEST(links)
{
    static const char *const parts[] = {"$layers << EOD\n0\t21.875\t50\t4\tnic_up\n1\t50\t50\t1\tnic_down\nEOD\n",
                                        "$map1 << EOD\n0\t0\t50\n1\t0\t25\n0\t1\t0\n1\t1\t12.5\nEOD\nlinks1 = 4\nports1 = "
                                        "2\nunits1 = 2\nmean1 = 21.875\nmost1 = 50\n",
                                        "$map2 << EOD\nEOD\nlinks2 = 0\n",
                                        "$map4 << EOD\n0\t0\t50\nEOD\nlinks4 = 1\nports4 = 2\nunits4 = 1\n",
                                        "place1 = 0\nplace2 = 1\nplace3 = 1\nn_columns = 1\n"};
    assert_links_drawn(links_csv, parts, sizeof parts / sizeof *parts);
}
END_TEST

static const char dragonfly_csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                                    "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> group 0 switch 0\n"
                                    "local_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 0 switch 1\n"
                                    "local_out,1,0.75,0,1,group 1 switch 0 port 1 -> group 1 switch 1\n"
                                    "global_out,0,0.25,0,1,group 0 switch 0 port 2 -> group 1 switch 0\n"
                                    "global_out,1,0.75,0,1,group 0 switch 1 port 2 -> group 1 switch 1\n"
                                    "global_in,0,1,0,1,group 1 switch 0 -> group 0 switch 0 port 2\n"
                                    "global_in,1,1,0,1,group 1 switch 1 -> group 0 switch 1 port 2\n";

/* Local cables across, groups down; between groups the mean of the parallel cables each way. */
START_TEST(links_of_a_dragonfly)
{
    static const char *const parts[] = {
        "dragonfly = 1\n", "$map2 << EOD\n0\t0\t25\n0\t1\t75\nEOD\nlinks2 = 2\nports2 = 1\nunits2 = 2\nmean2 = 50\nmost2 = 75\n",
        "$map3 << EOD\n0\t0\t0\n1\t0\t50\n0\t1\t100\n1\t1\t0\nEOD\nlinks3 = 4\nports3 = 2\nunits3 = 2\nmean3 = 75\nmost3 = 100\n",
        "$map6 << EOD\nEOD\nlinks6 = 0\n", "place1 = 0\nplace2 = 1\nplace3 = 2\nn_columns = 3\n"};
    assert_links_drawn(dragonfly_csv, parts, sizeof parts / sizeof *parts);
}
END_TEST

/* Groups of one switch have no local cables. */
START_TEST(links_of_a_dragonfly_of_single_switches)
{
    static const char csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                              "nic_up,0,0.5,0,1,host 0 nic 0 port 0 -> group 0 switch 0\n"
                              "global_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 1 switch 0\n"
                              "global_in,0,1,0,1,group 1 switch 0 -> group 0 switch 0 port 1\n";
    static const char *const parts[] = {"dragonfly = 1\n", "$map2 << EOD\nEOD\nlinks2 = 0\n",
                                        "$map3 << EOD\n0\t0\t0\n1\t0\t25\n0\t1\t100\n1\t1\t0\nEOD\n",
                                        "place1 = 0\nplace2 = 1\nplace3 = 1\nn_columns = 2\n"};
    assert_links_drawn(csv, parts, sizeof parts / sizeof *parts);
}
END_TEST

/* A map has room for groups 0 to 1,023; links of others are left out of it, which is said. */
START_TEST(links_of_too_many_groups)
{
    static const char csv[] = "layer,link,utilisation,contended_s,most_transfers,name\n"
                              "global_out,0,0.25,0,1,group 0 switch 0 port 1 -> group 1 switch 0\n"
                              "global_out,1,0.5,0,1,group 0 switch 0 port 2 -> group %d switch 0\n"
                              "global_in,1,0.5,0,1,group %d switch 0 -> group 0 switch 0 port 2\n";
    for (int groups = 1024; groups <= 1025; groups++) {
        struct diags diags = {0};
        char text[512], *script = NULL;
        size_t size;
        FILE *out = open_memstream(&script, &size);
        snprintf(text, sizeof text, csv, groups - 1, groups - 1);
        struct figure_input input = input_of("x.csv", text);
        ck_assert_int_eq(figure_script(&(struct figure_options){.kind = FIGURE_LINKS}, &input, 1, out, &diags), STATUS_OK);
        fclose(out);
        ck_assert_ptr_nonnull(strstr(script, groups == 1024 ? "links3 = 3\nports3 = 1024\n" : "links3 = 1\nports3 = 2\n"));
        ck_assert_uint_eq(diags.n_items, groups == 1024 ? 0 : 1);
        if (groups > 1024)
            ck_assert_str_eq(
                diags.items[0].text,
                "the map between groups has room for 1024: 2 links of groups from number 1024 on are left out of it");
        free(script);
        figure_input_free(&input);
        diags_free(&diags);
    }
}
END_TEST

static const char *const drawn[N_FIGURE_KINDS] = {
    [FIGURE_TIMELINE] = timeline_csv,  [FIGURE_BREAKDOWN] = step_json, [FIGURE_RUN] = run_json,
    [FIGURE_SCATTER] = compare_json,   [FIGURE_ERRORS] = compare_json, [FIGURE_SWEEP] = sweep_json,
    [FIGURE_REPLICAS] = replicas_json, [FIGURE_FAULTS] = faults_json,  [FIGURE_LINKS] = links_csv,
    [FIGURE_SCALING] = scaling_json,   [FIGURE_END] = end_json};

/* Every kind in every format: the first and last bytes are those of the format, and it is not a blank. */
START_TEST(drawing)
{
    static const struct {
        const char *begin, *end;
        size_t least;
    } formats[] = {[TERMINAL_TEXT] = {"", "", 200},
                   [TERMINAL_PNG] = {"\x89PNG\r\n", "IEND\xAE\x42\x60\x82", 5000},
                   [TERMINAL_SVG] = {"<?xml", "</svg>\n\n", 2000},
                   [TERMINAL_PDF] = {"%PDF", "%%EOF\n", 2000}};
    int kind = _i / 4, terminal = _i % 4;
    struct figure_input input = input_of("x", drawn[kind]);
    struct figure_options options = {.kind = (enum figure_kind)kind, .terminal = (enum figure_terminal)terminal};
    struct diags diags = {0};
    char *picture;
    size_t n;
    enum status status = figure_draw(&options, &input, 1, &picture, &n, &diags);
    diags_print(&diags, stdout, false);
    if (status == STATUS_MISSING) {
        printf("skipped: no gnuplot\n");
        return;
    }
    ck_assert_int_eq(status, STATUS_OK);
    ck_assert_uint_gt(n, formats[terminal].least);
    size_t begin = strlen(formats[terminal].begin), end = strlen(formats[terminal].end);
    ck_assert_int_eq(memcmp(picture, formats[terminal].begin, begin), 0);
    ck_assert_int_eq(memcmp(picture + n - end, formats[terminal].end, end), 0);
    free(picture);
    figure_input_free(&input);
}
END_TEST

START_TEST(palette)
{
    ck_assert_uint_eq(palette_of("gemm"), COLOUR_BLUE);
    ck_assert_uint_eq(palette_of("no such class"), COLOUR_GREY);
    ck_assert_uint_eq(palette_tint(0x0072B2, 0), 0x0072B2);
    ck_assert_uint_eq(palette_tint(0x0072B2, 1), 0xFFFFFF);
    ck_assert_uint_eq(palette_tint(0x000000, 0.5), 0x808080);
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(palette_series(i), palette_series(j));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plots");
    TCase *data = tcase_create("data");
    TCase *pictures = tcase_create("pictures");
    tcase_set_timeout(pictures, 60);
    tcase_add_test(data, timeline);
    tcase_add_test(data, timeline_window);
    tcase_add_test(data, timeline_of_copies);
    tcase_add_test(data, timelines_of_two_sources);
    tcase_add_test(data, breakdown);
    tcase_add_test(data, breakdowns);
    tcase_add_test(data, breakdowns_of_different_work);
    tcase_add_test(data, profiles);
    tcase_add_test(data, plans);
    tcase_add_test(data, run);
    tcase_add_test(data, scatter);
    tcase_add_test(data, errors);
    tcase_add_test(data, weeks);
    tcase_add_test(pictures, sweeps_of_two_things);
    tcase_add_test(data, sweeps_that_are_cut);
    tcase_add_test(pictures, points_of_a_sweep);
    tcase_add_test(data, links);
    tcase_add_test(data, links_of_a_dragonfly);
    tcase_add_test(data, links_of_too_many_groups);
    tcase_add_test(data, links_of_a_dragonfly_of_single_switches);
    tcase_add_test(data, kinds_by_content);
    tcase_add_test(data, replicas_as_csv);
    tcase_add_test(data, wrong_result);
    tcase_add_test(data, palette);
    tcase_add_loop_test(pictures, drawing, 0, N_FIGURE_KINDS * 4);
    suite_add_tcase(suite, data);
    suite_add_tcase(suite, pictures);
    return suite_run(suite);
}
