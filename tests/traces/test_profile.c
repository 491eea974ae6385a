/* Profiles of real steps: names of kernels, groups of exchanges, accounting worked out by hand, and texts that are wrong. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "traces/profile/profile.h"

#define NEAR(a, b) ck_assert_double_eq_tol(a, b, 1e-12)

static const struct layout tp2_pp4_dp8 = {.tp = 2, .cp = 1, .pp = 4, .vpp = 1, .dp = 8, .ep = 1};

#define KERNEL(name, ts, dur) "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur "}"
#define NCCL(name, ts, dur, args)                                                                                                \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}}"
#define MARK(cat, n, ts, dur)                                                                                                    \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"ProfilerStep#" #n "\",\"ts\":" #ts ",\"dur\":" #dur "}"

static struct profile parsed(const char *text, const struct layout *layout)
{
    struct diags diags = {0};
    struct profile profile;
    enum status status = profile_parse(text, strlen(text), "p.json", layout, NULL, &profile, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "no reason");
    diags_free(&diags);
    return profile;
}

START_TEST(kernels_by_name)
{
    static const struct {
        const char *name;
        enum profile_kind kind;
    } names[] = {
        {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", PROFILE_PRODUCTS},
        {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNN", PROFILE_PRODUCTS},
        {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_nn_align8>", PROFILE_PRODUCTS},
        {"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128", PROFILE_PRODUCTS},
        {"Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64", PROFILE_PRODUCTS},
        {"void cublasLt::splitKreduce_kernel<32, 16, int, float>", PROFILE_PRODUCTS},
        {"void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128, 128, 64>>", PROFILE_ATTENTION},
        {"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<>>>", PROFILE_ATTENTION},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_31", PROFILE_ATTENTION},
        {"fmha_cutlassB_bf16_aligned_128x64_k128_sm80", PROFILE_ATTENTION},
        {"void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float>", PROFILE_ATTENTION},
        {"void (anonymous namespace)::cunn_SoftMaxForward<log_softmax>", PROFILE_OTHER},
        {"triton_red_fused__log_softmax_nll_loss_forward_3", PROFILE_OTHER},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>", PROFILE_OTHER},
        {"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel", PROFILE_OTHER},
        {"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda("
         "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}>>",
         PROFILE_OTHER},
        {"void transformer_engine::HadamardAmaxTmaKernel<__nv_bfloat16, 16>", PROFILE_OTHER},
        {"void multi_tensor_apply_kernel<TensorListMetadata<4>, LAMBStage1Functor<float>>", PROFILE_OPTIMIZER},
        {"fused_lamb_cuda_kernel", PROFILE_OPTIMIZER},
        {"__amd_rocclr_fillBufferAligned", PROFILE_COPIES},
        {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>", PROFILE_OPTIMIZER},
        {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", PROFILE_EXCHANGE},
        {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", PROFILE_EXCHANGE},
        {"void multimem_all_reduce_kernel<c10::BFloat16, 8>(c10::BFloat16*, unsigned long)", PROFILE_EXCHANGE},
        {"void two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16*)", PROFILE_EXCHANGE},
        {"void mscclpp::allreduce7<float>(float*, float*)", PROFILE_EXCHANGE},
        {"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", PROFILE_EXCHANGE},
        {"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>", PROFILE_EXCHANGE},
        {"void fbgemm_gpu::jagged_to_padded_dense_kernel<long, float>", PROFILE_OTHER},
        {"void fbgemm_gpu::permute_2D_data_kernel<true, long, float>", PROFILE_OTHER},
        {"void gemmk1_kernel<int, float, 256, 5, false>", PROFILE_PRODUCTS},
        {"void gemv2T_kernel_val<int, int, __nv_bfloat16, 128>", PROFILE_PRODUCTS},
        {"_ZN7ck_tile6kentryILi256ELi2ENS_10GemmKernelINS_17GemmTilePartition", PROFILE_PRODUCTS},
        {"triton_tem_fused_mm_12", PROFILE_PRODUCTS},
        {"triton_poi_fused__to_copy_mm_silu_3", PROFILE_OTHER},
        {"triton_tem_fused_flex_attention_2", PROFILE_ATTENTION},
        {"void sm90_fp8_gemm_1d2d_impl<7168u, 2048u>", PROFILE_PRODUCTS},
        {"void vllm::moe::moe_align_block_size_kernel<int>", PROFILE_OTHER},
        {"fused_moe_kernel", PROFILE_PRODUCTS},
        {"void fast_hadamard_transform_kernel<64>", PROFILE_OTHER},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(profile_kernel_kind(names[i].name) == names[i].kind, "%s", names[i].name);
}
END_TEST

/* One exchange with these arguments; its kind. */
static enum profile_kind kind_of(const char *name, const char *args, const struct layout *layout)
{
    char text[512];
    snprintf(text, sizeof text, "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"ts\":1,\"dur\":1,\"args\":{%s}}]", name,
             args);
    struct profile profile = parsed(text, layout);
    enum profile_kind kind = profile.spans[0].kind;
    profile_free(&profile);
    return kind;
}

#define GROUP(text) "\"Process Group Description\":\"" text "\""

START_TEST(groups_by_description)
{
    static const struct {
        const char *args;
        enum profile_kind kind;
    } groups[] = {
        {GROUP("TENSOR_MODEL_PARALLEL_GROUP"), PROFILE_TP},
        {GROUP("PIPELINE_MODEL_PARALLEL_GROUP"), PROFILE_PP},
        {GROUP("DATA_PARALLEL_GROUP_WITH_CP"), PROFILE_DP},
        {GROUP("CONTEXT_PARALLEL_GROUP"), PROFILE_CP},
        {GROUP("EXPERT_MODEL_PARALLEL_GROUP"), PROFILE_EP},
        {GROUP("EXPERT_DATA_PARALLEL_GROUP"), PROFILE_DP},
        {GROUP("mesh_dp_shard_cp"), PROFILE_DP},
        {GROUP("mesh_tp"), PROFILE_TP},
        {GROUP("mesh_ep"), PROFILE_EP},
        {GROUP("deepspeed"), PROFILE_EXCHANGE}, /* has an ep in it */
        {GROUP("default_pg"), PROFILE_EXCHANGE},
        {"", PROFILE_EXCHANGE},
        {"\"Group size\":2", PROFILE_TP},
        {"\"Group size\":8", PROFILE_DP},
        {"\"Group size\":64", PROFILE_EXCHANGE},
        {GROUP("default_pg") ",\"Group size\":8", PROFILE_DP},
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        ck_assert_msg(kind_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", groups[i].args, &tp2_pp4_dp8) == groups[i].kind, "%s",
                      groups[i].args);
}
END_TEST

START_TEST(groups_by_operation)
{
    struct layout experts = tp2_pp4_dp8, ring = tp2_pp4_dp8, alone = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 8, .ep = 1};
    const char *messages = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
    experts.ep = 4;
    ring.pp = 1;
    ring.cp = 4;
    ck_assert_int_eq(kind_of(messages, "", &tp2_pp4_dp8), PROFILE_PP);
    ck_assert_int_eq(kind_of(messages, "", &ring), PROFILE_CP);
    ck_assert_int_eq(kind_of(messages, "\"Collective name\":\"all_to_allv\"", &experts), PROFILE_EP);
    ck_assert_int_eq(kind_of(messages, "\"Collective name\":\"all_to_allv\"", &tp2_pp4_dp8), PROFILE_EXCHANGE);
    ck_assert_int_eq(kind_of(messages, "", &experts), PROFILE_EXCHANGE); /* of the pipeline, or an all-to-all */
    ck_assert_int_eq(kind_of(messages, "\"Collective name\":\"send\"", &experts), PROFILE_PP);
    ck_assert_int_eq(kind_of("deep_ep::intranode::dispatch", "", &experts), PROFILE_EP);
    ck_assert_int_eq(kind_of("userbuffers_fp16_sum_inplace_gpu_rw_ag", "", &experts), PROFILE_TP);
    experts.pp = 1;
    ck_assert_int_eq(kind_of(messages, "", &experts), PROFILE_EP);
    ck_assert_int_eq(kind_of("ncclDevKernel_AllGather_RING_LL", "", &alone), PROFILE_DP); /* no other group exchanges anything */
}
END_TEST

/* Microseconds of a step [0, 100): products 10-40, beside them an exchange of 30-60, attention 70-80 with a product 75-85 on
 * another stream; a copy 90-95. Exposed: products 30 + 10, exchange 20, attention 5, copy 5; idle 10 + 10 + 5 + 5; hidden:
 * exchange 10, attention 5. */
START_TEST(account_by_hand)
{
    struct profile p = parsed(
        "{\"traceEvents\":[" MARK("gpu_user_annotation", 1, 0, 100) "," KERNEL("a_gemm", 10, 30) "," NCCL(
            "ncclDevKernel_AllReduce", 30, 30,
            "\"Group size\":2") "," KERNEL("flash_fwd", 70,
                                           10) "," KERNEL("a_gemm", 75,
                                                          10) ","
                                                              "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy "
                                                              "DtoD\",\"ts\":90,\"dur\":5},"
                                                              "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a {\\\"}, "
                                                              "\",\"args\":{\"x\":[{}]},\"ts\":0,"
                                                              "\"dur\":99},"
                                                              "{\"ph\":\"i\",\"cat\":\"kernel\",\"name\":\"no span\",\"ts\":3}],"
                                                              "\"deviceProperties\":[{\"name\":\"NVIDIA H100 80GB "
                                                              "HBM3\"}],\"distributedInfo\":{\"rank\":3,\"world_size\":64}}",
        &tp2_pp4_dp8);
    struct profile_account a = profile_account_of(&p);
    ck_assert_str_eq(p.gpu, "NVIDIA H100 80GB HBM3");
    ck_assert_int_eq(p.rank, 3);
    ck_assert_int_eq(p.world, 64);
    ck_assert(p.marked);
    NEAR(a.step_s, 100e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 40e-6);
    NEAR(a.exposed_s[PROFILE_TP], 20e-6);
    NEAR(a.exposed_s[PROFILE_ATTENTION], 5e-6);
    NEAR(a.exposed_s[PROFILE_COPIES], 5e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 30e-6);
    NEAR(a.hidden_s[PROFILE_TP], 10e-6);
    NEAR(a.hidden_s[PROFILE_ATTENTION], 5e-6);
    ck_assert_uint_eq(p.n_kernels, 4);
    ck_assert_str_eq(p.kernels[0].name, "a_gemm"); /* 40 us of two launches before 30, 10, 5 */
    ck_assert_int_eq(p.kernels[0].launches, 2);
    NEAR(p.kernels[0].seconds, 40e-6);
    profile_free(&p);
}
END_TEST

/* Marks of the device before those of the host; a step ends where the next begins; one without work does not count. */
START_TEST(steps_by_marks)
{
    struct profile p = parsed("[" MARK("user_annotation", 1, 0, 10) "," MARK("user_annotation", 2, 15, 10) "," MARK(
                                  "user_annotation", 3, 40, 10) "," KERNEL("gemm", 5, 20) "]",
                              &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_steps, 2);
    NEAR(p.steps[0].end_s, 15e-6);
    NEAR(p.steps[1].end_s, 40e-6);
    struct profile_account a = profile_account_of(&p);
    NEAR(a.step_s, 20e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 10e-6);
    profile_free(&p);
    p = parsed("[" MARK("user_annotation", 1, 0, 10) "," MARK("gpu_user_annotation", 1, 4, 30) "," KERNEL("gemm", 5, 20) "]",
               &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_steps, 1);
    NEAR(p.steps[0].start_s, 4e-6);
    profile_free(&p);
    /* each of two streams has a mark of each of two steps */
    p = parsed("[" MARK("gpu_user_annotation", 7, 4, 30) "," MARK("gpu_user_annotation", 7, 9, 15) "," MARK(
                   "gpu_user_annotation", 8, 44, 30) "," MARK("gpu_user_annotation", 8, 46,
                                                              31) "," KERNEL("gemm", 5, 20) "," KERNEL("gemm", 45, 32) "]",
               &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_steps, 2);
    NEAR(p.steps[0].start_s, 4e-6);
    NEAR(p.steps[0].end_s, 44e-6);
    NEAR(p.steps[1].end_s, 77e-6);
    profile_free(&p);
    p = parsed("[" NCCL("gemm", 5, 20, "\"device\":3") "," NCCL("gemm", 6, 30, "\"device\":4") "]", &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_spans, 1); /* of two devices the first */
    profile_free(&p);
    p = parsed("[" NCCL("gemm inf", 5, 20, "\"blocks per SM\": inf, \"x\":\"nan\", \"y\":-nan") "]", &tp2_pp4_dp8);
    ck_assert_str_eq(p.kernels[0].name, "gemm inf");
    profile_free(&p);
    p = parsed("\xEF\xBB\xBF[" MARK("cpu_op", 1, 0, 50) "," KERNEL("gemm", 5, 20) "]", &tp2_pp4_dp8);
    ck_assert(p.marked);
    NEAR(p.steps[0].end_s, 50e-6);
    profile_free(&p);
    p = parsed("[" KERNEL("gemm", 5, 20) "," KERNEL("gemm", 35, 10) "]", &tp2_pp4_dp8);
    ck_assert(!p.marked);
    ck_assert_uint_eq(p.n_steps, 1);
    NEAR(p.steps[0].end_s - p.steps[0].start_s, 40e-6);
    profile_free(&p);
}
END_TEST

/* Thousands of kernels under hundreds of names, on streams that overlap: launches are counted, and seconds sum to the step. */
START_TEST(sums_to_the_step)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    unsigned state = 7;
    fputs("[", out);
    for (int i = 0; i < 5000; i++) {
        static const char *const names[] = {"gemm", "flash", "elementwise", "adam", "ncclDevKernel_ReduceScatter"};
        state = state * 1103515245u + 12345u;
        unsigned at = state >> 8;
        fprintf(out, "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s_%u\",\"ts\":%u.%u,\"dur\":%u}", i ? "," : "",
                names[at % 5], at % 700, at % 100000, at % 10, at % 97);
    }
    fputs("]", out);
    fclose(out);
    struct profile p = parsed(text, &tp2_pp4_dp8);
    struct profile_account a = profile_account_of(&p);
    double sum = 0;
    int64_t launches = 0;
    for (int k = 0; k < N_PROFILE_KINDS; k++)
        sum += a.exposed_s[k];
    for (size_t i = 0; i < p.n_kernels; i++) {
        launches += p.kernels[i].launches;
        ck_assert(i == 0 || p.kernels[i].seconds <= p.kernels[i - 1].seconds);
        for (size_t j = 0; j < i; j++)
            ck_assert(strcmp(p.kernels[i].name, p.kernels[j].name) != 0 || p.kernels[i].kind != p.kernels[j].kind);
    }
    ck_assert_int_eq(launches, 5000);
    ck_assert_double_eq_tol(sum, a.step_s, 1e-9 * a.step_s);
    struct profile_idle *idles = calloc(5001, sizeof *idles); /* as many gaps as launches, at most */
    size_t n = profile_idles_of(&p, idles, 5001);
    double idle_s = 0;
    ck_assert_ptr_nonnull(idles);
    for (size_t i = 0; i < n; i++) {
        idle_s += idles[i].seconds;
        ck_assert(i == 0 || idles[i].seconds <= idles[i - 1].seconds);
        ck_assert_double_le(idles[i].longest_s, idles[i].seconds);
    }
    ck_assert_double_eq_tol(idle_s, a.exposed_s[PROFILE_IDLE] * (double)p.n_steps, 1e-9 * a.step_s);
    free(idles);
    profile_free(&p);
    free(text);
}
END_TEST

/* --- against counting second by second --------------------------------------------------------------------------------- */

enum { SECONDS = 400, SPANS_MOST = 60, STEPS_MOST = 12 };

static unsigned below(unsigned *state, unsigned n)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % n;
}

/* Spans and steps of whole seconds: overlapping spans, some of no length, some over many steps, and time between steps. */
static void random_profile(unsigned seed, struct profile_span *spans, struct profile_step *steps, struct profile *p)
{
    static const enum profile_kind kinds[] = {PROFILE_PRODUCTS, PROFILE_ATTENTION, PROFILE_TP, PROFILE_DP};
    unsigned state = seed;
    *p = (struct profile){.spans = spans, .steps = steps, .n_spans = 1 + below(&state, SPANS_MOST), .steps_each = 1};
    for (size_t i = 0; i < p->n_spans; i++) {
        unsigned start = below(&state, SECONDS), length = below(&state, 10) ? below(&state, 12) : below(&state, SECONDS);
        spans[i] = (struct profile_span){start, start + length, kinds[below(&state, 4)], (int32_t)below(&state, 5)};
    }
    for (unsigned at = below(&state, 50); p->n_steps < STEPS_MOST && at < SECONDS - 40;
         at += below(&state, 2) * below(&state, 9)) {
        unsigned end = at + 1 + below(&state, 39);
        steps[p->n_steps++] = (struct profile_step){at, end};
        at = end;
    }
}

/* Is a kind busy from `at` to a second later? Does a launch of no length stand there? */
static bool is_busy(const struct profile *p, enum profile_kind kind, int at)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (p->spans[i].kind == kind && p->spans[i].start_s <= at && p->spans[i].end_s >= at + 1)
            return true;
    return false;
}

static bool is_touched(const struct profile *p, int at)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (p->spans[i].start_s >= at && p->spans[i].start_s <= at && p->spans[i].end_s <= at)
            return true;
    return false;
}

/* What the sweeps over all steps find is what counting finds: seconds of each kind, exposed and hidden, and the gaps, which a
 * launch of no length parts. */
START_TEST(sweeps_count_every_second)
{
    struct profile_span spans[SPANS_MOST];
    struct profile_step steps[STEPS_MOST];
    struct profile p;
    random_profile((unsigned)_i + 1, spans, steps, &p);
    double exposed[N_PROFILE_KINDS] = {0}, hidden[N_PROFILE_KINDS] = {0};
    int64_t gaps = 0, found = 0, at_begin = 0, found_at_begin = 0;
    for (size_t s = 0; s < p.n_steps; s++) {
        bool idle_before = false;
        for (int at = (int)steps[s].start_s; at < (int)steps[s].end_s; at++) {
            bool taken = false;
            for (int k = 0; k < PROFILE_IDLE; k++) {
                bool busy = is_busy(&p, (enum profile_kind)k, at);
                *(taken ? &hidden[k] : &exposed[k]) += busy;
                taken |= busy;
            }
            exposed[PROFILE_IDLE] += !taken;
            gaps += !taken && (!idle_before || is_touched(&p, at));
            at_begin += !taken && at == (int)steps[s].start_s;
            idle_before = !taken;
        }
    }
    struct profile_account account = profile_account_of(&p);
    struct profile_idle idles[64];
    size_t n = profile_idles_of(&p, idles, sizeof idles / sizeof *idles);
    double idle_s = 0, n_steps = (double)p.n_steps;
    for (int k = 0; k < N_PROFILE_KINDS; k++) {
        ck_assert_double_eq_tol(account.exposed_s[k] * n_steps, exposed[k], 1e-9);
        ck_assert_double_eq_tol(account.hidden_s[k] * n_steps, hidden[k], 1e-9);
    }
    for (size_t i = 0; i < n; i++) {
        found += idles[i].gaps;
        found_at_begin += idles[i].after < 0 ? idles[i].gaps : 0;
        idle_s += idles[i].seconds;
    }
    ck_assert_int_eq(found, gaps);
    ck_assert_int_eq(found_at_begin, at_begin);
    ck_assert_double_eq_tol(idle_s, exposed[PROFILE_IDLE], 1e-9);
}
END_TEST

/* Kept are the steps in which some launch is at work, however many steps it lasts. Launches begin and end between the times of
 * the marks. */
START_TEST(steps_with_work_are_kept)
{
    char *text = NULL;
    size_t size = 0, n_kept = 0;
    FILE *out = open_memstream(&text, &size);
    unsigned state = (unsigned)_i + 1, n_steps = 1 + below(&state, 30), n_spans = 1 + below(&state, 8);
    bool works[32] = {false};
    fputs("[", out);
    for (unsigned i = 0; i < n_spans; i++) {
        unsigned start = below(&state, 10 * n_steps + 20), length = below(&state, 4) ? 0 : below(&state, 60);
        fprintf(out, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":%u.25,\"dur\":%u.5},", start, length);
        for (unsigned at = start; at <= start + length; at++)
            if (at < 10 * n_steps)
                works[at / 10] = true;
    }
    for (unsigned i = 0; i < n_steps; i++) {
        fprintf(out, "%s{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":\"ProfilerStep#%u\",\"ts\":%u,\"dur\":10}",
                i ? "," : "", i, 10 * i);
        n_kept += works[i];
    }
    fputs("]", out);
    fclose(out);
    struct profile p = parsed(text, &tp2_pp4_dp8);
    ck_assert_int_eq(p.marked, n_kept > 0);
    ck_assert_uint_eq(p.n_steps, n_kept ? n_kept : 1);
    for (size_t i = 0, step = 0; n_kept && i < p.n_steps; i++, step++) {
        while (!works[step])
            step++;
        NEAR(p.steps[i].start_s, (double)step * 10e-6);
    }
    profile_free(&p);
    free(text);
}
END_TEST

/* Two steps of 400 us: a loader lets the device wait 180 us, then 120, where each begins; products leave 10 us behind them in the
 * first step and 8 in the second; the other stream's exchange covers what would be a gap; the second step ends with 70 us of
 * nothing, the first, whose last kernel runs into the second, with none. */
START_TEST(gaps_by_hand)
{
    struct profile p =
        parsed("[" MARK("gpu_user_annotation", 1, 0, 400) "," MARK("gpu_user_annotation", 2, 400, 400) ","                      //
               KERNEL("gemm", 180, 40) "," KERNEL("gemm", 230, 40) "," KERNEL("flash", 280, 20) "," KERNEL("adam", 330, 80) "," //
               NCCL("ncclDevKernel_AllReduce", 290, 50, "\"Group size\":2") ","                                                 //
               KERNEL("gemm", 530, 100) "," KERNEL("gemm", 638, 52) "," KERNEL("flash", 698, 32) "]",
               &tp2_pp4_dp8);
    struct profile_idle idles[8];
    size_t n = profile_idles_of(&p, idles, 8);
    static const struct {
        const char *after, *before;
        int gaps;
        double us, longest_us, at_us;
        size_t step;
    } expected[] = {{NULL, "gemm", 1, 180, 180, 0, 0},
                    {"adam", "gemm", 1, 120, 120, 10, 1},
                    {"flash", NULL, 1, 70, 70, 330, 1},
                    {"gemm", "flash", 2, 18, 10, 270, 0},
                    {"gemm", "gemm", 2, 18, 10, 220, 0}};
    ck_assert_uint_eq(n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        const struct profile_idle *idle = &idles[i];
        const char *after = idle->after < 0 ? NULL : p.kernels[idle->after].name;
        const char *before = idle->before < 0 ? NULL : p.kernels[idle->before].name;
        size_t k = 0;
        while (k < n && (idle->gaps != expected[k].gaps || !after != !expected[k].after || !before != !expected[k].before ||
                         (after && strcmp(after, expected[k].after) != 0) || (before && strcmp(before, expected[k].before) != 0)))
            k++;
        ck_assert_msg(k < n, "%s to %s, %d gaps", after ? after : "-", before ? before : "-", (int)idle->gaps);
        ck_assert(i > 2 || k == i); /* the last two are equal */
        NEAR(idle->seconds, expected[k].us * 1e-6);
        NEAR(idle->longest_s, expected[k].longest_us * 1e-6);
        NEAR(idle->longest_at_s, expected[k].at_us * 1e-6);
        ck_assert_uint_eq(idle->longest_step, expected[k].step);
    }
    ck_assert_uint_eq(profile_idles_of(&p, idles, 1), 1);
    NEAR(idles[0].seconds, 180e-6);
    profile_free(&p);
}
END_TEST

/* What nsys stats and rocprofv3 write, columns that are not needed left out in part. */
START_TEST(tables_of_launches)
{
    struct profile p =
        parsed("Start (ns),Duration (ns),CorrId,Bytes (MB),Device,Ctx,Strm,Name\n"
               "1000,3000,7,,NVIDIA H100 80GB HBM3 (0),1,7,nvjet_hsh_128x256_64x4_tn\n"
               "2000,4000,8,,NVIDIA H100 80GB HBM3 (0),1,20,\"ncclDevKernel_SendRecv(ncclDevKernelArgs<4096ul>, x)\"\n"
               "9000,1000,9,2.0,NVIDIA H100 80GB HBM3 (0),1,7,[CUDA memcpy Device-to-Device]\n"
               "100,9000,9,2.0,NVIDIA H100 80GB HBM3 (1),1,7,another_gemm\n",
               &tp2_pp4_dp8);
    struct profile_account a = profile_account_of(&p);
    ck_assert_str_eq(p.gpu, "NVIDIA H100 80GB HBM3");
    ck_assert(!p.marked);
    ck_assert_uint_eq(p.n_spans, 3);
    NEAR(a.step_s, 9e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 3e-6);
    NEAR(a.exposed_s[PROFILE_PP], 2e-6);
    NEAR(a.hidden_s[PROFILE_PP], 2e-6);
    NEAR(a.exposed_s[PROFILE_COPIES], 1e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 3e-6);
    p.steps_each = 2;
    a = profile_account_of(&p);
    NEAR(a.step_s, 4.5e-6);
    NEAR(a.exposed_s[PROFILE_IDLE], 1.5e-6);
    profile_free(&p);
    p = parsed("Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp\n"
               "KERNEL_DISPATCH,Agent 4,Cijk_Alik_Bljk,5000,7000\nKERNEL_DISPATCH,Agent 4,attn_fwd,8000,9000\n",
               &tp2_pp4_dp8);
    a = profile_account_of(&p);
    ck_assert_str_eq(p.gpu, "");
    NEAR(a.step_s, 4e-6);
    NEAR(a.exposed_s[PROFILE_PRODUCTS], 2e-6);
    NEAR(a.exposed_s[PROFILE_ATTENTION], 1e-6);
    profile_free(&p);
    p = parsed("\"Index\",\"KernelName\",\"gpu-id\",\"BeginNs\",\"EndNs\"\n"
               "0,\"Cijk_Alik_Bljk\",4,5000,7000\n1,\"attn_fwd\",5,8000,9000\n",
               &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_spans, 1);
    NEAR(p.spans[0].end_s, 7e-6);
    profile_free(&p);
    p = parsed("Generating SQLite file r.sqlite from r.nsys-rep\nProcessing [r.sqlite] with [cuda_gpu_trace.py]... \n\n"
               "Start (ns),Duration (ns),Device,Name\n1000,3000,NVIDIA T4 (0),a_gemm\n\n",
               &tp2_pp4_dp8);
    ck_assert_uint_eq(p.n_spans, 1);
    ck_assert_str_eq(p.gpu, "NVIDIA T4");
    profile_free(&p);
}
END_TEST

static void note(void *context, double done, double total)
{
    double *last = context; /* done, total, times */
    ck_assert_double_ge(done, last[0]);
    ck_assert_double_le(done, total);
    last[0] = done, last[1] = total, last[2]++;
}

/* Of a text of several megabytes, either format: told again and again, and at last that all is done. */
START_TEST(progress_is_told)
{
    enum { LAUNCHES = 40000 };
    static const struct {
        const char *head, *each, *last, *tail;
    } formats[] = {{"[", "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ampere_bf16_s16816gemm\",\"ts\":%d,\"dur\":1},",
                    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"last\",\"ts\":%d,\"dur\":1}", "]"},
                   {"Start (us),Duration (us),Device,Name\n",
                    "%d,1,NVIDIA H100 80GB HBM3 (0),ampere_bf16_s16816gemm_bf16_128x256\n",
                    "%d,1,NVIDIA H100 80GB HBM3 (0),last\n", ""}};
    char *text = NULL;
    size_t n = 0;
    FILE *stream = open_memstream(&text, &n);
    fputs(formats[_i].head, stream);
    for (int i = 0; i < LAUNCHES; i++)
        fprintf(stream, i < LAUNCHES - 1 ? formats[_i].each : formats[_i].last, i);
    fputs(formats[_i].tail, stream);
    fclose(stream);
    double last[3] = {0};
    struct watch watch = {note, last};
    struct diags diags = {0};
    struct profile profile;
    ck_assert_int_eq(profile_parse(text, n, "p", &tp2_pp4_dp8, &watch, &profile, &diags), STATUS_OK);
    ck_assert_uint_eq(profile.n_spans, LAUNCHES);
    ck_assert_double_ge(last[2], (double)(n / WATCH_BYTES));
    ck_assert_double_gt(last[2], 2);
    ck_assert_double_eq(last[0], last[1]);
    profile_free(&profile);
    free(text);
}
END_TEST

START_TEST(wrong_texts)
{
    static const struct {
        const char *text;
        int line, column;
    } wrongs[] = {
        {"", 1, 1},
        {"{\"traceEvents\":[\n{\"ph\":\"X\",\n \"ts\":}]}", 3, 0},
        {"[" KERNEL("gemm", 5, 20) ",\n" KERNEL("gemm", 5, 20), 2, 0}, /* cut off */
        {"[{\"ph\":1} {\"ph\":2}]", 1, 11},
        {"{\"a\" 1}", 1, 6},
        {"{1: 2}", 1, 2},
        {"a,b\n1,2\n", 1, 1}, /* no table of launches */
        {"Name,Start (ns),Duration (ns)\ngemm,1,x\n", 2, 8},
        {"Processing [r.sqlite]... \n\nName,Start (ns),Duration (ns)\ngemm,1,x\n", 4, 8},
        {"Name,Start (ns),Duration (ns)\ngemm,5,1\ngemm,5,-1\n", 3, 6},
        {"[]", 0, 0}, /* nothing of a device */
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":1e300,\"dur\":1}]", 0, 0},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"ts\":1,\"dur\":-1}]", 0, 0},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct diags diags = {0};
        struct profile profile;
        ck_assert_int_eq(profile_parse(wrongs[i].text, strlen(wrongs[i].text), "p.json", &tp2_pp4_dp8, NULL, &profile, &diags),
                         STATUS_BAD_INPUT);
        ck_assert_uint_eq(diags.n_errors, 1);
        ck_assert_str_eq(diags.items[0].file, "p.json");
        ck_assert_int_eq(diags.items[0].line, wrongs[i].line);
        if (wrongs[i].column)
            ck_assert_int_eq(diags.items[0].column, wrongs[i].column);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tests = tcase_create("profile");
    tcase_add_test(tests, kernels_by_name);
    tcase_add_test(tests, groups_by_description);
    tcase_add_test(tests, groups_by_operation);
    tcase_add_test(tests, account_by_hand);
    tcase_add_test(tests, steps_by_marks);
    tcase_add_test(tests, sums_to_the_step);
    tcase_add_test(tests, gaps_by_hand);
    tcase_add_loop_test(tests, sweeps_count_every_second, 0, 200 / THINNED);
    tcase_add_loop_test(tests, steps_with_work_are_kept, 0, 100 / THINNED);
    tcase_add_test(tests, tables_of_launches);
    tcase_add_test(tests, wrong_texts);
    tcase_add_loop_test(tests, progress_is_told, 0, 2);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
