/* layer_cast_step.c - the steps that cast operands to 8 bits, each in front of the product that reads them first.
 *
 * Example: with precision fp8, the list of a layer has "cast" (of STEP_UP) in front of "mlp_up". Its step casts the norm of the
 * feed-forward part, n2 or n2_full, and the product then reads 8-bit numbers.
 *
 * The cast replaces the tensor, unless something else reads the tensor too: attention's output (its backward pass) and the input
 * of a router. With sequence parallelism the operand is cast before it is gathered. If an operand is not cast when its product
 * runs (because it was gathered or computed again), the product casts it. */
#include "runtime/layer/layer_mixture.h"

/* Casts the input of column-parallel products: this rank's part if it is divided, else all of it. */
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

static void cast_context(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    if (!l->context_cast && l->context)
        l->context_cast = layer_cast_of(c, l->context, c->shape->context_width, (struct cast){0});
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

/* Casts the gradient of a branch's output; if it is divided, before it is gathered. */
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
