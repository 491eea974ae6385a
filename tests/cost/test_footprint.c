/* Memory: Korthikanti et al. (arXiv:2205.05198) figure 1 and section 4, reproduced from the counts. */
#include "model/base/units.h"
#include "model/cost/memory/footprint.h"
#include "shapes.h"

/* Activations of the layers alone: the difference that the layers make. */
static double layers_gib(struct shape *s)
{
    struct footprint with, without;
    footprint_of_stage(&s->layout, &s->setting, 0, &with);
    int layers = s->model.layers;
    s->model.layers = 0;
    footprint_of_stage(&s->layout, &s->setting, 0, &without);
    s->model.layers = layers;
    return (with.activations - without.activations) / GIB;
}

struct row {
    int layers;
    int64_t hidden;
    int heads, pp, vpp, micro_batch;
    double none_gib, sequence_selective_gib;
};
/* tensor parallel 8, sequence 2,048 */
static const struct row figure1[] = {
    {48, 6144, 64, 1, 1, 4, 59.25, 9.56},
    {96, 12288, 96, 8, 3, 1, 66.84, 12.35},
    {105, 20480, 128, 35, 3, 1, 114.02, 23.08},
    {128, 25600, 160, 64, 1, 1, 131.25, 26.56},
};

START_TEST(activations_are_korthikantis)
{
    const struct row *row = &figure1[_i];
    struct shape s;
    shape_gpt(&s, row->layers, row->hidden, row->heads, 8, row->pp, row->vpp, row->micro_batch);
    s.job.global_batch *= 8; /* enough micro-batches to fill the pipeline */
    ck_assert_double_eq_tol(layers_gib(&s), row->none_gib, 0.006 * row->none_gib);
    s.layout.sequence_parallel = true;
    s.layout.features |= FEATURE_BIT(FLASH_ATTENTION); /* keeps what selective recomputation keeps, but for the log-sum-exp */
    ck_assert_double_eq_tol(layers_gib(&s), row->sequence_selective_gib, 0.01 * row->sequence_selective_gib);
}
END_TEST

/* Weights 2, fp32 gradient 4, Adam 12: 18 bytes a parameter, or 6 + 12/d with a distributed optimizer. */
START_TEST(states_cost_18_bytes_a_parameter)
{
    struct shape s;
    shape_megascale(&s);
    struct footprint plain, sharded;
    footprint_of_stage(&s.layout, &s.setting, 1, &plain);
    double parameters = plain.weights / 2;
    ck_assert_double_eq_tol(parameters, 12 * 12.0 * 12288 * 12288 / 8, 0.01 * parameters);
    ck_assert_double_eq_tol((plain.weights + plain.gradients + plain.optimizer) / parameters, 18, 1e-9);
    s.layout.zero = 1;
    footprint_of_stage(&s.layout, &s.setting, 1, &sharded);
    ck_assert_double_eq_tol((sharded.weights + sharded.gradients + sharded.optimizer) / parameters, 6 + 12.0 / 4, 1e-9);
}
END_TEST

/* The fp32 master weight and the moments as they are kept: Adam's in bf16 4 + 2 x 2, in 8 bits 4 + 2 x 1; SGD's one 4 + 2.
 * Nothing else changes. */
START_TEST(moments_take_what_they_are_kept_in)
{
    static const struct {
        enum optimizer optimizer;
        enum precision moments;
        double bytes;
    } cases[] = {{OPTIMIZER_ADAM, PRECISION_FP32, 12}, {OPTIMIZER_ADAM, PRECISION_BF16, 8}, {OPTIMIZER_ADAM, PRECISION_FP8, 6},
                 {OPTIMIZER_LAMB, PRECISION_FP16, 8},  {OPTIMIZER_SGD, PRECISION_FP32, 8},  {OPTIMIZER_SGD, PRECISION_BF16, 6}};
    struct shape s;
    struct footprint wide, f;
    shape_megascale(&s);
    footprint_of_stage(&s.layout, &s.setting, 1, &wide);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.job.optimizer = cases[i].optimizer, s.job.moment_precision = cases[i].moments;
        footprint_of_stage(&s.layout, &s.setting, 1, &f);
        ck_assert_double_eq_tol(f.optimizer / (f.weights / 2), cases[i].bytes, 1e-9);
        ck_assert_double_eq_tol(wide.total - f.total, wide.optimizer - f.optimizer, 1e-3);
    }
}
END_TEST

/* The last stage keeps a prediction layer as it keeps one more layer, beside a second vocabulary's logits. */
START_TEST(prediction_layers_are_kept_like_layers)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.vpp = 1, s.layout.schedule = SCHEDULE_1F1B;
    s.model.layers = 96;
    struct footprint plain, predicting, logits;
    footprint_of_stage(&s.layout, &s.setting, 7, &plain);
    s.model.layers = 95, s.model.mtp_layers = 1; /* instead of the last one */
    footprint_of_stage(&s.layout, &s.setting, 7, &predicting);
    double more = predicting.activations - plain.activations;
    s.model.layers = 96, s.model.mtp_layers = 0, s.model.vocab *= 2;
    footprint_of_stage(&s.layout, &s.setting, 7, &logits);
    double table = logits.activations - plain.activations, tokens = (double)s.layout.micro_batch * (double)s.job.seq_len;
    ck_assert_double_gt(table, 0);
    ck_assert_double_eq_tol(more, table + 1.15 * tokens * 4 * (double)s.model.hidden, 0.01 * more);
}
END_TEST

/* Under ZeRO-3 with experts whole on their ranks, tp divides what is gathered of the rest only; of experts it never divides the
 * bias behind the second product. */
START_TEST(gathered_experts_are_whole)
{
    struct shape s;
    shape_megascale(&s);
    s.model.moe = (struct mixture){.experts = 8, .top_k = 2, .expert_ffn = 4096, .every = 1};
    s.layout.pp = s.layout.vpp = 1, s.layout.dp = 32, s.layout.schedule = SCHEDULE_NONE, s.layout.zero = 3, s.layout.ep = 2;
    struct footprint whole, split;
    footprint_of_stage(&s.layout, &s.setting, 0, &whole);
    s.layout.etp = s.layout.tp;
    footprint_of_stage(&s.layout, &s.setting, 0, &split);
    double experts = transformer_layer_parameters(&s.model, 0, true) - transformer_layer_parameters(&s.model, 0, false);
    experts -= 8 * (double)s.model.hidden;
    ck_assert_double_eq_tol(whole.buffers - split.buffers, 6 * experts / 2 * 7 / 8, 1);
}
END_TEST

/* Sixteen heads of 96 (grouped) of a rank's tokens, key and value: those of four ranks, their gradients twice, and its own. */
START_TEST(context_parallelism_gathers_keys)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.cp = 4, s.layout.dp /= 4, s.layout.sequence_parallel = false;
    s.model.kv_heads = 16;
    struct footprint many, few;
    double own = (double)s.layout.micro_batch * (double)s.job.seq_len / 4 * 2 * 16 / 8 * 96;
    footprint_of_stage(&s.layout, &s.setting, 0, &many);
    ck_assert_double_eq_tol(footprint_executed_context_bytes(&s.layout, &s.setting, 2), 13 * own * 2, 1e-6);
    s.model.kv_heads = 8;
    footprint_of_stage(&s.layout, &s.setting, 0, &few);
    ck_assert_double_eq_tol(many.buffers - few.buffers, 4 * own, 1e-3); /* a ring has four blocks */
    ck_assert_double_eq_tol(many.total - few.total - (many.activations - few.activations) - (many.weights - few.weights) -
                                (many.gradients - few.gradients) - (many.optimizer - few.optimizer),
                            4 * own, 1);
    s.layout.cp_comm = CP_ALL_GATHER;
    ck_assert_double_eq_tol(footprint_context_bytes(&s.layout, &s.setting), 13 * own, 1e-6);
    s.model.kv_heads = 2; /* fewer than ranks: each has one */
    ck_assert_double_eq_tol(footprint_executed_context_bytes(&s.layout, &s.setting, 4), 13 * own / 2 * 4, 1e-6);
    s.layout.cp = 1;
    ck_assert_double_eq_tol(footprint_executed_context_bytes(&s.layout, &s.setting, 4), 0, 1e-9);
}
END_TEST

/* Heads exchanged among four ranks: what is sent is what there is, unless key/value heads are fewer than ranks; the output is
 * kept as it was made and as it came back. Three times that is under way. */
START_TEST(heads_exchanged_are_kept)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.cp = 4, s.layout.dp /= 4, s.layout.sequence_parallel = false, s.layout.features = FEATURE_BIT(FLASH_ATTENTION2);
    s.model.kv_heads = 16;
    double tokens = (double)s.job.seq_len / 4, query = (double)s.model.heads / 8 * s.model.head_dim, d = s.model.head_dim;
    double ring = footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0));
    s.layout.cp_comm = CP_A2A; /* two key/value heads for four ranks: two more keys and values of a head each */
    ck_assert_double_eq_tol(footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0)) - ring,
                            2 * tokens * (query + 4 * d), 1e-3);
    ck_assert_double_eq_tol(footprint_context_bytes(&s.layout, &s.setting), 3 * 2 * tokens * (query + 8 * d), 1e-3);
    s.layout.cp_comm = cp_comm_of(2, false); /* one each; and a ring of two passes on what two ranks have of one of them */
    ck_assert_double_eq_tol(footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0)) - ring, 2 * tokens * query,
                            1e-3);
    ck_assert_double_eq_tol(footprint_context_bytes(&s.layout, &s.setting),
                            3 * 2 * tokens * (query + 4 * d) + 4 * 2 * tokens * 4 * d, 1e-3);
    s.layout.recompute.what = RECOMPUTE_CORE_ATTN; /* repeats the exchange */
    double again = footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0));
    s.layout.cp_comm = CP_RING;
    ck_assert_double_eq_tol(footprint_layer_bytes(&s.layout, &s.setting, layer_kind_of(&s.model, 0)), again, 1e-3);
}
END_TEST

/* PyTorch's policy: the input, attention's output and log-sum-exp, and every second product of those that the program counts. */
START_TEST(every_second_product_is_kept)
{
    struct shape s;
    shape_megascale(&s);
    double h = 12288, f = 4 * h, heads = 128, kv = 16 * 96, tp = 8;
    s.layout.pp = s.layout.vpp = 1, s.layout.dp = 32, s.layout.schedule = SCHEDULE_NONE, s.layout.zero = 3;
    s.layout.recompute.what = RECOMPUTE_SELECTIVE, s.layout.sequence_parallel = false;
    double context = 2 * h + 4 * heads;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), (context + 2 * (3 * h + f)) / tp + 2 * h, 1e-6); /* qkv, up */
    s.model.gated_mlp = true;
    s.model.kv_heads = 16;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), (context + 2 * (h + kv + f)) / tp + 4 * h, 1e-6); /* q, v, gate, down */
    s.model.moe = (struct mixture){.experts = 8, .top_k = 2, .expert_ffn = 4096, .every = 1};
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), (context + 2 * (h + kv)) / tp + 2 * h, 1e-6); /* q, v */
    s.model.moe = (struct mixture){0};
    s.model.attention = ATTENTION_LATENT; /* q_down, kv_down, projection, up */
    s.model.latent =
        (struct latent_attention){.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 64, .qk_rope_dim = 64, .v_dim = 96};
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), (context + 2 * f) / tp + 2 * (h + 1536 + 576 + h), 1e-6);
}
END_TEST

/* What column-parallel layers read, gathered, lies whole on every rank of an eager stack: 4 h bytes a token; of Megatron's line
 * its part. */
START_TEST(eager_stacks_keep_what_was_gathered)
{
    struct shape s;
    shape_megascale(&s);
    double h = 12288, tp = 8;
    s.layout.pp = s.layout.vpp = 1, s.layout.dp = 32, s.layout.schedule = SCHEDULE_NONE, s.layout.features = 0;
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_RMSNORM);
    s.model.gated_mlp = true, s.model.linear_bias = false;
    s.layout.sequence_parallel = true;
    double sharded = layer_bytes_a_token(&s);
    s.layout.sequence_parallel = false;
    double whole = layer_bytes_a_token(&s);
    ck_assert_double_eq_tol((whole - sharded) / 1.15, 4 * h * (1 - 1 / tp), 1e-6 * h); /* the norms' inputs */
    s.model.gated_mlp = false;
    whole = layer_bytes_a_token(&s);
    s.layout.sequence_parallel = true;
    ck_assert_double_eq_tol((whole - layer_bytes_a_token(&s)) / 1.15, 8 * h * (1 - 1 / tp), 1e-6 * h);
}
END_TEST

/* What fused stacks keep in fp8: of what products read, the copy of a byte an element (attention's output is kept beside it); of
 * experts, not what they give. An eager stack keeps bf16 and casts again. */
START_TEST(narrow_operands_are_kept_narrow)
{
    struct shape s;
    shape_gpt(&s, 2, 4096, 32, 1, 1, 1, 1);
    s.layout.features |= FEATURE_BIT(FLASH_ATTENTION2);
    double h = 4096, f = 4 * h, wide = layer_bytes_a_token(&s);
    s.job.precision = PRECISION_FP8;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), wide - f + h, 1e-6);
    s.model.gated_mlp = true;
    s.model.moe = (struct mixture){.experts = 8, .top_k = 2, .expert_ffn = 1024, .every = 1};
    double narrow = layer_bytes_a_token(&s);
    s.model.mlp_limit = 7; /* the halves before clamping */
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), narrow + 4 * 2 * 1024, 1e-6);
    s.model.mlp_limit = 0;
    s.layout.features &= ~FEATURE_BIT(FUSED_OPS);
    s.layout.zero = 3; /* without the allocator's share of other eager stacks */
    double eager = layer_bytes_a_token(&s);
    s.job.precision = PRECISION_BF16;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), eager, 1e-6);
    s.layout.features |= FEATURE_BIT(FUSED_OPS);
    ck_assert_double_eq_tol(layer_bytes_a_token(&s), narrow - h + 2 * h + 2 * 1024, 1e-6);
}
END_TEST

/* What a layout needs is what its fullest stage does, whichever that is: of 22 to 40 layers over stages that they do not divide.
 */
START_TEST(the_peak_is_of_the_fullest_stage)
{
    static const enum schedule schedules[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B, SCHEDULE_INTERLEAVED, SCHEDULE_ZB1P, SCHEDULE_ZBV};
    for (int i = 0; i < 19 * 7 * 5 * 2; i++) {
        struct shape s;
        struct footprint peak, one;
        shape_gpt(&s, 22 + i % 19, 2048, 16, 2, 2 + i / 19 % 7, 1, 1);
        s.layout.schedule = schedules[i / 19 / 7 % 5];
        s.layout.vpp = s.layout.schedule == SCHEDULE_INTERLEAVED || s.layout.schedule == SCHEDULE_ZBV ? 2 : 1;
        s.job.global_batch = 4 * s.layout.pp;
        if (i / 19 / 7 / 5) {
            s.model.gated_mlp = true, s.model.vocab = 200000;
            s.layout.features = FEATURE_BIT(FLASH_ATTENTION2);
        }
        double most = 0;
        for (int stage = 0; stage < s.layout.pp; stage++) {
            footprint_of_stage(&s.layout, &s.setting, stage, &one);
            most = one.total > most ? one.total : most;
        }
        footprint_peak(&s.layout, &s.setting, &peak, NULL);
        ck_assert_double_eq(peak.total, most);
    }
}
END_TEST

/* Layers that differ: dense ones before mixtures, one mixture in two, mixers and attention by a pattern, and prediction modules.
 */
static void layers_differ(struct transformer *model, int how)
{
    if (how < 3)
        model->moe = (struct mixture){.experts = 16, .top_k = 2, .expert_ffn = 1024, .every = 1 + how / 2};
    if (how < 2)
        model->moe.first_dense_layers = 1 + 2 * how;
    if (how == 1)
        model->mtp_layers = 1;
    if (how == 3) {
        memcpy(model->layer_pattern, "MMM-*-", 7);
        model->mixer = (struct state_mixer){
            .kind = MIXER_MAMBA2, .heads = 64, .head_dim = 64, .groups = 8, .state = 128, .conv = 4, .chunk = 256, .norm = true};
    }
}

/* The same where layers differ, with every schedule, as much repeated as can be, and optimizers that tell matrices apart. What is
 * repeated for weights' gradients that wait is most on a late stage of a divided schedule; experts are first behind the layers
 * that are dense. */
START_TEST(the_peak_is_of_the_fullest_stage_where_layers_differ)
{
    static const int recomputes[] = {RECOMPUTE_NONE, RECOMPUTE_FULL, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT | RECOMPUTE_MOE_ACT};
    bool inside = false, late = false;
    for (int i = 0; i < 4 * (N_SCHEDULES - 1) * 3 * 2 * 6; i++) {
        struct shape s;
        struct footprint peak, one;
        int how = i % 4, rest = i / 4, fullest;
        shape_gpt(&s, 26 + 3 * how, 2048, 16, 1, 4 + 2 * (rest / (N_SCHEDULES - 1) / 6 % 6), 1, 1);
        layers_differ(&s.model, how);
        s.layout.schedule = (enum schedule)(1 + rest % (N_SCHEDULES - 1));
        s.layout.vpp = s.layout.schedule == SCHEDULE_INTERLEAVED || schedule_is_folded(s.layout.schedule) ? 2 : 1;
        s.layout.recompute.what = (enum recompute_what)recomputes[rest / (N_SCHEDULES - 1) % 3];
        s.job.optimizer = rest / (N_SCHEDULES - 1) / 3 % 2 && how < 3 ? OPTIMIZER_MUON : OPTIMIZER_ADAM;
        s.job.global_batch = 4 * s.layout.pp;
        s.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
        double most = 0;
        for (int stage = 0; stage < s.layout.pp; stage++) {
            footprint_of_stage(&s.layout, &s.setting, stage, &one);
            most = one.total > most ? one.total : most;
        }
        footprint_peak(&s.layout, &s.setting, &peak, &fullest);
        ck_assert_double_eq(peak.total, most);
        footprint_of_stage(&s.layout, &s.setting, fullest, &one);
        ck_assert_double_eq(one.total, most);
        inside = inside || (fullest > 1 && fullest < s.layout.pp - 2);
        late = late || (fullest == s.layout.pp - 2 && s.layout.pp > 4);
    }
    ck_assert(inside && late); /* both happen */
}
END_TEST

/* With scores in memory or without, at any vocabulary: keeping less never takes more. */
START_TEST(recomputation_never_takes_more)
{
    for (int i = 0; i < 64; i++) {
        struct shape s;
        shape_gpt(&s, 24, 2048, 16, 2, 1 + i % 4, 1, 2);
        s.layout.features = (i / 4 % 2 ? FEATURE_BIT(FLASH_ATTENTION2) : 0) | (i / 8 % 2 ? FEATURE_BIT(FUSED_OPS) : 0);
        s.model.gated_mlp = i / 16 % 2;
        s.model.vocab = i / 32 % 2 ? 1000000 : 32000;
        double bytes[N_RECOMPUTES];
        for (int r = 0; r < N_RECOMPUTES; r++) {
            struct footprint peak;
            s.layout.recompute.what = (enum recompute_what)r;
            footprint_peak(&s.layout, &s.setting, &peak, NULL);
            bytes[r] = peak.total;
        }
        ck_assert_double_le(bytes[RECOMPUTE_SELECTIVE], bytes[RECOMPUTE_NONE]);
        ck_assert_double_le(bytes[RECOMPUTE_FULL], bytes[RECOMPUTE_NONE]);
    }
}
END_TEST

/* On one stage each layer that is repeated frees what it had kept but its input, 2 bytes an element: attention 8 h and 4 bytes a
 * head and GeLU's input and output 16 h on eight ranks, the norms' inputs and outputs 8 h. The peak is before the loss's backward
 * pass, as what is behind a repeated layer is gone by then. */
START_TEST(each_repeated_layer_frees_all_but_its_input)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.pp = s.layout.vpp = 1, s.layout.dp = 32, s.layout.schedule = SCHEDULE_NONE, s.layout.sequence_parallel = false;
    s.job.features = s.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
    double tokens = (double)s.layout.micro_batch * (double)s.job.seq_len, h = 12288;
    double layer = tokens * ((8 * h + 4 * 128) / 8 + 16 * h / 8 + 8 * h), input = tokens * 2 * h;
    struct footprint none, some;
    footprint_peak(&s.layout, &s.setting, &none, NULL);
    for (int n = 1; n < s.model.layers; n++) {
        s.layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, n};
        ck_assert_int_eq(layout_check(&s.layout, &s.setting, NULL, 0), LAYOUT_LEGAL);
        footprint_peak(&s.layout, &s.setting, &some, NULL);
        ck_assert_double_eq_tol(none.total - some.total, n * (layer - input), 1);
        ck_assert_double_eq_tol(none.activations - some.activations, n * (layer - input), 1);
    }
}
END_TEST

/* What the last stage has beyond the same one without a head's words: bytes of its logits. */
static double logits_of(struct shape *s, feature_set loss)
{
    struct footprint with, without;
    int64_t vocabulary = s->model.vocab;
    s->layout.features = (s->layout.features & ~FEATURES_LOSS) | loss;
    footprint_of_stage(&s->layout, &s->setting, s->layout.pp - 1, &with);
    s->model.vocab = 0;
    footprint_of_stage(&s->layout, &s->setting, s->layout.pp - 1, &without);
    s->model.vocab = vocabulary;
    return with.activations - without.activations;
}

/* 2,048 tokens of 400,000 / 8 words: in bf16 with their gradient; a chunk of 512 and the weights' gradient; a number a token. An
 * eager stack's own loss has fp32 copies of both. */
START_TEST(logits_by_the_loss)
{
    struct shape s;
    shape_megascale(&s);
    double share = 50000, tokens = 2048;
    s.model.vocab = 400000;
    s.layout.features = FEATURE_BIT(FUSED_OPS);
    ck_assert_double_eq_tol(logits_of(&s, 0), 4 * tokens * share, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(FUSED_LOSS)), 4 * tokens * share, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(FUSED_LINEAR_LOSS)) - 2 * share * (512 + 12288), 0, 1e6);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(CUT_LOSS)), 0, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(EAGER_LOSS)), 14 * tokens * share, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(EAGER_LOSS) | FEATURE_BIT(FUSED_LOSS)), 4 * tokens * share, 1);
    s.layout.features = 0;
    ck_assert_double_eq_tol(logits_of(&s, 0), 1.15 * 14 * tokens * share, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(FUSED_LOSS)), 1.15 * 4 * tokens * share, 1);
}
END_TEST

/* A further prediction makes a gradient of the weights of its own before either is used; its chunks come one after the other. */
START_TEST(logits_of_further_predictions)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.features = FEATURE_BIT(FUSED_OPS);
    double share = (double)s.model.vocab / s.layout.tp, one = logits_of(&s, FEATURE_BIT(FUSED_LINEAR_LOSS));
    double one_kept = logits_of(&s, FEATURE_BIT(FUSED_LOSS));
    s.model.layers--, s.model.mtp_layers = 1;
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(FUSED_LINEAR_LOSS)) - one, 2 * share * (double)s.model.hidden, 1);
    ck_assert_double_eq_tol(logits_of(&s, FEATURE_BIT(FUSED_LOSS)), 2 * one_kept, 1);
}
END_TEST

/* Whatever the stack, a loss in fewer passes never needs more memory, nor one without logits. */
START_TEST(fused_losses_need_no_more)
{
    for (int zero = 0; zero <= 3; zero++)
        for (int tp = 1; tp <= 8; tp *= 2)
            for (int fused = 0; fused <= 1; fused++) {
                struct shape s;
                shape_megascale(&s);
                s.model.gated_mlp = true;
                s.layout.tp = tp, s.layout.zero = zero, s.layout.features = fused ? FEATURE_BIT(FUSED_OPS) : 0;
                double plain = logits_of(&s, 0), loss = logits_of(&s, FEATURE_BIT(FUSED_LOSS));
                ck_assert_double_le(loss, plain);
                ck_assert_double_le(logits_of(&s, FEATURE_BIT(CUT_LOSS)), loss);
                ck_assert_double_le(logits_of(&s, FEATURE_BIT(CUT_LOSS)), logits_of(&s, FEATURE_BIT(FUSED_LINEAR_LOSS)));
            }
}
END_TEST

/* One norm's input and one of the column-parallel layers instead of two each. */
START_TEST(a_parallel_block_keeps_two_inputs_fewer)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.pp = s.layout.vpp = 1, s.layout.dp = 32, s.layout.schedule = SCHEDULE_NONE, s.layout.sequence_parallel = false;
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);
    double serial = layer_bytes_a_token(&s);
    s.layout.features |= FEATURE_BIT(PARALLEL_BLOCK);
    ck_assert_double_eq_tol(serial - layer_bytes_a_token(&s), 4.0 * 12288, 1e-6);
}
END_TEST

START_TEST(saving_features_save)
{
    struct shape s;
    shape_megascale(&s);
    struct footprint none, selective, full;
    footprint_peak(&s.layout, &s.setting, &none, NULL);
    s.layout.recompute.what = RECOMPUTE_SELECTIVE;
    footprint_peak(&s.layout, &s.setting, &selective, NULL);
    s.layout.recompute.what = RECOMPUTE_FULL;
    footprint_peak(&s.layout, &s.setting, &full, NULL);
    ck_assert_double_lt(selective.total, none.total);
    ck_assert_double_lt(full.total, selective.total);
    int zero_order = 0;
    double before = full.total;
    for (s.layout.zero = 1; s.layout.zero <= 3; s.layout.zero++) {
        footprint_peak(&s.layout, &s.setting, &full, NULL);
        zero_order += full.weights + full.gradients + full.optimizer <= before;
        before = full.weights + full.gradients + full.optimizer;
    }
    ck_assert_int_eq(zero_order, 3);
}
END_TEST

/* ZeRO 2 where an interleaved pipeline of four stages of four chunks has one round: of 32 layers two chunks of two are whole,
 * half of what a stage has, beside an eighth of all; with one micro-batch more, or ZeRO 1, everything is. */
START_TEST(gradients_are_sharded_in_turn)
{
    struct shape s;
    shape_gpt(&s, 32, 2048, 16, 2, 4, 4, 1);
    s.layout.schedule = SCHEDULE_INTERLEAVED, s.layout.dp = 8;
    for (int i = 0; i < 32; i++) {
        int m = 1 + i % 8;
        bool overlaps = i >= 16; /* else all are reduced when the step ends */
        s.layout.zero = 1 + i / 8 % 2;
        s.layout.features = overlaps ? FEATURE_BIT(DP_OVERLAP) : 0;
        s.job.global_batch = 8LL * m;
        struct footprint inner, first;
        footprint_of_stage(&s.layout, &s.setting, 1, &inner);
        footprint_of_stage(&s.layout, &s.setting, 0, &first);
        double parameters = inner.weights / 2, table = first.weights / 2 - parameters;
        bool in_turn = overlaps && s.layout.zero == 2 && m <= 4;
        ck_assert_int_eq(footprint_shards_gradients_in_turn(&s.layout, &s.setting), in_turn);
        double held = parameters * (in_turn ? 0.5 + 1.0 / 8 : 1), held_first = held + table * (in_turn ? 9.0 / 8 : 1);
        ck_assert_double_eq_tol(inner.gradients, 4 * held, 1e-9 * held);
        ck_assert_double_eq_tol(first.gradients, 4 * held_first, 1e-9 * held_first);
    }
}
END_TEST

/* What is kept from one layout to the next is of as many rounds. */
START_TEST(rounds_are_not_taken_for_one)
{
    static const int micro_batches[] = {1, 2, 1, 4, 2, 1};
    struct shape s;
    struct footprint_memo memo = {0};
    shape_gpt(&s, 32, 2048, 16, 2, 4, 4, 1);
    s.layout.schedule = SCHEDULE_INTERLEAVED, s.layout.dp = 8, s.layout.zero = 2, s.job.global_batch = 64;
    s.layout.features = FEATURE_BIT(DP_OVERLAP);
    for (size_t i = 0; i < sizeof micro_batches / sizeof *micro_batches; i++) {
        struct footprint peak;
        s.layout.micro_batch = micro_batches[i];
        footprint_peak(&s.layout, &s.setting, &peak, NULL);
        ck_assert_double_eq(footprint_peak_of(&memo, &s.layout, &s.setting)->gradients, peak.gradients);
    }
    footprint_memo_free(&memo);
}
END_TEST

Suite *suite_footprint(void)
{
    Suite *suite = suite_create("footprint");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, activations_are_korthikantis, 0, sizeof figure1 / sizeof figure1[0]);
    tcase_add_test(all, states_cost_18_bytes_a_parameter);
    tcase_add_test(all, moments_take_what_they_are_kept_in);
    tcase_add_test(all, prediction_layers_are_kept_like_layers);
    tcase_add_test(all, gathered_experts_are_whole);
    tcase_add_test(all, context_parallelism_gathers_keys);
    tcase_add_test(all, heads_exchanged_are_kept);
    tcase_add_test(all, every_second_product_is_kept);
    tcase_add_test(all, eager_stacks_keep_what_was_gathered);
    tcase_add_test(all, narrow_operands_are_kept_narrow);
    tcase_add_test(all, the_peak_is_of_the_fullest_stage);
    tcase_add_test(all, the_peak_is_of_the_fullest_stage_where_layers_differ);
    tcase_add_test(all, recomputation_never_takes_more);
    tcase_add_test(all, each_repeated_layer_frees_all_but_its_input);
    tcase_add_test(all, logits_by_the_loss);
    tcase_add_test(all, logits_of_further_predictions);
    tcase_add_test(all, fused_losses_need_no_more);
    tcase_add_test(all, a_parallel_block_keeps_two_inputs_fewer);
    tcase_add_test(all, saving_features_save);
    tcase_add_test(all, gradients_are_sharded_in_turn);
    tcase_add_test(all, rounds_are_not_taken_for_one);
    suite_add_tcase(suite, all);
    return suite;
}
