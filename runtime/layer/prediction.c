/* prediction.c - the part of a multi-token prediction module in front of its layer, forward and backward.
 *
 * Modules are numbered as layers behind the model's last one. A module reads two inputs: the state of the depth before (the
 * output of the last layer, or of the module before) and the embedding of the token whose successor it predicts. The product
 * that joins them is column-parallel: each rank's columns are gathered, and backward each rank takes its columns of the
 * gradient. */
#include "runtime/layer/layer.h"

static const enum parameter_kind gains[2] = {PARAMETER_PREDICTION_EMBEDDING_GAIN, PARAMETER_PREDICTION_STATE_GAIN};

static struct prediction_state *state_of(const struct layer_context *c)
{
    return &c->step->pass->predictions[c->layer - c->shape->layers + c->shape->predictions];
}

/* The head of the depth before keeps the state. */
static struct tensor *state_before(const struct layer_context *c)
{
    struct pass_state *pass = c->step->pass;
    struct prediction_state *p = state_of(c);
    return p == pass->predictions ? pass->head.x : p[-1].head.x;
}

static struct product product_of(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    return layer_product(c, PARAMETER_PREDICTION_PROJECTION, 2 * s->hidden, s->hidden / s->tp);
}

/* --- forward */

/* [L, h] and [L, h] become, or are, the halves of [L, 2 h]. */
static void move_half(const struct layer_context *c, int half, struct tensor *whole, struct tensor *part, bool apart)
{
    int64_t h = c->shape->hidden;
    void *at = layer_row(c, tensor_data(whole), half * h);
    layer_rows(c, (struct rows_call){.n = c->shape->local_tokens,
                                     .width = h,
                                     .from_row = apart ? 2 * h : h,
                                     .to_row = apart ? h : 2 * h,
                                     .from = apart ? at : tensor_data(part),
                                     .to = apart ? tensor_data(part) : at});
}

static void norms_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct prediction_state *p = state_of(c);
    p->x[1] = tensor_share(state_before(c));
    p->n = layer_tensor(c, s->local_tokens, 2 * s->hidden);
    for (int i = 0; i < 2; i++) {
        struct tensor *y = NULL;
        step_norm_forward(c->step, c->unit, (struct norm_tensors){gains[i], p->x[i], &p->mean[i], &p->rstd[i], &y});
        move_half(c, i, p->n, y, false);
        layer_drop(c, &y);
    }
    if (!s->sequence_parallel)
        p->n_full = tensor_share(p->n);
}

static void projection_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct prediction_state *p = state_of(c);
    p->columns = layer_tensor(c, s->tokens, s->hidden / s->tp);
    layer_cast(c, &p->n_full, 2 * s->hidden, (struct cast){0});
    product_forward(c, product_of(c), p->n_full, tensor_data(p->columns), false);
    if (s->sequence_parallel) /* gathered again in the backward pass */
        layer_drop(c, &p->n_full);
    if (s->tp == 1) {
        c->step->pass->x = p->columns;
        p->columns = NULL;
    }
}

/* Those of rank `from` in the tensor-parallel group. */
static void take_columns(const struct layer_context *c, int from, struct tensor *all, struct tensor *x)
{
    const struct shape *s = c->shape;
    int64_t width = s->hidden / s->tp, rows = s->local_tokens / c->rank->pipeline.slices;
    for (int k = 0; k < c->rank->pipeline.slices; k++)
        layer_rows(
            c, (struct rows_call){.n = rows,
                                  .width = width,
                                  .from_row = width,
                                  .to_row = s->hidden,
                                  .from = layer_row(c, tensor_data(all), (from * s->tokens + pipeline_row(c->rank, k)) * width),
                                  .to = layer_row(c, tensor_data(x), k * rows * s->hidden + from * width)});
}

/* Every rank's columns, [tp][T, h / tp]; this rank's tokens of them make [L, h]. */
static void columns_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct prediction_state *p = state_of(c);
    int64_t width = s->hidden / s->tp;
    struct tensor *all = layer_tensor(c, s->tp * s->tokens, width), *x = layer_tensor(c, s->local_tokens, s->hidden);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = tensor_data(p->columns),
                                 .out = tensor_data(all),
                                 .count = s->tokens * width,
                                 .what = "prediction's columns"};
    rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->step->stream, &call);
    for (int i = 0; i < s->tp; i++)
        take_columns(c, i, all, x);
    layer_drop(c, &p->columns);
    layer_drop(c, &all);
    c->step->pass->x = x;
}

/* --- backward */

static void gather_gradient_step(const struct layer_context *c)
{
    struct prediction_state *p = state_of(c);
    tp_gather(c->step, c->step->pass->d, &p->d_full, "gradient of a prediction's input");
    layer_drop(c, &c->step->pass->d);
}

static void input_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct prediction_state *p = state_of(c);
    int64_t width = s->hidden / s->tp;
    if (!s->sequence_parallel) {
        p->d_full = c->step->pass->d;
        c->step->pass->d = NULL;
    }
    p->columns = layer_tensor(c, s->tokens, width);
    layer_rows(c, (struct rows_call){.n = s->tokens,
                                     .width = width,
                                     .from_row = s->hidden,
                                     .to_row = width,
                                     .from = layer_row(c, tensor_data(p->d_full), s->tp_rank * width),
                                     .to = tensor_data(p->columns)});
    layer_drop(c, &p->d_full);
    p->d_n = layer_tensor(c, s->tokens, 2 * s->hidden);
    layer_cast_gradient(c, product_of(c), &p->columns);
    product_input(c, product_of(c), p->columns, tensor_data(p->d_n), false);
}

static void weight_step(const struct layer_context *c)
{
    struct prediction_state *p = state_of(c);
    product_weight(c, product_of(c), p->columns, p->n_full);
    layer_drop(c, &p->columns);
    layer_drop(c, &p->n_full);
    layer_drop(c, &p->n);
}

static void norms_backward_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct prediction_state *p = state_of(c);
    struct tensor **d[2] = {&p->d, &c->step->pass->d_state};
    for (int i = 0; i < 2; i++) {
        struct tensor *dy = layer_tensor(c, s->local_tokens, s->hidden);
        move_half(c, i, p->d_n, dy, true);
        *d[i] = layer_tensor(c, s->local_tokens, s->hidden);
        step_norm_backward(c->step, c->unit, (struct norm_gradients){gains[i], dy, p->x[i], p->mean[i], p->rstd[i], NULL, *d[i]});
        layer_drop(c, &dy);
        layer_drop(c, &p->x[i]);
        layer_drop(c, &p->mean[i]);
        layer_drop(c, &p->rstd[i]);
    }
    layer_drop(c, &p->d_n);
}

bool prediction_step(const struct layer_context *c, const struct step *step)
{
    static const char what[] = "input of a prediction";
    int64_t width = 2 * c->shape->hidden;
    switch (step->kind) {
    case STEP_PREDICTION_NORMS: norms_step(c); return true;
    case STEP_PREDICTION_GATHER:
        tp_gather_rows(c->step, state_of(c)->n, &state_of(c)->n_full, width, GATHERED_BOTH, what);
        return true;
    case STEP_PREDICTION_PROJECTION: projection_step(c); return true;
    case STEP_PREDICTION_COLUMNS: columns_step(c); return true;
    case STEP_PREDICTION_GATHER_GRADIENT: gather_gradient_step(c); return true;
    case STEP_PREDICTION_INPUT: input_step(c); return true;
    case STEP_PREDICTION_GATHER_AGAIN:
        tp_gather_rows(c->step, state_of(c)->n, &state_of(c)->n_full, width, GATHERED_BOTH, what);
        return true;
    case STEP_PREDICTION_WEIGHT: weight_step(c); return true;
    case STEP_PREDICTION_REDUCE: tp_reduce_rows(c->step, &state_of(c)->d_n, width, what); return true;
    case STEP_PREDICTION_NORMS_BACKWARD: norms_backward_step(c); return true;
    default: return false;
    }
}
