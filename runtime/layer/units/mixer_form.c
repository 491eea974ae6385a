/* mixer_form.c - the table of mixers with a state, and their sizes on a rank. */
#include "runtime/base/mixer_form.h"

#include <math.h>

static const struct mixer_form forms[] = {
    [MIXER_MAMBA2] =
        {.decay = DECAY_OF_HEAD, .by_step = true, .skips = true, .conv_bias = true, .conv_again = true, .gate_first = true},
    [MIXER_LIGHTNING] = {.decay = DECAY_CONSTANT, .gate_sigmoid = true},
    [MIXER_GATED_DELTA] = {.decay = DECAY_OF_HEAD, .delta = true, .unit = true, .gain_shared = true},
    [MIXER_KIMI_DELTA] = {.decay = DECAY_OF_ROW, .delta = true, .unit = true, .gate_sigmoid = true, .gain_shared = true},
};

const struct mixer_form *mixer_form_of(enum mixer_kind kind)
{
    return &forms[kind];
}

struct mixer_shape mixer_shape_of(const struct transformer *model, int parts)
{
    const struct state_mixer *m = &model->mixer;
    if (!m->heads)
        return (struct mixer_shape){0};
    struct mixer_shape s = {.form = mixer_form_of(m->kind),
                            .heads = m->heads / parts,
                            .groups = m->groups / parts,
                            .state = m->state,
                            .head_dim = m->head_dim,
                            .taps = m->conv,
                            .chunk = m->chunk,
                            .norm = m->norm};
    bool narrow = mixer_columns_of(m).ranks > 0;
    s.rows = s.form->decay == DECAY_OF_ROW ? s.state : 1;
    s.rank = narrow ? m->head_dim : 0;
    s.values = (int64_t)s.heads * s.head_dim;
    s.keys = (int64_t)s.groups * s.state;
    s.convolved = s.values + 2 * s.keys;
    s.stripes[STRIPE_VALUES] = s.values;
    s.stripes[STRIPE_KEYS] = s.stripes[STRIPE_QUERIES] = s.keys;
    s.stripes[STRIPE_GATE] = narrow ? 0 : s.values;
    s.stripes[STRIPE_STEPS] = s.form->decay == DECAY_OF_HEAD ? s.heads : 0;
    s.stripes[STRIPE_STRENGTHS] = s.form->delta ? s.heads : 0;
    s.in = mixer_stripe_at(&s, N_MIXER_STRIPES);
    return s;
}

struct gated_norm_call mixer_gated_norm(const struct mixer_shape *s, int64_t tokens)
{
    bool shared = s->form->gain_shared;
    int n = shared ? s->heads : s->groups;
    return (struct gated_norm_call){.t = tokens,
                                    .n = n,
                                    .width = s->values / n,
                                    .gate_first = s->form->gate_first,
                                    .sigmoid = s->form->gate_sigmoid,
                                    .shared = shared,
                                    .gate_row = s->rank ? s->values : s->in};
}

float mixer_constant_decay(int heads, int h)
{
    return -exp2f(-8.0f * (float)(h + 1) / (float)heads);
}
