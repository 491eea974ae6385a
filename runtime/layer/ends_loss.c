/* ends_loss.c - the output matrix and the loss, for all tokens of a micro-batch or for some rows of it. */
#include "runtime/layer/ends.h"

#include "model/cost/work/work.h"

/* DeepSeek-V3 (arXiv:2412.19437, section 4.2), for the first 10 T tokens. */
static const double PREDICTION_WEIGHT = 0.3;

const struct unit_state *ends_unit(const struct step_context *c, int index)
{
    return index >= 0 ? &c->chunk->states[index] : NULL;
}

const int32_t *ends_tokens(const struct step_context *c, int ahead)
{
    int64_t tokens = c->rank->shape.tokens;
    return c->rank->tokens + (ahead * c->rank->micro_batches + c->micro_batch) * tokens;
}

bool ends_gather_logits(const struct rank *rank)
{
    return rank->shape.tp > 1 && head_gathers(rank->layout, rank->setting->model);
}

/* [t, v] that this rank computes with in its loss. */
struct vocabulary {
    int64_t first, count;
};

static struct vocabulary loss_vocabulary(const struct rank *rank)
{
    const struct shape *s = &rank->shape;
    return ends_gather_logits(rank) ? (struct vocabulary){0, s->vocab} : (struct vocabulary){s->vocab_first, s->vocab_count};
}

static const struct unit_state *output_unit(const struct step_context *c)
{
    return c->rank->shape.tied ? rank_table(c->rank) : ends_unit(c, c->chunk->units.head);
}

static enum parameter_kind output_kind(const struct step_context *c)
{
    return c->rank->shape.tied ? PARAMETER_TABLE : PARAMETER_HEAD;
}

float *ends_output_gradient(const struct step_context *c)
{
    return unit_gradients(output_unit(c), output_kind(c));
}

void *ends_row(const struct step_context *c, const struct tensor *tensor, int64_t row, int64_t width)
{
    return tensor ? (char *)tensor->data + (size_t)(row * width) * device_element_bytes(c->rank->device) : NULL;
}

struct kernel_call ends_output_call(const struct step_context *c, int64_t rows, enum kernel kernel)
{
    const struct shape *s = &c->rank->shape;
    return (struct kernel_call){
        .kernel = kernel,
        .linear = {
            .t = rows, .in = s->hidden, .out = s->vocab_count, .w = unit_weights(c->rank, output_unit(c), output_kind(c))}};
}

/* --- loss */

/* Of the loss: a mean over the batch's tokens; the modules' predictions count PREDICTION_WEIGHT together. */
static double loss_scale(const struct rank *rank, int ahead)
{
    const struct job *job = rank->setting->job;
    double mean = 1.0 / ((double)job->global_batch * (double)job->seq_len);
    return ahead ? mean * PREDICTION_WEIGHT / rank->shape.predictions : mean;
}

static struct kernel_call logits_call_of(const struct step_context *c, struct head_state *h, int ahead, struct token_rows rows,
                                         enum kernel kernel)
{
    struct vocabulary vocabulary = loss_vocabulary(c->rank);
    return (struct kernel_call){.kernel = kernel,
                                .logits = {.t = rows.n,
                                           .v = vocabulary.count,
                                           .first = vocabulary.first,
                                           .targets = ends_tokens(c, ahead + 1) + rows.first,
                                           .logits = tensor_data(h->logits),
                                           .max = (float *)tensor_data(h->max) + rows.first,
                                           .sums = (float *)tensor_data(h->sums) + 2 * rows.first,
                                           .scale = (float)loss_scale(c->rank, ahead),
                                           .loss = c->rank->loss}};
}

static void vocabulary_reduce(struct step_context *c, float *data, enum reduction reduction, int64_t count)
{
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .reduction = reduction,
                                 .in = data,
                                 .out = data,
                                 .count = count,
                                 .what = "cross entropy"};
    if (!ends_gather_logits(c->rank))
        rank_exchange(c->rank, c->rank->side[GROUP_TP], c->stream, &call);
}

void ends_sums_new(struct step_context *c, struct head_state *h)
{
    size_t bytes = (size_t)c->rank->shape.tokens * sizeof(float);
    h->max = tensor_new(c->rank, bytes);
    h->sums = tensor_new(c->rank, 2 * bytes);
}

void ends_loss(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows)
{
    struct kernel_call call = logits_call_of(c, h, ahead, rows, KERNEL_LOGITS_MAX);
    rank_launch(c->rank, c->stream, &call);
    vocabulary_reduce(c, call.logits.max, REDUCTION_MAX, rows.n);
    call.kernel = KERNEL_LOGITS_SUM;
    rank_launch(c->rank, c->stream, &call);
    vocabulary_reduce(c, call.logits.sums, REDUCTION_SUM, 2 * rows.n);
    call.kernel = KERNEL_LOGITS_LOSS;
    rank_launch(c->rank, c->stream, &call);
}

void ends_loss_backward(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows)
{
    struct kernel_call call = logits_call_of(c, h, ahead, rows, KERNEL_LOGITS_BACKWARD);
    rank_launch(c->rank, c->stream, &call);
}
