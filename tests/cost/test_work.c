/* Counts: the FLOPs of passes and of a step against the published closed forms; classes and totals agree. */
#include <string.h>

#include "model/cost/kernel/machine.h"
#include "shapes.h"

/* Forward of one layer on one of t ranks: (24 s h^2 + 4 s^2 h) / t without FlashAttention (performance model, section 1). */
START_TEST(layer_flops_are_the_published_count)
{
    struct shape s;
    shape_megascale(&s);
    double h = 12288, q = 2048, forward = (24 * q * h * h + 4 * q * q * h) / 8;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_FORWARD, 1) / forward, 1, 1e-12);
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1) / forward, 2, 1e-12);
    ck_assert_double_eq_tol(pass_flops(&s, PASS_FORWARD, 12) / forward, 12, 1e-12);
}
END_TEST

START_TEST(recomputation_adds_a_forward)
{
    struct shape s;
    shape_megascale(&s);
    double forward = pass_flops(&s, PASS_FORWARD, 1), backward = pass_flops(&s, PASS_BACKWARD, 1);
    s.layout.recompute.what = RECOMPUTE_FULL;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), forward + backward, forward * 1e-12);
    s.layout.recompute.what = RECOMPUTE_SELECTIVE; /* the two score products only */
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), 4.0 * 2048 * 2048 * 12288 / 8 + backward, forward * 1e-12);
}
END_TEST

/* Of PyTorch's: the down-projection's 8 s h^2 are not repeated; of the products of the GPT line (qkv, projection, up, down) every
 * second one is kept, and attention. A stack with fused operators recomputes as Megatron does. */
START_TEST(pytorch_repeats_what_is_needed)
{
    struct shape s;
    shape_megascale(&s);
    double h = 12288, q = 2048, forward = pass_flops(&s, PASS_FORWARD, 1), backward = pass_flops(&s, PASS_BACKWARD, 1);
    s.layout.zero = 3;
    s.layout.recompute.what = RECOMPUTE_FULL;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), forward - 8 * q * h * h / 8 + backward, forward * 1e-12);
    s.layout.recompute.what = RECOMPUTE_SELECTIVE;
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), 2 * q * h * h / 8 + backward, forward * 1e-12);
    s.layout.recompute.what = RECOMPUTE_FULL;
    s.layout.features |= FEATURE_BIT(FUSED_OPS);
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), forward + backward, forward * 1e-12);
}
END_TEST

/* Bytes a parameter that the optimizer step streams, counted by hand: Adam's master weight and moments 24 and the half-precision
 * weight 2, and the gradient read twice and zeroed once. fp16 gradients are half as wide and divided by the loss scale on the
 * way; fp32 ones of fp16 training in a pass of their own (8). vTrain's runs take 20.2 ps a parameter on A100: 32 bytes at 78 % of
 * its 2,039 GB/s are 20.1. Each of Adam's two moments is read and written: in bf16 8 bytes less, in fp8 12; of SGD's one 4. */
START_TEST(optimizer_streams_what_is_counted)
{
    static const struct {
        enum precision products, gradients;
        enum optimizer optimizer;
        double bytes;
        enum precision moments;
    } cases[] = {
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_ADAM, 38, PRECISION_FP32},
        {PRECISION_BF16, PRECISION_BF16, OPTIMIZER_ADAM, 38, PRECISION_FP32},
        {PRECISION_FP16, PRECISION_FP16, OPTIMIZER_ADAM, 32, PRECISION_FP32},
        {PRECISION_FP16, PRECISION_FP32, OPTIMIZER_ADAM, 46, PRECISION_FP32},
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_LAMB, 46, PRECISION_FP32},
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_SGD, 30, PRECISION_FP32},
        {PRECISION_FP8, PRECISION_BF16, OPTIMIZER_ADAM, 40, PRECISION_FP32}, /* half of them cast: read 2, write 1 both ways */
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_ADAM, 30, PRECISION_BF16},
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_ADAM, 26, PRECISION_FP8},
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_LAMB, 38, PRECISION_FP16},
        {PRECISION_BF16, PRECISION_FP32, OPTIMIZER_SGD, 26, PRECISION_BF16},
    };
    struct shape s;
    shape_megascale(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct work_table table = {0};
        s.job.precision = cases[i].products;
        s.job.gradient_precision = cases[i].gradients;
        s.job.optimizer = cases[i].optimizer;
        s.job.moment_precision = cases[i].moments;
        int32_t id = work_add_optimizer(&table, &s.setting, 1e9, 5e8);
        ck_assert_double_eq_tol(table.items[id].memory.bytes / 1e9, cases[i].bytes, 1e-12);
        work_table_free(&table);
    }
}
END_TEST

static int count_children(const struct work_table *table, const char *label)
{
    int n = 0;
    for (int32_t i = 0; i < table->n_children; i++)
        n += strcmp(table->items[table->children[i]].label, label) == 0;
    return n;
}

/* Where the first of the products with one input was kept, the next one's needs the gathered sequence all the same: k beside q,
 * up beside gate. One matrix that was kept needs none. */
START_TEST(a_repeated_product_has_its_input_gathered)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.zero = 3;
    s.layout.recompute.what = RECOMPUTE_SELECTIVE;
    s.layout.sequence_parallel = true;
    for (int gated = 0; gated < 2; gated++) {
        struct work_table table = {0};
        s.model.gated_mlp = gated;
        work_add_pass(&table, &s.layout, &s.setting, PASS_BACKWARD, (struct layer_range){0, 1}, false, false);
        ck_assert_int_eq(count_children(&table, "gather"), gated ? 2 : 0);
        work_table_free(&table);
    }
    struct work_table table = {0}; /* both down-projections are kept; gate reads the input */
    s.model.attention = ATTENTION_LATENT;
    s.model.latent =
        (struct latent_attention){.q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_dim = 64, .qk_rope_dim = 64, .v_dim = 96};
    work_add_pass(&table, &s.layout, &s.setting, PASS_BACKWARD, (struct layer_range){0, 1}, false, false);
    ck_assert_int_eq(count_children(&table, "gather"), 1);
    work_table_free(&table);
}
END_TEST

/* Sum over works of that name: bytes and kernels. */
static struct work_memory streamed(const struct shape *s, enum pass pass, const char *label)
{
    struct work_table table = {0};
    struct work_memory sum = {0};
    work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_MEMORY_BOUND && strcmp(table.items[i].label, label) == 0) {
            sum.bytes += table.items[i].memory.bytes;
            sum.count += table.items[i].memory.count;
        }
    work_table_free(&table);
    return sum;
}

static void expect_streamed(const struct shape *s, enum pass pass, const char *label, double bytes, int kernels)
{
    struct work_memory found = streamed(s, pass, label);
    ck_assert_double_eq_tol(found.bytes, bytes, 1);
    ck_assert_int_eq(found.count, kernels);
}

/* 16 experts over 4 ranks, two of them for each of 2048 tokens: 4096 rows of 12288 in four experts of 1024. */
static void shape_mixture(struct shape *s)
{
    shape_megascale(s);
    s->layout.tp = 1;
    s->layout.sequence_parallel = false;
    s->layout.dp = s->layout.ep = 4;
    s->model.moe = (struct mixture){.experts = 16, .top_k = 2, .expert_ffn = 1024, .every = 1};
    s->model.gated_mlp = true;
    s->model.linear_bias = false;
}

/* What Megatron-Core's grouped experts do beside their products when the model has biases and clamps: 28 and 40 bytes an element
 * of the output, 16 and 20 of the width; nothing otherwise. */
START_TEST(biases_and_clamps_of_experts_are_passes)
{
    struct shape s;
    shape_mixture(&s);
    expect_streamed(&s, PASS_FORWARD, "expert_bias", 0, 0);
    expect_streamed(&s, PASS_FORWARD, "expert_clamp", 0, 0);
    s.model.linear_bias = true;
    s.model.mlp_limit = 7;
    expect_streamed(&s, PASS_FORWARD, "expert_bias", 28.0 * 4096 * 12288, 2 + 2 * 4);
    expect_streamed(&s, PASS_BACKWARD, "expert_bias", 40.0 * 4096 * 12288, 2 + 5 * 4);
    expect_streamed(&s, PASS_FORWARD, "expert_clamp", 16.0 * 4096 * 1024, 3);
    expect_streamed(&s, PASS_BACKWARD, "expert_clamp", 20.0 * 4096 * 1024, 3);
}
END_TEST

/* In fp8 (2 + 2 bytes an element) every operand of a product is cast, those of experts one by one: inputs of qkv, projection, up
 * and down, and what comes back from each. An expert that every token passes adds its own. */
START_TEST(each_operand_is_cast)
{
    struct shape s;
    shape_mixture(&s);
    s.layout.features = FEATURE_BIT(FUSED_OPS);
    s.job.precision = PRECISION_FP8;
    double attention = 2048.0 * 2 * 12288, experts = 4096.0 * (12288 + 1024), shared = 2048.0 * (12288 + 1024);
    expect_streamed(&s, PASS_FORWARD, "cast", 4 * (attention + experts), 2 + 2 * 4);
    double back = 2048.0 * 4 * 12288 + 4096.0 * (12288 + 2048);
    expect_streamed(&s, PASS_BACKWARD, "cast_gradient", 4 * back, 2 + 2 * 4);
    s.model.moe.shared_experts = 1;
    expect_streamed(&s, PASS_FORWARD, "cast", 4 * (attention + experts + shared), 2 + 2 * 4 + 2);
    expect_streamed(&s, PASS_BACKWARD, "cast_gradient", 4 * (back + 2048.0 * (12288 + 2048)), 2 + 2 * 4 + 2);
}
END_TEST

/* 16 heads of a rank, of 64 + 64 and values of 96: queries and the shared key are rotated in place (read and write 64 of each),
 * keys and values taken from where they lie beside one another (64 + 96) to where attention wants them (64 + 64, 96). */
START_TEST(latent_keys_are_put_together)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.features = FEATURE_BIT(FUSED_OPS);
    s.model.position = POSITION_ROTARY;
    s.model.attention = ATTENTION_LATENT;
    s.model.latent = (struct latent_attention){.kv_lora_rank = 512, .qk_nope_dim = 64, .qk_rope_dim = 64, .v_dim = 96};
    double rotated = 2 * 17 * 64, moved = 16 * (64 + 96 + 64 + 64 + 96);
    expect_streamed(&s, PASS_FORWARD, "rotary", 2048 * 2 * (rotated + moved), 2);
    expect_streamed(&s, PASS_BACKWARD, "rotary", 2048 * 2 * (rotated + moved), 2);
}
END_TEST

static double pass_seconds(struct shape *s, const struct machine *machine, enum pass pass)
{
    struct work_table table = {0};
    struct cost_by_class by = {0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, 3}, false, false);
    double seconds = cost_seconds(work_cost(machine, &table, id));
    work_cost_by_class(machine, &table, id, &by);
    ck_assert_double_eq_tol(cost_by_class_total(&by), seconds, 1e-12);
    work_table_free(&table);
    return seconds;
}

/* What host_pause adds to a backward pass of three layers: that of the 8 x 8 ranks of a replica each, where an eager stack of
 * LLaMA's line repeats whole layers in Python; nothing to a forward pass, to Megatron's line, or without recomputation. */
START_TEST(checkpoints_in_python_pause_all_ranks)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.pp = 8, s.layout.tp = 8, s.layout.zero = 1;
    for (int i = 0; i < 8; i++) {
        bool gated = i & 1, full = i & 2, fused = i & 4;
        s.model.gated_mlp = gated;
        s.layout.recompute.what = full ? RECOMPUTE_FULL : RECOMPUTE_NONE;
        s.layout.features = fused ? FEATURE_BIT(FUSED_OPS) : FEATURE_BIT(FLASH_ATTENTION2);
        struct machine machine = machine_of(&s.layout, &s.setting);
        double added[2];
        for (int backward = 0; backward < 2; backward++) {
            s.cluster.gpu.host_pause_s = 0;
            double without = pass_seconds(&s, &machine, backward ? PASS_BACKWARD : PASS_FORWARD);
            s.cluster.gpu.host_pause_s = 50e-6;
            added[backward] = pass_seconds(&s, &machine, backward ? PASS_BACKWARD : PASS_FORWARD) - without;
        }
        ck_assert_double_eq_tol(added[0], 0, 1e-12);
        ck_assert_double_eq_tol(added[1], gated && full && !fused ? 3 * 64 * 50e-6 : 0, 1e-12);
    }
}
END_TEST

START_TEST(split_backward_is_the_whole)
{
    struct shape s;
    shape_megascale(&s);
    for (int r = 0; r < N_RECOMPUTES; r++) {
        s.layout.recompute.what = (enum recompute_what)r;
        double whole = pass_flops(&s, PASS_BACKWARD, 3);
        double parts = pass_flops(&s, PASS_BACKWARD_INPUT, 3) + pass_flops(&s, PASS_BACKWARD_WEIGHT, 3);
        ck_assert_double_eq_tol(parts / whole, 1, 1e-12);
    }
}
END_TEST

/* --- the loss */

/* Bytes that memory-bound kernels of the head's pass move for the loss, and the FLOPs of its products. */
static void loss_of(const struct shape *s, enum pass pass, double *bytes, double *flops)
{
    struct work_table table = {0};
    struct layer_range nothing = {s->model.layers, 0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, pass, nothing, false, true);
    *bytes = 0;
    *flops = work_flops(&table, id);
    for (int32_t i = 0; i < table.n_items; i++) {
        const struct work *w = &table.items[i];
        int32_t times = 1;
        for (int32_t k = 0; k < table.n_items; k++) /* of chunks */
            if (table.items[k].kind == WORK_SEQUENCE && strcmp(table.items[k].label, "loss_chunk") == 0 && k > i && k <= i + 4)
                times = table.items[k].sequence.repeat;
        if (w->kind == WORK_MEMORY_BOUND && (w->memory.kernel == MEMORY_LOSS || w->memory.kernel == MEMORY_LOSS_BACKWARD))
            *bytes += w->memory.bytes * times;
    }
    work_table_free(&table);
}

/* Passes over the logits, in bytes each; products are those of a plain loss, some of them at another time, and one more where
 * logits are computed again. 2,048 tokens of 64,000 / 8 words; a chunk is all of them. */
START_TEST(the_loss_by_its_features)
{
    static const struct {
        feature_set features;
        double forward, backward;             /* bytes a logit */
        double forward_flops, backward_flops; /* in products */
    } cases[] = {
        {0, 30, 14, 1, 2},
        {FEATURE_BIT(FUSED_LOSS), 12, 6, 1, 2},
        {FEATURE_BIT(COMPILE), 12, 6, 1, 2},
        {FEATURE_BIT(COMPILE) | FEATURE_BIT(EAGER_LOSS), 30, 14, 1, 2},
        {FEATURE_BIT(FUSED_LOSS) | FEATURE_BIT(EAGER_LOSS), 12, 6, 1, 2},
        {FEATURE_BIT(FUSED_LINEAR_LOSS), 6, 0, 3, 0},
        {FEATURE_BIT(FUSED_LINEAR_LOSS) | FEATURE_BIT(FUSED_LOSS), 6, 0, 3, 0},
        {FEATURE_BIT(CUT_LOSS), 0, 0, 1, 3},
    };
    struct shape s;
    shape_megascale(&s);
    for (int vocabulary = 0; vocabulary < 2; vocabulary++) {
        s.model.vocab = vocabulary ? 8 * 50000 : 64000; /* 2,048 tokens in chunks of 512 */
        double logits = 2048.0 * (double)s.model.vocab / 8, product = 2 * logits * 12288;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            double forward, backward, forward_flops, backward_flops;
            s.layout.features = FEATURE_BIT(FUSED_OPS) | cases[i].features;
            loss_of(&s, PASS_FORWARD, &forward, &forward_flops);
            loss_of(&s, PASS_BACKWARD, &backward, &backward_flops);
            ck_assert_double_eq_tol(forward / logits, cases[i].forward, 1e-9);
            ck_assert_double_eq_tol(backward / logits, cases[i].backward, 1e-9);
            ck_assert_double_eq_tol(forward_flops / product, cases[i].forward_flops, 1e-9);
            ck_assert_double_eq_tol(backward_flops / product, cases[i].backward_flops, 1e-9);
        }
    }
}
END_TEST

/* As Liger's kernel: 8,192 tokens of 128,256 words and a width of 4,096 are 32 chunks of 256; never more than there are. */
START_TEST(chunks_of_the_loss)
{
    struct shape s;
    shape_megascale(&s);
    s.layout.tp = 1;
    s.job.seq_len = 8192;
    s.model.hidden = 4096;
    s.model.vocab = 128256;
    ck_assert_int_eq(head_chunk_tokens(&s.layout, &s.setting), 256);
    s.job.seq_len = 5000; /* 157 a chunk at the least */
    ck_assert_int_eq(head_chunk_tokens(&s.layout, &s.setting), 256);
    s.model.vocab = 4096;
    ck_assert_int_eq(head_chunk_tokens(&s.layout, &s.setting), 5000);
}
END_TEST

/* 72 B s L h^2 (1 + s/6h + V/12Lh), which MegaScale's own table uses: 1.07739e12 FLOP per token for its 175B model. */
START_TEST(model_flops_are_megascales)
{
    struct shape s;
    shape_megascale(&s);
    double tokens = 256.0 * 2048;
    ck_assert_double_eq_tol(model_flops_per_step(&s.setting, 0, FLOPS_FULL) / tokens / 1.07739e12, 1, 1e-5);
    double causal = model_flops_per_step(&s.setting, 0, FLOPS_CAUSAL) / tokens;
    ck_assert_double_eq_tol(causal, 1.07739e12 - 3 * 96 * 2 * 12288.0 * 2048 * (1 - 1 / 2048.0), 1e7);
}
END_TEST

/* Its own rows imply a mean span of 1,230 +- 60 of 2,048 tokens. */
START_TEST(assumed_window_has_the_implied_span)
{
    struct shape s;
    shape_megascale(&s);
    double full = model_flops_per_step(&s.setting, 0, FLOPS_FULL),
           window = model_flops_per_step(&s.setting, FEATURE_BIT(SLIDING_WINDOW), FLOPS_FULL);
    double per_token_and_span = 3 * 96 * 4.0 * 12288;
    double span = 2048 - (full - window) / (256.0 * 2048) / per_token_and_span;
    ck_assert_double_ge(span, 1170);
    ck_assert_double_le(span, 1290);
}
END_TEST

START_TEST(classes_sum_to_the_cost)
{
    const feature_set sets[] = {0, FEATURE_BIT(FUSED_OPS), FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(PARALLEL_BLOCK),
                                FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(FLASH_ATTENTION) | FEATURE_BIT(SLIDING_WINDOW)};
    struct shape s;
    shape_megascale(&s);
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        for (int pass = 0; pass < N_PASSES; pass++) {
            s.layout.features = sets[i];
            s.layout.recompute.what = (enum recompute_what)(i % N_RECOMPUTES);
            struct machine machine = machine_of(&s.layout, &s.setting);
            struct work_table table = {0};
            int32_t id = work_add_pass(&table, &s.layout, &s.setting, (enum pass)pass, (struct layer_range){0, 2}, true, true);
            struct cost_by_class by = {0};
            work_cost_by_class(&machine, &table, id, &by);
            ck_assert_double_eq_tol(cost_by_class_total(&by) / cost_seconds(work_cost(&machine, &table, id)), 1, 1e-9);
            work_table_free(&table);
        }
}
END_TEST

static double forward_seconds(struct shape *s, feature_set features)
{
    s->layout.features = features;
    struct machine machine = machine_of(&s->layout, &s->setting);
    struct work_table table = {0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, PASS_FORWARD, (struct layer_range){0, 1}, false, false);
    double seconds = cost_seconds(work_cost(&machine, &table, id));
    work_table_free(&table);
    return seconds;
}

/* Every feature of MegaScale's ablation shortens the layer it is added to. */
START_TEST(features_help)
{
    struct shape s;
    shape_megascale(&s);
    const feature_set order[] = {FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(PARALLEL_BLOCK),   FEATURE_BIT(SLIDING_WINDOW),
                                 FEATURE_BIT(TP_OVERLAP),      FEATURE_BIT(FLASH_ATTENTION2), FEATURE_BIT(FUSED_OPS)};
    feature_set features = 0;
    double before = forward_seconds(&s, 0);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        features |= order[i];
        double after = forward_seconds(&s, features);
        ck_assert_double_lt(after, before);
        before = after;
    }
}
END_TEST

Suite *suite_work(void)
{
    Suite *suite = suite_create("work");
    TCase *all = tcase_create("all");
    tcase_add_test(all, layer_flops_are_the_published_count);
    tcase_add_test(all, recomputation_adds_a_forward);
    tcase_add_test(all, pytorch_repeats_what_is_needed);
    tcase_add_test(all, a_repeated_product_has_its_input_gathered);
    tcase_add_test(all, biases_and_clamps_of_experts_are_passes);
    tcase_add_test(all, each_operand_is_cast);
    tcase_add_test(all, latent_keys_are_put_together);
    tcase_add_test(all, checkpoints_in_python_pause_all_ranks);
    tcase_add_test(all, split_backward_is_the_whole);
    tcase_add_test(all, the_loss_by_its_features);
    tcase_add_test(all, chunks_of_the_loss);
    tcase_add_test(all, model_flops_are_megascales);
    tcase_add_test(all, assumed_window_has_the_implied_span);
    tcase_add_test(all, classes_sum_to_the_cost);
    tcase_add_test(all, optimizer_streams_what_is_counted);
    tcase_add_test(all, features_help);
    suite_add_tcase(suite, all);
    return suite;
}
