/* What the arguments of Megatron-LM mean, by hand. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/job/launch_write.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_translate.h"

struct meant {
    struct launch_words words;
    struct diags diags;
    struct launch_description d;
};

/* recompute_number of whole layers, but not of all or not one by one. */
#define SOME_LAYERS(of, n) (RECOMPUTE_FULL + 1024 * ((of) * (RECOMPUTE_LAYERS_MAX + 1) + (n)))

/* A small job, and further arguments. */
static const char *const base =
    "p --num-layers 24 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --micro-batch-size 2 "
    "--max-position-embeddings 2048 --vocab-size 50257 --bf16 --world-size 64 ";

static struct meant meaning_of(const char *front, const char *arguments, int gpus)
{
    char script[4096];
    struct meant m = {0};
    struct megatron_arguments *read = memory_new(1, sizeof *read);
    snprintf(script, sizeof script, "%s%s", front, arguments);
    ck_assert_int_eq(launch_shell_parse(frameworks_loaded(), "s", script, strlen(script), NULL, &m.words, &m.diags), STATUS_OK);
    megatron_read(&m.words, frameworks_loaded()->ignored, false, read, &m.diags);
    megatron_translate(read, &(struct launch_known){.gpus = gpus}, &m.d, &m.diags);
    free(read);
    return m;
}

static void meant_free(struct meant *m)
{
    launch_words_free(&m->words);
    diags_free(&m->diags);
}

enum what {
    FFN,
    VOCAB,
    KV_HEADS,
    POSITION,
    GATED,
    TIED,
    BIAS,
    VPP,
    DP,
    ETP,
    ZERO,
    SHARD,
    RECOMPUTE,
    OFFLOAD,
    SCHEDULE,
    PRECISION,
    GRADIENT,
    FEATURES,
    BATCH,
    EVERY,
    DENSE,
    SHARED,
    SHARED_FFN,
    EXPERT_FFN,
    HEAD_DIM,
    WINDOW,
    SP,
    TOKENS,
    CP_COMM,
    CAPACITY,
    BALANCED,
};

static int64_t value(const struct launch_job *x, enum what what)
{
    const struct transformer *m = &x->model;
    const struct layout *l = &x->layout;
    const int64_t values[] = {
        [FFN] = m->ffn_hidden,
        [VOCAB] = m->vocab,
        [KV_HEADS] = m->kv_heads,
        [POSITION] = m->position,
        [GATED] = m->gated_mlp,
        [TIED] = m->tied_embeddings,
        [BIAS] = m->linear_bias,
        [VPP] = l->vpp,
        [DP] = l->dp,
        [ETP] = l->etp,
        [ZERO] = l->zero,
        [SHARD] = l->shard,
        [RECOMPUTE] = recompute_number(l->recompute),
        [OFFLOAD] = offload_number(&l->offload),
        [SCHEDULE] = l->schedule,
        [PRECISION] = x->job.precision,
        [GRADIENT] = x->job.gradient_precision,
        [FEATURES] = x->job.features,
        [BATCH] = x->job.global_batch,
        [EVERY] = m->moe.every,
        [DENSE] = m->moe.first_dense_layers,
        [SHARED] = m->moe.shared_experts,
        [SHARED_FFN] = m->moe.shared_ffn,
        [EXPERT_FFN] = m->moe.expert_ffn,
        [HEAD_DIM] = m->head_dim,
        [WINDOW] = m->window,
        [SP] = l->sequence_parallel,
        [TOKENS] = (int64_t)x->job.tokens,
        [CP_COMM] = l->cp * 1000 + (int64_t)l->cp_comm,
        [CAPACITY] = (int64_t)(1000 * x->job.load.capacity) + x->job.load.padded,
        [BALANCED] = (int64_t)x->job.load.busiest,
    };
    return values[what];
}

#define SET(id) (int64_t) FEATURE_BIT(id)
enum { MIX_LAYERS = 24 };

static const struct {
    const char *arguments;
    enum what what;
    int64_t expected;
} meanings[] = {
    {"--context-parallel-size 4", CP_COMM, 4000 + CP_RING},
    {"--context-parallel-size 4 --cp-comm-type all_gather", CP_COMM, 4000 + CP_ALL_GATHER},
    {"--context-parallel-size 4 --cp-comm-type a2a a2a a2a", CP_COMM, 4000 + (int64_t)CP_A2A},
    {"--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2", CP_COMM, 4000 + 4},
    {"--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 4 1", CP_COMM, 4000 + CP_A2A},
    {"--ds-sequence-parallel-size 4", CP_COMM, 4000 + (int64_t)CP_A2A},
    {"--num-experts 8", CAPACITY, 0},
    {"--num-experts 8 --moe-expert-capacity-factor 1.25 --moe-token-drop-policy position", CAPACITY, 1250},
    {"--num-experts 8 --moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity", CAPACITY, 1251},
    {"--num-experts 8 --moe-expert-capacity-factor -1 --moe-pad-expert-input-to-capacity", CAPACITY, 0},
    {"--moe-expert-capacity-factor 1.25", CAPACITY, 0},
    {"--num-experts 8 --moe-router-force-load-balancing", BALANCED, 1},
    {"--num-experts 8", BALANCED, 0},
    {"", FFN, 16384},
    {"--swiglu", FFN, 10880}, /* 4096 * 8 / 3 = 10922, down to a multiple of 64 */
    {"--swiglu --ffn-hidden-size 14336", FFN, 14336},
    {"", VOCAB, 50304},                                              /* 393 * 128 */
    {"--tensor-model-parallel-size 8", VOCAB, 51200},                /* 50 * 1024 */
    {"--make-vocab-size-divisible-by 1", VOCAB, 50257},              /* msim pads to tp itself */
    {"--tokenizer-type NullTokenizer --vocab-size 128", VOCAB, 256}, /* 128 and an end */
    {"--padded-vocab-size 51200", VOCAB, 51200},
    {"--pad-vocab-size-to 50432", VOCAB, 50432},
    {"", KV_HEADS, 32},
    {"--group-query-attention", KV_HEADS, 1},
    {"--group-query-attention --num-query-groups 8", KV_HEADS, 8},
    {"--num-query-groups 8", KV_HEADS, 32}, /* without the flag it says nothing */
    {"", HEAD_DIM, 128},
    {"--kv-channels 64", HEAD_DIM, 64},
    {"", POSITION, POSITION_LEARNED},
    {"--no-position-embedding", POSITION, POSITION_NONE},
    {"--use-rotary-position-embeddings", POSITION, POSITION_ROTARY},
    {"--position-embedding-type rope --no-position-embedding", POSITION, POSITION_ROTARY},
    {"", TIED, 1},
    {"--untie-embeddings-and-output-weights", TIED, 0},
    {"", BIAS, 1},
    {"--disable-bias-linear", BIAS, 0},
    {"--window-size 1024,0", WINDOW, 1024},
    {"", DP, 64},
    {"--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 --context-parallel-size 2", DP, 4},
    {"", BATCH, 128},
    {"--global-batch-size 512", BATCH, 512},
    {"--pipeline-model-parallel-size 4", SCHEDULE, SCHEDULE_1F1B},
    {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2", VPP, 3},
    {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2", SCHEDULE, SCHEDULE_INTERLEAVED},
    {"--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 6", VPP, 6},
    {"--num-layers-per-virtual-pipeline-stage 2", VPP, 1},
    {"--pipeline-model-parallel-size 4 --num-layers 22 --num-layers-per-virtual-pipeline-stage 3 "
     "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split",
     VPP, 2},
    {"--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Ettt|(ttt|)*6tttL'", VPP, 2},
    {"--pipeline-model-parallel-size 4 --enable-zero-bubble", SCHEDULE, SCHEDULE_ZB1P},
    {"", ZERO, 0},
    {"--use-distributed-optimizer", ZERO, 1},
    {"--use-distributed-optimizer --num-distributed-optimizer-instances 4", SHARD, 16},
    {"--use-torch-fsdp2", ZERO, 3},
    {"--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward", ZERO, 2},
    {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads --use-distributed-optimizer", ZERO, 2},
    {"--use-custom-fsdp --data-parallel-sharding-strategy optim_grads_params", ZERO, 3},
    {"--data-parallel-sharding-strategy optim_grads_params", ZERO, 0}, /* of FSDP only */
    {"--zero-stage 3", ZERO, 3},
    {"--deepspeed --zero-stage 0", ZERO, 1}, /* its bf16 optimizer shards states */
    {"--deepspeed --zero-stage 2", ZERO, 2},
    {"--sequence-parallel", SP, 0},
    {"--sequence-parallel --tensor-model-parallel-size 2", SP, 1},
    {"", RECOMPUTE, RECOMPUTE_NONE},
    {"--recompute-activations", RECOMPUTE, RECOMPUTE_SELECTIVE},
    {"--recompute-granularity selective", RECOMPUTE, RECOMPUTE_SELECTIVE},
    {"--recompute-granularity selective --recompute-modules core_attn mlp", RECOMPUTE, RECOMPUTE_CORE_ATTN | RECOMPUTE_MLP},
    {"--recompute-granularity selective --recompute-modules norm full mlp", RECOMPUTE, RECOMPUTE_MLP}, /* only its names */
    {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", RECOMPUTE, RECOMPUTE_FULL},
    {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 4", RECOMPUTE,
     SOME_LAYERS(RECOMPUTE_GROUPS, 4)},
    {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 40", RECOMPUTE,
     SOME_LAYERS(RECOMPUTE_GROUPS, 24)},
    {"--recompute-granularity full --recompute-method block --recompute-num-layers 0", RECOMPUTE, RECOMPUTE_NONE},
    {"--recompute-granularity full --recompute-method block --recompute-num-layers 2", RECOMPUTE,
     SOME_LAYERS(RECOMPUTE_FIRST, 2)},
    {"--recompute-granularity full --recompute-method block --recompute-num-layers 24", RECOMPUTE, RECOMPUTE_FULL},
    {"--checkpoint-activations", RECOMPUTE, RECOMPUTE_FULL},
    /* offload_number */
    {"--optimizer-cpu-offload", OFFLOAD, OFFLOAD_WHOLE},
    {"--cpu-offloading-num-layers 23", OFFLOAD, 1024 * OFFLOAD_WHOLE},
    {"", PRECISION, PRECISION_BF16},
    {"--fp8-format hybrid", PRECISION, PRECISION_FP8},
    {"--fp8-format e4m3 --fp8-recipe mxfp8", PRECISION, PRECISION_MXFP8},
    {"--fp4-format e2m1", PRECISION, PRECISION_NVFP4},
    {"", GRADIENT, PRECISION_FP32},
    {"--grad-reduce-in-bf16", GRADIENT, PRECISION_BF16},
    {"--fp16", GRADIENT, PRECISION_FP16},
    {"--fp16 --accumulate-allreduce-grads-in-fp32", GRADIENT, PRECISION_FP32},
    {"--train-samples 1_000", TOKENS, 2048000},
    {"--train-iters 10 --global-batch-size 128", TOKENS, 2621440},
    {"", FEATURES, SET(FLASH_ATTENTION2) | SET(FUSED_OPS) | SET(ASYNC_DATA)},
    {"--transformer-impl local", FEATURES, SET(FUSED_OPS) | SET(ASYNC_DATA)},
    {"--DDP-impl local", FEATURES, SET(FUSED_OPS) | SET(ASYNC_DATA)}, /* of 2021 */
    {"--data-impl mmap --use-flash-attn", FEATURES, SET(FLASH_ATTENTION2) | SET(FUSED_OPS) | SET(ASYNC_DATA)},
    {"--activations-checkpoint-method uniform", FEATURES, SET(FUSED_OPS) | SET(ASYNC_DATA)},
    {"--data-impl mmap --transformer-impl transformer_engine", FEATURES,
     SET(FLASH_ATTENTION2) | SET(FUSED_OPS) | SET(ASYNC_DATA)},
    {"--transformer-impl local --use-flash-attn --num-workers 0", FEATURES, SET(FLASH_ATTENTION2) | SET(FUSED_OPS)},
    {"--attention-backend unfused --no-bias-gelu-fusion --no-bias-dropout-fusion --num-workers 0", FEATURES, 0},
    {"--overlap-grad-reduce --num-workers 0 --enable-cuda-graph", FEATURES,
     SET(FLASH_ATTENTION2) | SET(FUSED_OPS) | SET(DP_OVERLAP) | SET(CUDA_GRAPHS)},
    {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2 --num-workers 0", FEATURES,
     SET(FLASH_ATTENTION2) | SET(FUSED_OPS) | SET(PP_OVERLAP)},
    {"--num-experts 8 --moe-grouped-gemm", EXPERT_FFN, 16384},
    {"--num-experts 8 --moe-ffn-hidden-size 1024 --moe-shared-expert-intermediate-size 2048", SHARED, 2},
    {"--num-experts 8 --moe-ffn-hidden-size 1024 --moe-shared-expert-intermediate-size 1500", SHARED_FFN, 1500},
    {"--num-experts 8 --moe-layer-freq '([0]*3+[1]*21)'", DENSE, 3},
    {"--num-experts 8 --moe-layer-freq '([0]*2 + ([0, 1])*11)'", EVERY, 2},
    {"--num-experts 8 --moe-layer-freq 2", EVERY, 2},
    {"--num-experts 8 --expert-model-parallel-size 4 --tensor-model-parallel-size 2", ETP, 2}, /* split over tp by default */
    {"--num-experts 8 --expert-model-parallel-size 4 --tensor-model-parallel-size 2 --expert-tensor-parallel-size 1", ETP, 0},
    {"--num-experts 8 --tensor-model-parallel-size 2", ETP, 0},
    {"--num-experts 8 --tensor-model-parallel-size 2 --expert-tensor-parallel-size 1", ETP, 1},
};

START_TEST(arguments_mean_what_the_program_makes_of_them)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        struct meant m = meaning_of(base, meanings[i].arguments, 0);
        int64_t found = value(&m.d.job, meanings[i].what);
        ck_assert_msg(m.diags.n_errors == 0, "%s: %s", meanings[i].arguments, m.diags.n_items ? m.diags.items[0].text : "");
        ck_assert_msg(found == meanings[i].expected, "%s: %lld instead of %lld", meanings[i].arguments, (long long)found,
                      (long long)meanings[i].expected);
        ck_assert_int_eq(m.d.n_missing, 0);
        meant_free(&m);
    }
}
END_TEST

START_TEST(what_is_not_modelled_is_told)
{
    static const struct {
        const char *arguments, *told; /* NULL: nothing */
    } cases[] = {
        {"", NULL},
        {"--lr 1e-4 --min-lr 1e-5 --weight-decay 0.1 --log-interval 1 --tensorboard-dir x --data-path y", NULL},
        {"--moe-expert-capacity-factor 1.0", NULL}, /* of a dense model */
        {"--num-experts 8 --moe-grouped-gemm --moe-expert-capacity-factor 1.0", NULL},
        {"--num-experts 8", "grouped"},
        {"--num-experts 8 --moe-grouped-gemm --expert-model-parallel-size 4", "all-gather"},
        {"--recompute-granularity full --recompute-method uniform --recompute-num-layers 4 --mtp-num-layers 1",
         "4 layers at once"},
        {"--use-distributed-optimizer --overlap-grad-reduce", "the job gathers parameters after the step"},
        {"--use-tp-pp-dp-mapping", "nearer"},
        {"--cp-comm-type a2a", NULL},
        {"--context-parallel-size 2 --cp-comm-type p2p", NULL},
        {"--context-parallel-size 2 --cp-comm-type a2a", NULL},
        {"--context-parallel-size 2 --cp-comm-type p2p a2a", "msim assumes p2p for all"},
        {"--context-parallel-size 2 --cp-comm-type p2p a2a all_gather p2p a2a", "msim assumes p2p for all"},
        {"--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2 1", "product is cp"},
        {"--context-parallel-size 4 --cp-comm-type a2a+p2p", "the number of ranks that exchange heads"},
        {"--context-parallel-size 4 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 3 2", "product is cp"},
        {"--context-parallel-size 2 --cp-comm-type around", "none of p2p"},
        {"--rampup-batch-size 16 16 1000", "grows"},
        {"--reset-attention-mask", "job.documents"},
        {"--reset-position-ids", "job.documents"},
        {"--fp8-format hybrid --fp8-recipe blockwise", "per block"},
        {"--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 3", "layers of virtual stage 0"},
        {"--pipeline-model-parallel-size 2 --pp-partition-method 'type:transformer|embedding'", NULL},
        {"--num-experts 8 --moe-grouped-gemm --moe-layer-freq 5", "5 of 24 layers"},
        {"--optimizer lion", "msim assumes adam"},
        {"--optimizer muon", NULL},
        {"--optimizer dist_muon --muon-tp-mode duplicated --muon-momentum 0.95", NULL},
        {"--optimizer muon --muon-tp-mode distributed", "msim assumes blockwise"},
        {"--optimizer muon --muon-num-ns-steps 3", "msim assumes five"},
        {"--brand-new-thing 3", "unknown to msim"},
        {"--bf16 $MORE", "further arguments may be here: $MORE is set nowhere"},
        {"--seq-length 1024 $MORE", "further arguments"},
        {"--tokenizer-model $PATH_TO_IT", NULL}, /* --vocab-size says what it would */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct meant m = meaning_of(base, cases[i].arguments, 0);
        const char *text = m.diags.n_items ? m.diags.items[0].text : NULL;
        ck_assert_msg(m.diags.n_errors == 0, "%s: %s", cases[i].arguments, text);
        ck_assert_msg(m.diags.n_items == (cases[i].told != NULL), "%s: %s", cases[i].arguments, text);
        ck_assert_msg(!text || strstr(text, cases[i].told), "%s: %s", cases[i].arguments, text);
        meant_free(&m);
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
    static const struct {
        const char *arguments, *error;
    } cases[] = {
        {"--num-layers 1x", "'1x' is not a whole number"},
        {"--num-layers -3", "not between"},
        {"--context-parallel-size 2x", "not a whole number"},
        {"--num-experts 8x", "not a whole number"},
        {"--optimizer-cpu-offload --optimizer-offload-fraction half", "not a number"},
        {"--optimizer-cpu-offload --optimizer-offload-fraction 1.5", "not between 0 and 1"},
        {"--tensor-model-parallel-size $TP", "$TP is set nowhere"},
        {"--tensor-model-parallel-size $TP", "--with \"--tensor-model-parallel-size VALUE\""},
        {"--tensor-model-parallel-size 3", "64 GPUs are not a multiple"},
        {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 5", "chunks of 5"},
        {"--num-experts 4 --moe-layer-freq [1]*3", "a list of 24 layers"},
        {"--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et|(t|)*4L'", "6 stages"},
        {"--use-distributed-optimizer --num-distributed-optimizer-instances 5", "5 equal groups"},
        {"--recompute-granularity ful", "'ful' is not one of full, selective (did you mean 'full'?)"},
        {"--recompute-granularity every", "'every' is not one of full, selective;"},
        {"--recompute-granularity full --recompute-method uniforn", "did you mean 'uniform'?"},
        {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grad", "did you mean 'optim_grads'?"},
        {"--fp8-format hybird", "'hybird' is not one of e4m3, hybrid (did you mean 'hybrid'?)"},
        {"--normalization RMSnorm", "did you mean 'RMSNorm'?"},
        {"--transformer-impl Local", "did you mean 'local'?"},
        {"--attention-backend fussed", "did you mean 'fused'?"},
        {"--optimizer adma", "did you mean 'adam'?"},
        {"--position-embedding-type ropes", "did you mean 'rope'?"},
        {"--cuda-graph-impl locl", "did you mean 'local'?"},
        {"--cross-entropy-loss-fusion --cross-entropy-fusion-impl linaer", "did you mean 'linear'?"},
        {"--fp4-format e1m2", "did you mean 'e2m1'?"},
        {"--tensor-model-parallel-size", "--tensor-model-parallel-size: no value follows it"},
        {"--fp8-format --sequence-parallel", "--fp8-format: no value follows it"},
        {"--tensor-model-parallel-sise 2",
         "--tensor-model-parallel-sise is no argument; did you mean --tensor-model-parallel-size?"},
        {"--use-distributed-optimiser", "did you mean --use-distributed-optimizer?"},
        {"--num-layer 12", "did you mean --num-layers?"}, /* without abbreviations, as the program reads them */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct meant m = meaning_of(base, cases[i].arguments, 0);
        ck_assert_msg(m.diags.n_errors == 1, "%s: %zu errors", cases[i].arguments, m.diags.n_errors);
        ck_assert_msg(strstr(m.diags.items[0].text, cases[i].error), "%s: %s", cases[i].arguments, m.diags.items[0].text);
        meant_free(&m);
    }
}
END_TEST

START_TEST(what_is_said_last_counts)
{
    struct meant mended = meaning_of(base, "--recompute-granularity ful --own-thing 3 --recompute-granularity full", 0);
    ck_assert_int_eq(mended.diags.n_errors, 0);
    ck_assert_int_eq(mended.d.job.layout.recompute.what, RECOMPUTE_FULL);
    meant_free(&mended);
}
END_TEST

/* A flag is reported at its place; a flag that resembles no known one belongs to the script. */
START_TEST(mistakes_have_places)
{
    struct meant lines = meaning_of("A=(--num-layers 2\n  --hidden-size 64\n  --own-thing 3 --use-distributed-optimiser)\n"
                                    "B=(--num-attention-heads 2 --vocab-size 64\n   --seq-length 8 --fp8-format hybird)\n"
                                    "p ${A[@]} ${B[@]} --micro-batch-size 1 --world-size 1",
                                    "", 0);
    ck_assert_int_eq(lines.diags.n_errors, 2);
    for (size_t i = 0; i < lines.diags.n_items; i++) {
        const struct diag *d = &lines.diags.items[i];
        ck_assert_msg(d->severity != SEVERITY_ERROR || (d->line == 3 && d->column == 17) || (d->line == 5 && d->column == 19),
                      "%d:%d %s", d->line, d->column, d->text);
    }
    meant_free(&lines);
}
END_TEST

START_TEST(words_of_megatron_deepspeed)
{
    struct meant norm = meaning_of(base, "--normalization rmsnorm", 0);
    ck_assert_uint_eq(norm.diags.n_items, 0);
    ck_assert_int_eq(norm.d.job.model.norm, NORM_RMS);
    meant_free(&norm);
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    struct meant wrong = meaning_of(base, "--micro-batch-size 1.5 --seq-length 0 --vocab-size x", 0);
    ck_assert_int_eq(wrong.diags.n_errors, 3);
    ck_assert_int_eq(wrong.d.n_missing, 0); /* it is there, and wrong */
    meant_free(&wrong);
    struct meant nodes = meaning_of("p --num-layers 2 --hidden-size 64 --num-attention-heads 2 --vocab-size 64 --seq-length 8 ",
                                    "--micro-batch-size 1 --nproc-per-node 8", 0);
    ck_assert_int_eq(nodes.d.n_missing, 1); /* of how many nodes it is, nobody says */
    meant_free(&nodes);
    struct meant nothing = meaning_of("p --hidden-size 64 --bf16 ", "", 0);
    ck_assert_int_eq(nothing.d.n_missing, 6); /* layers, heads, sequence, vocabulary, GPUs, micro-batch */
    ck_assert_int_eq(nothing.diags.n_errors, 0);
    meant_free(&nothing);
    struct meant told = meaning_of(base, "--nnodes $NODES --nproc-per-node 8", 128);
    ck_assert_int_eq(told.diags.n_errors, 0); /* nobody needs $NODES then */
    ck_assert_int_eq(told.d.job.gpus, 128);
    meant_free(&told);
}
END_TEST

/* pretrain_gpt.py's own tokenizer is the one that has merges. */
START_TEST(a_vocabulary_is_known_by_its_merges)
{
    struct meant merges = meaning_of("p --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 8 --world-size 1 ",
                                     "--micro-batch-size 1 --vocab-file $1 --merge-file $2", 0);
    ck_assert_int_eq(merges.d.n_missing, 0);
    ck_assert_int_eq(merges.d.job.model.vocab, 50304);
    meant_free(&merges);
}
END_TEST

START_TEST(the_small_languages)
{
    static int values[PIECES_MAX];
    ck_assert_int_eq(megatron_list("[1, 0,1]", values), 3);
    ck_assert_int_eq(values[1], 0);
    ck_assert_int_eq(megatron_list("([0]*3+[1]*58)", values), 61);
    ck_assert_int_eq(values[2] + 10 * values[3] + 100 * values[60], 110);
    ck_assert_int_eq(megatron_list("([0]+[1]*2)*2", values), 6);
    static const char *const bad[] = {"", "3", "[1", "[1]*", "[1]*5000", "([1]", "[1]+", "[a]", "[1]]", "([1]*100)*100"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(megatron_list(bad[i], values) == 0, "%s", bad[i]);
    ck_assert_int_eq(megatron_stage_layout("Et*3|(tt|)*29,m|L", values), 32);
    ck_assert_int_eq(values[0], 3);
    ck_assert_int_eq(values[29] * 10 + values[30], 20);
    ck_assert_int_eq(megatron_stage_layout("E|t|L", values), 3);
    static const char *const none[] = {"", "x", "t*", "(t", "t)", "t*9999"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(megatron_stage_layout(none[i], values) == 0, "%s", none[i]);
}
END_TEST

/* The shape alone names the model: frameworks pad the vocabulary. */
START_TEST(models_are_named_by_their_shape)
{
    char name[NAME_SIZE];
    struct meant m =
        meaning_of("p --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 "
                   "--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear "
                   "--untie-embeddings-and-output-weights --position-embedding-type rope --seq-length 8192 "
                   "--micro-batch-size 1 --bf16 --world-size 64 --tensor-model-parallel-size 8 ",
                   "--tokenizer-type Llama3Tokenizer", 0);
    launch_catalog_name(&m.d.job.model, name, sizeof name);
    ck_assert_str_eq(name, "llama3-70b");
    ck_assert_int_eq(m.d.job.model.vocab, 129024); /* 126 * 1024 */
    m.d.job.model.ffn_hidden -= 128;
    launch_catalog_name(&m.d.job.model, name, sizeof name);
    ck_assert_str_eq(name, "");
    meant_free(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch");
    TCase *all = tcase_create("all");
    tcase_add_test(all, arguments_mean_what_the_program_makes_of_them);
    tcase_add_test(all, what_is_not_modelled_is_told);
    tcase_add_test(all, mistakes_are_named);
    tcase_add_test(all, what_is_said_last_counts);
    tcase_add_test(all, mistakes_have_places);
    tcase_add_test(all, words_of_megatron_deepspeed);
    tcase_add_test(all, what_is_missing_is_named);
    tcase_add_test(all, a_vocabulary_is_known_by_its_merges);
    tcase_add_test(all, the_small_languages);
    tcase_add_test(all, models_are_named_by_their_shape);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
