/* Low-rank adapters beside frozen matrices: parameters published and by hand, FLOPs and memory of a layer by hand. */
#include <string.h>

#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/adapter.h"
#include "model/spec/catalog.h"
#include "shapes.h"

enum { H = 1024, F = 4 * H, HEADS = 16, RANK = 16, TOKENS = 2048 };
enum { ALL = (1 << N_ADAPTER_TARGETS) - 1, ATTENTION = 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION };
static const feature_set FUSED = FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2);

static void adapt(struct shape *s, int64_t rank, int targets)
{
    s->job.adapter = (struct adapter){.rank = rank, .targets = (uint32_t)targets};
}

enum { EMBEDDING = 1 << WHOLE_EMBEDDING, HEAD = 1 << WHOLE_HEAD };

/* On `tp` ranks, one sequence of 2,048 tokens. */
static void shape_adapted(struct shape *s, int tp, int64_t rank, int targets)
{
    shape_gpt(s, 4, H, HEADS, tp, 1, 1, 1);
    s->layout.features = s->job.features = FUSED;
    s->layout.sequence_parallel = tp > 1;
    adapt(s, rank, targets);
}

/*
 * What peft prints ("trainable params: ... || all params: ...") of models whose matrices stand apart, and NeMo of those that it
 * keeps in one: 80 layers of Llama 2 70B with 16 (8192 + 10240) and 16 (8192 + 8192).
 */
START_TEST(parameters_are_the_published_ones)
{
    static const struct {
        const char *model;
        int64_t rank;
        int targets;
        feature_set features;
        double trained, total;
    } known[] = {{"llama2-7b", 16, ALL, 0, 39976960, 6778392576},
                 {"llama2-7b", 16, ATTENTION, 0, 16777216, 6755192832},
                 {"llama3-8b", 16, ALL, 0, 41943040, 8072204288},
                 {"llama2-70b", 16, ATTENTION, FEATURE_BIT(FUSED_OPS), 44564480, 68976648192 + 44564480}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct shape s;
        struct diags diags = {0};
        shape_megascale(&s);
        ck_assert_int_eq(catalog_model(known[i].model, &s.model, &diags), STATUS_OK);
        adapt(&s, known[i].rank, known[i].targets);
        struct adapted_model m = adapted_model_of(&s.setting, known[i].features);
        ck_assert_double_eq_tol(m.trained, known[i].trained, 0.5);
        ck_assert_double_eq_tol(m.total, known[i].total, 0.5);
        diags_free(&diags);
    }
}
END_TEST

/* Of one layer: queries, keys and values 3 h wide in one matrix, and so on; divided among ranks without a rest. */
START_TEST(parameters_are_divided)
{
    static const double widths[N_ADAPTER_TARGETS] = {H + 3 * H, H + H, H + F, F + H};
    const struct layer_range one = {0, 1};
    for (int targets = 1; targets <= ALL; targets++)
        for (int tp = 1; tp <= 8; tp *= 2) {
            struct shape s;
            double expected = 0;
            shape_adapted(&s, tp, RANK, targets);
            for (int i = 0; i < N_ADAPTER_TARGETS; i++)
                expected += targets >> i & 1 ? RANK * widths[i] : 0;
            ck_assert_double_eq_tol(adapter_parameters(&s.layout, &s.setting, one) * tp, expected, 1e-6);
            struct stage_parameters all = work_stage_parameters(&s.layout, &s.setting, one, true, true);
            struct stage_parameters trained = work_trained_parameters(&s.layout, &s.setting, one, true, true);
            ck_assert_double_eq_tol(trained.dense, expected / tp, 1e-6);
            adapt(&s, 0, 0);
            struct stage_parameters plain = work_trained_parameters(&s.layout, &s.setting, one, true, true);
            ck_assert_double_eq_tol(all.dense - plain.dense, expected / tp, 1e-6);
        }
}
END_TEST

/* Down-projections of latent attention are whole on every rank, and so are their adapters. */
START_TEST(latent_attention_has_adapters_of_each_projection)
{
    const struct latent_attention l = {
        .q_lora_rank = 256, .kv_lora_rank = 128, .qk_nope_dim = 64, .qk_rope_dim = 32, .v_dim = 64};
    const struct layer_range one = {0, 1};
    const double down = RANK * (H + 256.0 + H + 160.0), up = RANK * (256.0 + HEADS * 96.0 + 128.0 + HEADS * 128.0);
    for (int tp = 1; tp <= 4; tp *= 2) {
        struct shape s;
        shape_adapted(&s, tp, RANK, 1 << ADAPT_QKV);
        s.model.attention = ATTENTION_LATENT;
        s.model.latent = l;

        ck_assert_double_eq_tol(adapter_parameters(&s.layout, &s.setting, one), down + up / tp, 1e-9);
    }
}
END_TEST

/*
 * One layer of T tokens on one rank, adapters of rank r beside matrices [in, out]: with A = 2 T r sum(in + out), forward A more;
 * input gradients A more than before; weights' gradients A, and no others.
 */
START_TEST(a_layer_has_the_flops_by_hand)
{
    static const double widths[N_ADAPTER_TARGETS] = {4 * H, 2 * H, H + F, F + H};
    const double matrices = 2.0 * TOKENS * (4.0 * H * H + 2.0 * H * F);
    for (int targets = 1; targets <= ALL; targets++) {
        struct shape s;
        double thin = 0;
        shape_adapted(&s, 1, 0, 0);
        double forward = pass_flops(&s, PASS_FORWARD, 1), input = pass_flops(&s, PASS_BACKWARD_INPUT, 1);
        ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD_WEIGHT, 1), matrices, 1);
        adapt(&s, RANK, targets);
        for (int i = 0; i < N_ADAPTER_TARGETS; i++)
            thin += targets >> i & 1 ? 2.0 * TOKENS * RANK * widths[i] : 0;
        ck_assert_double_eq_tol(pass_flops(&s, PASS_FORWARD, 1), forward + thin, 1);
        ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD_INPUT, 1), input + thin, 1);
        ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD_WEIGHT, 1), thin, 1);
        ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD, 1), input + 2 * thin, 1);
    }
}
END_TEST

/* MFU's numerator: 2 + 2 a frozen weight of a matrix, 2 + 4 one of an adapter, attention's pairs three times. */
START_TEST(model_flops_are_two_and_two)
{
    struct shape s;
    shape_adapted(&s, 1, RANK, ALL);
    double tokens = (double)s.job.global_batch * TOKENS, layers = s.model.layers;
    double matrices = layers * (4.0 * H * H + 2.0 * H * F) + (double)s.model.vocab * H;
    double pairs = layers * 2 * 2.0 * H * TOKENS, thin = layers * RANK * (6.0 * H + 2.0 * (H + F));
    double expected = tokens * (4 * matrices + 3 * pairs + 6 * thin);
    ck_assert_double_eq_tol(model_flops_per_step(&s.setting, s.job.features, FLOPS_FULL) / expected, 1, 1e-12);
    adapt(&s, 0, 0);
    expected = tokens * (6 * matrices + 3 * pairs);
    ck_assert_double_eq_tol(model_flops_per_step(&s.setting, s.job.features, FLOPS_FULL) / expected, 1, 1e-12);
}
END_TEST

/*
 * Bytes a token and layer of the GPT line, fused: frozen, inputs of two norms (4 h), queries, keys, values and attention's output
 * (8 h), log-sum-exp (4 a), the activation's input (2 f). An adapter keeps its z (2 r, on every rank) and what it reads: what the
 * norms give, gathered whole (2 h each), the activation's output (2 f / t); attention's output is there.
 */
START_TEST(a_layer_keeps_what_it_keeps_by_hand)
{
    for (int targets = 1; targets <= ALL; targets++)
        for (int tp = 1; tp <= 8; tp *= 2) {
            struct shape s;
            shape_adapted(&s, tp, RANK, targets);
            bool qkv = targets >> ADAPT_QKV & 1, up = targets >> ADAPT_MLP_UP & 1, down = targets >> ADAPT_MLP_DOWN & 1;
            double divided = 4 * H + 8 * H + 4 * HEADS + 2 * F + (down ? 2 * F : 0);
            double whole = (qkv + up) * 2 * H + 2 * RANK * __builtin_popcount((unsigned)targets);
            ck_assert_double_eq_tol(layer_bytes_a_token(&s), divided / tp + whole, 1e-9);
        }
}
END_TEST

/* The core repeated: its output is what an adapter of the projection reads, or nobody keeps it. */
START_TEST(repeated_attention_keeps_its_output_for_an_adapter)
{
    struct shape s;
    shape_adapted(&s, 1, RANK, 1 << ADAPT_MLP_UP);
    s.layout.recompute.what = RECOMPUTE_SELECTIVE;
    double without = layer_bytes_a_token(&s);
    s.job.adapter.targets |= 1 << ADAPT_PROJECTION;
    ck_assert_double_eq_tol(layer_bytes_a_token(&s) - without, 2 * H + 2 * RANK, 1e-9);
}
END_TEST

/* Frozen weights 2 bytes, sharded by ZeRO-3 alone; gradients 4 and states 12 of adapters. ZeRO-2 makes two layers' whole. */
START_TEST(states_are_those_of_adapters)
{
    for (int zero = 0; zero <= 3; zero++) {
        struct shape s;
        struct footprint f;
        shape_adapted(&s, 2, RANK, ALL);
        s.layout.dp = 8, s.layout.zero = zero, s.job.global_batch = 8, s.setting.gpus = 16;
        const struct layer_range all = {0, s.model.layers};
        double trained = adapter_parameters(&s.layout, &s.setting, all);
        double held = work_stage_parameters(&s.layout, &s.setting, all, true, true).dense;
        footprint_of_stage(&s.layout, &s.setting, 0, &f);
        ck_assert_double_eq_tol(f.weights, 2 * held / (zero == 3 ? 8 : 1), 1e-3);
        ck_assert_double_eq_tol(f.frozen, 2 * (held - trained) / (zero == 3 ? 8 : 1), 1e-3);
        double made = zero == 2 ? 4 * 2 * trained / s.model.layers : 0;
        ck_assert_double_eq_tol(f.gradients, 4 * trained / (zero >= 2 ? 8 : 1) + made, 1e-3);
        ck_assert_double_eq_tol(f.optimizer, 12 * trained / (zero >= 1 ? 8 : 1), 1e-3);
    }
}
END_TEST

/* What of a stage with these ends is trained beside its adapters: a table an end that is named; of one that is both, either name
 * means both, and a copy at the other end is trained as well. */
START_TEST(tables_beside_adapters)
{
    for (int tied = 0; tied < 2; tied++)
        for (uint32_t whole = 0; whole <= (EMBEDDING | HEAD); whole++)
            for (int ends = 0; ends < 4; ends++) {
                struct shape s;
                bool embedding = ends & 1, head = ends >> 1;
                shape_adapted(&s, 2, RANK, ALL);
                s.layout.pp = 2;
                s.model.tied_embeddings = tied;
                s.job.adapter.whole = whole;
                int apart = (embedding && whole & EMBEDDING) + (head && whole & HEAD);
                int tables = tied ? whole && (embedding || head) : apart;
                const struct layer_range one = {0, 1};
                struct stage_parameters t = work_trained_parameters(&s.layout, &s.setting, one, embedding, head);
                double expected = adapter_parameters(&s.layout, &s.setting, one) + tables * (double)s.model.vocab * H / 2;
                ck_assert_double_eq_tol(t.dense, expected, 1e-6);
            }
}
END_TEST

/* Llama 3 8B, r = 16 at all matrices, and both tables of 128,256 x 4,096 with the 41,943,040 above. The tables belong to the
 * model: the number of all parameters does not change. */
START_TEST(whole_tables_count)
{
    struct shape s;
    struct diags diags = {0};
    shape_megascale(&s);
    ck_assert_int_eq(catalog_model("llama3-8b", &s.model, &diags), STATUS_OK);
    adapt(&s, 16, ALL);
    s.job.adapter.whole = EMBEDDING | HEAD;
    struct adapted_model m = adapted_model_of(&s.setting, 0);
    ck_assert_double_eq_tol(m.trained, 41943040.0 + 2 * 128256.0 * 4096, 0.5);
    ck_assert_double_eq_tol(m.total, 8072204288.0, 0.5);
    diags_free(&diags);
}
END_TEST

/* Of the ends alone. */
static double ends_flops(const struct shape *s, enum pass pass)
{
    struct work_table table = {0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, 0}, true, true);
    double flops = work_flops(&table, id);
    work_table_free(&table);
    return flops;
}

/* The head's weights have their gradient, 2 T h V FLOPs, in both kinds of backward pass, and count six times in MFU's numerator;
 * the table's is a sum without products. */
START_TEST(whole_tables_have_gradients)
{
    for (int stack = 0; stack < 3; stack++) {
        struct shape s;
        const feature_set loss[] = {0, FEATURE_BIT(FUSED_LINEAR_LOSS), FEATURE_BIT(CUT_LOSS)};
        shape_adapted(&s, 1, RANK, ALL);
        s.layout.features = s.job.features = FUSED | loss[stack];
        double product = 2.0 * TOKENS * H * (double)s.model.vocab, step = (double)s.job.global_batch * product;
        double forward = ends_flops(&s, PASS_FORWARD), backward = ends_flops(&s, PASS_BACKWARD);
        double numerator = model_flops_per_step(&s.setting, s.job.features, FLOPS_FULL);
        s.job.adapter.whole = EMBEDDING;
        s.model.tied_embeddings = false;
        ck_assert_double_eq_tol(ends_flops(&s, PASS_FORWARD) + ends_flops(&s, PASS_BACKWARD), forward + backward, 1);
        ck_assert_double_eq_tol(model_flops_per_step(&s.setting, s.job.features, FLOPS_FULL), numerator, 1);
        s.job.adapter.whole = HEAD;
        ck_assert_double_eq_tol(ends_flops(&s, PASS_FORWARD) + ends_flops(&s, PASS_BACKWARD), forward + backward + product, 1);
        ck_assert_double_eq_tol(model_flops_per_step(&s.setting, s.job.features, FLOPS_FULL) / (numerator + step), 1, 1e-12);
    }
}
END_TEST

/* Weights stay; gradients 4 and states 12 of each table more; of one ZeRO-2's are whole, too. */
START_TEST(whole_tables_have_states)
{
    for (int zero = 0; zero <= 3; zero++) {
        struct shape s;
        struct footprint frozen, f;
        shape_adapted(&s, 2, RANK, ALL);
        s.model.tied_embeddings = false;
        s.layout.dp = 8, s.layout.zero = zero, s.job.global_batch = 8, s.setting.gpus = 16;
        footprint_of_stage(&s.layout, &s.setting, 0, &frozen);
        s.job.adapter.whole = EMBEDDING | HEAD;
        footprint_of_stage(&s.layout, &s.setting, 0, &f);
        double tables = 2 * (double)s.model.vocab * H / 2;
        ck_assert_double_eq_tol(f.weights, frozen.weights, 1e-3);
        ck_assert_double_eq_tol(frozen.frozen - f.frozen, 2 * tables / (zero == 3 ? 8 : 1), 1e-3);
        ck_assert_double_eq_tol(f.gradients - frozen.gradients,
                                4 * tables / (zero >= 2 ? 8 : 1) + (zero == 2 ? 4 * tables / 2 : 0), 1e-3);
        ck_assert_double_eq_tol(f.optimizer - frozen.optimizer, 12 * tables / (zero >= 1 ? 8 : 1), 1e-3);
    }
}
END_TEST

static double seconds(const struct shape *s, enum pass pass)
{
    struct machine machine = machine_of(&s->layout, &s->setting);
    struct work_table table = {0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, s->model.layers}, true, true);
    double result = cost_seconds(work_cost(&machine, &table, id));
    work_table_free(&table);
    return result;
}

/* A higher rank never takes less time or memory, in any pass, eager or fused; and fused, where adapters take few passes over what
 * they add to, backward passes with thin ones are shorter than those that train all weights. */
START_TEST(rank_costs)
{
    static const feature_set stacks[] = {FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FLASH_ATTENTION2), FEATURE_BIT(FLASH_ATTENTION2),
                                         0};
    for (int stack = 0; stack < 3; stack++)
        for (int tp = 1; tp <= 8; tp *= 8) {
            struct shape s;
            double before[N_PASSES] = {0}, bytes = 0;
            shape_adapted(&s, tp, 0, 0);
            s.model.gated_mlp = stack > 0;
            s.layout.features = s.job.features = stacks[stack];
            double trained = seconds(&s, PASS_BACKWARD);
            for (int64_t rank = 8; rank <= 4096; rank *= 2) {
                struct footprint f;
                adapt(&s, rank, ALL);
                for (int pass = 0; pass < N_PASSES; pass++) {
                    double now = seconds(&s, (enum pass)pass);
                    ck_assert_double_ge(now, before[pass]);
                    before[pass] = now;
                }
                footprint_of_stage(&s.layout, &s.setting, 0, &f);
                ck_assert_double_gt(f.total, bytes);
                bytes = f.total;
                if (rank == 8 && tp == 1 && stack == 0)
                    ck_assert_double_lt(before[PASS_BACKWARD], trained);
            }
        }
}
END_TEST

/* Experts that are frozen keep neither the copies of tokens nor what their down-projections read, and have no gradients. */
START_TEST(experts_stay_frozen)
{
    struct shape s;
    shape_adapted(&s, 1, 0, 0);
    s.model.gated_mlp = true;
    s.model.moe = (struct mixture){.experts = 8, .top_k = 2, .expert_ffn = H, .every = 1};
    double kept = layer_bytes_a_token(&s), weights = pass_flops(&s, PASS_BACKWARD_WEIGHT, 1);
    adapt(&s, RANK, ATTENTION);
    double thin = 2.0 * TOKENS * RANK * 6 * H;
    ck_assert_double_gt(weights, 100 * thin);
    ck_assert_double_eq_tol(pass_flops(&s, PASS_BACKWARD_WEIGHT, 1), thin, 1);
    /* copies 2 k h, products 2 k f, the feed-forward part's input 2 h; two z */
    ck_assert_double_eq_tol(kept - layer_bytes_a_token(&s), 2 * 2 * H + 2 * 2 * H + 2 * H - 2 * 2 * RANK, 1e-9);
}
END_TEST

Suite *suite_adapter(void)
{
    Suite *suite = suite_create("adapter");
    TCase *all = tcase_create("all");
    tcase_add_test(all, parameters_are_the_published_ones);
    tcase_add_test(all, parameters_are_divided);
    tcase_add_test(all, latent_attention_has_adapters_of_each_projection);
    tcase_add_test(all, a_layer_has_the_flops_by_hand);
    tcase_add_test(all, model_flops_are_two_and_two);
    tcase_add_test(all, a_layer_keeps_what_it_keeps_by_hand);
    tcase_add_test(all, repeated_attention_keeps_its_output_for_an_adapter);
    tcase_add_test(all, states_are_those_of_adapters);
    tcase_add_test(all, tables_beside_adapters);
    tcase_add_test(all, whole_tables_count);
    tcase_add_test(all, whole_tables_have_gradients);
    tcase_add_test(all, whole_tables_have_states);
    tcase_add_test(all, rank_costs);
    tcase_add_test(all, experts_stay_frozen);
    suite_add_tcase(suite, all);
    return suite;
}
