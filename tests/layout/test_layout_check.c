/* Legality: one layout wrong in one place for every reason. */
#include <check.h>
#include <string.h>

#include "model/layout/layout.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"

static const struct transformer DENSE = {
    .name = "dense",
    .layers = 96,
    .hidden = 12288,
    .ffn_hidden = 49152,
    .heads = 96,
    .kv_heads = 8,
    .head_dim = 128,
    .vocab = 64000,
};
static const struct transformer MOE = {
    .name = "moe",
    .layers = 94,
    .hidden = 4096,
    .ffn_hidden = 12288,
    .heads = 64,
    .kv_heads = 4,
    .head_dim = 128,
    .vocab = 151936,
    .moe = {.experts = 128, .top_k = 8, .expert_ffn = 1536, .every = 1},
};

struct fixture {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    int gpus;
};

/* 1,024 A100s, a legal layout of the dense model. */
static struct fixture dense(void)
{
    return (struct fixture){
        .model = DENSE,
        .cluster = {.name = "c", .gpu = {.name = "a100", .peak_flops = {[PRECISION_BF16] = 312e12, [PRECISION_FP16] = 312e12}}},
        .job = {.global_batch = 768, .seq_len = 2048, .precision = PRECISION_BF16, .features = ~(feature_set)0},
        .layout = {.tp = 8,
                   .cp = 1,
                   .pp = 8,
                   .vpp = 6,
                   .dp = 16,
                   .ep = 1,
                   .zero = 1,
                   .sequence_parallel = true,
                   .micro_batch = 1,
                   .schedule = SCHEDULE_INTERLEAVED},
        .gpus = 1024,
    };
}

static struct fixture mixture(void)
{
    struct fixture f = dense();
    f.model = MOE;
    f.layout.tp = 2;
    f.layout.pp = 8;
    f.layout.vpp = 4;
    f.layout.dp = 64;
    f.layout.ep = 32;
    f.job.global_batch = 1024;
    return f;
}

static enum layout_reason reason_of(const struct fixture *f, char *why, size_t size)
{
    struct setting setting = {&f->model, &f->cluster, &f->job, f->gpus};
    return layout_check(&f->layout, &setting, why, size);
}

/* The reason holds, its sentence has the part, and without a sentence it is the same. */
static void expect(const struct fixture *f, enum layout_reason reason, const char *part)
{
    char why[256] = "";
    enum layout_reason got = reason_of(f, why, sizeof why);
    ck_assert_msg(got == reason, "%s instead of %s: %s", layout_reason_key(got), layout_reason_key(reason), why);
    ck_assert_msg(strstr(why, part) != NULL, "'%s' has no '%s'", why, part);
    ck_assert_int_eq(reason_of(f, NULL, 0), reason);
    char small[8] = "";
    ck_assert_int_eq(reason_of(f, small, sizeof small), reason);
    ck_assert_uint_lt(strlen(small), sizeof small);
}

#define EXPECT_AFTER(base, change, reason, part)                                                                                 \
    do {                                                                                                                         \
        struct fixture f = base();                                                                                               \
        change;                                                                                                                  \
        expect(&f, reason, part);                                                                                                \
    } while (0)

START_TEST(legal)
{
    EXPECT_AFTER(dense, , LAYOUT_LEGAL, "");
    EXPECT_AFTER(mixture, , LAYOUT_LEGAL, "");
    EXPECT_AFTER(mixture, f.layout.ep = 128, LAYOUT_LEGAL, "");                 /* over tp too */
    EXPECT_AFTER(dense, f.model.layers = 46, LAYOUT_LEGAL, "");                 /* 46 + 2 = 48 virtual stages */
    EXPECT_AFTER(dense, f.model.layers = 50, LAYOUT_LEGAL, "");                 /* uneven */
    EXPECT_AFTER(dense, (f.layout.tp = 16, f.layout.dp = 8), LAYOUT_LEGAL, ""); /* 8 key/value heads on 16 ranks */
    EXPECT_AFTER(dense,
                 (f.layout.pp = 1, f.layout.vpp = 1, f.layout.dp = 128, f.layout.zero = 3, f.layout.schedule = SCHEDULE_NONE),
                 LAYOUT_LEGAL, "");
}
END_TEST

START_TEST(range)
{
    EXPECT_AFTER(dense, f.layout.tp = 0, LAYOUT_RANGE, "tp=0 is below 1");
    EXPECT_AFTER(dense, f.layout.cp = -1, LAYOUT_RANGE, "cp=-1");
    EXPECT_AFTER(dense, f.layout.pp = 0, LAYOUT_RANGE, "pp=0");
    EXPECT_AFTER(dense, f.layout.vpp = 0, LAYOUT_RANGE, "vpp=0");
    EXPECT_AFTER(dense, f.layout.dp = 0, LAYOUT_RANGE, "dp=0");
    EXPECT_AFTER(dense, f.layout.ep = 0, LAYOUT_RANGE, "ep=0");
    EXPECT_AFTER(dense, f.layout.micro_batch = 0, LAYOUT_RANGE, "mb=0");
    EXPECT_AFTER(dense, f.layout.zero = 4, LAYOUT_RANGE, "zero=4");
    EXPECT_AFTER(dense, f.layout.schedule = (enum schedule)99, LAYOUT_RANGE, "schedule");
    EXPECT_AFTER(dense, f.layout.recompute.what = (enum recompute_what)99, LAYOUT_RANGE, "recomputation");
}
END_TEST

/* 64 heads, 8 of keys; tp = 8 leaves a rank 8 and one, which goes to all that exchange heads. */
START_TEST(heads_exchanged)
{
#define CONTEXT(n, comm) (f.model.heads = 64, f.layout.cp = (n), f.layout.dp = 16 / (n), f.layout.cp_comm = (comm))
    EXPECT_AFTER(dense, CONTEXT(8, CP_A2A), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, CONTEXT(8, CP_ALL_GATHER), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, CONTEXT(16, CP_A2A), LAYOUT_CP_COMM,
                 "cp_comm=a2a: the 8 of 64 heads that tp=8 leaves a rank cannot be divided among 16");
    EXPECT_AFTER(dense, CONTEXT(16, cp_comm_of(8, false)), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, CONTEXT(16, cp_comm_of(4, true)), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, CONTEXT(8, cp_comm_of(3, false)), LAYOUT_CP_COMM,
                 "cp_comm=a2a:3+ring: 3 ranks that exchange heads do not divide cp=8");
    EXPECT_AFTER(dense, (CONTEXT(4, CP_A2A), f.layout.tp = 1, f.layout.dp = 32, f.model.kv_heads = 6), LAYOUT_CP_COMM,
                 "cp_comm=a2a: 4 ranks and the 6 key/value heads that tp=1 leaves each do not divide one another");
    EXPECT_AFTER(dense, f.layout.cp_comm = CP_A2A, LAYOUT_LEGAL, ""); /* nothing to act upon */
    EXPECT_AFTER(dense, f.layout.cp_comm = (enum cp_comm)(-1), LAYOUT_RANGE, "how cp exchanges");
#undef CONTEXT
}
END_TEST

START_TEST(world)
{
    EXPECT_AFTER(dense, f.layout.dp = 15, LAYOUT_WORLD, "tp=8 * cp=1 * pp=8 * dp=15 is not the 1024 GPUs");
    /* Products that would wrap around to 1,024 in 32 or 64 bits. */
    EXPECT_AFTER(dense, (f.layout.tp = 1 << 30, f.layout.cp = 1 << 30, f.layout.pp = 1 << 30, f.layout.dp = 1 << 30),
                 LAYOUT_WORLD, "1024 GPUs");
}
END_TEST

START_TEST(widths)
{
    EXPECT_AFTER(dense, (f.layout.tp = 64, f.layout.dp = 2), LAYOUT_HEADS, "tp=64 does not divide the 96 attention heads");
    EXPECT_AFTER(dense, f.model.kv_heads = 12, LAYOUT_KV_HEADS, "tp=8 and the 12 key/value heads");
    EXPECT_AFTER(dense, f.model.hidden = 12289, LAYOUT_HIDDEN, "hidden width 12289");
    EXPECT_AFTER(dense, f.model.ffn_hidden = 1001, LAYOUT_HIDDEN, "feed-forward width 1001");
    EXPECT_AFTER(mixture, (f.model.moe.expert_ffn = 1535, f.layout.etp = 2), LAYOUT_HIDDEN, "experts' width 1535");
    EXPECT_AFTER(mixture, (f.model.moe.expert_ffn = 1535, f.layout.ep = 128), LAYOUT_LEGAL, ""); /* experts stay whole */
    const struct state_mixer mixer = {.heads = 96, .groups = 8, .state = 64, .head_dim = 64, .chunk = 64};
    EXPECT_AFTER(dense, f.model.mixer = mixer, LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.model.mixer = mixer, f.model.mixer.groups = 4), LAYOUT_MIXER,
                 "tp=8 does not divide the 4 groups of heads of the mixers with a state");
    EXPECT_AFTER(dense, (f.model.mixer = mixer, f.layout.cp = 16, f.layout.dp = 1), LAYOUT_MIXER,
                 "tp=8 * cp=16 does not divide the 96 heads");
    EXPECT_AFTER(dense, f.model.vocab = 7, LAYOUT_VOCAB, "vocabulary of 7");
    EXPECT_AFTER(dense, (f.model.attention = ATTENTION_LATENT, f.model.kv_heads = 12), LAYOUT_LEGAL, "");
}
END_TEST

START_TEST(sequence)
{
    EXPECT_AFTER(dense, (f.layout.cp = 2, f.layout.dp = 8, f.job.seq_len = 2050), LAYOUT_SEQUENCE, "multiple of 4");
    EXPECT_AFTER(dense, f.job.seq_len = 2044, LAYOUT_SEQUENCE, "2044 tokens");
    EXPECT_AFTER(dense, (f.job.seq_len = 2044, f.layout.sequence_parallel = false), LAYOUT_LEGAL, "");
}
END_TEST

START_TEST(depth_and_batch)
{
    EXPECT_AFTER(dense, f.model.layers = 47, LAYOUT_LAYERS, "more virtual stages than the 47 layers");
    EXPECT_AFTER(dense, (f.model.layers = 47, f.model.mtp_layers = 1), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.layout.etp = -1, LAYOUT_RANGE, "etp=-1 is below 0");
    EXPECT_AFTER(dense, f.model.layers = 45, LAYOUT_LAYERS, "pp=8 * vpp=6");
    EXPECT_AFTER(dense, f.job.global_batch = 770, LAYOUT_BATCH, "dp=16 * mb=1 does not divide the global batch of 770");
    EXPECT_AFTER(dense, f.job.global_batch = 0, LAYOUT_BATCH, "batch of 0");
    EXPECT_AFTER(dense, f.job.global_batch = 16 * 12, LAYOUT_LEGAL, ""); /* 12 micro-batches, pp=8: a round of 8 and one of 4 */
}
END_TEST

START_TEST(schedules)
{
    EXPECT_AFTER(dense, f.layout.schedule = SCHEDULE_NONE, LAYOUT_SCHEDULE, "pp=8 and vpp=6");
    EXPECT_AFTER(dense, f.layout.schedule = SCHEDULE_1F1B, LAYOUT_SCHEDULE, "vpp=1, not pp=8 and vpp=6");
    EXPECT_AFTER(dense, f.layout.vpp = 1, LAYOUT_SCHEDULE, "schedule=interleaved needs");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_ZBV, f.layout.vpp = 2), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.layout.schedule = SCHEDULE_ZBV, LAYOUT_SCHEDULE,
                 "zb-v needs a pp of at least 2 and vpp=2, not pp=8 and vpp=6");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_DUALPIPE, f.layout.vpp = 2), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_DUALPIPEV, f.layout.vpp = 2), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_DUALPIPEV, f.layout.vpp = 2, f.job.global_batch /= 4), LAYOUT_INTERLEAVE,
                 "at least 2 * pp=16 micro-batches");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_ZB1P, f.layout.vpp = 1), LAYOUT_LEGAL, "");
}
END_TEST

START_TEST(experts_and_zero)
{
    EXPECT_AFTER(dense, f.layout.ep = 2, LAYOUT_EXPERTS, "no experts");
    EXPECT_AFTER(mixture, f.layout.ep = 3, LAYOUT_EXPERTS, "the 128 experts");
    EXPECT_AFTER(mixture, (f.model.moe.experts = 256, f.layout.ep = 256), LAYOUT_EXPERTS,
                 "ep=256 ranks of 1 for each expert do not divide the tp * cp * dp = 128");
    EXPECT_AFTER(mixture, (f.layout.ep = 128, f.layout.etp = 2), LAYOUT_EXPERTS, "ep=128 ranks of 2 for each expert");
    EXPECT_AFTER(mixture, f.layout.etp = 3, LAYOUT_EXPERTS, "an expert is whole (etp=1) or split like the rest");
    EXPECT_AFTER(dense, f.layout.zero = 3, LAYOUT_ZERO, "pp=8");
    EXPECT_AFTER(dense, f.layout.zero = 2, LAYOUT_LEGAL, "");
}
END_TEST

/* dp * cp = 16 replicas. */
START_TEST(hybrid_sharding)
{
    EXPECT_AFTER(dense, f.layout.shard = 8, LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.layout.shard = 2, LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.layout.shard = -2, LAYOUT_RANGE, "shard=-2 is below 0");
    EXPECT_AFTER(dense, f.layout.shard = 3, LAYOUT_SHARD,
                 "shard=3 does not divide the dp * cp = 16 replicas into several groups of 2 or more");
    EXPECT_AFTER(dense, f.layout.shard = 1, LAYOUT_SHARD, "shard=1 does not divide");
    EXPECT_AFTER(dense, f.layout.shard = 16, LAYOUT_SHARD, "shard=16 does not divide");
    EXPECT_AFTER(dense, (f.layout.shard = 8, f.layout.zero = 0), LAYOUT_SHARD, "zero=0 shards nothing");
}
END_TEST

/* Neighbours that hold a stage between them hold all of its experts. */
START_TEST(hybrid_sharding_with_experts)
{
    EXPECT_AFTER(mixture, (f.layout.zero = 1, f.layout.ep = 32, f.layout.shard = 16), LAYOUT_LEGAL, "");
    EXPECT_AFTER(mixture, (f.layout.zero = 1, f.layout.ep = 64, f.layout.shard = 16), LAYOUT_SHARD,
                 "the ep * etp = 64 ranks of the experts do not divide the tp * shard = 32");
}
END_TEST

static struct fixture sharded(void)
{
    struct fixture f = dense();
    f.layout.pp = f.layout.vpp = 1, f.layout.dp = 128, f.layout.zero = 3, f.layout.schedule = SCHEDULE_NONE;
    return f;
}

START_TEST(offloading)
{
    EXPECT_AFTER(dense, f.layout.offload.of[OFFLOAD_OPTIMIZER].layers = 1, LAYOUT_RANGE, "what is offloaded is not a known one");
    EXPECT_AFTER(dense, f.layout.offload = offloaded("optimizer+activations"), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.job.optimizer = OPTIMIZER_MUON, f.layout.offload = offloaded("optimizer")), LAYOUT_OFFLOAD,
                 "offload=optimizer: Muon makes matrices orthogonal by products, which the host's cores are too slow for; set it "
                 "to none or activations");
    EXPECT_AFTER(
        sharded, (f.job.optimizer = OPTIMIZER_MUON, f.job.muon_shard = MUON_LAYER_WISE), LAYOUT_OWNERS,
        "zero=3 divides elements, and job.muon_shard=layer_wise gives whole parameters to owners among all replicas; set "
        "zero=1, or muon_shard to elements");
    EXPECT_AFTER(sharded, (f.job.optimizer = OPTIMIZER_MUON, f.job.muon_shard = MUON_LAYER_WISE, f.layout.zero = 1), LAYOUT_LEGAL,
                 "");
    EXPECT_AFTER(sharded, f.job.muon_shard = MUON_LAYER_WISE, LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.job.optimizer = OPTIMIZER_MUON, f.layout.offload = offloaded("activations")), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_ZBV, f.layout.vpp = 2, f.layout.offload = offloaded("optimizer")),
                 LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.layout.schedule = SCHEDULE_ZBV, f.layout.vpp = 2, f.layout.offload = offloaded("activations:1%")),
                 LAYOUT_OFFLOAD, "offload=activations:1% does not work with zb-v");
    EXPECT_AFTER(dense, f.layout.offload = offloaded("optimizer+parameters"), LAYOUT_OFFLOAD,
                 "offload=optimizer+parameters fetches parameters for each gather of ZeRO-3");
    EXPECT_AFTER(sharded, f.layout.offload = offloaded("optimizer+parameters"), LAYOUT_LEGAL, "");
    EXPECT_AFTER(sharded, f.layout.offload = offloaded("optimizer+parameters:50%"), LAYOUT_LEGAL, "");
    EXPECT_AFTER(sharded, f.layout.offload = offloaded("parameters"), LAYOUT_OFFLOAD, "offload=parameters: parameters are");
    EXPECT_AFTER(sharded, f.layout.offload = offloaded("optimizer:49%+parameters:50%"), LAYOUT_OFFLOAD, "; add optimizer");
}
END_TEST

/* Rank 16 is divided by tp=8; beside frozen weights nothing is offloaded, nor every second product kept. */
START_TEST(adapters)
{
    EXPECT_AFTER(dense, f.job.adapter.rank = 16, LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.job.adapter.rank = 12, LAYOUT_ADAPTER, "tp=8 does not divide the rank of the adapters, 12");
    EXPECT_AFTER(dense, (f.job.adapter.rank = 16, f.layout.offload = offloaded("activations")), LAYOUT_OFFLOAD,
                 "offload=activations is not modelled where adapters are trained");
    EXPECT_AFTER(sharded, (f.job.adapter.rank = 16, f.layout.recompute.what = RECOMPUTE_SELECTIVE), LAYOUT_RECOMPUTE,
                 "recompute=selective keeps every second product");
    EXPECT_AFTER(sharded, (f.job.adapter.rank = 16, f.layout.recompute.what = RECOMPUTE_FULL), LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.job.adapter.rank = 16, f.layout.recompute.what = RECOMPUTE_SELECTIVE), LAYOUT_LEGAL, "");
}
END_TEST

START_TEST(capabilities)
{
    EXPECT_AFTER(dense, (f.layout.features = FEATURE_BIT(TP_OVERLAP), f.job.features = 0), LAYOUT_FEATURE, "tp_overlap");
    EXPECT_AFTER(dense, f.layout.features = FEATURE_BIT(FLASH_ATTENTION3), LAYOUT_FEATURE, "a100");
    EXPECT_AFTER(dense, (f.layout.features = FEATURE_BIT(FLASH_ATTENTION2), f.cluster.gpu.architecture = ARCHITECTURE_VOLTA),
                 LAYOUT_FEATURE, "flash_attention2 has no kernels for the a100");
    EXPECT_AFTER(dense, (f.layout.features = FEATURE_BIT(FLASH_ATTENTION), f.cluster.gpu.architecture = ARCHITECTURE_VOLTA),
                 LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, (f.layout.features = FEATURE_BIT(FLASH_ATTENTION3), f.cluster.gpu.architecture = ARCHITECTURE_HOPPER),
                 LAYOUT_LEGAL, "");
    EXPECT_AFTER(dense, f.job.precision = PRECISION_FP8, LAYOUT_PRECISION, "the a100 does not have fp8");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout_check");
    TCase *tcase = tcase_create("reasons");
    tcase_add_test(tcase, legal);
    tcase_add_test(tcase, range);
    tcase_add_test(tcase, world);
    tcase_add_test(tcase, heads_exchanged);
    tcase_add_test(tcase, widths);
    tcase_add_test(tcase, sequence);
    tcase_add_test(tcase, depth_and_batch);
    tcase_add_test(tcase, schedules);
    tcase_add_test(tcase, experts_and_zero);
    tcase_add_test(tcase, hybrid_sharding);
    tcase_add_test(tcase, hybrid_sharding_with_experts);
    tcase_add_test(tcase, offloading);
    tcase_add_test(tcase, adapters);
    tcase_add_test(tcase, capabilities);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
