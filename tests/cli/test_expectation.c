/* What is said of the record of real runs beside a prediction: sentences and keys, by hand from the record. */
#include <check.h>
#include <string.h>

#include "cli/output/expectation.h"
#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "tests/suite.h"

/* A dense model with fused kernels on a GPU that the record has. */
struct job_case {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    struct setting setting;
};

static struct job_case *known_case(void)
{
    struct job_case *c = memory_new(1, sizeof *c);
    struct diags diags = {0};
    ck_assert_int_eq(catalog_model("llama2-7b", &c->model, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster("dgx-h100", &c->cluster, &diags), STATUS_OK);
    c->layout.features = FEATURE_BIT(FUSED_OPS);
    c->layout.cp = 1;
    c->setting = (struct setting){&c->model, &c->cluster, &c->job, 8};
    diags_free(&diags);
    return c;
}

static void known(struct job_case *c)
{
    (void)c;
}
static void unknown_gpu(struct job_case *c)
{
    snprintf(c->cluster.gpu.name, sizeof c->cluster.gpu.name, "abacus");
}
static void hybrid(struct job_case *c)
{
    struct diags diags = {0};
    ck_assert_int_eq(catalog_model("nemotron-h-8b", &c->model, &diags), STATUS_OK);
    diags_free(&diags);
}
static void muon(struct job_case *c)
{
    c->job.optimizer = OPTIMIZER_MUON;
}
static void offload(struct job_case *c)
{
    c->layout.offload = offload_wholes[1];
}
static void context(struct job_case *c)
{
    c->layout.cp = 2;
    c->layout.cp_comm = CP_A2A;
}
static void ring(struct job_case *c)
{
    c->layout.cp = 2;
    c->layout.cp_comm = CP_RING;
}
static void unused_exchange(struct job_case *c)
{
    c->layout.cp_comm = CP_A2A;
}
static void some_layers(struct job_case *c)
{
    c->layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, 2};
}
static void two_things(struct job_case *c)
{
    unknown_gpu(c);
    muon(c);
}

static const struct {
    void (*change)(struct job_case *c);
    const char *without; /* what no run of the record has */
} things[] = {
    {known, ""},
    {unknown_gpu, "; none of them on abacus"},
    {hybrid, "; none of them of a hybrid model"},
    {muon, "; none of them with Muon"},
    {offload, "; none of them with offloading"},
    {context, "; none of them with this exchange of context parallelism"},
    {ring, ""},
    {unused_exchange, ""},
    {some_layers, "; none of them with recomputation of some layers"},
    {two_things, "; none of them on abacus, with Muon"},
};

START_TEST(what_no_run_has_is_said)
{
    struct job_case *c = known_case();
    const struct track_record *record = track_record_of(RUN_FUSED);
    char expected[256], text[EXPECTATION_TEXT];
    things[_i].change(c);
    snprintf(expected, sizeof expected, "80 %% interval from %d published runs of this kind (dense, fused kernels; %d sources)%s",
             record->runs, record->sources, things[_i].without);
    ck_assert_str_eq(expectation_runs_text(&c->layout, &c->setting, text, sizeof text), expected);
    free(c);
}
END_TEST

/* The text of each kind has the numbers of its own record, in the singular where that is one source. */
static void of_kind(struct job_case *c, enum run_kind kind)
{
    struct diags diags = {0};
    if (kind == RUN_EAGER)
        c->layout.features = 0;
    if (kind == RUN_SHARDED)
        c->layout.zero = 3;
    if (kind == RUN_MIXTURE)
        ck_assert_int_eq(catalog_model("mixtral-8x7b", &c->model, &diags), STATUS_OK);
    diags_free(&diags);
}

START_TEST(each_kind_has_its_record)
{
    const enum run_kind kind = (enum run_kind)_i;
    const struct track_record *record = track_record_of(kind);
    struct job_case *c = known_case();
    char expected[256], outcomes[16] = "none", runs[EXPECTATION_TEXT];
    of_kind(c, kind);
    expectation_runs_text(&c->layout, &c->setting, runs, sizeof runs);
    snprintf(expected, sizeof expected, "80 %% interval from %d published runs of this kind (%s; %d source%s)", record->runs,
             run_kind_text(kind), record->sources, record->sources > 1 ? "s" : "");
    ck_assert_ptr_eq(strstr(runs, expected), runs);
    if (record->outcomes)
        snprintf(outcomes, sizeof outcomes, "%d", record->outcomes);
    snprintf(expected, sizeof expected, "%d published runs that report failures, %s of this kind: %s", memory_record()->runs,
             outcomes, run_kind_text(kind));
    ck_assert_str_eq(expectation_outcomes_text(&c->layout, &c->setting, runs, sizeof runs), expected);
    free(c);
}
END_TEST

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "%s", key);
    return json_number_value(value);
}

START_TEST(keys_of_step_times)
{
    const enum run_kind kind = (enum run_kind)_i;
    const struct track_record *record = track_record_of(kind);
    struct job_case *c = known_case();
    of_kind(c, kind);
    for (int known_gpu = 1; known_gpu >= 0; known_gpu--) {
        json_t *json = expectation_json(&c->layout, &c->setting, 4);
        ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), run_kind_name(kind));
        ck_assert_double_eq_tol(number(json, "low_s"), 4 * record->low, 1e-12);
        ck_assert_double_eq_tol(number(json, "high_s"), 4 * record->high, 1e-12);
        ck_assert_int_eq((int)number(json, "runs"), record->runs);
        ck_assert_int_eq((int)number(json, "sources"), record->sources);
        ck_assert_int_eq(json_is_true(json_object_get(json, "gpu_among_them")),
                         known_gpu && track_record_has_gpu(record, "h100-sxm"));
        const json_t *without = json_object_get(json, "none_with");
        ck_assert_uint_eq(json_array_size(without), !json_is_true(json_object_get(json, "gpu_among_them")));
        json_decref(json);
        unknown_gpu(c);
    }
    free(c);
}
END_TEST

/* What the text tells the object does, too. */
START_TEST(keys_of_what_no_run_has)
{
    struct job_case *c = known_case();
    c->job.optimizer = OPTIMIZER_MUON;
    c->layout.cp = 2;
    c->layout.cp_comm = CP_A2A;
    json_t *json = expectation_json(&c->layout, &c->setting, 4), *without = json_object_get(json, "none_with");
    ck_assert_uint_eq(json_array_size(without), 2);
    ck_assert_str_eq(json_string_value(json_array_get(without, 0)), "muon");
    ck_assert_str_eq(json_string_value(json_array_get(without, 1)), "cp_comm");
    json_decref(json);
    free(c);
}
END_TEST

START_TEST(keys_of_memory)
{
    struct job_case *c = known_case();
    of_kind(c, (enum run_kind)_i);
    json_t *json = expectation_memory_json(&c->layout, &c->setting, 0.9);
    ck_assert_double_eq_tol(number(json, "use_pct"), 90, 1e-12);
    ck_assert_double_eq_tol(number(json, "share_pct"), 100 * memory_record_share(0.9), 1e-12);
    ck_assert_int_eq((int)number(json, "runs"), memory_record()->runs);
    ck_assert_int_eq((int)number(json, "runs_of_kind"), track_record_of((enum run_kind)_i)->outcomes);
    ck_assert_int_eq((int)number(json, "sources"), memory_record()->sources);
    json_decref(json);
    free(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expectation");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, what_no_run_has_is_said, 0, sizeof things / sizeof *things);
    tcase_add_loop_test(all, each_kind_has_its_record, 0, N_RUN_KINDS);
    tcase_add_loop_test(all, keys_of_step_times, 0, N_RUN_KINDS);
    tcase_add_loop_test(all, keys_of_memory, 0, N_RUN_KINDS);
    tcase_add_test(all, keys_of_what_no_run_has);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
