/* The rows themselves: bounds, defaults and help of every key; that what is written is read back; that words agree between rooms.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/layout/layout.h"
#include "model/spec/catalog.h"
#include "model/spec/experiment.h"
#include "model/spec/layout_request.h"
#include "model/spec/schemas.h"
#include "tests/suite.h"

static const struct {
    const struct schema *schema;
    size_t size;
} roots[] = {
    {&gpu_schema, sizeof(struct gpu)},
    {&transformer_schema, sizeof(struct transformer)},
    {&cluster_schema, sizeof(struct cluster)},
    {&job_schema, sizeof(struct job)},
    {&faults_schema, sizeof(struct faults_request)},
};

static void check_row(const struct schema *schema, const struct field *row, size_t size)
{
    ck_assert_msg(row->key && *row->key && row->help && *row->help, "%s.%s", schema->what, row->key);
    ck_assert_msg(schema_find(schema, row->key) == row, "%s.%s is there twice", schema->what, row->key);
    ck_assert_msg(row->offset + row->size <= size, "%s.%s lies outside its struct", schema->what, row->key);
    if (row->type == FIELD_INT || row->type == FIELD_INT64 || row->type == FIELD_QUANTITY)
        ck_assert_msg(row->min < row->max, "%s.%s has no room between its bounds", schema->what, row->key);
    if (row->type == FIELD_INT)
        ck_assert_msg(row->max <= 2147483647.0, "%s.%s exceeds an int", schema->what, row->key);
}

/* Defaults are texts in the user's syntax: the reader must accept them. */
static void check_fallback(const struct schema *schema, const struct field *row, void *object)
{
    struct diags diags = {0};
    if (!row->fallback || !*row->fallback)
        return;
    struct yaml_node value = {.kind = YAML_SCALAR, .text = row->fallback};
    field_read(row, &value, object, &diags);
    ck_assert_msg(diags.n_errors == 0, "%s.%s: %s", schema->what, row->key, diags.n_errors ? diags.items[0].text : "");
}

static void check_schema(const struct schema *schema, size_t size)
{
    void *object = calloc(1, size);
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        check_row(schema, row, size);
        check_fallback(schema, row, object);
        if (row->type == FIELD_GROUP) /* a section (size 0) has the members of the whole struct */
            check_schema(row->group, row->size ? row->size : size);
    }
    free(object);
}

START_TEST(every_row_is_sound)
{
    check_schema(roots[_i].schema, roots[_i].size);
}
END_TEST

/* The smallest and the largest value of a row are taken, what lies beyond is not. */
static void check_bounds(const struct field *row, size_t size)
{
    static const double beyond[2] = {-1, 1};
    void *object = calloc(1, size);
    for (int side = 0; side < 2; side++) {
        struct diags diags = {0};
        char text[64];
        double bound = side ? row->max : row->min, step = bound == 0 ? 1 : (bound > 0 ? bound : -bound);
        struct yaml_node value = {.kind = YAML_SCALAR, .text = text};
        quantity_write(bound, row->dimension, text, sizeof text);
        field_read(row, &value, object, &diags);
        ck_assert_msg(diags.n_errors == 0, "%s refuses its bound %s", row->key, text);
        quantity_write(bound + beyond[side] * step * 0.5, row->dimension, text, sizeof text);
        field_read(row, &value, object, &diags);
        ck_assert_msg(diags.n_errors == 1, "%s takes %s", row->key, text);
        diags_free(&diags);
    }
    free(object);
}

START_TEST(bounds_are_inclusive)
{
    const struct schema *schema = roots[_i].schema;
    for (size_t i = 0; i < schema->n_rows; i++)
        if (schema->rows[i].type == FIELD_QUANTITY || schema->rows[i].type == FIELD_INT)
            check_bounds(&schema->rows[i], roots[_i].size);
}
END_TEST

static void check_written_back(const struct schema *schema, const void *object, size_t size, const char *name)
{
    struct diags diags = {0};
    struct arena arena = {0};
    void *again = calloc(1, size);
    json_t *json = schema_write(schema, object);
    char *text = json_dumps(json, 0);
    struct yaml_node *tree = yaml_parse(name, text, strlen(text), &arena, &diags);
    ck_assert_ptr_nonnull(tree);
    schema_read(schema, tree, again, &diags);
    ck_assert_msg(diags.n_errors == 0, "%s: %s", name, diags.n_errors ? diags.items[0].text : "");
    ck_assert_msg(memcmp(object, again, size) == 0, "%s is read back differently", name);
    free(text);
    json_decref(json);
    free(again);
    arena_free(&arena);
    diags_free(&diags);
}

START_TEST(every_entry_is_read_back_as_written)
{
    static const size_t sizes[] = {sizeof(struct transformer), sizeof(struct gpu), sizeof(struct cluster)};
    static const struct schema *const schemas[] = {&transformer_schema, &gpu_schema, &cluster_schema};
    struct diags diags = {0};
    char **names;
    size_t n;
    ck_assert_int_eq(catalog_names((enum catalog_kind)_i, &names, &n, &diags), STATUS_OK);
    for (size_t i = 0; i < n; i++) {
        struct catalog_entry entry;
        memset(&entry, 0, sizeof entry);
        ck_assert_int_eq(catalog_entry(names[i], &entry, &diags), STATUS_OK);
        if (entry.kind == CATALOG_CLUSTERS) { /* all is written, so that nothing follows */
            struct dragonfly *d = &entry.cluster.dragonfly;
            d->groups_follow = d->ports_follow = d->cables_follow = false;
        }
        check_written_back(schemas[_i], &entry.model, sizes[_i], names[i]);
    }
    names_free(names);
}
END_TEST

/* The words for layouts are written twice, here and in model/layout, which is above: they must be the same. */
START_TEST(layout_words_are_those_of_the_layout)
{
    struct diags diags = {0};
    struct arena arena = {0};
    for (int i = 0; i < N_SCHEDULES; i++) {
        char text[64];
        struct layout_request request = {0};
        snprintf(text, sizeof text, "tp=2,schedule=%s", schedule_name((enum schedule)i));
        layout_request_read(layout_request_tree(yaml_scalar("t", text, &arena), &arena, &diags), &request, &diags);
        ck_assert_msg(diags.n_errors == 0, "%s: %s", text, diags.n_errors ? diags.items[0].text : "");
        struct layout layout = {0};
        ck_assert_int_eq(layout_parse(request.text, &layout, &diags), STATUS_OK);
        ck_assert_int_eq(layout.schedule, i);
    }
    arena_free(&arena);
}
END_TEST

/* Every key that an experiment takes is one that the layout takes, and the longest text fits. */
START_TEST(layout_text_is_understood_by_the_layout)
{
    static const char all[] =
        "tensor_parallel=8,cp=1000000,pp=1000000,vpp=1000000,dp=10000000,ep=1000000,etp=1000000,zero_stage=2,mb=1000000,sp=true,"
        "cp_comm=a2a:1000000+all_gather,recompute=core_attn+layernorm+mla_up_proj+mlp_act+moe_act+mlp+shared_experts+moe,"
        "shard=10000000,schedule=interleaved,offload=optimizer:50%+activations:100+parameters:50%";
    struct diags diags = {0};
    struct arena arena = {0};
    struct layout_request request = {0};
    struct layout layout = {0};
    layout_request_read(layout_request_tree(yaml_scalar("t", all, &arena), &arena, &diags), &request, &diags);
    ck_assert_int_eq(layout_parse(request.text, &layout, &diags), STATUS_OK);
    ck_assert_uint_eq(diags.n_errors, 0);
    ck_assert_int_eq(layout.tp, 8);
    ck_assert_int_eq(layout.zero, 2);
    ck_assert_int_eq(layout.micro_batch, 1000000);
    ck_assert(layout.sequence_parallel);
    ck_assert_int_eq(layout.schedule, SCHEDULE_INTERLEAVED);
    ck_assert(layout_offloads(&layout, OFFLOAD_PARAMETERS));
    ck_assert_int_eq(layout.recompute.what, ((1 << N_RECOMPUTE_MODULES) - 1) << 2);
    arena_free(&arena);
}
END_TEST

/* A text without an item is no layout that leaves all out: it is refused, as the option without a value is. */
START_TEST(layout_text_says_something)
{
    static const char *const texts[] = {"", " ", "~", " ~ ~", "\t"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct diags diags = {0};
        struct arena arena = {0};
        struct yaml_node *node = yaml_scalar("t", texts[i], &arena);
        node->quoted = true; /* not null, which is auto */
        (void)layout_request_tree(node, &arena, &diags);
        ck_assert_uint_eq(diags.n_errors, 1);
        ck_assert_msg(strstr(diags.items[0].text, "is empty") != NULL, "%s", diags.items[0].text);
        diags_free(&diags);
        arena_free(&arena);
    }
}
END_TEST

START_TEST(names_of_precisions_and_features)
{
    for (int i = 0; i < N_PRECISIONS; i++)
        ck_assert_int_eq(precision_parse(precision_name((enum precision)i)), i);
    ck_assert_int_eq(precision_parse("int8"), -1);
    for (int i = 0; i < N_FEATURES; i++) {
        ck_assert_int_eq(feature_parse(feature_name((enum feature)i)), i);
    }
    ck_assert_int_eq(feature_parse("magic"), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, every_row_is_sound, 0, (int)(sizeof roots / sizeof roots[0]));
    tcase_add_loop_test(tests, bounds_are_inclusive, 0, (int)(sizeof roots / sizeof roots[0]));
    tcase_add_loop_test(tests, every_entry_is_read_back_as_written, 0, N_CATALOG_KINDS);
    tcase_add_test(tests, layout_words_are_those_of_the_layout);
    tcase_add_test(tests, layout_text_is_understood_by_the_layout);
    tcase_add_test(tests, layout_text_says_something);
    tcase_add_test(tests, names_of_precisions_and_features);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
