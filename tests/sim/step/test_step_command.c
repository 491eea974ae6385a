/*
 * `msim step` as scripts use it: the JSON keys that DESIGN promises, their units and sums, the same bytes twice, and files that
 * other programs read. Runs the program that was built (MSIM_BINARY).
 */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#define STEP                                                                                                                     \
    MSIM_BINARY " step -q --model gpt-175b-megascale --cluster megascale-a100 --gpus 1024 --global-batch 768 --tokens 300B "     \
                "--layout tp=8,pp=8,vpp=6,zero=1,sp=1 "

static char *output_of(const char *command)
{
    char *text = NULL;
    size_t size = 0, n;
    char chunk[4096];
    FILE *pipe = popen(command, "r") /* NOLINT(cert-env33-c): our own command */, *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(pipe);
    while ((n = fread(chunk, 1, sizeof chunk, pipe)) > 0)
        fwrite(chunk, 1, n, out);
    ck_assert_int_eq(pclose(pipe), 0);
    fclose(out);
    return text;
}

static json_t *json_of(const char *command)
{
    char *text = output_of(command);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    ck_assert_msg(json != NULL, "line %d: %s", error.line, error.text);
    free(text);
    return json;
}

static double real_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    ck_assert_msg(json_is_number(value), "no number '%s'", key);
    ck_assert(isfinite(json_number_value(value)));
    return json_number_value(value);
}

static double sum_of(json_t *object)
{
    const char *key;
    json_t *value;
    double sum = 0;

    json_object_foreach(object, key, value) sum += json_number_value(value);
    return sum;
}

/* The pauses of Python's checkpoints are assumed where they are counted: not kernel by kernel. */
START_TEST(pauses_are_said_where_they_count)
{
    static const char *const details[] = {"chunk", "layer", "kernel"};
    for (int i = 0; i < 3; i++) {
        char command[400];
        snprintf(command, sizeof command,
                 MSIM_BINARY " step -q --model llama2-13b --cluster megascale-a100 --gpus 32 --global-batch 16 "
                             "--features flash_attention2 --layout tp=4,pp=4,mb=1,recompute=full --detail %s",
                 details[i]);
        char *text = output_of(command);
        ck_assert_int_eq(strstr(text, "host_pause per layer") != NULL, i < 2);
        free(text);
    }
}
END_TEST

START_TEST(json_keys)
{
    static const char *const keys[] = {
        "step_time_s",    "mfu_pct",        "hfu_pct", "tokens_per_s", "memory_gib",          "events",
        "mfu_causal_pct", "hfu_causal_pct", "days",    "gpu_hours",    "memory_capacity_gib", "seed"};
    json_t *step = json_of(STEP "--format json");

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_double_gt(real_of(step, keys[i]), 0);
    double time = real_of(step, "step_time_s");
    ck_assert_double_eq_tol(sum_of(json_object_get(step, "breakdown")), time, 1e-9);
    ck_assert_double_eq_tol(real_of(step, "tokens_per_s"), 768 * 2048 / time, 1e-3);
    ck_assert_double_eq_tol(real_of(step, "days"), 300e9 / real_of(step, "tokens_per_s") / 86400, 1e-6);
    ck_assert_double_eq_tol(real_of(step, "gpu_hours"), real_of(step, "days") * 24 * 1024, 1e-3);
    const json_t *energy = json_object_get(step, "energy_at_most"); /* 1,024 A100 of 400 W */
    ck_assert_double_eq_tol(real_of(energy, "power_w"), 409600, 1e-6);
    ck_assert_double_eq_tol(real_of(energy, "energy_j") / (real_of(step, "gpu_hours") * 400 * 3600), 1, 1e-9);
    ck_assert_double_eq_tol(real_of(energy, "j_per_token") * 300e9 / real_of(energy, "energy_j"), 1, 1e-9);
    ck_assert(json_is_true(json_object_get(energy, "pue_assumed")));
    ck_assert_double_eq_tol(sum_of(json_object_get(step, "memory_parts_gib")), real_of(step, "memory_gib"), 1e-6);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(step, "layout"), "dp")), 16);
    ck_assert(json_is_string(json_object_get(step, "msim")));
    ck_assert(json_is_object(json_object_get(step, "config")));
    ck_assert(json_is_boolean(json_object_get(step, "fits")));
    const json_t *stages = json_object_get(step, "stages");
    ck_assert_uint_eq(json_array_size(stages), 8);
    for (size_t i = 0; i < 8; i++)
        ck_assert_double_eq_tol(sum_of(json_object_get(json_array_get(stages, i), "breakdown")), time, 1e-9);
    json_decref(step);
}
END_TEST

/* The numbers of two formats, of folded and unfolded ranks, agree; only the wall time may differ. */
START_TEST(ways_agree)
{
    json_t *folded = json_of(STEP "--format json"), *all = json_of(STEP "--format json --ranks all");
    char *csv = output_of(STEP "--format csv"), *again = output_of(STEP "--format csv"), *text = output_of(STEP),
         *text_again = output_of(STEP);

    ck_assert(real_of(folded, "step_time_s") == real_of(all, "step_time_s"));
    ck_assert_int_eq(json_integer_value(json_object_get(all, "ranks_simulated")), 1024);
    ck_assert_str_eq(csv, again);
    ck_assert_str_eq(text, text_again);
    char expected[64];
    snprintf(expected, sizeof expected, ",%.9f,", real_of(folded, "step_time_s"));
    ck_assert_ptr_nonnull(strstr(csv, expected));
    json_decref(folded);
    json_decref(all);
    free(csv);
    free(again);
    free(text);
    free(text_again);
}
END_TEST

/* As files on standard input and in a folder of its own: the step above, and one on twice the GPUs. */
#define FOLDER "d=$(mktemp -d) && printf '%s' \"$A\" >$d/a.yaml && printf '%s' \"$B\" >$d/b.yaml && "
#define EXPERIMENT(GPUS, TP)                                                                                                     \
    "'{model: gpt-175b-megascale, cluster: {base: megascale-a100, gpus: " GPUS "}, job: {global_batch: 768, tokens: 300B}, "     \
    "layout: {tp: " TP ", pp: 8, vpp: 6, zero: 1, sp: 1}}'"
#define IN_FOLDER(COMMAND) "A=" EXPERIMENT("1024", "8") " B=" EXPERIMENT("2048", "4") "; " FOLDER COMMAND "; rm -r $d"

static void check_equal(const json_t *a, const json_t *b, const char *key)
{
    ck_assert_msg(json_equal(json_object_get(a, key), json_object_get(b, key)), "'%s' differs", key);
}

/* What the side of a pair says is what its step says alone. */
static void check_side(const json_t *side, const json_t *alone)
{
    static const char *const same[] = {
        "step_time_s",    "tokens_per_s", "mfu_pct",   "mfu_causal_pct", "hfu_pct", "tokens_per_s_per_gpu",
        "tflops_per_gpu", "days",         "gpu_hours", "breakdown",      "layout",  "features",
        "config",         "fits"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        check_equal(side, alone, same[i]);
    const char *part;
    json_t *gib, *memory = json_object_get(side, "memory_gib");
    json_object_foreach(json_object_get(alone, "memory_parts_gib"), part, gib)
        ck_assert(real_of(memory, part) == json_real_value(gib));
    ck_assert(real_of(memory, "total") == real_of(alone, "memory_gib"));
    ck_assert(real_of(json_object_get(alone, "likely"), "low_s") == real_of(side, "likely_low_s"));
}

/* Two experiments: each is the step that it is alone; differences are B's less A's; the changes by class, in GPU-seconds a token
 * of all that A takes, sum to the change of the step, which here, with as many tokens on twice the GPUs, is twice the ratio of
 * the times less one. */
START_TEST(two_side_by_side)
{
    json_t *pair = json_of(IN_FOLDER(MSIM_BINARY " step -q $d/a.yaml - --format json <$d/b.yaml"));
    json_t *alone[2] = {json_of(IN_FOLDER(MSIM_BINARY " step -q $d/a.yaml --format json")),
                        json_of(IN_FOLDER(MSIM_BINARY " step -q $d/b.yaml --format json"))};
    const json_t *a = json_object_get(pair, "a"), *b = json_object_get(pair, "b"), *more = json_object_get(pair, "difference");
    json_t *changes = json_object_get(pair, "gpu_seconds_per_token_change_pct");

    check_side(a, alone[0]);
    check_side(b, alone[1]);
    ck_assert_double_eq_tol(real_of(more, "step_time_s"), real_of(b, "step_time_s") - real_of(a, "step_time_s"), 1e-9);
    ck_assert_double_eq_tol(real_of(more, "mfu_pct"), real_of(b, "mfu_pct") - real_of(a, "mfu_pct"), 1e-9);
    ck_assert_double_eq_tol(sum_of(json_object_get(more, "breakdown")), real_of(more, "step_time_s"), 1e-8);
    ck_assert_double_eq_tol(real_of(changes, "step"), 100 * (2 * real_of(b, "step_time_s") / real_of(a, "step_time_s") - 1),
                            1e-8);
    ck_assert_double_eq_tol(sum_of(changes), 2 * real_of(changes, "step"), 1e-7); /* the step is one of them */
    json_decref(pair);
    json_decref(alone[0]);
    json_decref(alone[1]);
}
END_TEST

/* Exchanged, all differences change their signs; beside itself an experiment has none. */
START_TEST(side_by_side_the_other_way)
{
    json_t *ab = json_of(IN_FOLDER(MSIM_BINARY " step -q $d/a.yaml $d/b.yaml --format json")),
           *ba = json_of(IN_FOLDER(MSIM_BINARY " step -q $d/b.yaml $d/a.yaml --format json")),
           *aa = json_of(IN_FOLDER(MSIM_BINARY " step -q $d/a.yaml $d/a.yaml --format json"));
    const char *key;
    json_t *value, *other = json_object_get(ba, "difference");
    json_object_foreach(json_object_get(ab, "difference"), key, value) if (json_is_number(value))
        ck_assert_double_eq_tol(json_number_value(value), -real_of(other, key), 1e-6 * fabs(json_number_value(value)));
    json_object_foreach(json_object_get(aa, "difference"), key, value)
        ck_assert(!json_is_number(value) || json_number_value(value) == 0);
    ck_assert_uint_eq(json_array_size(json_object_get(aa, "differs")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(ab, "differs")), 3); /* GPUs, tp, and dp with them */
    json_decref(ab);
    json_decref(ba);
    json_decref(aa);
}
END_TEST

/* Traces of chosen ranks hold those ranks: a stage of a folded program stands for several. */
START_TEST(traces_of_chosen_ranks)
{
    char *folded = output_of(STEP "--trace-ranks 0,1,129 --trace - -o /dev/null");
    char *all = output_of(STEP "--ranks all --trace-ranks 0,128 --trace - -o /dev/null");
    json_t *trace = json_loads(folded, 0, NULL), *two = json_loads(all, 0, NULL);

    ck_assert_ptr_nonnull(trace);
    ck_assert_ptr_nonnull(two);
    ck_assert_ptr_nonnull(strstr(folded, "rank 0 (stage 0, dp 0, tp 0, stands for 128)"));
    ck_assert_ptr_nonnull(strstr(folded, "rank 128 (stage 1, dp 0, tp 0, stands for 128)"));
    ck_assert_ptr_null(strstr(folded, "stage 2"));
    ck_assert_ptr_nonnull(strstr(all, "rank 128 (stage 1, dp 0, tp 0)"));
    ck_assert_ptr_nonnull(strstr(all, "\"ph\":\"s\""));
    ck_assert_ptr_null(strstr(all, "stage 2"));
    json_decref(trace);
    json_decref(two);
    free(folded);
    free(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_command");
    TCase *interface = tcase_create("interface");

    tcase_add_test(interface, json_keys);
    tcase_add_test(interface, pauses_are_said_where_they_count);
    tcase_add_test(interface, ways_agree);
    tcase_add_test(interface, two_side_by_side);
    tcase_add_test(interface, side_by_side_the_other_way);
    tcase_add_test(interface, traces_of_chosen_ranks);
    suite_add_tcase(suite, interface);
    return suite_run(suite);
}
