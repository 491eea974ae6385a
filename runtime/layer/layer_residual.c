/* layer_residual.c - adds a branch to the residual stream, with the branch's bias and dropout.
 *
 * The dropout mask depends only on the step, the layer, the branch and the position in the global batch, so every layout drops
 * the same elements. This rank's rows are one range of that batch; with context parallelism two ranges per sequence. */
#include "model/base/random.h"
#include "runtime/layer/layer.h"

static uint64_t mask_seed(const struct layer_context *c, int branch_number)
{
    uint64_t number = ((uint64_t)c->rank->step * (uint64_t)c->shape->layers + (uint64_t)c->layer) * 2 + (uint64_t)branch_number;
    struct random_stream stream = random_stream_named(c->rank->seed, UINT64_C(0x64726f706f7574), number);
    return random_bits(&stream);
}

/* The row of the global batch that is row `row` of the micro-batch. */
static int64_t place_of(const struct layer_context *c, int64_t row)
{
    const struct shape *s = c->shape;
    int64_t samples = c->rank->micro_batches * s->micro_batch, whole = s->seq_len * s->cp;
    int64_t dp = layout_coordinates(c->rank->layout, c->rank->rank).dp;
    int64_t sample = dp * samples + c->step->micro_batch * s->micro_batch + row / s->seq_len;
    return sample * whole + position_of(&s->at, s->seq_len, row);
}

/* Number of rows from `row` on that are consecutive in the batch. */
static int64_t rows_in_range(const struct shape *s, int64_t row, int64_t end)
{
    int64_t half = s->seq_len / 2, next = (row / half + 1) * half;
    return s->cp > 1 && next < end ? next - row : end - row;
}

static void drop_out_slice(const struct layer_context *c, struct kernel_call *call, int branch_number, int slice)
{
    const struct shape *s = c->shape;
    int64_t rows = s->local_tokens / c->rank->pipeline.slices, begin = pipeline_row(c->rank, slice), end = begin + rows;
    struct dropout_call whole = call->dropout, *part = &call->dropout;
    for (int64_t row = begin, n; row < end; row += n) {
        int64_t at = (slice * rows + row - begin) * s->hidden;
        n = rows_in_range(s, row, end);
        part->n = n * s->hidden;
        part->h = s->hidden;
        part->p = c->rank->dropout;
        part->seed = mask_seed(c, branch_number);
        part->first = place_of(c, row) * s->hidden;
        part->x = layer_row(c, (void *)whole.x, at);
        part->residual = layer_row(c, (void *)whole.residual, at);
        part->y = layer_row(c, whole.y, at);
        part->dy = layer_row(c, (void *)whole.dy, at);
        part->dx = layer_row(c, whole.dx, at);
        layer_launch(c, call);
    }
}

static void drop_out(const struct layer_context *c, const struct kernel_call *call, int branch_number)
{
    for (int k = 0; k < c->rank->pipeline.slices; k++) {
        struct kernel_call slice = *call;
        drop_out_slice(c, &slice, branch_number, k);
    }
}

void residual_forward(const struct layer_context *c, int branch_number, struct tensor *x, struct tensor *branch, const void *bias,
                      struct tensor *y)
{
    if (c->rank->dropout > 0) {
        struct kernel_call call = {
            .kernel = KERNEL_DROPOUT_FORWARD,
            .dropout = {.x = tensor_data(branch), .bias = bias, .residual = tensor_data(x), .y = tensor_data(y)}};
        drop_out(c, &call, branch_number);
        return;
    }
    layer_add(c, x, branch, bias, y);
}

struct tensor *residual_backward(const struct layer_context *c, int branch_number, struct tensor *d)
{
    if (!(c->rank->dropout > 0))
        return tensor_share(d);
    struct tensor *d_branch = layer_tensor(c, c->shape->local_tokens, c->shape->hidden);
    struct kernel_call call = {.kernel = KERNEL_DROPOUT_BACKWARD, .dropout = {.dy = tensor_data(d), .dx = tensor_data(d_branch)}};
    drop_out(c, &call, branch_number);
    return d_branch;
}
