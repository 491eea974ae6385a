/*
 * quantise.cu - bf16 to numbers of 8 bits (narrow.h), and what has to be done to them for tensor cores that want every operand's
 * rows along what they sum over.
 *
 * largest: two kernels, block by block, then one block over theirs. quantise: one. quantise_blocks: one for rows, four lanes for
 * 32 numbers, and one for columns, a warp for 32 columns of 32 rows. widen goes back to bf16. bytes are transposed in squares of
 * 128, or of 32. All have a variant with accesses of 16 bytes to what is larger, where pointers and sizes allow, and one that
 * takes elements one at a time.
 * Bytes per element: largest 2, quantise 2 + 1, quantise_blocks 2 + 1 (columns are read twice, the second time from a cache),
 * widen 1 + 2, and transposition 1 + 1. FLOPs: 2. Limiter: memory bandwidth, or the second-level cache for what fits there.
 */
#include "kernels/vector.cuh"

enum { QUANTISE_THREADS = 256, TILE_ROWS = 128, TILE_BLOCKS = 4 };
enum { BYTE_TILE = 32, BYTE_ROWS = 8, SQUARE = 128, PIECE = 16 }; /* of transposed bytes */

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

/* Quotients of 64 bits take some 70 instructions, of 32 a dozen. */
__device__ static inline int64_t quotient(int64_t a, int64_t b)
{
    return (uint64_t)(a | b) >> 32 ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

template <int V> __device__ static inline void store_narrow(uint8_t *to, const float value[V], narrow_format format)
{
    if (V == 8) {
        uint32_t words[2];
        for (int w = 0; w < 2; w++)
            words[w] = pair_of(value[4 * w % V], value[(4 * w + 1) % V], format) |
                       pair_of(value[(4 * w + 2) % V], value[(4 * w + 3) % V], format) << 16;
        *(uint64_t *)to = words[0] | (uint64_t)words[1] << 32;
    } else {
        for (int j = 0; j < V; j++)
            to[j] = (uint8_t)pair_of(value[j], 0, format);
    }
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
        store_narrow<V>(call.y + i, value, call.format);
    }
};

int quantise_cuda(const struct cuda_launch *launch, const struct quantise_call *call)
{
    return launch_each(launch, call->rows * call->cols, aligned(call->x) && aligned(call->y), quantised{*call});
}

/* --- a scale for each block */

/* Blocks of a row, LANES lanes each, NARROW_BLOCK / LANES numbers a lane. A warp takes its blocks together, since lanes exchange
 * their largest numbers. */
template <int LANES>
__global__ void __launch_bounds__(QUANTISE_THREADS) quantise_rows_kernel(quantise_blocks_call call, int64_t blocks)
{
    enum { V = NARROW_BLOCK / LANES };
    const int64_t across = (call.cols + NARROW_BLOCK - 1) / NARROW_BLOCK, rows = filled(call.rows, call.count);
    const int64_t thread = (int64_t)blockIdx.x * QUANTISE_THREADS + threadIdx.x, step = (int64_t)gridDim.x * QUANTISE_THREADS;
    for (int64_t first = (thread - threadIdx.x % WARP) / LANES; first < blocks; first += step / LANES) {
        const int64_t block = first + threadIdx.x % WARP / LANES, row = quotient(block, across);
        const int64_t column = (block - row * across) * NARROW_BLOCK + threadIdx.x % LANES * V, at = row * call.cols + column;
        const bool there = block < blocks && column < call.cols;
        float value[V] = {}, most = 0;
        if (there && row < rows)
            load<V>(value, (const bf16 *)call.x + at);
        for (int j = 0; j < V; j++)
            most = fmaxf(most, fabsf(value[j]));
#pragma unroll
        for (int mask = LANES / 2; mask > 0; mask /= 2)
            most = fmaxf(most, shuffle_xor(most, mask));
        const int exponent = exponent_for(most, call.format);
        const float inverse = power_of(-exponent);
        for (int j = 0; j < V; j++)
            value[j] *= inverse;
        if (there)
            store_narrow<V>(call.y + at, value, call.format);
        if (block < blocks && threadIdx.x % LANES == 0)
            call.blocks[block] = (uint8_t)(exponent + 127);
    }
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

__global__ void __launch_bounds__(QUANTISE_THREADS) quantise_columns_kernel(quantise_blocks_call call, int64_t warps)
{
    const int64_t rows = filled(call.rows, call.count), step = (int64_t)gridDim.x * QUANTISE_THREADS / WARP;
    for (int64_t w = ((int64_t)blockIdx.x * QUANTISE_THREADS + threadIdx.x) / WARP; w < warps; w += step)
        quantise_column_blocks(call, w, rows);
}

template <int LANES> static cudaError_t quantise_rows(const struct cuda_launch *launch, const struct quantise_blocks_call *call)
{
    const int64_t blocks = narrow_blocks(call->rows, call->cols, false);
    return launch_kernel(quantise_rows_kernel<LANES>, dim3(blocks_for(launch, blocks * LANES, QUANTISE_THREADS, BLOCKS_IN_TURN)),
                         dim3(QUANTISE_THREADS), 0, launch->stream, *call, blocks);
}

int quantise_blocks_cuda(const struct cuda_launch *launch, const struct quantise_blocks_call *call)
{
    const int64_t squares = (call->rows + NARROW_BLOCK - 1) / NARROW_BLOCK * ((call->cols + NARROW_BLOCK - 1) / NARROW_BLOCK);
    if (squares <= 0)
        return cudaSuccess;
    if (call->down)
        return launch_kernel(quantise_columns_kernel, dim3(blocks_for(launch, squares * WARP, QUANTISE_THREADS, BLOCKS_IN_TURN)),
                             dim3(QUANTISE_THREADS), 0, launch->stream, *call, squares);
    return call->cols % VECTOR == 0 && aligned(call->x) && aligned(call->y) ? quantise_rows<NARROW_BLOCK / VECTOR>(launch, call)
                                                                            : quantise_rows<NARROW_BLOCK>(launch, call);
}

/* --- back to bf16, which has room for every product of a byte's number and a power of two: nothing is lost */

/* V bytes of one row, where the row matters. */
struct widened {
    const uint8_t *bytes;
    narrow_operand as;
    int64_t cols;
    const int32_t *count; /* rows; NULL: all */
    bf16 *to;

    template <int V> __device__ void scales_of(float scale[V], int64_t i) const
    {
        const int64_t row = quotient(i, cols), col = i - row * cols, across = (cols + NARROW_BLOCK - 1) / NARROW_BLOCK;
        const uint8_t *at = as.blocks + (as.down ? row / NARROW_BLOCK * cols + col : row * across + col / NARROW_BLOCK);
        for (int j = 0; j < V; j++)
            scale[j] = float_from_bits((uint32_t)at[as.down ? j : 0] << 23);
    }

    template <int V> __device__ void run(int64_t i) const
    {
        float scale[V], value[V];
        if (count && i >= *count * cols)
            return;
        if (as.scale)
            for (int j = 0; j < V; j++)
                scale[j] = *as.scale;
        else
            scales_of<V>(scale, i);
        const uint64_t packed = V == 8 ? *(const uint64_t *)(bytes + i) : bytes[i];
        for (int j = 0; j < V; j++)
            value[j] = narrow_value((uint32_t)(packed >> 8 * j) & 0xff, as.format) * scale[j];
        store<V>(to + i, value);
    }
};

int widen_cuda(const struct cuda_launch *launch, const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols,
               const int32_t *count, void *to)
{
    const bool whole_rows = as->scale && !count;
    return launch_each(launch, rows * cols, aligned(data) && aligned(to) && (whole_rows || cols % VECTOR == 0),
                       widened{(const uint8_t *)data, *as, cols, count, (bf16 *)to});
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

/* Four rows of four bytes, the first in the lowest byte, become their columns. */
__device__ static inline void transpose_words(uint32_t w[4])
{
    const uint32_t low = 0x00ff00ffu, high = 0xff00ff00u;
    const uint32_t a = (w[0] & low) | (w[1] & low) << 8, b = (w[0] & high) >> 8 | (w[1] & high);
    const uint32_t c = (w[2] & low) | (w[3] & low) << 8, d = (w[2] & high) >> 8 | (w[3] & high);
    w[0] = (a & 0xffff) | c << 16, w[1] = (b & 0xffff) | d << 16;
    w[2] = a >> 16 | (c & 0xffff0000u), w[3] = b >> 16 | (d & 0xffff0000u);
}

/* Squares of SQUARE bytes in pieces of 16. A row of the square is 32 words, kept at their number xor four times that of the row's
 * 16: so are neither 16 bytes of eight rows nor words of eight times 16 rows in the same bank. */
__global__ void __launch_bounds__(QUANTISE_THREADS)
    transpose_squares_kernel(const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to)
{
    __shared__ uint4 square[SQUARE * SQUARE / PIECE];
    const int64_t across = (cols + SQUARE - 1) / SQUARE, row0 = blockIdx.x / across * SQUARE, col0 = blockIdx.x % across * SQUARE;
    for (int i = threadIdx.x; i < SQUARE * SQUARE / PIECE; i += QUANTISE_THREADS) {
        const int row = i / (SQUARE / PIECE), piece = i % (SQUARE / PIECE);
        const bool there = row0 + row < rows && col0 + piece * PIECE < cols;
        square[row * (SQUARE / PIECE) + (piece ^ row / PIECE)] =
            there ? *(const uint4 *)(from + (row0 + row) * cols + col0 + piece * PIECE) : uint4{};
    }
    __syncthreads();
    /* a thread: 16 rows of four columns, eight threads side by side along the rows */
    const int piece = threadIdx.x % (SQUARE / PIECE), word = threadIdx.x / (SQUARE / PIECE);
    const uint32_t *words = (const uint32_t *)square;
    uint32_t out[4][4];
    if (row0 + piece * PIECE >= rows || col0 + 4 * word >= cols)
        return;
#pragma unroll
    for (int m = 0; m < 4; m++) {
        uint32_t four[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] = words[(piece * PIECE + 4 * m + j) * (SQUARE / 4) + (word ^ 4 * piece)];
        transpose_words(four);
#pragma unroll
        for (int j = 0; j < 4; j++)
            out[j][m] = four[j];
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        *(uint4 *)(to + (col0 + 4 * word + j) * rows + row0 + piece * PIECE) = uint4{out[j][0], out[j][1], out[j][2], out[j][3]};
}

int transpose_bytes_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to)
{
    const bool in_pieces = rows % PIECE == 0 && cols % PIECE == 0 && aligned(from) && aligned(to);
    const int side = in_pieces ? SQUARE : BYTE_TILE;
    const int64_t tiles = ((rows + side - 1) / side) * ((cols + side - 1) / side);
    if (tiles <= 0)
        return cudaSuccess;
    return launch_kernel(in_pieces ? transpose_squares_kernel : transpose_bytes_kernel, dim3((unsigned)tiles),
                         dim3(in_pieces ? QUANTISE_THREADS : BYTE_TILE * BYTE_ROWS), 0, launch->stream, from, rows, cols, to);
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
