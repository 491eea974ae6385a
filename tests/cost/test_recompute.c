/* Modules that are recomputed: what is kept without them and what is repeated, by hand; sums and orders. */
#include <string.h>

#include "model/cost/kernel/machine.h"
#include "shapes.h"

#define LIGHT (RECOMPUTE_LAYERNORM | RECOMPUTE_MLA_UP_PROJ | RECOMPUTE_MLP_ACT | RECOMPUTE_MOE_ACT)

static double kept(struct shape *s, int modules)
{
    s->layout.recompute.what = (enum recompute_what)modules;
    return layer_bytes_a_token(s);
}

/* Korthikanti et al. section 4.1, all but the scores: q, k, v and the output 8 h and 4 bytes a head; GeLU's input and output 16
 * h, all of these on eight ranks; the norms' inputs and outputs 8 h. */
START_TEST(a_dense_layer_keeps_what_its_modules_read)
{
    struct shape s;
    shape_layer(&s);
    double h = 12288, heads = 128, attention = (8 * h + 4 * heads) / 8, norms = 8 * h;
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), attention + 16 * h / 8 + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_CORE_ATTN), attention + 16 * h / 8 + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM), attention + 16 * h / 8 + 4 * h, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLP_ACT), attention + 8 * h / 8 + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT), attention + 8 * h / 8 + 4 * h, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLP), attention + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLP | RECOMPUTE_MLP_ACT), attention + norms, 1e-6);
    s.layout.sequence_parallel = true; /* what norms read and give is sharded too */
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM), attention + 16 * h / 8 + 4 * h / 8, 1e-6);
    s.layout.features = FEATURE_BIT(FUSED_OPS); /* scores: 2 bytes softmax, 1 mask, 2 output, of 2,048 keys a head */
    s.layout.features |= FEATURE_BIT(FUSED_SOFTMAX);
    double scores = 5 * heads * 2048 / 8, dropout = 2 * h / 8, sharded = 8 * h / 8 + 16 * h / 8 + 8 * h / 8 + dropout;
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), sharded + scores, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_CORE_ATTN), sharded + 4 * heads / 8, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_SELECTIVE), sharded + 4 * heads / 8, 1e-6); /* means the same here */
}
END_TEST

/* A gate and an up half of 2 bytes each, and their product; an eager stack keeps silu(gate) too, and the norms' fp32 copies. */
START_TEST(a_gated_layer_keeps_what_its_modules_read)
{
    struct shape s;
    shape_layer(&s);
    s.model.gated_mlp = true, s.model.norm = NORM_RMS, s.model.linear_bias = false, s.model.kv_heads = 16;
    double h = 12288, f = 4 * h, attention = (2 * (2 * h + 2 * 16 * 96) + 4 * 128) / 8;
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), attention + 6 * f / 8 + 8 * h, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLP_ACT), attention + 4 * f / 8 + 8 * h, 1e-6);
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2);
    double eager = 1.15; /* what the allocator holds for them */
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), eager * (attention + 8 * f / 8 + 8 * h + 14 * h), 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLP_ACT), eager * (attention + 4 * f / 8 + 8 * h + 14 * h), 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM), eager * (attention + 8 * f / 8 + 4 * h), 1e-6);
    s.layout.sequence_parallel = true; /* what the norms give is kept gathered */
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), eager * (attention + 8 * f / 8 + (4 + 14) * h / 8 + 4 * h), 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM), eager * (attention + 8 * f / 8 + 4 * h / 8), 1e-6);
}
END_TEST

/* Queries and keys of 192, values and the output of 128 a head; the latents before and behind their norms, 1536 and 512, and the
 * rotated part of the keys, 64; eight copies of a token, 2,048 wide in experts and once more in the shared one; router scores. */
START_TEST(a_latent_mixture_keeps_what_its_modules_read)
{
    struct shape s;
    shape_latent_mixture(&s);
    double h = 7168, output = 2 * 128 * 128 + 4 * 128, heads = 2 * 128 * (192 + 192 + 128),
           latents = 2 * (2 * 1536 + 2 * 512 + 64);
    double attention = output + heads + latents, copies = 2 * 8 * h, scores = 8 * 256, routed = 8 * 2048, shared = 2048;
    double mixture = copies + scores + 6 * (routed + shared), norms = 8 * h;
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), attention + mixture + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MLA_UP_PROJ), attention - heads + mixture + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MOE_ACT), attention + mixture - 2 * routed + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_SHARED_EXPERTS), attention + mixture - 6 * shared + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MOE), attention + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MOE | RECOMPUTE_SHARED_EXPERTS | RECOMPUTE_MOE_ACT), attention + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MLA_UP_PROJ | RECOMPUTE_MOE_ACT),
                            output + latents + mixture - 2 * routed + 4 * h, 1e-6);
    s.job.precision = PRECISION_FP8; /* casts are kept: of the output beside it, of copies and activations in their place */
    double narrow = mixture - 8 * h - (routed + shared) + 128 * 128;
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MOE_ACT), attention + narrow - routed + norms, 1e-6);
    s.model.mlp_limit = 7; /* both halves once more, clamped, inside the activation */
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_NONE), attention + narrow + 4 * (routed + shared) + norms, 1e-6);
    ck_assert_double_eq_tol(kept(&s, RECOMPUTE_MOE_ACT), attention + narrow + 4 * shared - routed + norms, 1e-6);
}
END_TEST

static double repeated_flops(struct shape *s, int modules)
{
    s->layout.recompute.what = RECOMPUTE_NONE;
    double backward = pass_flops(s, PASS_BACKWARD, 1);
    s->layout.recompute.what = (enum recompute_what)modules;
    return pass_flops(s, PASS_BACKWARD, 1) - backward;
}

START_TEST(products_inside_are_repeated)
{
    struct shape s;
    shape_latent_mixture(&s);
    double t = 2048, forward = pass_flops(&s, PASS_FORWARD, 1), near = 1e-12 * forward, h = 7168;
    double up = 2 * t * (1536 * 128 * 192 + 512 * 128 * 256), shared = 6 * t * h * 2048, routed = 8 * shared;
    double router = 2 * t * 256 * h;
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MOE_ACT), 0, near);
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_MLA_UP_PROJ), up, near);
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_SHARED_EXPERTS), shared, near);
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_MOE), router + routed + shared, near);
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_MOE | RECOMPUTE_SHARED_EXPERTS), router + routed + shared, near);
    s.model.latent.q_lora_rank = 0; /* queries from the layer's own input */
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_MLA_UP_PROJ), 2 * t * (h * 128 * 192 + 512 * 128 * 256), near);
}
END_TEST

/* Of a dense layer no module has what attention's core reads, and what is behind it: q, k, v and the projection. */
START_TEST(all_modules_are_full_but_for_projections)
{
    struct shape s;
    shape_layer(&s);
    double h = 12288, t = 2048, near = 1e-12 * pass_flops(&s, PASS_FORWARD, 1);
    double all = repeated_flops(&s, RECOMPUTE_CORE_ATTN | RECOMPUTE_LAYERNORM | RECOMPUTE_MLP);
    ck_assert_double_eq_tol(repeated_flops(&s, RECOMPUTE_FULL) - all, 8 * t * h * h / 8, near);
}
END_TEST

/* Works called `label` in the backward pass of a layer, and whether those repeated count as such. */
static int count(struct shape *s, int modules, const char *label)
{
    struct work_table table = {0};
    int n = 0;
    s->layout.recompute.what = (enum recompute_what)modules;
    work_add_pass(&table, &s->layout, &s->setting, PASS_BACKWARD, (struct layer_range){0, 1}, false, false);
    for (int i = 0; i < table.n_items; i++)
        n += strcmp(table.items[i].label, label) == 0;
    work_table_free(&table);
    return n;
}

START_TEST(exchanges_inside_are_repeated)
{
    struct shape s;
    shape_latent_mixture(&s);
    ck_assert_int_eq(count(&s, RECOMPUTE_NONE, "dispatch"), 1);
    ck_assert_int_eq(count(&s, RECOMPUTE_MOE_ACT | RECOMPUTE_SHARED_EXPERTS, "dispatch"), 1);
    ck_assert_int_eq(count(&s, RECOMPUTE_MOE, "dispatch"), 2);
    ck_assert_int_eq(count(&s, RECOMPUTE_MOE, "combine"), 2);
    shape_layer(&s);
    s.layout.sequence_parallel = true;
    ck_assert_int_eq(count(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT, "gather"), 0); /* gathered again in any case */
    ck_assert_int_eq(count(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP_ACT, "norm"), 4);
    ck_assert_int_eq(count(&s, RECOMPUTE_MLP, "gather"), 1);
    ck_assert_int_eq(count(&s, RECOMPUTE_MLP, "reduce"), 1);
    s.layout.features |= FEATURE_BIT(PARALLEL_BLOCK);
    ck_assert_int_eq(count(&s, RECOMPUTE_LAYERNORM, "norm"), 2);
    ck_assert_int_eq(count(&s, RECOMPUTE_MLP, "reduce"), 0);
    shape_layer(&s);
    s.layout.sequence_parallel = s.model.gated_mlp = true, s.model.norm = NORM_RMS;
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2); /* keeps what was gathered */
    ck_assert_int_eq(count(&s, RECOMPUTE_MLP, "gather"), 0);
    ck_assert_int_eq(count(&s, RECOMPUTE_LAYERNORM | RECOMPUTE_MLP, "gather"), 2);
}
END_TEST

static double backward_seconds(struct shape *s, int modules, double *recomputed)
{
    s->layout.recompute.what = (enum recompute_what)modules;
    struct machine machine = machine_of(&s->layout, &s->setting);
    struct work_table table = {0};
    struct cost_by_class by = {0};
    int32_t id = work_add_pass(&table, &s->layout, &s->setting, PASS_BACKWARD, (struct layer_range){0, 1}, false, false);
    double seconds = cost_seconds(work_cost(&machine, &table, id));
    work_cost_by_class(&machine, &table, id, &by);
    *recomputed = by.s[CLASS_RECOMPUTE];
    work_table_free(&table);
    return seconds;
}

/* Each module's time is its own, but for what a kernel finds in the L2 of the one before, and counts as recomputation. */
START_TEST(times_of_modules_add_up)
{
    static const int parts[] = {RECOMPUTE_CORE_ATTN, RECOMPUTE_LAYERNORM, RECOMPUTE_MLA_UP_PROJ, RECOMPUTE_MOE_ACT,
                                RECOMPUTE_SHARED_EXPERTS};
    struct shape s;
    shape_latent_mixture(&s);
    double recomputed, sum = 0, none = backward_seconds(&s, RECOMPUTE_NONE, &recomputed);
    int all = 0;
    ck_assert_double_eq(recomputed, 0);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        double more = backward_seconds(&s, parts[i], &recomputed) - none;
        ck_assert_double_gt(more, 0);
        ck_assert_double_eq_tol(more, recomputed, 0.02 * more);
        sum += more;
        all |= parts[i];
    }
    ck_assert_double_eq_tol(backward_seconds(&s, all, &recomputed) - none, sum, 0.02 * sum);
    double light = backward_seconds(&s, LIGHT, &recomputed), moe = backward_seconds(&s, RECOMPUTE_MOE | LIGHT, &recomputed);
    ck_assert_double_lt(light, moe);
    ck_assert_double_lt(moe, backward_seconds(&s, RECOMPUTE_FULL, &recomputed));
}
END_TEST

Suite *suite_recompute(void)
{
    Suite *suite = suite_create("recompute");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_dense_layer_keeps_what_its_modules_read);
    tcase_add_test(all, a_gated_layer_keeps_what_its_modules_read);
    tcase_add_test(all, a_latent_mixture_keeps_what_its_modules_read);
    tcase_add_test(all, products_inside_are_repeated);
    tcase_add_test(all, all_modules_are_full_but_for_projections);
    tcase_add_test(all, exchanges_inside_are_repeated);
    tcase_add_test(all, times_of_modules_add_up);
    suite_add_tcase(suite, all);
    return suite;
}
