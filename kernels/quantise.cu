/*
 * quantise.cu - bf16 to numbers of 8 bits (narrow.h), and what has to be done to them for tensor cores that want every operand's
 * rows along what they sum over.
 *
 * largest: two kernels, block by block, then one block over theirs. quantise: one, 16-byte loads where pointers allow, one
 * element at a time otherwise. quantise_blocks: one, a warp for 32 numbers of a row, or for 32 columns of 32 rows.
 * widen goes back to bf16.
 * Bytes per element: largest 2, quantise 2 + 1, quantise_blocks 2 + 1 (columns are read twice, the second time from a cache), and
 * their transposition 1 + 1. FLOPs: 2. Limiter: memory bandwidth, or the second-level cache for what fits there.
 */
#include "kernels/vector.cuh"

enum { QUANTISE_THREADS = 256, BYTE_TILE = 32, BYTE_ROWS = 8, TILE_ROWS = 128, TILE_BLOCKS = 4 };

__device__ static inline int64_t filled(int64_t rows, const int32_t *count)
{
    return count ? *count : rows;
}

/* The power of two for a largest number (narrow_exponent, which is a host function). */
__device__ static inline int exponent_for(float largest, narrow_format format)
{
    uint32_t bits;
    memcpy(&bits, &largest, sizeof bits);
    const int most = format == NARROW_E5M2 ? 15 : 8;
    const int e = (int)(bits >> 23 & 0xff) - 127 - most + ((bits & 0x7fffff) > 0x600000);
    return e < -126 ? -126 : e;
}

__device__ static inline float power_of(int exponent)
{
    return float_from_bits((uint32_t)(exponent + 127) << 23);
}

__device__ static inline uint32_t pair_of(float low, float high, narrow_format format)
{
    return format == NARROW_E5M2 ? e5m2_pair(low, high) : e4m3_pair(low, high);
}

/* --- the largest number */

template <int V> __global__ void __launch_bounds__(QUANTISE_THREADS) largest_kernel(largest_call call, float *partial)
{
    __shared__ float scratch[WARP];
    const int64_t thread = (int64_t)blockIdx.x * QUANTISE_THREADS + threadIdx.x, threads = (int64_t)gridDim.x * QUANTISE_THREADS;
    const int64_t n = filled(call.rows, call.count) * call.cols;
    const bf16 *x = (const bf16 *)call.x;
    float most = 0, value[V];
    for (int64_t i = thread; i < n / V; i += threads) {
        load<V>(value, x + i * V);
        for (int j = 0; j < V; j++)
            most = fmaxf(most, fabsf(value[j]));
    }
    if (V > 1 && n / V * V + thread < n)
        most = fmaxf(most, fabsf(bf16_to_float(x[n / V * V + thread])));
    most = block_max(most, scratch);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = most;
}

__global__ void __launch_bounds__(QUANTISE_THREADS) largest_of_kernel(const float *partial, int parts, float *largest)
{
    __shared__ float scratch[WARP];
    float most = 0;
    for (int i = threadIdx.x; i < parts; i += QUANTISE_THREADS)
        most = fmaxf(most, partial[i]);
    most = block_max(most, scratch);
    if (threadIdx.x == 0)
        *largest = most;
}

template <int V> static cudaError_t largest(const struct cuda_launch *launch, const struct largest_call *call)
{
    const unsigned blocks = blocks_for(launch, (call->rows * call->cols + V - 1) / V, QUANTISE_THREADS, BLOCKS_HELD);
    float *partial = (float *)launch->workspace;
    const cudaError_t error =
        launch_kernel(largest_kernel<V>, dim3(blocks), dim3(QUANTISE_THREADS), 0, launch->stream, *call, partial);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(largest_of_kernel, dim3(1), dim3(QUANTISE_THREADS), 0, launch->stream, (const float *)partial,
                         (int)blocks, call->largest);
}

int largest_cuda(const struct cuda_launch *launch, const struct largest_call *call)
{
    return aligned(call->x) ? largest<VECTOR>(launch, call) : largest<1>(launch, call);
}

/* --- one scale for all */

struct quantised {
    quantise_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int64_t n = filled(call.rows, call.count) * call.cols;
        const int exponent = exponent_for(*call.largest, call.format);
        const float inverse = power_of(-exponent);
        float value[V];
        load<V>(value, (const bf16 *)call.x + i);
        for (int j = 0; j < V; j++)
            value[j] = i + j < n ? value[j] * inverse : 0;
        if (i == 0)
            *call.scale = power_of(exponent);
        if (V == 8) {
            uint32_t *words = (uint32_t *)(call.y + i);
            for (int w = 0; w < 2; w++)
                words[w] = pair_of(value[4 * w % V], value[(4 * w + 1) % V], call.format) |
                           pair_of(value[(4 * w + 2) % V], value[(4 * w + 3) % V], call.format) << 16;
        } else {
            for (int j = 0; j < V; j++)
                call.y[i + j] = (uint8_t)pair_of(value[j], 0, call.format);
        }
    }
};

int quantise_cuda(const struct cuda_launch *launch, const struct quantise_call *call)
{
    return launch_each(launch, call->rows * call->cols, aligned(call->x) && aligned(call->y), quantised{*call});
}

/* --- a scale for each block */

__device__ static inline float warp_max(float value)
{
#pragma unroll
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        value = fmaxf(value, shuffle_xor(value, mask));
    return value;
}

/* Warp `w`, one per block: a lane for each number. */
__device__ static inline void quantise_row_block(const quantise_blocks_call &call, int64_t w, int64_t rows)
{
    const int64_t across = (call.cols + NARROW_BLOCK - 1) / NARROW_BLOCK, row = w / across;
    const int64_t column = w % across * NARROW_BLOCK + threadIdx.x % WARP, at = row * call.cols + column;
    const float x = column < call.cols && row < rows ? bf16_to_float(((const bf16 *)call.x)[at]) : 0;
    const int exponent = exponent_for(warp_max(fabsf(x)), call.format);
    if (column < call.cols)
        call.y[at] = (uint8_t)pair_of(x * power_of(-exponent), 0, call.format);
    if (threadIdx.x % WARP == 0)
        call.blocks[w] = (uint8_t)(exponent + 127);
}

/* Warp `w`, one per square of blocks: a lane for each column. */
__device__ static inline void quantise_column_blocks(const quantise_blocks_call &call, int64_t w, int64_t rows)
{
    const int64_t across = (call.cols + WARP - 1) / WARP, first = w / across * NARROW_BLOCK;
    const int64_t column = w % across * WARP + threadIdx.x % WARP;
    const int64_t end = first + NARROW_BLOCK < call.rows ? first + NARROW_BLOCK : call.rows;
    const bf16 *x = (const bf16 *)call.x;
    float most = 0;
    if (column >= call.cols)
        return;
    for (int64_t row = first; row < end && row < rows; row++)
        most = fmaxf(most, fabsf(bf16_to_float(x[row * call.cols + column])));
    const int exponent = exponent_for(most, call.format);
    const float inverse = power_of(-exponent);
    for (int64_t row = first; row < end; row++) {
        const float value = row < rows ? bf16_to_float(x[row * call.cols + column]) * inverse : 0;
        call.y[row * call.cols + column] = (uint8_t)pair_of(value, 0, call.format);
    }
    call.blocks[first / NARROW_BLOCK * call.cols + column] = (uint8_t)(exponent + 127);
}

__global__ void __launch_bounds__(QUANTISE_THREADS) quantise_blocks_kernel(quantise_blocks_call call, int64_t warps)
{
    const int64_t rows = filled(call.rows, call.count), step = (int64_t)gridDim.x * QUANTISE_THREADS / WARP;
    for (int64_t w = ((int64_t)blockIdx.x * QUANTISE_THREADS + threadIdx.x) / WARP; w < warps; w += step) {
        if (call.down)
            quantise_column_blocks(call, w, rows);
        else
            quantise_row_block(call, w, rows);
    }
}

int quantise_blocks_cuda(const struct cuda_launch *launch, const struct quantise_blocks_call *call)
{
    const int64_t across = (call->cols + NARROW_BLOCK - 1) / NARROW_BLOCK;
    const int64_t warps = (call->down ? (call->rows + NARROW_BLOCK - 1) / NARROW_BLOCK : call->rows) * across;
    if (warps <= 0)
        return cudaSuccess;
    return launch_kernel(quantise_blocks_kernel, dim3(blocks_for(launch, warps * WARP, QUANTISE_THREADS, BLOCKS_IN_TURN)),
                         dim3(QUANTISE_THREADS), 0, launch->stream, *call, warps);
}

/* --- back to bf16, which has room for every product of a byte's number and a power of two: nothing is lost */

struct widened {
    const uint8_t *bytes;
    narrow_operand as;
    int64_t cols;
    const int32_t *count; /* rows; NULL: all */
    bf16 *to;
    template <int V> __device__ void run(int64_t i) const
    {
        const int64_t row = i / cols, col = i % cols, across = (cols + NARROW_BLOCK - 1) / NARROW_BLOCK;
        const int64_t block = as.down ? row / NARROW_BLOCK * cols + col : row * across + col / NARROW_BLOCK;
        if (count && row >= *count)
            return;
        const float scale = as.scale ? *as.scale : float_from_bits((uint32_t)as.blocks[block] << 23);
        to[i] = bf16_from_float(narrow_value(bytes[i], as.format) * scale);
    }
};

int widen_cuda(const struct cuda_launch *launch, const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols,
               const int32_t *count, void *to)
{
    return launch_each(launch, rows * cols, false, widened{(const uint8_t *)data, *as, cols, count, (bf16 *)to});
}

/* --- for tensor cores */

__global__ void __launch_bounds__(BYTE_TILE *BYTE_ROWS)
    transpose_bytes_kernel(const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to)
{
    __shared__ uint8_t tile[BYTE_TILE][BYTE_TILE + 4];
    const int64_t across = (cols + BYTE_TILE - 1) / BYTE_TILE, row0 = blockIdx.x / across * BYTE_TILE;
    const int64_t col0 = blockIdx.x % across * BYTE_TILE;
    const int fast = threadIdx.x % BYTE_TILE, first = threadIdx.x / BYTE_TILE;
    for (int slow = first; slow < BYTE_TILE; slow += BYTE_ROWS)
        tile[slow][fast] = row0 + slow < rows && col0 + fast < cols ? from[(row0 + slow) * cols + col0 + fast] : 0;
    __syncthreads();
    for (int slow = first; slow < BYTE_TILE; slow += BYTE_ROWS)
        if (col0 + slow < cols && row0 + fast < rows)
            to[(col0 + slow) * rows + row0 + fast] = tile[fast][slow];
}

int transpose_bytes_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to)
{
    const int64_t tiles = ((rows + BYTE_TILE - 1) / BYTE_TILE) * ((cols + BYTE_TILE - 1) / BYTE_TILE);
    if (tiles <= 0)
        return cudaSuccess;
    return launch_kernel(transpose_bytes_kernel, dim3((unsigned)tiles), dim3(BYTE_TILE * BYTE_ROWS), 0, launch->stream, from,
                         rows, cols, to);
}

struct tiled_blocks {
    const uint8_t *from;
    int64_t n, blocks, across; /* tiles side by side */
    bool down;
    uint8_t *to;
    template <int V> __device__ void run(int64_t i) const
    {
        const int64_t tile = i / (TILE_ROWS * TILE_BLOCKS), inside = i % (TILE_ROWS * TILE_BLOCKS);
        const int64_t row = tile / across * TILE_ROWS + inside / 16 + inside / 4 % 4 * 32;
        const int64_t block = tile % across * TILE_BLOCKS + inside % 4;
        const bool there = row < n && block < blocks;
        to[i] = there ? from[down ? block * n + row : row * blocks + block] : 0;
    }
};

int tile_blocks_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t n, int64_t blocks, bool down, uint8_t *to)
{
    const int64_t across = (blocks + TILE_BLOCKS - 1) / TILE_BLOCKS, tiles = (n + TILE_ROWS - 1) / TILE_ROWS * across;
    return launch_each(launch, tiles * TILE_ROWS * TILE_BLOCKS, false, tiled_blocks{from, n, blocks, across, down, to});
}
