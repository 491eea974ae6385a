/* Figures: the data sent to gnuplot, to the letter; and that gnuplot draws something of it in every format. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/palette.h"
#include "tests/plots/figure_samples.h"
#include "tests/suite.h"

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
                  figure_samples[FIGURE_TIMELINE], parts);
}
END_TEST

/* Copies are distinct from other work that overlaps compute. */
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
    expect_script(&(struct figure_options){.kind = FIGURE_TIMELINE, .from_s = 0.2, .to_s = 0.4}, "t.csv",
                  figure_samples[FIGURE_TIMELINE], parts);
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
    expect_script(&(struct figure_options){.kind = FIGURE_BREAKDOWN, .terminal = TERMINAL_PNG}, "some/step.json",
                  figure_samples[FIGURE_BREAKDOWN], parts);
}
END_TEST

/* Two results side by side share the classes of both. */
START_TEST(breakdowns)
{
    struct figure_input inputs[] = {input_of("a.json", figure_samples[FIGURE_BREAKDOWN]),
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

/* Bars of different work have a note of what differs, behind each name and in the title; bars of the same work have none. */
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
    expect_script(&(struct figure_options){.kind = FIGURE_RUN}, "run.json", figure_samples[FIGURE_RUN], parts);
}
END_TEST

START_TEST(scatter)
{
    static const char *const parts[] = {"$points << EOD\n10\t9\t0\n5\t6\t1\nEOD\n",
                                        "$groups << EOD\n0\t29362\t0\tone\t1\t10.0\n1\t13983232\t1\ttwo\t1\t20.0\nEOD\n",
                                        "low = 5\nhigh = 10\nn_groups = 2\nn_points = 2\nmape = 15\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_SCATTER}, "c.json", figure_samples[FIGURE_SCATTER], parts);
}
END_TEST

START_TEST(errors)
{
    static const char *const parts[] = {"$errors << EOD\n0\t10\t10\t10\t-10\t1\tone\n1\t20\t20\t25\t20\t1\ttwo\nEOD\n",
                                        "mape = 15\nmacro_mape = 15\n", NULL};
    expect_script(&(struct figure_options){.kind = FIGURE_ERRORS}, "c.json", figure_samples[FIGURE_SCATTER], parts);
}
END_TEST

START_TEST(kinds_by_content)
{
    const struct {
        const char *text;
        enum figure_kind kind;
    } cases[] = {{figure_samples[FIGURE_TIMELINE], FIGURE_TIMELINE},
                 {figure_samples[FIGURE_BREAKDOWN], FIGURE_BREAKDOWN},
                 {figure_samples[FIGURE_RUN], FIGURE_RUN},
                 {figure_samples[FIGURE_SCATTER], FIGURE_SCATTER},
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

/* A figure that the result cannot give is refused with the file's name. */
START_TEST(wrong_result)
{
    for (int kind = 0; kind < N_FIGURE_KINDS; kind++) {
        struct diags diags = {0};
        struct figure_input input = input_of("x.json", "{\"breakdown\": {}, \"series\": [], \"rows\": [], \"sources\": []}");
        char *text = NULL;
        ck_assert_int_eq(script_written(&(struct figure_options){.kind = (enum figure_kind)kind}, &input, 1, &text, &diags),
                         STATUS_BAD_INPUT);
        free(text);
        ck_assert_uint_eq(diags.n_errors, 1);
        ck_assert_str_eq(diags.items[0].file, "x.json");
        diags_free(&diags);
        figure_input_free(&input);
    }
}
END_TEST

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
    struct figure_input input = input_of("x", figure_samples[kind]);
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
    tcase_add_test(data, timeline);
    tcase_add_test(data, timeline_of_copies);
    tcase_add_test(data, timeline_window);
    tcase_add_test(data, timelines_of_two_sources);
    tcase_add_test(data, breakdown);
    tcase_add_test(data, breakdowns);
    tcase_add_test(data, breakdowns_of_different_work);
    tcase_add_test(data, plans);
    tcase_add_test(data, profiles);
    tcase_add_test(data, run);
    tcase_add_test(data, scatter);
    tcase_add_test(data, errors);
    tcase_add_test(data, kinds_by_content);
    tcase_add_test(data, wrong_result);
    tcase_add_loop_test(pictures, drawing, 0, N_FIGURE_KINDS * 4);
    tcase_add_test(data, palette);
    suite_add_tcase(suite, data);
    suite_add_tcase(suite, pictures);
    return suite_run(suite);
}
