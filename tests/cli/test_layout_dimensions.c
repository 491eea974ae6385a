/* Every dimension of a layout survives each form that a layout is written in: text, short text, YAML, JSON and CSV. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/layout_json.h"
#include "model/layout/dimension_value.h"
#include "model/spec/catalog.h"
#include "model/spec/layout_request.h"
#include "tests/suite.h"
#include "traces/launch/job/launch_write.h"
#include "traces/table/measurement.h"

/* No dimension has its default here: a new one needs a value, too. */
static const char LAYOUT_OF_ALL[] =
    "tp=2,cp=4,cp_comm=a2a:2+ring,pp=2,vpp=2,dp=4,ep=4,etp=2,mb=2,zero=2,shard=8,sp=0,recompute=full,"
    "schedule=interleaved,offload=optimizer";

static struct layout layout_of(const char *text)
{
    struct layout layout = layout_defaults;
    struct diags diags = {0};
    ck_assert_msg(layout_parse(text, &layout, &diags) == STATUS_OK, "%s: %s", text, diags.n_items ? diags.items[0].text : "");
    diags_free(&diags);
    return layout;
}

static void assert_same(const struct layout *layout, const struct layout *expected, const char *form)
{
    char texts[2][DIMENSION_TEXT];
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        enum layout_dimension dimension = (enum layout_dimension)i;
        const char *found = dimension_text(layout, dimension, texts[0]), *wanted = dimension_text(expected, dimension, texts[1]);
        ck_assert_msg(strcmp(found, wanted) == 0, "%s of %s is %s, not %s", layout_dimensions[i].key, form, found, wanted);
    }
}

/* The layout of an experiment's tree. */
static struct layout layout_of_tree(const struct yaml_node *tree, struct arena *arena)
{
    struct layout_request request = {0};
    struct diags diags = {0};
    layout_request_read(layout_request_tree(tree, arena, &diags), &request, &diags);
    ck_assert_msg(diags.n_errors == 0, "%s", diags.n_items ? diags.items[0].text : "");
    diags_free(&diags);
    return layout_of(request.text);
}

static struct layout layout_of_yaml(const char *bytes, size_t size)
{
    struct arena arena = {0};
    struct diags diags = {0};
    const struct yaml_node *tree = yaml_parse("test", bytes, size, &arena, &diags);
    ck_assert_ptr_nonnull(tree);
    struct layout layout = layout_of_tree(yaml_find(tree, "layout"), &arena);
    arena_free(&arena);
    diags_free(&diags);
    return layout;
}

START_TEST(rows)
{
    struct layout layout = layout_of(LAYOUT_OF_ALL);
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        const struct layout_dimension_row *row = &layout_dimensions[i];
        ck_assert_int_eq(layout_dimension_of(row->key), i);
        ck_assert_int_eq(layout_dimension_of(row->word), i);
        ck_assert(!row->long_name || layout_dimension_of(row->long_name) == i);
        ck_assert_msg(!dimension_is_usual(&layout, (enum layout_dimension)i), "%s has its default", row->key);
    }
    ck_assert_int_eq(layout_dimension_of("tensor"), -1);
}
END_TEST

START_TEST(orders)
{
    static const enum layout_dimension first[] = {DIMENSION_SCHEDULE, DIMENSION_PP};
    enum layout_dimension order[N_LAYOUT_DIMENSIONS];
    bool seen[N_LAYOUT_DIMENSIONS] = {false};
    layout_dimension_order(first, 2, order);
    ck_assert_int_eq(order[0], DIMENSION_SCHEDULE);
    ck_assert_int_eq(order[1], DIMENSION_PP);
    ck_assert_int_eq(order[2], DIMENSION_TP);
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        ck_assert(!seen[order[i]]);
        seen[order[i]] = true;
    }
}
END_TEST

START_TEST(text_and_back)
{
    char text[LAYOUT_TEXT];
    struct layout layout = layout_of(LAYOUT_OF_ALL), back;
    layout_format(&layout, text, sizeof text);
    ck_assert_str_eq(text, LAYOUT_OF_ALL);
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++)
        ck_assert_ptr_nonnull(strstr(text, layout_dimensions[i].word));
    back = layout_of(text);
    assert_same(&back, &layout, "text");
}
END_TEST

START_TEST(short_text_and_back)
{
    static const struct job job = {.features = 0};
    struct setting setting = {.job = &job, .gpus = 64};
    char text[LAYOUT_TEXT];
    struct layout layout = layout_of(LAYOUT_OF_ALL), back;
    layout_complete(&layout, &setting);
    back = layout_of(layout_brief(&layout, text, sizeof text));
    layout_complete(&back, &setting);
    assert_same(&back, &layout, text);
}
END_TEST

START_TEST(json_and_back)
{
    struct layout layout = layout_of(LAYOUT_OF_ALL), back;
    json_t *json = json_pack("{s:o}", "layout", layout_json(&layout));
    char *text = json_dumps(json, 0);
    back = layout_of_yaml(text, strlen(text));
    assert_same(&back, &layout, text);
    free(text);
    json_decref(json);
}
END_TEST

/* A job of that layout, and what it runs on. */
static void job_of(const struct layout *layout, struct launch_description *description, struct launch_machine *machine)
{
    struct diags diags = {0};
    struct launch_job *job = &description->job;
    *description = (struct launch_description){0};
    ck_assert_int_eq(catalog_model("mixtral-8x7b", &job->model, &diags), STATUS_OK);
    ck_assert_int_eq(launch_machine_find(NULL, "h100-sxm", 64, 0, machine, &diags), STATUS_OK);
    job->job = (struct job){.global_batch = 64, .seq_len = 4096, .precision = PRECISION_BF16};
    job->layout = *layout;
    job->gpus = 64;
    diags_free(&diags);
}

START_TEST(yaml_and_back)
{
    static const char *const heading[] = {"a test"};
    struct layout layout = layout_of(LAYOUT_OF_ALL), back;
    struct launch_description *description = malloc(sizeof *description);
    struct launch_machine *machine = malloc(sizeof *machine);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    job_of(&layout, description, machine);
    launch_write_experiment(description, machine, "mixtral-8x7b", heading, 1, out);
    fclose(out);
    back = layout_of_yaml(text, size);
    assert_same(&back, &layout, "YAML");
    free(text);
    free(machine);
    free(description);
}
END_TEST

/* Of what tables have no column for, the row means the default. */
static struct layout in_tables(const char *text)
{
    struct layout layout = layout_of(text);
    ck_assert(!layout_dimensions[DIMENSION_ETP].in_tables && !layout_dimensions[DIMENSION_OFFLOAD].in_tables);
    layout.etp = 0;
    layout.offload = layout_defaults.offload;
    return layout;
}

START_TEST(csv_and_back)
{
    struct layout layout = in_tables(LAYOUT_OF_ALL);
    struct launch_description *description = malloc(sizeof *description);
    struct launch_machine *machine = malloc(sizeof *machine);
    struct csv_table csv;
    struct measurement_table table;
    struct diags diags = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    job_of(&layout, description, machine);
    const struct launch_run run = {
        .name = "test", .catalog = "mixtral-8x7b", .job = &description->job, .machine = machine, .step_s = 3, .source = "a test"};
    launch_write_header(out);
    launch_write_row(&run, out);
    fclose(out);
    ck_assert_int_eq(csv_table_parse("test", text, size, &csv, &diags), STATUS_OK);
    ck_assert_int_eq(measurement_table_build(&csv, &table, &diags), STATUS_OK);
    ck_assert_msg(table.n_items == 1, "%s", diags.n_items ? diags.items[0].text : "");
    assert_same(&table.items[0].layout, &layout, "CSV");
    measurement_table_free(&table);
    diags_free(&diags);
    free(text);
    free(machine);
    free(description);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout_dimensions");
    TCase *all = tcase_create("all");
    tcase_add_test(all, rows);
    tcase_add_test(all, orders);
    tcase_add_test(all, text_and_back);
    tcase_add_test(all, short_text_and_back);
    tcase_add_test(all, json_and_back);
    tcase_add_test(all, yaml_and_back);
    tcase_add_test(all, csv_and_back);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
