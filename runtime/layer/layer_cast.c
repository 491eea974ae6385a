/* layer_cast.c - a layer's operands to 8 bits: in front of the product that reads them first.
 *
 * What was cast takes the place of what it was made of, unless that is read by something else: attention's output (its backward
 * pass) and what a router reads. What sequence parallelism divides is cast before it is gathered. An operand that has not been
 * cast when its product comes (what was gathered or computed again) is cast there. */
#include "runtime/layer/layer_mixture.h"

static bool is_narrow(const struct layer_context *c)
{
    return c->rank->recipe.activations != NARROW_NONE;
}

static struct tensor *cast_of(const struct layer_context *c, const struct tensor *wide, int64_t cols, struct cast cast)
{
    size_t row = (size_t)cols * device_element_bytes(c->rank->device);
    enum narrow_format format = cast.gradient ? c->rank->recipe.gradients : c->rank->recipe.activations;
    struct tensor *narrow = narrow_new(c->rank, (int64_t)(wide->bytes / row), cols, format);
    narrow_cast(c->rank, wide->data, cast.count, cast.shared, narrow, c->step->stream);
    return narrow;
}

void layer_cast(const struct layer_context *c, struct tensor **at, int64_t cols, struct cast cast)
{
    if (!is_narrow(c) || !*at || (*at)->format != NARROW_NONE)
        return;
    struct tensor *narrow = cast_of(c, *at, cols, cast);
    layer_drop(c, at);
    *at = narrow;
}

/* A bias has the sums of the gradient before it is rounded. */
void layer_cast_gradient(const struct layer_context *c, struct product p, struct tensor **at)
{
    if (!is_narrow(c) || !*at || (*at)->format != NARROW_NONE)
        return;
    float *sum = p.biased ? unit_gradients(c->unit, p.bias) : NULL;
    struct kernel_call call = {.kernel = KERNEL_COLUMN_SUM,
                               .column_sum = {.t = p.tokens, .h = p.out, .x = (*at)->data, .sum = sum ? sum + p.first : NULL}};
    if (sum)
        layer_launch(c, &call);
    layer_cast(c, at, p.out, (struct cast){.gradient = true});
}

/* What column-parallel products read: what this rank has of it where it is divided, or all. */
static void cast_input(const struct layer_context *c, struct tensor **own, struct tensor **full)
{
    bool divided = c->shape->sequence_parallel;
    if (divided && (!*full || (*full)->format != NARROW_NONE)) {
        layer_cast(c, own, c->shape->hidden, (struct cast){.shared = true});
        return;
    }
    layer_cast(c, full, c->shape->hidden, (struct cast){0});
    if (divided || !*own || !*full || (*own)->format == (*full)->format)
        return;
    layer_drop(c, own);
    *own = tensor_share(*full);
}

/* --- steps */

static void cast_context(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    if (!l->context_cast && l->context)
        l->context_cast = cast_of(c, l->context, c->shape->context_width, (struct cast){0});
}

static void cast_step(const struct layer_context *c, const struct step *step)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct mixture_state *m = &l->mixture;
    const struct cast copies = {.count = c->experts ? routing_rows(c) : NULL};
    switch (step->of) {
    case STEP_QKV:
    case STEP_Q_DOWN:
    case STEP_KV_DOWN: cast_input(c, &l->n1, &l->n1_full); break;
    case STEP_Q_UP:
        if (s->latent.q_rank)
            layer_cast(c, &l->latent.q_latent, s->latent.q_rank, (struct cast){0});
        else
            cast_input(c, &l->n1, &l->n1_full);
        break;
    case STEP_KV_UP: layer_cast(c, &l->latent.kv_latent, s->latent.kv_rank, (struct cast){0}); break;
    case STEP_PROJECTION: cast_context(c); break;
    case STEP_UP: c->parallel ? cast_input(c, &l->n1, &l->n1_full) : cast_input(c, &l->n2, &l->n2_full); break;
    case STEP_DOWN: layer_cast(c, &l->act, s->ffn, (struct cast){0}); break;
    case STEP_EXPERT_UP: layer_cast(c, &m->x, s->hidden, copies); break;
    case STEP_EXPERT_DOWN: layer_cast(c, &m->act, s->moe.ffn, copies); break;
    case STEP_SHARED_UP: layer_cast(c, &l->n2_full, s->hidden, (struct cast){0}); break;
    case STEP_SHARED_DOWN: layer_cast(c, &m->shared_act, s->moe.shared, (struct cast){0}); break;
    default: break; /* with its product */
    }
}

/* The gradient behind a branch, before it is gathered where it is divided. */
static void cast_branch(const struct layer_context *c, bool divided, struct tensor **full)
{
    const struct cast of_branch = {.gradient = true, .shared = divided};
    layer_cast(c, divided ? &c->state->d_branch : full, c->shape->hidden, of_branch);
}

static void cast_gradient_step(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    struct mixture_state *m = &l->mixture;
    bool divided = c->shape->sequence_parallel;
    switch (step->of) {
    case STEP_DOWN_INPUT: cast_branch(c, divided, &l->d_full); break;
    case STEP_PROJECTION_INPUT: cast_branch(c, divided && !c->parallel, &l->d2_full); break;
    case STEP_UP_INPUT: layer_cast_gradient(c, up_product(c), layer_d_up(c)); break;
    case STEP_QKV_INPUT:
        layer_take_columns(c);
        layer_cast_gradient(c, qkv_product(c), layer_d_qkv(c));
        break;
    case STEP_SHARED_DOWN_INPUT: layer_cast(c, &l->d_full, c->shape->hidden, (struct cast){.gradient = true}); break;
    case STEP_SHARED_UP_INPUT: layer_cast_gradient(c, shared_up_of(c), &m->d_shared_up); break;
    case STEP_EXPERT_DOWN_INPUT: expert_cast_gradient(c, EXPERT_PRODUCT_DOWN, &m->d_y); break;
    case STEP_EXPERT_UP_INPUT: expert_cast_gradient(c, EXPERT_PRODUCT_UP, &m->d_up); break;
    default: break; /* with its product, which makes its gradient first */
    }
}

/* Copies in the order of their experts; nothing is filled up, since the products take any number of rows. */
static void sort_step(const struct layer_context *c, struct tensor **sorted)
{
    if (!*sorted)
        *sorted = mixture_sort(c);
}

bool cast_layer_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_CAST: cast_step(c, step); break;
    case STEP_CAST_GRADIENT: cast_gradient_step(c, step); break;
    case STEP_EXPERT_SORT: sort_step(c, &c->state->mixture.x); break;
    case STEP_EXPERT_SORT_GRADIENT: sort_step(c, &c->state->mixture.d_y); break;
    default: return false;
    }
    return true;
}
