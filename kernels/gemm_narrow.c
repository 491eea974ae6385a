/*
 * gemm_narrow.c - linear layers with operands of 8 bits, on a CUDA device.
 *
 * Ada and Hopper multiply 8-bit operands only if the rows of both lie along the dimension that is summed over ("TN"). So all
 * products use that form. The forward pass needs no change; the gradient of the input transposes the weights; the gradient of
 * the weights transposes both operands. Scales of blocks are reordered for tensor cores. Both happen in linear_call.scratch,
 * with separate kernels. (Transformer Engine's casts write a transposed copy instead.) Tensor cores need sizes that are
 * multiples of 16 and 32; other sizes are multiplied in bf16.
 */
#include "kernels/cuda_operations.h"
#include "kernels/gemm_library.h"

enum { ALIGNED = 256, TILE_ROWS = 128, TILE_BLOCKS = 4, WANTED = 16, WANTED_IN_BLOCKS = 32 };

/* One operand of a product: as it stands [rows, cols], summed over its rows where `transpose`. */
struct side {
    const void *data;
    const struct narrow_operand *as;
    int64_t rows, cols;
    bool transpose;
};

struct sides {
    struct side a, b;
    int64_t m, n, k;
};

static struct sides sides_of(enum kernel kernel, const struct linear_call *call)
{
    const struct side x = {call->x, &call->x_as, call->t, call->in, false};
    const struct side w = {call->w, &call->w_as, call->out, call->in, false};
    const struct side dy = {call->dy, &call->dy_as, call->t, call->out, false};
    struct sides s = {.a = x, .b = w, .m = call->t, .n = call->out, .k = call->in};
    if (kernel == KERNEL_LINEAR_FORWARD)
        return s;
    s.a = dy;
    if (kernel == KERNEL_LINEAR_BACKWARD_INPUT) {
        s.b.transpose = true;
        s.n = call->in, s.k = call->out;
        return s;
    }
    s.b = x;
    s.a.transpose = s.b.transpose = true;
    s.m = call->out, s.n = call->in, s.k = call->t;
    return s;
}

static size_t rounded(int64_t bytes)
{
    return (size_t)(bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static int64_t block_count(int64_t k)
{
    return (k + NARROW_BLOCK - 1) / NARROW_BLOCK;
}

static size_t tiled_bytes(int64_t n, int64_t k)
{
    return (size_t)((n + TILE_ROWS - 1) / TILE_ROWS * ((block_count(k) + TILE_BLOCKS - 1) / TILE_BLOCKS)) * TILE_ROWS *
           TILE_BLOCKS;
}

static size_t side_bytes(const struct side *side, int64_t n, int64_t k)
{
    return (side->transpose ? rounded(n * k) : 0) + (side->as->scale ? 0 : tiled_bytes(n, k));
}

/* What tensor cores take bytes of. */
static bool fits(const struct sides *s)
{
    int wanted = s->a.as->scale ? WANTED : WANTED_IN_BLOCKS;
    return s->m % wanted == 0 && s->n % wanted == 0 && s->k % wanted == 0;
}

size_t linear_narrow_scratch(enum kernel kernel, const struct linear_call *call)
{
    struct sides s = sides_of(kernel, call);
    if (s.a.as->format && !fits(&s))
        return rounded(2 * s.a.rows * s.a.cols) + rounded(2 * s.b.rows * s.b.cols);
    return s.a.as->format ? side_bytes(&s.a, s.m, s.k) + side_bytes(&s.b, s.n, s.k) : 0;
}

static enum status failed(enum kernel kernel, int error, struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "%s: operands of 8 bits: CUDA error %d", kernel_name(kernel), error);
    return STATUS_FAILED;
}

/* Rows along what is summed over, scales in their order. */
static int prepare(const struct cuda_launch *launch, struct side *side, int64_t n, int64_t k, struct narrow_operand *as,
                   uint8_t **scratch)
{
    int error = 0;
    *as = *side->as;
    if (side->transpose) {
        error = transpose_bytes_cuda(launch, side->data, side->rows, side->cols, *scratch);
        side->data = *scratch;
        *scratch += rounded(n * k);
    }
    if (error || as->scale)
        return error;
    error = tile_blocks_cuda(launch, as->blocks, n, block_count(k), side->transpose, *scratch);
    as->blocks = *scratch;
    *scratch += tiled_bytes(n, k);
    return error;
}

/* Both operands' numbers in bf16, which loses nothing, and the product of those. */
static enum status widened_linear(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                                  struct diags *diags)
{
    struct linear_call wide = *call;
    struct sides s = sides_of(kernel, call);
    char *first = call->scratch, *second = first + rounded(2 * s.a.rows * s.a.cols);
    int error = widen_cuda(launch, s.a.data, s.a.as, s.a.rows, s.a.cols, NULL, first);
    if (!error)
        error = widen_cuda(launch, s.b.data, s.b.as, s.b.rows, s.b.cols, NULL, second);
    if (error)
        return failed(kernel, error, diags);
    wide.x = kernel == KERNEL_LINEAR_FORWARD ? first : second;
    wide.dy = first;
    wide.w = second;
    wide.x_as = wide.w_as = wide.dy_as = (struct narrow_operand){0};
    return linear_cuda(launch, kernel, &wide, diags);
}

enum status linear_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                               struct diags *diags)
{
    bool weight = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT, forward = kernel == KERNEL_LINEAR_FORWARD;
    struct sides s = sides_of(kernel, call);
    struct gemm_fused_call gemm = {.m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .bias = forward ? call->bias : NULL,
                                   .y = weight    ? (void *)call->dw
                                        : forward ? call->y
                                                  : call->dx,
                                   .wide = weight,
                                   .fast_sums = forward, /* as Transformer Engine's recipes: not for gradients */
                                   .accumulate = weight ? !call->overwrite : call->accumulate};
    uint8_t *scratch = call->scratch;
    if (s.m <= 0 || s.n <= 0 || s.k <= 0)
        return STATUS_OK;
    if (!fits(&s))
        return widened_linear(launch, kernel, call, diags);
    int error = prepare(launch, &s.a, s.m, s.k, &gemm.x_as, &scratch);
    if (!error)
        error = prepare(launch, &s.b, s.n, s.k, &gemm.w_as, &scratch);
    if (error)
        return failed(kernel, error, diags);
    gemm.x = s.a.data;
    gemm.w = s.b.data;
    return gemm_fused_cuda(launch, &gemm, diags);
}
