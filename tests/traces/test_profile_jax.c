/* Traces of JAX, hand-written as XLA's profiler writes them: which lines count, what operations are, what marks steps. */
#include <check.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/profile/profile.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12)

static const struct layout tp2_pp4_dp8 = {.tp = 2, .cp = 1, .pp = 4, .vpp = 1, .dp = 8, .ep = 1};
static const struct layout dp8 = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 8, .ep = 1};

#define PROCESS(pid, name) "{\"ph\":\"M\",\"pid\":" #pid ",\"name\":\"process_name\",\"args\":{\"name\":\"" name "\"}},\n"
#define THREAD(pid, tid, name)                                                                                                   \
    "{\"ph\":\"M\",\"pid\":" #pid ",\"tid\":" #tid ",\"name\":\"thread_name\",\"args\":{\"name\":\"" name "\"}},\n"
#define AT(pid, tid, ts, dur)                "{\"ph\":\"X\",\"pid\":" #pid ",\"tid\":" #tid ",\"ts\":" #ts ",\"dur\":" #dur
#define EVENT(pid, tid, name, ts, dur, args) AT(pid, tid, ts, dur) ",\"name\":\"" name "\",\"args\":{" args "}},\n"
#define OPERATION(name, ts, dur, category)   EVENT(3, 3, name, ts, dur, "\"hlo_category\":\"" category "\"")

#define HEAD          "{\"displayTimeUnit\":\"ns\",\"metadata\":{\"highres-ticks\":true},\n\"traceEvents\":[\n"
#define TRACE(events) HEAD events "{}]}\n"

#define GPU_LINES                                                                                                                \
    PROCESS(1, "/device:GPU:0")                                                                                                  \
    THREAD(1, 13, "Stream #13(Compute)")                                                                                         \
    THREAD(1, 16, "Stream #16(MemcpyD2D,Compute)")                                                                               \
    THREAD(1, 500, "XLA Modules")                                                                                                \
    THREAD(1, 501, "XLA Ops") PROCESS(2, "/device:GPU:1") THREAD(2, 13, "Stream #13(Compute)") PROCESS(701, "/host:CPU")
#define TPU_LINES                                                                                                                \
    PROCESS(3, "/device:TPU:0")                                                                                                  \
    THREAD(3, 1, "Steps")                                                                                                        \
    THREAD(3, 2, "XLA Modules")                                                                                                  \
    THREAD(3, 3, "XLA Ops")                                                                                                      \
    THREAD(3, 4, "Framework Ops") PROCESS(4, "/device:TPU:0 SparseCore 0") THREAD(4, 3, "XLA Ops")

static struct profile parsed(const char *text, const struct layout *layout, size_t warnings)
{
    struct diags diags = {0};
    struct profile profile;
    enum status status = profile_parse(text, strlen(text), "p.trace.json", layout, NULL, &profile, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "no reason");
    ck_assert_uint_eq(diags.n_items, warnings);
    diags_free(&diags);
    return profile;
}

/* Microseconds. Step [100, 200): a product 100-140, a fusion 140-150, beside it a permutation 145-170, a copy 170-175; step
 * [200, 290): a product. The host annotates both before they begin; the other device is left out, and what tells the same again.
 */
START_TEST(gpus)
{
    struct profile p = parsed(
        TRACE(GPU_LINES EVENT(701, 1, "train", 0, 5, "\"step_num\":\"7\",\"_r\":\"1\"")
                  EVENT(701, 1, "train", 5, 5, "\"step_num\":\"8\"") EVENT(701, 1, "PjitFunction(train_step)", 0, 400, "")
                      EVENT(1, 500, "jit_train_step(17)", 100, 90, "") EVENT(1, 500, "jit_convert(3)", 195, 1, "")
                          EVENT(1, 500, "jit_train_step(17)", 200, 90, "") EVENT(1, 501, "fusion.2", 100, 90, "")
                              EVENT(2, 13, "nvjet_hsh_128x256_64x4", 100, 90, "")
                                  EVENT(1, 13, "nvjet_hsh_128x256_64x4", 100, 40, "\"hlo_op\":\"custom-call.3\"")
                                      EVENT(1, 13, "loop_fusion_2", 140, 10,
                                            "\"hlo_op\":\"loop_fusion.2\",\"hlo_module\":\"jit_train_step\"")
                                          EVENT(1, 16, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 145, 25,
                                                "\"hlo_op\":\"collective-permute-start.1\"") EVENT(1, 16, "MemcpyD2D", 170, 5, "")
                                              EVENT(1, 13, "nvjet_hsh_128x256_64x4", 200, 90, "")),
        &tp2_pp4_dp8, 1);
    struct profile_account a = profile_account_of(&p);
    ck_assert(p.marked);
    ck_assert_uint_eq(p.n_steps, 2);
    ck_assert_uint_eq(p.n_spans, 5);
    NEAR(p.steps[0].start_s, 100e-6);
    NEAR(a.step_s, 95e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 65e-6);
    NEAR(a.exposed_s[PROFILE_OTHER], 5e-6);
    NEAR(a.exposed_s[PROFILE_PP], 10e-6);
    NEAR(a.hidden_s[PROFILE_PP], 2.5e-6);
    NEAR(a.exposed_s[PROFILE_COPIES], 2.5e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 12.5e-6);
    profile_free(&p);
}
END_TEST

/* Microseconds. Step 12, [0, 60): a product 0-20, a gather's end 20-30, attention 30-40, a copy 40-42, a fusion 42-45; step 13,
 * [60, 110): a product 60-100. The loop holds the others. */
START_TEST(tpus)
{
    struct profile p = parsed(
        TRACE(TPU_LINES EVENT(3, 1, "12", 0, 50, "") EVENT(3, 1, "13", 60, 50, "") EVENT(3, 2, "jit_train_step(17)", 1, 100, "")
                  OPERATION("while.2", 0, 48, "while") OPERATION("fusion.5", 0, 20, "convolution fusion")
                      OPERATION("all-gather-done.1", 20, 10, "async-done") OPERATION("flash_attention.3", 30, 10, "custom-call")
                          OPERATION("copy.4", 40, 2, "data formatting") OPERATION("fusion.6", 42, 3, "loop fusion")
                              EVENT(3, 4, "dot_general", 0, 110, "") EVENT(4, 3, "fusion.1", 0, 110, "")
                                  OPERATION("fusion.9", 60, 40, "convolution fusion")),
        &dp8, 0);
    struct profile_account a = profile_account_of(&p);
    ck_assert_uint_eq(p.n_steps, 2);
    NEAR(a.step_s, 55e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 30e-6);
    NEAR(a.exposed_s[PROFILE_DP], 5e-6);
    NEAR(a.exposed_s[PROFILE_ATTENTION], 5e-6);
    NEAR(a.exposed_s[PROFILE_COPIES], 1e-6);
    NEAR(a.exposed_s[PROFILE_OTHER], 1.5e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 12.5e-6);
    profile_free(&p);
}
END_TEST

/* One operation of a TPU; its kind. */
static enum profile_kind kind_of(const char *name, const char *category, const struct layout *layout)
{
    char text[2048];
    snprintf(text, sizeof text,
             TRACE(TPU_LINES
                   "{\"ph\":\"X\",\"pid\":3,\"tid\":3,\"ts\":1,\"dur\":1,\"name\":\"%s\",\"args\":{\"hlo_category\":\"%s\"}},"),
             name, category);
    struct profile profile = parsed(text, layout, 0);
    enum profile_kind kind = profile.spans[0].kind;
    profile_free(&profile);
    return kind;
}

START_TEST(operations)
{
    struct layout experts = dp8;
    experts.ep = 4;
    ck_assert_int_eq(kind_of("fusion.1", "convolution fusion", &dp8), PROFILE_PRODUCTS);
    ck_assert_int_eq(kind_of("convolution.7", "convolution", &dp8), PROFILE_PRODUCTS);
    ck_assert_int_eq(kind_of("fusion.1", "non-fusion elementwise", &dp8), PROFILE_OTHER);
    ck_assert_int_eq(kind_of("all-reduce.1", "all-reduce", &dp8), PROFILE_DP);
    ck_assert_int_eq(kind_of("fusion.1", "all-reduce fusion", &dp8), PROFILE_DP);
    ck_assert_int_eq(kind_of("all-to-all.1", "all-to-all", &experts), PROFILE_EP);
    ck_assert_int_eq(kind_of("ragged-all-to-all.1", "", &experts), PROFILE_EP);
    ck_assert_int_eq(kind_of("all-to-all.1", "all-to-all", &dp8), PROFILE_EXCHANGE);
    ck_assert_int_eq(kind_of("collective-permute-done.1", "", &tp2_pp4_dp8), PROFILE_PP);
    ck_assert_int_eq(kind_of("reduce-scatter.1", "", &tp2_pp4_dp8), PROFILE_EXCHANGE); /* of tensors or data */
    ck_assert_int_eq(kind_of("copy-done.1", "async-done", &dp8), PROFILE_COPIES);
}
END_TEST

#define STREAM      PROCESS(1, "/device:GPU:0") THREAD(1, 13, "Stream #13(Compute)") THREAD(1, 500, "XLA Modules")
#define RUN(ts)     EVENT(1, 13, "gemm", ts, 10, "") EVENT(1, 500, "jit_micro_step(1)", ts, 10, "")
#define HOST(n, ts) EVENT(701, 1, "train", ts, 30, "\"step_num\":" #n)

/* Two runs of a module in one step of the host; runs without a host; neither. */
START_TEST(what_marks_steps)
{
    struct profile p = parsed(TRACE(STREAM HOST(3, 0) HOST(4, 40) RUN(10) RUN(20) RUN(50) RUN(60)), &dp8, 0);
    ck_assert_uint_eq(p.n_steps, 2);
    NEAR(p.steps[0].end_s, 40e-6);
    profile_free(&p);
    p = parsed(TRACE(STREAM RUN(10) RUN(20) RUN(50)), &dp8, 0);
    ck_assert_uint_eq(p.n_steps, 3);
    NEAR(p.steps[1].end_s, 50e-6);
    profile_free(&p);
    p = parsed(TRACE(STREAM EVENT(1, 13, "gemm", 5, 10, "")), &dp8, 0);
    ck_assert(!p.marked);
    NEAR(p.steps[0].start_s, 5e-6);
    profile_free(&p);
}
END_TEST

/* Nothing of a device, and a trace of which nothing is known. */
START_TEST(no_work)
{
    static const char *const texts[] = {TRACE(PROCESS(701, "/host:CPU") HOST(3, 0)), TRACE(EVENT(1, 13, "gemm", 5, 10, "")),
                                        TRACE(TPU_LINES OPERATION("while.1", 0, 10, "while"))};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct diags diags = {0};
        struct profile profile;
        ck_assert_int_eq(profile_parse(texts[i], strlen(texts[i]), "p", &dp8, NULL, &profile, &diags), STATUS_BAD_INPUT);
        ck_assert_uint_eq(diags.n_errors, 1);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile_jax");
    TCase *tests = tcase_create("profile_jax");
    tcase_add_test(tests, gpus);
    tcase_add_test(tests, tpus);
    tcase_add_test(tests, operations);
    tcase_add_test(tests, what_marks_steps);
    tcase_add_test(tests, no_work);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
