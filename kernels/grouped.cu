/*
 * grouped.cu - linear layers of experts: one product per group of rows; only the device knows the sizes of groups.
 *
 * The grid has as many blocks as the device can hold. Block b computes tiles b, b + grid, ... (128 x 128) of the results of all
 * groups and finds a tile's group from the offsets. So nothing waits for the host, and a group without rows costs nothing. A
 * block has four warps, each with 64 x 64 of the tile in registers. Operands arrive 32 k at a time by asynchronous copies, four
 * stages deep. Tiles run down eight rows of tiles before the next column, so that blocks that run at the same time read the same
 * operands from the second-level cache. No two blocks add to the same tile, so two runs give the same bits.
 *
 * Variants: three products, by where k is contiguous in the operands (in both; in the left one; in neither), which ldmatrix
 * transposes as it reads. Widths or pointers that are not multiples of 16 bytes are accessed element by element. Bytes: 2 (m k +
 * k n) per 128 columns and rows of the result, from the second-level cache. FLOPs: 2 m n k, and those of tiles that a group's
 * rows do not fill. Expected limiter: issue of mma.sync; shared memory is read at three quarters of its rate.
 */
#include "kernels/tile.cuh"

enum {
    TILE = 128,
    DEPTH = 32,
    STAGES = 4,
    WARP_TILE = 64,
    M_TILES = WARP_TILE / 16,
    N_TILES = WARP_TILE / 8,
    GROUPED_THREADS = 128,
    GROUPED_BLOCKS = 2, /* of a multiprocessor: 64 KiB of shared memory and 255 registers each */
    BAND = 8,           /* rows of tiles */
    OPERAND = TILE * DEPTH,
    GROUPED_SHARED = 2 * STAGES * OPERAND * (int)sizeof(bf16)
};

enum grouped_kind { GROUPED_FORWARD, GROUPED_INPUT, GROUPED_WEIGHT };

/* Rows of the left operand, columns of the right one: where k is contiguous, rows of a matrix [rows, k], else columns of one
 * [k, rows]. */
struct grouped_side {
    const bf16 *at;
    int64_t stride, n;
};

/* Of one group: the product over k goes to y, with a row `bias` beside, or to `sum`, added or not. */
struct grouped_product {
    int64_t k;
    grouped_side left, right;
    bf16 *y;
    const bf16 *bias;
    float *sum;
    bool accumulate;
};

template <grouped_kind KIND> __device__ static inline grouped_product product_of(const grouped_call &call, int group)
{
    const int64_t first = call.offsets[group], rows = call.offsets[group + 1] - first, in = call.in, out = call.out;
    const bf16 *x = (const bf16 *)call.x + first * in, *dy = (const bf16 *)call.dy + first * out;
    const bf16 *w = (const bf16 *)call.w + group * out * in;
    grouped_product p = {};
    if (KIND == GROUPED_FORWARD) { /* x w^T */
        p.k = in, p.left = {x, in, rows}, p.right = {w, in, out};
        p.y = (bf16 *)call.y + first * out;
        p.bias = call.bias ? (const bf16 *)call.bias + group * out : NULL;
    } else if (KIND == GROUPED_INPUT) { /* dy w */
        p.k = out, p.left = {dy, out, rows}, p.right = {w, in, in};
        p.y = (bf16 *)call.dx + first * in;
    } else { /* dy^T x */
        p.k = rows, p.left = {dy, out, out}, p.right = {x, in, in};
        p.sum = call.dw + group * out * in, p.accumulate = !call.overwrite;
    }
    return p;
}

/* Of one side: 32 k from `k` on of 128 rows from `i` on. */
template <bool K_CONTIGUOUS>
__device__ static inline void load_side(bf16 *tile, const grouped_side &side, int64_t i, int64_t k, int64_t most_k, bool vectors)
{
    if (K_CONTIGUOUS) {
        const matrix_part part = {side.at + i * side.stride + k, side.stride, (int)(side.n - i), (int)(most_k - k)};
        load_part<DEPTH, TILE, GROUPED_THREADS>(tile, part, vectors);
    } else {
        const matrix_part part = {side.at + k * side.stride + i, side.stride, (int)(most_k - k), (int)(side.n - i)};
        load_part<TILE, DEPTH, GROUPED_THREADS>(tile, part, vectors);
    }
}

typedef float (*accumulator)[N_TILES][4]; /* [M_TILES] */

template <bool LEFT_K, bool RIGHT_K>
__device__ static inline void multiply_stage(accumulator c, const bf16 *left, const bf16 *right, int warp_row, int warp_column)
{
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
        uint32_t a[M_TILES][4], b[4];
#pragma unroll
        for (int m = 0; m < M_TILES; m++)
            if (LEFT_K)
                left_of_rows<DEPTH>(a[m], left, warp_row + 16 * m, k);
            else
                left_of_columns<TILE>(a[m], left, warp_row + 16 * m, k);
#pragma unroll
        for (int n = 0; n < N_TILES; n += 2) {
            if (RIGHT_K)
                right_of_rows<DEPTH>(b, right, warp_column + 8 * n, k);
            else
                right_of_columns<TILE>(b, right, warp_column + 8 * n, k);
#pragma unroll
            for (int m = 0; m < M_TILES; m++) {
                mma_16x8x16(c[m][n], a[m], b);
                mma_16x8x16(c[m][n + 1], a[m], b + 2);
            }
        }
    }
}

/* Element by element, where sums are not in vectors. */
__device__ static inline void put_elements(const grouped_product &p, int64_t row, int64_t column, const float (*c)[4])
{
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int64_t y = row + i / 2 * 8, x = column + 8 * n + i % 2;
            float *sum = p.sum + y * p.right.n + x;
            if (y < p.left.n && x < p.right.n)
                *sum = c[n][i] + (p.accumulate ? *sum : 0);
        }
}

/* Neighbours exchange halves: the even one of two lanes has four columns of the upper row then, the odd one of the lower. */
__device__ static inline void put_sums(const grouped_product &p, int64_t row, int64_t column, const float (*c)[4])
{
    const int odd = threadIdx.x % 2;
    const int64_t y = row + 8 * odd;
#pragma unroll
    for (int n = 0; n < N_TILES; n++) {
        const float first = shuffle_xor(odd ? c[n][0] : c[n][2], 1), second = shuffle_xor(odd ? c[n][1] : c[n][3], 1);
        const int64_t x = column + 8 * n - 2 * odd;
        float sums[4] = {odd ? first : c[n][0], odd ? second : c[n][1], odd ? c[n][2] : first, odd ? c[n][3] : second};
        if (y >= p.left.n || x >= p.right.n)
            continue;
        if (p.accumulate) {
            float before[4];
            load<4>(before, p.sum + y * p.right.n + x);
            for (int i = 0; i < 4; i++)
                sums[i] += before[i];
        }
        store<4>(p.sum + y * p.right.n + x, sums);
    }
}

__device__ static inline void add_bias(const grouped_product &p, int64_t column, accumulator c)
{
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t x = column + 8 * n + i;
            const float bias = x < p.right.n ? bf16_to_float(p.bias[x]) : 0;
#pragma unroll
            for (int m = 0; m < M_TILES; m++)
                c[m][n][i] += bias, c[m][n][2 + i] += bias;
        }
}

/* A warp's part of the tile, at (row, column) of the result; `tile`: 64 x 64 of shared memory that it has for itself. */
template <grouped_kind KIND>
__device__ static inline void finish(const grouped_product &p, int64_t row, int64_t column, accumulator c, bf16 *tile,
                                     bool vectors)
{
    const int lane = threadIdx.x % WARP;
    const int64_t lane_column = column + lane % 4 * 2;
    const float ones[2] = {1, 1};
    if (KIND == GROUPED_FORWARD && p.bias)
        add_bias(p, lane_column, c);
#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
        const int64_t at = row + 16 * m;
        if (KIND != GROUPED_WEIGHT)
            store_rows<WARP_TILE>(p.y + at * p.right.n + column, p.right.n, p.left.n - at, p.right.n - column, tile, 16 * m, c[m],
                                  ones, vectors);
        else if (vectors)
            put_sums(p, at + lane / 4, lane_column, c[m]);
        else
            put_elements(p, at + lane / 4, lane_column, c[m]);
    }
}

/* Tile (i, j) of the product. */
template <grouped_kind KIND>
__device__ static inline void compute_tile(const grouped_product &p, int64_t i, int64_t j, bool vectors)
{
    enum { LEFT_K = KIND != GROUPED_WEIGHT, RIGHT_K = KIND == GROUPED_FORWARD };
    bf16 *left = (bf16 *)dynamic_shared(), *right = left + STAGES * OPERAND;
    const int warp = threadIdx.x / WARP, warp_row = warp / 2 * WARP_TILE, warp_column = warp % 2 * WARP_TILE;
    const int64_t row = i * TILE, column = j * TILE, steps = (p.k + DEPTH - 1) / DEPTH;
    float c[M_TILES][N_TILES][4] = {};
    for (int64_t step = 1 - STAGES; step < steps; step++) {
        const int64_t next = step + STAGES - 1;
        if (step >= 0) {
            copy_async_wait<STAGES - 2>();
            __syncthreads(); /* this stage is here, and the one before has been used */
        }
        if (next < steps) {
            const int at = (int)(next % STAGES) * OPERAND;
            load_side<LEFT_K>(left + at, p.left, row, next * DEPTH, p.k, vectors);
            load_side<RIGHT_K>(right + at, p.right, column, next * DEPTH, p.k, vectors);
        }
        copy_async_commit();
        if (step >= 0) {
            const int at = (int)(step % STAGES) * OPERAND;
            multiply_stage<LEFT_K, RIGHT_K>(c, left + at, right + at, warp_row, warp_column);
        }
    }
    __syncthreads();
    finish<KIND>(p, row + warp_row, column + warp_column, c, left + warp * WARP_TILE * WARP_TILE, vectors);
    __syncthreads(); /* before the next tile's operands arrive */
}

template <grouped_kind KIND>
__global__ void __launch_bounds__(GROUPED_THREADS, GROUPED_BLOCKS) grouped_kernel(grouped_call call, bool vectors)
{
    int64_t tile = blockIdx.x, before = 0;
    for (int group = 0; group < call.groups; group++) {
        const grouped_product p = product_of<KIND>(call, group);
        const int64_t rows = (p.left.n + TILE - 1) / TILE, columns = (p.right.n + TILE - 1) / TILE;
        const int64_t n = p.k > 0 || !p.accumulate ? rows * columns : 0;
        for (; tile < before + n; tile += gridDim.x) {
            const int64_t band = (tile - before) / (BAND * columns) * BAND, at = (tile - before) % (BAND * columns);
            const int64_t left = rows - band, high = left < BAND ? left : (int64_t)BAND;
            compute_tile<KIND>(p, band + at % high, at / high, vectors);
        }
        before += n;
    }
}

/* Gradients of biases: a block for 32 V columns of a group, its warps share the rows. */
template <int V> __global__ void __launch_bounds__(256) grouped_bias_kernel(grouped_call call)
{
    enum { WARPS = 256 / WARP };
    __shared__ float parts[WARPS][WARP * V];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, group = (int)blockIdx.y;
    const int64_t first = (int64_t)blockIdx.x * WARP * V, column = first + lane * V;
    float sum[V] = {}, x[V];
    if (column < call.out)
        for (int64_t row = call.offsets[group] + warp; row < call.offsets[group + 1]; row += WARPS) {
            load<V>(x, (const bf16 *)call.dy + row * call.out + column);
            for (int i = 0; i < V; i++)
                sum[i] += x[i];
        }
    for (int i = 0; i < V; i++)
        parts[warp][lane * V + i] = sum[i];
    __syncthreads();
    for (int i = threadIdx.x; i < WARP * V; i += 256) {
        float total = 0;
        for (int w = 0; w < WARPS; w++)
            total += parts[w][i];
        if (first + i < call.out)
            call.dbias[group * call.out + first + i] += total;
    }
}

static bool in_vectors(const struct grouped_call *call)
{
    return call->in % VECTOR == 0 && call->out % VECTOR == 0 && aligned(call->x) && aligned(call->w) && aligned(call->y) &&
           aligned(call->dy) && aligned(call->dx) && aligned(call->dw);
}

/* A result of `columns` columns, and of `rows` rows at most in `parts` groups. */
template <grouped_kind KIND>
static cudaError_t launch_grouped(const struct cuda_launch *launch, const struct grouped_call *call, int64_t rows, int64_t parts,
                                  int64_t columns)
{
    const int64_t tiles = (rows / TILE + parts) * ((columns + TILE - 1) / TILE);
    const int64_t most = (int64_t)launch->multiprocessors * GROUPED_BLOCKS;
    if (call->groups <= 0 || tiles <= 0)
        return cudaSuccess;
    cudaError_t error = allow_shared(grouped_kernel<KIND>, GROUPED_SHARED);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(grouped_kernel<KIND>, dim3((unsigned)(tiles < most ? tiles : most)), dim3(GROUPED_THREADS),
                         GROUPED_SHARED, launch->stream, *call, in_vectors(call));
}

int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped<GROUPED_FORWARD>(launch, call, call->most, call->groups, call->out);
}

int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped<GROUPED_INPUT>(launch, call, call->most, call->groups, call->in);
}

int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    cudaError_t error = cudaSuccess;
    if (call->dw)
        error = launch_grouped<GROUPED_WEIGHT>(launch, call, call->groups * call->out, call->groups, call->in);
    if (error != cudaSuccess || !call->dbias || call->groups <= 0)
        return error;
    const bool vectors = call->out % VECTOR == 0 && aligned(call->dy);
    const int64_t wide = (int64_t)WARP * (vectors ? (int)VECTOR : 1);
    const dim3 grid((unsigned)((call->out + wide - 1) / wide), (unsigned)call->groups);
    return launch_kernel(vectors ? grouped_bias_kernel<VECTOR> : grouped_bias_kernel<1>, grid, dim3(256), 0, launch->stream,
                         *call);
}

/* --- operands of 8 bits */

/* `rows` of an operand, of which *count are there (NULL: all). */
static int widen_side(const struct cuda_launch *launch, const void **data, const struct narrow_operand *as, int64_t rows,
                      int64_t cols, const int32_t *count, bf16 **scratch)
{
    if (as->format == NARROW_NONE || !*data)
        return cudaSuccess;
    const int error = widen_cuda(launch, *data, as, rows, cols, count, *scratch);
    *data = *scratch;
    *scratch += (rows * cols + VECTOR - 1) / VECTOR * VECTOR;
    return error;
}

int grouped_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct grouped_call *call)
{
    struct grouped_call wide = *call;
    bf16 *scratch = (bf16 *)call->scratch;
    const int32_t *rows = call->offsets + call->groups;
    int error = widen_side(launch, &wide.x, &call->x_as, call->most, call->in, rows, &scratch);
    if (error == cudaSuccess)
        error = widen_side(launch, &wide.dy, &call->dy_as, call->most, call->out, rows, &scratch);
    if (error == cudaSuccess)
        error = widen_side(launch, &wide.w, &call->w_as, call->groups * call->out, call->in, NULL, &scratch);
    if (error != cudaSuccess)
        return error;
    return kernel == KERNEL_GROUPED_FORWARD          ? grouped_forward_cuda(launch, &wide)
           : kernel == KERNEL_GROUPED_BACKWARD_INPUT ? grouped_backward_input_cuda(launch, &wide)
                                                     : grouped_backward_weight_cuda(launch, &wide);
}
