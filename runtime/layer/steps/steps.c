/* steps.c - passes of a chunk as lists of steps, in the order of model/cost/work/work_pass.c. */
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work.h"
#include "runtime/layer/steps/steps_internal.h"

/* --- ends */

static void embedding_forward_steps(struct builder *b)
{
    steps_add(b, STEP_EMBED, "embedding");
    steps_reduce(b, STEP_EMBED_REDUCE);
}

static void embedding_backward_steps(struct builder *b)
{
    steps_gather(b, STEP_EMBED_GATHER_BACKWARD);
    steps_add(b, STEP_EMBED_BACKWARD, "embedding");
}

static bool has(const struct builder *b, feature_set feature)
{
    return (b->layout->features & feature) != 0;
}

static void chunked_forward_steps(struct builder *b)
{
    static const enum step_kind kinds[] = {STEP_CHUNK_LOGITS, STEP_CHUNK_LOSS, STEP_CHUNK_INPUT, STEP_CHUNK_WEIGHT};
    const struct setting setting = {.model = b->model, .job = b->job};
    int64_t tokens = b->layout->micro_batch * b->job->seq_len / b->layout->cp, chunk = head_chunk_tokens(b->layout, &setting);
    int chunks = (int)((tokens + chunk - 1) / chunk);
    for (int i = 0; i < chunks; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct step *step = steps_add(b, kinds[k], kinds[k] == STEP_CHUNK_LOSS ? "cross_entropy" : "logits");
            step->part = i;
            step->parts = chunks;
        }
}

static void head_forward_steps(struct builder *b)
{
    steps_add(b, STEP_FINAL_NORM, "final_norm");
    steps_gather(b, STEP_HEAD_GATHER);
    if (has(b, FEATURE_BIT(CUT_LOSS))) {
        steps_add(b, STEP_CUT_LOSS, "logits");
        return;
    }
    if (has(b, FEATURE_BIT(FUSED_LINEAR_LOSS))) {
        chunked_forward_steps(b);
        return;
    }
    steps_add(b, STEP_LOGITS, "logits");
    if (b->layout->tp > 1 && head_gathers(b->layout, b->model))
        steps_add_exchange(b, STEP_LOGITS_GATHER, COLLECTIVE_ALL_GATHER);
    steps_add(b, STEP_CROSS_ENTROPY, "cross_entropy");
}

static struct step *add_gradients_of_loss(struct builder *b, enum step_kind kind, const char *label, bool input, bool weight)
{
    struct step *step = steps_add(b, kind, label);
    step->input = input;
    step->weight = weight;
    return step;
}

static void cut_backward_steps(struct builder *b, bool input, bool weight)
{
    struct step *again = add_gradients_of_loss(b, STEP_CUT_AGAIN, "logits", input, weight);
    if (weight)
        steps_leave_sum(b, again);
    if (input)
        steps_add(b, STEP_CUT_DONE, "logits");
    if (weight)
        steps_add(b, STEP_CUT_DONE, "logits");
}

/* The sum is there whenever there are other micro-batches. */
static void chunked_backward_steps(struct builder *b, bool input, bool weight)
{
    bool sums = weight && layout_micro_batches(b->layout, b->job) > 1;
    add_gradients_of_loss(b, STEP_LOSS_SCALE, "loss_scale", input, weight)->sums = sums;
    if (sums)
        steps_add(b, STEP_GRADIENT_SUM, "gradient_sum");
}

static void logits_backward_steps(struct builder *b, bool input, bool weight)
{
    if (input) {
        steps_add(b, STEP_CROSS_ENTROPY_BACKWARD, "cross_entropy");
        steps_add(b, STEP_LOGITS_INPUT, "logits");
    }
    if (weight)
        steps_leave_sum(b, steps_add(b, STEP_LOGITS_WEIGHT, "logits"));
}

static void head_backward_steps(struct builder *b, bool input, bool weight)
{
    bool cut = has(b, FEATURE_BIT(CUT_LOSS)), chunked = !cut && has(b, FEATURE_BIT(FUSED_LINEAR_LOSS));
    if (cut)
        cut_backward_steps(b, input, weight);
    else if (chunked)
        chunked_backward_steps(b, input, weight);
    else
        logits_backward_steps(b, input, weight);
    if (input)
        steps_reduce(b, STEP_HEAD_REDUCE_BACKWARD);
    if (weight && !chunked)
        steps_add_sum(b);
    if (input)
        steps_add(b, STEP_FINAL_NORM_BACKWARD, "final_norm");
}

/* --- modules of multi-token prediction */

static void prediction_forward_steps(struct builder *b)
{
    embedding_forward_steps(b);
    b->layer = b->range.count + b->ahead - 1;
    steps_add(b, STEP_PREDICTION_NORMS, "mtp_norms");
    steps_gather(b, STEP_PREDICTION_GATHER);
    steps_cast(b, STEP_PREDICTION_PROJECTION);
    steps_add(b, STEP_PREDICTION_PROJECTION, "mtp_projection");
    if (b->layout->tp > 1)
        steps_add_exchange(b, STEP_PREDICTION_COLUMNS, COLLECTIVE_ALL_GATHER);
    steps_layer_forward(b);
    b->layer = -1;
    head_forward_steps(b);
}

static void prediction_backward_steps(struct builder *b, bool input, bool weight)
{
    static const struct column_group joined = {
        .items = {{STEP_PREDICTION_PROJECTION, STEP_PREDICTION_INPUT, STEP_PREDICTION_WEIGHT, "mtp_projection", true}},
        .n = 1,
        .gather_again = STEP_PREDICTION_GATHER_AGAIN,
        .reduce = STEP_PREDICTION_REDUCE};
    head_backward_steps(b, input, weight);
    b->layer = b->range.count + b->ahead - 1;
    steps_layer_backward(b, input, weight);
    if (input)
        steps_gather(b, STEP_PREDICTION_GATHER_GRADIENT);
    steps_group_backward(b, &joined, true, input, weight);
    if (input)
        steps_add(b, STEP_PREDICTION_NORMS_BACKWARD, "mtp_norms");
    b->layer = -1;
    if (input)
        embedding_backward_steps(b);
}

/* --- a pass */

/* Steps since `begin` are one layer, or one end. */
static void mark(struct step_list *list, size_t begin)
{
    if (begin == list->n_items)
        return;
    list->items[begin].first = true;
    list->items[list->n_items - 1].last = true;
}

/* Those that are repeated together with a layer, in front of its backward pass. */
static void add_layers_before(struct builder *b, int layer)
{
    for (int before = work_repeats_before(b->layout, b->model, b->range.first + layer) - 1; before > 0; before--) {
        size_t begin = b->list->n_items;
        b->layer = layer - before;
        steps_layer_again(b);
        mark(b->list, begin);
    }
}

static void add_layer(struct builder *b, enum pass pass, int layer)
{
    if (pass == PASS_BACKWARD || pass == PASS_BACKWARD_INPUT)
        add_layers_before(b, layer);
    size_t begin = b->list->n_items;
    b->layer = layer;
    if (pass == PASS_FORWARD)
        steps_layer_forward(b);
    else
        steps_layer_backward(b, pass != PASS_BACKWARD_WEIGHT, pass != PASS_BACKWARD_INPUT);
    mark(b->list, begin);
    b->layer = -1;
}

static void add_embedding(struct builder *b, enum pass pass)
{
    size_t begin = b->list->n_items;
    if (pass == PASS_FORWARD)
        embedding_forward_steps(b);
    else if (pass != PASS_BACKWARD_WEIGHT)
        embedding_backward_steps(b);
    mark(b->list, begin);
}

/* The model's own prediction, then those of the modules; backward the other way round. */
static void add_head(struct builder *b, enum pass pass)
{
    size_t begin = b->list->n_items;
    bool input = pass != PASS_BACKWARD_WEIGHT, weight = pass != PASS_BACKWARD_INPUT;
    if (pass == PASS_FORWARD)
        head_forward_steps(b);
    for (int i = 1; i <= b->model->mtp_layers; i++) {
        b->ahead = pass == PASS_FORWARD ? i : b->model->mtp_layers + 1 - i;
        if (pass == PASS_FORWARD)
            prediction_forward_steps(b);
        else
            prediction_backward_steps(b, input, weight);
    }
    b->ahead = 0;
    if (pass != PASS_FORWARD)
        head_backward_steps(b, input, weight);
    mark(b->list, begin);
}

void step_list_build(const struct layout *layout, const struct setting *setting, enum pass pass, struct layer_range range,
                     bool embedding, bool head, struct step_list *list)
{
    struct builder b = {.list = list,
                        .layout = layout,
                        .model = setting->model,
                        .job = setting->job,
                        .range = range,
                        .layer = -1,
                        .sequence_parallel = layout->sequence_parallel && layout->tp > 1,
                        .parallel_block = layout->features & FEATURE_BIT(PARALLEL_BLOCK),
                        .fused = layout->features & FEATURES_FLASH,
                        .casts = precision_is_narrow(setting->job->precision),
                        .keeps_products = work_keeps_products(layout)};
    bool forward = pass == PASS_FORWARD;
    if (forward && embedding)
        add_embedding(&b, pass);
    if (!forward && head)
        add_head(&b, pass);
    for (int i = 0; i < range.count; i++)
        add_layer(&b, pass, forward ? i : range.count - 1 - i);
    if (forward && head)
        add_head(&b, pass);
    if (!forward && embedding)
        add_embedding(&b, pass);
}
