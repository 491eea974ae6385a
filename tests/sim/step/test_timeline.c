/*
 * Timelines as files: the Chrome trace is read back with a JSON parser and held to the format's rules (every event knows its
 * process and thread, threads are named, complete events of one thread do not overlap, arrows begin and end inside their spans
 * and come in pairs); the CSV is compared with text written by hand.
 */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/step/tiny_program.h"
#include "tests/suite.h"

/* Two ranks, two micro-batches forward; what a builder would write, with micro-batch and chunk set. */
static struct tiny two_stages(void)
{
    struct tiny tiny = {0};

    tiny_script(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t compute = tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 1500);
        tiny_after(&tiny, tiny_send(&tiny, STREAM_SEND, PEER_NEXT, 0, 250), compute);
    }
    tiny_script(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t receive = tiny_receive(&tiny, STREAM_RECV, PEER_PREVIOUS, 0, 250);
        tiny_after(&tiny, tiny_compute(&tiny, STREAM_COMPUTE, CLASS_GEMM, 2000), receive);
    }
    for (uint32_t i = 0; i < tiny.program.n_ops; i++) {
        tiny.program.ops[i].pass = PASS_FORWARD;
        tiny.program.ops[i].micro_batch = (int32_t)(i / 2 % 2);
        tiny.program.ops[i].chunk = 0;
    }
    tiny_rank(&tiny, 0, -1, 1);
    tiny_rank(&tiny, 1, 0, -1);
    tiny.program.layout = (struct layout){.tp = 1, .cp = 1, .pp = 2, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1};
    return tiny;
}

static struct timeline run(const struct tiny *tiny)
{
    struct timeline timeline = {0};
    struct execution execution;
    struct diags diags = {0};

    ck_assert_int_eq(program_execute(&tiny->program, &tiny->costs, NULL, false, NULL, &execution, &diags), STATUS_OK);
    execution_record(&execution, 1, &timeline);
    execution_record(&execution, 0, &timeline);
    timeline_close(&timeline);
    execution_free(&execution);
    return timeline;
}

START_TEST(csv_by_hand)
{
    struct tiny tiny = two_stages();
    struct timeline timeline = run(&tiny);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    timeline_write_csv(&timeline, &tiny.program, out);
    fclose(out);
    ck_assert_str_eq(text, "rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n"
                           "0,0,compute,compute,forward,0,0,0.000000000,0.000001500\n"
                           "0,0,send,send,forward,0,0,0.000001500,0.000001750\n"
                           "0,0,compute,compute,forward,0,1,0.000001500,0.000003000\n"
                           "0,0,send,send,forward,0,1,0.000003000,0.000003250\n"
                           "1,1,recv,recv,forward,0,0,0.000001500,0.000001750\n"
                           "1,1,compute,compute,forward,0,0,0.000001750,0.000003750\n"
                           "1,1,recv,recv,forward,0,1,0.000003000,0.000003250\n"
                           "1,1,compute,compute,forward,0,1,0.000003750,0.000005750\n");
    free(text);
    timeline_free(&timeline);
    tiny_free(&tiny);
}
END_TEST

static char *trace_text(const struct timeline *timeline, const struct tiny *tiny, const char *name)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct diags diags = {0};

    ck_assert_int_eq(timeline_write_chrome(timeline, &tiny->program, name, out, &diags), STATUS_OK);
    fclose(out);
    return text;
}

static double number(const json_t *event, const char *key)
{
    ck_assert_msg(json_is_number(json_object_get(event, key)), "no number '%s'", key);
    return json_number_value(json_object_get(event, key));
}

static const char *phase(const json_t *event)
{
    const char *text = json_string_value(json_object_get(event, "ph"));
    ck_assert_ptr_nonnull(text);
    return text;
}

/* The complete event on a thread that encloses `at` (its end excluded), NULL none. */
static const json_t *span_at(const json_t *events, double pid, double tid, double at)
{
    size_t i;
    const json_t *event;

    json_array_foreach(events, i, event) if (strcmp(phase(event), "X") == 0 && number(event, "pid") == pid &&
                                             number(event, "tid") == tid && number(event, "ts") <= at &&
                                             at < number(event, "ts") + number(event, "dur")) return event;
    return NULL;
}

/* Does a thread have a name? */
static bool thread_is_named(const json_t *events, double pid, double tid)
{
    size_t i;
    const json_t *event;

    json_array_foreach(events, i, event) if (strcmp(json_string_value(json_object_get(event, "name")), "thread_name") == 0 &&
                                             number(event, "pid") == pid && number(event, "tid") == tid) return true;
    return false;
}

START_TEST(trace_is_well_formed)
{
    struct tiny tiny = two_stages();
    struct timeline timeline = run(&tiny);
    char *text = trace_text(&timeline, &tiny, "predicted \"a\\b\"\n");
    json_error_t error;
    json_t *trace = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(trace != NULL, "line %d: %s", error.line, error.text);
    const json_t *events = json_object_get(trace, "traceEvents"), *event;
    int spans = 0, starts = 0, ends = 0, names = 0;
    size_t i;

    json_array_foreach(events, i, event)
    {
        double pid = number(event, "pid");
        if (strcmp(phase(event), "X") == 0) {
            spans++;
            ck_assert_double_gt(number(event, "dur"), 0);
            ck_assert(thread_is_named(events, pid, number(event, "tid")));
            ck_assert_ptr_eq(span_at(events, pid, number(event, "tid"), number(event, "ts")), event); /* no overlap */
            ck_assert_ptr_nonnull(json_string_value(json_object_get(event, "name")));
            ck_assert(json_is_object(json_object_get(event, "args")));
        } else if (strcmp(phase(event), "s") == 0 || strcmp(phase(event), "f") == 0) {
            phase(event)[0] == 's' ? starts++ : ends++;
            ck_assert_ptr_nonnull(span_at(events, pid, number(event, "tid"), number(event, "ts")));
        } else {
            ck_assert_str_eq(phase(event), "M");
            if (strcmp(json_string_value(json_object_get(event, "name")), "process_name") == 0) {
                const char *title = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
                names++;
                ck_assert_str_eq(title, pid == 0 ? "predicted \"a\\b\"\n rank 0 (stage 0, dp 0, tp 0)"
                                                 : "predicted \"a\\b\"\n rank 1 (stage 1, dp 0, tp 0)");
            }
        }
    }
    ck_assert_int_eq(spans, 8);
    ck_assert_int_eq(starts, 2);
    ck_assert_int_eq(ends, 2);
    ck_assert_int_eq(names, 2);
    json_decref(trace);
    free(text);
    timeline_free(&timeline);
    tiny_free(&tiny);
}
END_TEST

/* Times are exact to the nanosecond, and labels say what an operation is. */
START_TEST(trace_times_and_labels)
{
    struct tiny tiny = two_stages();
    struct timeline timeline = run(&tiny);
    char *text = trace_text(&timeline, &tiny, NULL);

    ck_assert_ptr_nonnull(strstr(text, "\"ts\":1.750,\"dur\":2.000,\"name\":\"forward 0\""));
    ck_assert_ptr_nonnull(strstr(text, "\"ts\":3.000,\"dur\":0.250,\"name\":\"recv forward 1\""));
    ck_assert_ptr_nonnull(strstr(text, "\"name\":\"rank 1 (stage 1, dp 0, tp 0)\""));
    tiny.program.layout.vpp = 2;
    char label[64];
    ck_assert_str_eq(span_label(&tiny.program, &tiny.program.ops[3], label, sizeof label), "send forward 1.0");
    free(text);
    timeline_free(&timeline);
    tiny_free(&tiny);
}
END_TEST

/* Closing sorts by rank and operation whatever the order of recording; the same spans give the same bytes. */
START_TEST(close_sorts)
{
    struct tiny tiny = two_stages();
    struct timeline timeline = run(&tiny), shuffled = {0};

    for (size_t i = 0; i < timeline.n_spans; i++)
        timeline_record(&shuffled, timeline.spans[(i * 3 + 5) % timeline.n_spans]);
    timeline_close(&shuffled);
    ck_assert_mem_eq(timeline.spans, shuffled.spans, timeline.n_spans * sizeof *timeline.spans);
    ck_assert_int_eq(timeline.end, 5750);
    ck_assert_int_eq(shuffled.end, 5750);
    timeline_free(&timeline);
    timeline_free(&shuffled);
    tiny_free(&tiny);
}
END_TEST

/* A folded rank says which rank it shows and for how many it stands; without its partner a message has no arrow. */
START_TEST(folded_names)
{
    struct tiny tiny = two_stages();
    tiny.program.layout.tp = 4;
    tiny.program.layout.dp = 3;
    struct timeline timeline = run(&tiny);
    timeline.n_spans = 4; /* stage 0 alone */
    char *text = trace_text(&timeline, &tiny, NULL);

    ck_assert_ptr_nonnull(strstr(text, "rank 0 (stage 0, dp 0, tp 0, stands for 12)"));
    ck_assert_ptr_null(strstr(text, "\"ph\":\"s\""));
    ck_assert_int_eq(program_rank_place(&tiny.program, 1).rank, 12);
    free(text);
    timeline_free(&timeline);
    tiny_free(&tiny);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timeline");
    TCase *files = tcase_create("files");

    tcase_add_test(files, csv_by_hand);
    tcase_add_test(files, trace_is_well_formed);
    tcase_add_test(files, trace_times_and_labels);
    tcase_add_test(files, close_sorts);
    tcase_add_test(files, folded_names);
    suite_add_tcase(suite, files);
    return suite_run(suite);
}
