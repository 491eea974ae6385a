/* layer_mixer.c - mixers with a state (kernels/mixers.h) as kernels, following the table of mixer_form.h.
 *
 *     in [T, stripes] --- convolution (or only its activation) --> mixed [T, values, keys, queries]
 *         mixed --- unit --> unit [T, keys, queries]
 *         numbers per head, or narrow products --- gates --> decay, strength
 *     scan --> y [T, values] --- gated norm --> normed --- product --> branch
 *
 * These tensors are recomputed only when the whole layer is: no module of selective recomputation contains them. */
#include <math.h>

#include "runtime/layer/layer.h"

static const struct mixer_shape *sizes(const struct layer_context *c)
{
    return &c->shape->mixer;
}

static const struct mixer_form *form_of(const struct layer_context *c)
{
    return sizes(c)->form;
}

static struct product in_of(const struct layer_context *c)
{
    struct product p = layer_product(c, PARAMETER_MIXER_IN, c->shape->hidden, sizes(c)->in);
    p.bias = PARAMETER_MIXER_IN_BIAS;
    p.biased = c->shape->linear_bias;
    return p;
}

/* The bias is added by one of the ranks: side by side with attention there is one residual for both. */
static struct product out_of(const struct layer_context *c)
{
    struct product p = layer_product(c, PARAMETER_MIXER_OUT, sizes(c)->values, c->shape->hidden);
    p.bias = PARAMETER_MIXER_OUT_BIAS;
    p.biased = c->shape->linear_bias && c->shape->tp_rank == 0;
    return p;
}

static struct product down_of(const struct layer_context *c)
{
    return layer_product(c, PARAMETER_MIXER_DOWN, c->shape->hidden, 2 * sizes(c)->rank);
}

static struct product narrow_of(const struct layer_context *c, enum mixer_ranked which)
{
    const struct mixer_shape *s = sizes(c);
    return which == RANKED_DECAYS ? layer_product(c, PARAMETER_MIXER_DECAYS_UP, s->rank, (int64_t)s->heads * s->rows)
                                  : layer_product(c, PARAMETER_MIXER_GATE_UP, s->rank, s->values);
}

/* A stripe of a tensor that is as wide as the input's product. */
static void *stripe(const struct layer_context *c, struct tensor *in, enum mixer_stripe which)
{
    return sizes(c)->stripes[which] ? layer_row(c, tensor_data(in), mixer_stripe_at(sizes(c), which)) : NULL;
}

/* Numbers that come by narrow products, or in a stripe. */
static struct strip {
    void *data;
    int64_t row;
} strip_of(const struct layer_context *c, struct tensor *in, enum mixer_stripe which, struct tensor *narrow, int64_t width)
{
    return narrow ? (struct strip){tensor_data(narrow), width} : (struct strip){stripe(c, in, which), sizes(c)->in};
}

static struct strip gate_strip(const struct layer_context *c, bool gradient)
{
    struct mixer_state *m = &c->state->mixer;
    return strip_of(c, gradient ? m->d_in : m->in, STRIPE_GATE, gradient ? m->d_up[RANKED_GATE] : m->up[RANKED_GATE],
                    sizes(c)->values);
}

static struct strip steps_strip(const struct layer_context *c, bool gradient)
{
    struct mixer_state *m = &c->state->mixer;
    return strip_of(c, gradient ? m->d_in : m->in, STRIPE_STEPS, gradient ? m->d_up[RANKED_DECAYS] : m->up[RANKED_DECAYS],
                    (int64_t)sizes(c)->heads * sizes(c)->rows);
}

/* --- kernels: the same call both ways, with what a pass does not have left out */

static void convolve(const struct layer_context *c, bool backward)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    bool biased = s->taps && form_of(c)->conv_bias;
    struct kernel_call call = {.kernel = backward ? KERNEL_CONVOLUTION_BACKWARD : KERNEL_CONVOLUTION_FORWARD,
                               .convolution = {.batch = c->shape->micro_batch,
                                               .seq_len = c->shape->seq_len,
                                               .channels = s->convolved,
                                               .taps = s->taps,
                                               .x_row = s->in,
                                               .x = tensor_data(m->in),
                                               .w = layer_weights(c, PARAMETER_MIXER_CONV),
                                               .bias = biased ? layer_weights(c, PARAMETER_MIXER_CONV_BIAS) : NULL}};
    if (!backward) {
        m->mixed = layer_tensor(c, c->shape->tokens, s->convolved);
        call.convolution.y = tensor_data(m->mixed);
    } else {
        call.convolution.dy = tensor_data(m->d_mixed);
        call.convolution.dx = tensor_data(m->d_in);
        call.convolution.dw = unit_gradients(c->unit, PARAMETER_MIXER_CONV);
        call.convolution.dbias = biased ? unit_gradients(c->unit, PARAMETER_MIXER_CONV_BIAS) : NULL;
    }
    layer_launch(c, &call);
}

static struct kernel_call unit_of(const struct layer_context *c, bool backward)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    return (struct kernel_call){.kernel = backward ? KERNEL_UNIT_BACKWARD : KERNEL_UNIT_FORWARD,
                                .unit = {.t = c->shape->tokens,
                                         .n = 2 * s->groups,
                                         .width = s->state,
                                         .epsilon = UNIT_EPSILON,
                                         .x_row = s->convolved,
                                         .x = layer_row(c, tensor_data(m->mixed), s->values),
                                         .y = tensor_data(m->unit),
                                         .dy = tensor_data(m->d_unit),
                                         .dx = layer_row(c, tensor_data(m->d_mixed), s->values)}};
}

static struct kernel_call gates_of(const struct layer_context *c, bool backward)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    struct strip steps = steps_strip(c, false), d_steps = steps_strip(c, true);
    return (struct kernel_call){.kernel = backward ? KERNEL_GATES_BACKWARD : KERNEL_GATES_FORWARD,
                                .gates = {.t = c->shape->tokens,
                                          .heads = s->heads,
                                          .rows = s->rows,
                                          .by_step = form_of(c)->by_step,
                                          .steps_row = steps.row,
                                          .strengths_row = s->in,
                                          .steps = steps.data,
                                          .strengths = stripe(c, m->in, STRIPE_STRENGTHS),
                                          .rates = layer_weights(c, PARAMETER_MIXER_RATES),
                                          .bias = layer_weights(c, PARAMETER_MIXER_STEP_BIAS),
                                          .decay = tensor_data(m->decay),
                                          .strength = tensor_data(m->strength),
                                          .ddecay = tensor_data(m->d_decay),
                                          .dstrength = tensor_data(m->d_strength),
                                          .dsteps = d_steps.data,
                                          .dstrengths = stripe(c, m->d_in, STRIPE_STRENGTHS),
                                          .drates = unit_gradients(c->unit, PARAMETER_MIXER_RATES),
                                          .dbias = unit_gradients(c->unit, PARAMETER_MIXER_STEP_BIAS)}};
}

/* Keys and queries of length 1, or as they were mixed. */
struct keys_view {
    void *k, *q;
    int64_t row;
};

static struct keys_view keys_of(const struct layer_context *c, struct tensor *unit, struct tensor *mixed)
{
    const struct mixer_shape *s = sizes(c);
    void *first = unit ? tensor_data(unit) : layer_row(c, tensor_data(mixed), s->values);
    return (struct keys_view){first, layer_row(c, first, s->keys), unit ? 2 * s->keys : s->convolved};
}

static void scan(const struct layer_context *c, bool backward)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    struct keys_view keys = keys_of(c, m->unit, m->mixed), d = keys_of(c, m->d_unit, m->d_mixed);
    bool constant = form_of(c)->decay == DECAY_CONSTANT;
    struct kernel_call call = {.kernel = backward ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD,
                               .scan = {.batch = c->shape->micro_batch,
                                        .seq_len = c->shape->seq_len,
                                        .chunk = s->chunk < c->shape->seq_len ? s->chunk : c->shape->seq_len,
                                        .heads = s->heads,
                                        .groups = s->groups,
                                        .state = s->state,
                                        .head_dim = s->head_dim,
                                        .rows = s->rows,
                                        .delta = form_of(c)->delta,
                                        .scale = form_of(c)->unit ? 1 / sqrtf((float)s->state) : 1,
                                        .v_row = s->convolved,
                                        .k_row = keys.row,
                                        .decay_row = constant ? 0 : (int64_t)s->heads * s->rows,
                                        .v = tensor_data(m->mixed),
                                        .k = keys.k,
                                        .q = keys.q,
                                        .decay = constant ? c->rank->constant_decays : tensor_data(m->decay),
                                        .strength = tensor_data(m->strength),
                                        .skip = layer_weights(c, PARAMETER_MIXER_SKIP),
                                        .y = tensor_data(m->y),
                                        .dy = tensor_data(m->d_y),
                                        .dv = tensor_data(m->d_mixed),
                                        .dk = d.k,
                                        .dq = d.q,
                                        .ddecay = tensor_data(m->d_decay),
                                        .dstrength = tensor_data(m->d_strength),
                                        .dskip = unit_gradients(c->unit, PARAMETER_MIXER_SKIP)}};
    struct tensor *workspace = tensor_new(c->rank, c->rank->device->api->scan_workspace(c->rank->device, &call.scan, backward));
    call.scan.workspace = tensor_data(workspace);
    layer_launch(c, &call);
    layer_drop(c, &workspace);
}

static void gated_norm(const struct layer_context *c, bool backward)
{
    struct mixer_state *m = &c->state->mixer;
    struct kernel_call call = {.kernel = backward ? KERNEL_GATED_NORM_BACKWARD : KERNEL_GATED_NORM_FORWARD,
                               .gated_norm = mixer_gated_norm(sizes(c), c->shape->tokens)};
    call.gated_norm.epsilon = NORM_EPSILON;
    call.gated_norm.x = tensor_data(m->y);
    call.gated_norm.gate = gate_strip(c, false).data;
    call.gated_norm.gain = sizes(c)->norm ? layer_weights(c, PARAMETER_MIXER_GAIN) : NULL;
    call.gated_norm.y = tensor_data(m->normed);
    call.gated_norm.dy = tensor_data(m->d_normed);
    call.gated_norm.dx = tensor_data(m->d_y);
    call.gated_norm.dgate = gate_strip(c, true).data;
    call.gated_norm.dgain = unit_gradients(c->unit, PARAMETER_MIXER_GAIN);
    layer_launch(c, &call);
}

/* --- forward */

static void in_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    m->in = product_made(c, LAYER_MIXER_IN, in_of(c), c->state->n1_full);
    if (!sizes(c)->rank)
        layer_input_read(c, MIXES_BY_STATE);
}

/* Columns of what the narrow product gives, or of its gradient, between one tensor and the other. */
static void copy_half(const struct layer_context *c, enum mixer_ranked which, struct tensor *half, struct tensor *both, bool join)
{
    int64_t rank = sizes(c)->rank;
    void *columns = layer_row(c, tensor_data(both), which * rank);
    layer_rows(c, (struct rows_call){.n = c->shape->tokens,
                                     .width = rank,
                                     .from_row = join ? rank : 2 * rank,
                                     .to_row = join ? 2 * rank : rank,
                                     .from = join ? tensor_data(half) : columns,
                                     .to = join ? columns : tensor_data(half)});
}

static void down_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    struct tensor *both = product_made(c, LAYER_MIXER_DOWN, down_of(c), c->state->n1_full);
    for (int i = 0; i < N_RANKED; i++) {
        m->down[i] = layer_tensor(c, c->shape->tokens, sizes(c)->rank);
        copy_half(c, (enum mixer_ranked)i, m->down[i], both, false);
    }
    layer_drop(c, &both);
    layer_input_read(c, MIXES_BY_STATE);
}

static void up_step(const struct layer_context *c, enum mixer_ranked which)
{
    struct mixer_state *m = &c->state->mixer;
    m->up[which] =
        product_made(c, which == RANKED_DECAYS ? LAYER_MIXER_DECAYS : LAYER_MIXER_GATE, narrow_of(c, which), m->down[which]);
    layer_forget(c, &m->down[which], RECOMPUTE_FULL);
}

static void gates_step(const struct layer_context *c)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    if (!s->taps)
        convolve(c, false);
    if (form_of(c)->unit) {
        m->unit = layer_tensor(c, c->shape->tokens, 2 * s->keys);
        struct kernel_call unit = unit_of(c, false);
        layer_launch(c, &unit);
    }
    if (form_of(c)->decay == DECAY_CONSTANT)
        return;
    m->decay = layer_floats(c, c->shape->tokens * s->heads * s->rows);
    m->strength = layer_floats(c, c->shape->tokens * s->heads);
    struct kernel_call gates = gates_of(c, false);
    layer_launch(c, &gates);
}

static void scan_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    m->y = layer_tensor(c, c->shape->tokens, sizes(c)->values);
    scan(c, false);
    if (form_of(c)->conv_again && sizes(c)->taps)
        layer_drop(c, &m->mixed);
    layer_forget(c, &m->mixed, RECOMPUTE_FULL);
    layer_forget(c, &m->unit, RECOMPUTE_FULL);
    layer_forget(c, &m->decay, RECOMPUTE_FULL);
    layer_forget(c, &m->strength, RECOMPUTE_FULL);
}

static void norm_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    m->normed = layer_tensor(c, c->shape->tokens, sizes(c)->values);
    gated_norm(c, false);
    layer_forget(c, &m->y, RECOMPUTE_FULL);
    layer_forget(c, &m->in, RECOMPUTE_FULL);
    for (int i = 0; i < N_RANKED; i++)
        layer_forget(c, &m->up[i], RECOMPUTE_FULL);
}

static void out_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    if (step_is_silent(c->step->step))
        return;
    bool joins = l->branch != NULL; /* attention's branch, which is added */
    if (!joins)
        l->branch = layer_tensor(c, c->shape->tokens, c->shape->hidden);
    product_forward(c, out_of(c), l->mixer.normed, tensor_data(l->branch), joins);
    layer_forget(c, &l->mixer.normed, RECOMPUTE_FULL);
}

/* --- backward */

static void out_input_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    l->mixer.d_normed = layer_tensor(c, c->shape->tokens, sizes(c)->values);
    product_input(c, out_of(c), l->d2_full, tensor_data(l->mixer.d_normed), false);
    layer_drop(c, &l->d_branch);
}

static void out_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct product p = out_of(c);
    p.biased = false; /* its gradient comes with the residual's */
    product_weight(c, p, l->d2_full, l->mixer.normed);
    layer_drop(c, &l->mixer.normed);
    if (!(c->kind.mixers & MIXES_BY_ATTENTION))
        layer_drop(c, &l->d2_full);
}

static void norm_backward_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    m->d_in = layer_tensor(c, c->shape->tokens, sizes(c)->in);
    if (sizes(c)->rank)
        m->d_up[RANKED_GATE] = layer_tensor(c, c->shape->tokens, sizes(c)->values);
    m->d_y = layer_tensor(c, c->shape->tokens, sizes(c)->values);
    gated_norm(c, true);
    layer_drop(c, &m->d_normed);
    layer_drop(c, &m->y);
    layer_drop(c, &m->up[RANKED_GATE]);
}

static void scan_backward_step(const struct layer_context *c)
{
    const struct mixer_shape *s = sizes(c);
    struct mixer_state *m = &c->state->mixer;
    m->d_mixed = layer_tensor(c, c->shape->tokens, s->convolved);
    m->d_unit = m->unit ? layer_tensor(c, c->shape->tokens, 2 * s->keys) : NULL;
    m->d_decay = m->decay ? layer_floats(c, c->shape->tokens * s->heads * s->rows) : NULL;
    m->d_strength = m->strength ? layer_floats(c, c->shape->tokens * s->heads) : NULL;
    scan(c, true);
    layer_drop(c, &m->d_y);
    layer_drop(c, &m->decay);
    layer_drop(c, &m->strength);
}

/* The end of what the convolution gave, and of its input. */
static void convolution_backward_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    convolve(c, true);
    layer_drop(c, &m->d_mixed);
    layer_drop(c, &m->in);
}

static void gates_backward_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    if (m->d_unit) {
        struct kernel_call unit = unit_of(c, true);
        layer_launch(c, &unit);
    }
    if (m->d_decay) {
        if (sizes(c)->rank)
            m->d_up[RANKED_DECAYS] = layer_tensor(c, c->shape->tokens, (int64_t)sizes(c)->heads * sizes(c)->rows);
        struct kernel_call gates = gates_of(c, true);
        layer_launch(c, &gates);
    }
    layer_drop(c, &m->d_unit);
    layer_drop(c, &m->unit);
    layer_drop(c, &m->mixed);
    layer_drop(c, &m->d_decay);
    layer_drop(c, &m->d_strength);
    layer_drop(c, &m->up[RANKED_DECAYS]);
    if (!sizes(c)->taps)
        convolution_backward_step(c);
}

static void up_input_step(const struct layer_context *c, enum mixer_ranked which)
{
    struct mixer_state *m = &c->state->mixer;
    struct product p = narrow_of(c, which);
    m->d_down_of[which] = layer_tensor(c, c->shape->tokens, p.in);
    product_input(c, p, m->d_up[which], tensor_data(m->d_down_of[which]), false);
}

static void up_weight_step(const struct layer_context *c, enum mixer_ranked which)
{
    struct mixer_state *m = &c->state->mixer;
    product_weight(c, narrow_of(c, which), m->d_up[which], m->down[which]);
    layer_drop(c, &m->d_up[which]);
    layer_drop(c, &m->down[which]);
}

static void input_gradient(const struct layer_context *c, struct product p, struct tensor **d)
{
    bool joins = layer_d_input(c);
    product_input(c, p, *d, tensor_data(c->state->d_n1), joins);
}

static void down_input_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    m->d_down = layer_tensor(c, c->shape->tokens, 2 * sizes(c)->rank);
    for (int i = 0; i < N_RANKED; i++) {
        copy_half(c, (enum mixer_ranked)i, m->d_down_of[i], m->d_down, true);
        layer_drop(c, &m->d_down_of[i]);
    }
    input_gradient(c, down_of(c), &m->d_down);
}

static void down_weight_step(const struct layer_context *c)
{
    struct mixer_state *m = &c->state->mixer;
    product_weight(c, down_of(c), m->d_down, c->state->n1_full);
    layer_drop(c, &m->d_down);
}

static void in_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, in_of(c), l->mixer.d_in, l->n1_full);
    layer_drop(c, &l->mixer.d_in);
    if (c->kind.mixers & MIXES_BY_ATTENTION)
        return;
    layer_drop(c, &l->n1_full);
    layer_drop(c, &l->n1);
}

static bool forward_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_MIXER_IN: in_step(c); break;
    case STEP_MIXER_DOWN: down_step(c); break;
    case STEP_MIXER_DECAYS_UP: up_step(c, RANKED_DECAYS); break;
    case STEP_MIXER_GATE_UP: up_step(c, RANKED_GATE); break;
    case STEP_MIXER_CONV: convolve(c, false); break;
    case STEP_MIXER_GATES: gates_step(c); break;
    case STEP_MIXER_SCAN: scan_step(c); break;
    case STEP_MIXER_NORM: norm_step(c); break;
    case STEP_MIXER_OUT: out_step(c); break;
    default: return false;
    }
    return true;
}

static bool backward_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_MIXER_OUT_INPUT: out_input_step(c); break;
    case STEP_MIXER_OUT_WEIGHT: out_weight_step(c); break;
    case STEP_MIXER_NORM_BACKWARD: norm_backward_step(c); break;
    case STEP_MIXER_CONV_AGAIN: convolve(c, false); break;
    case STEP_MIXER_SCAN_BACKWARD: scan_backward_step(c); break;
    case STEP_MIXER_GATES_BACKWARD: gates_backward_step(c); break;
    case STEP_MIXER_CONV_BACKWARD: convolution_backward_step(c); break;
    case STEP_MIXER_GATE_UP_INPUT: up_input_step(c, RANKED_GATE); break;
    case STEP_MIXER_GATE_UP_WEIGHT: up_weight_step(c, RANKED_GATE); break;
    case STEP_MIXER_DECAYS_UP_INPUT: up_input_step(c, RANKED_DECAYS); break;
    case STEP_MIXER_DECAYS_UP_WEIGHT: up_weight_step(c, RANKED_DECAYS); break;
    case STEP_MIXER_DOWN_INPUT: down_input_step(c); break;
    case STEP_MIXER_DOWN_WEIGHT: down_weight_step(c); break;
    case STEP_MIXER_IN_INPUT: input_gradient(c, in_of(c), &c->state->mixer.d_in); break;
    case STEP_MIXER_IN_WEIGHT: in_weight_step(c); break;
    default: return false;
    }
    return true;
}

bool mixer_step(const struct layer_context *c, const struct step *step)
{
    return forward_step(c, step) || backward_step(c, step);
}
