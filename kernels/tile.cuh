/*
 * tile.cuh - tiles of matrices in shared memory, and products of tiles on tensor cores by single warps.
 *
 * A tile is rows of D bf16 elements in pieces of 16 bytes. ldmatrix reads eight pieces at once, one from each of eight rows, and
 * they should be in different banks. If the number of pieces per row is a power of two or a multiple of eight, no padding is
 * needed: piece p of row r is at p xor r (mod 8); if several rows share 128 bytes, at p xor the number of the 128 bytes. Other
 * rows are padded by one piece, which makes their length odd.
 */
#ifndef MSIM_KERNELS_TILE_CUH
#define MSIM_KERNELS_TILE_CUH

#include "kernels/vector.cuh"

enum { PIECE = 8 };
static constexpr int BANK_PIECES = 8; /* in 128 bytes */

template <int D> struct tile_row {
    static constexpr int PIECES = D / PIECE;
    static constexpr bool PERMUTED = PIECES % BANK_PIECES == 0 || BANK_PIECES % PIECES == 0;
    static constexpr int STRIDE = PERMUTED ? D : D + PIECE;                        /* elements */
    static constexpr int SHARED = PIECES < BANK_PIECES ? BANK_PIECES / PIECES : 1; /* rows in 128 bytes */
    /* Elements from the row's beginning to a piece. */
    __device__ static int at(int row, int piece)
    {
        return (PERMUTED ? piece ^ (row / SHARED % (BANK_PIECES / SHARED)) : piece) * PIECE;
    }
};

template <int D> __device__ static inline bf16 *piece_at(bf16 *tile, int row, int piece)
{
    return tile + row * tile_row<D>::STRIDE + tile_row<D>::at(row, piece);
}

template <int D> __device__ static inline const bf16 *piece_at(const bf16 *tile, int row, int piece)
{
    return tile + row * tile_row<D>::STRIDE + tile_row<D>::at(row, piece);
}

/* Rows and columns of a matrix that exist from `at` on. Vectors: columns and stride are multiples of 8, `at` of 16 bytes. */
struct matrix_part {
    const bf16 *at;
    int64_t stride;
    int rows, columns;
};

/* A piece by single elements. */
__device__ static inline void load_elements(bf16 *to, const matrix_part &from, int row, int column)
{
#pragma unroll 1
    for (int i = 0; i < PIECE; i++) {
        const bf16 zero = {0};
        const bool valid = row < from.rows && column + i < from.columns;
        to[i] = valid ? from.at[row * from.stride + column + i] : zero;
    }
}

/* ROWS rows, a block of THREADS copying; what does not exist becomes zeros. Not in vectors the copy is done at once. Eight lanes,
 * or four, share a row, and a thread's rows are so far apart that their pieces are permuted alike: places differ by constants. */
template <int D, int ROWS, int THREADS> __device__ static inline void load_part(bf16 *tile, const matrix_part &from, bool vectors)
{
    constexpr int PIECES = tile_row<D>::PIECES, LANES = PIECES % BANK_PIECES == 0 ? BANK_PIECES : 4, SWEEP = THREADS / LANES;
    static_assert(PIECES % LANES == 0 && ROWS % SWEEP == 0 && SWEEP % BANK_PIECES == 0, "a thread's pieces are alike");
    if (!vectors) {
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS)
            load_elements(piece_at<D>(tile, i / PIECES, i % PIECES), from, i / PIECES, i % PIECES * PIECE);
        return;
    }
    const int row = threadIdx.x / LANES, column = threadIdx.x % LANES * PIECE;
    const bf16 *at = from.at + row * from.stride + column;
    bf16 *to = piece_at<D>(tile, row, threadIdx.x % LANES);
#pragma unroll
    for (int i = 0; i < ROWS; i += SWEEP, at += SWEEP * from.stride)
#pragma unroll
        for (int j = 0; j < D; j += LANES * PIECE)
            copy_async(to + i * tile_row<D>::STRIDE + j, at + j, row + i < from.rows && column + j < from.columns);
}

/* --- operands: of a tile with k for columns (rows_), or with k for rows (columns_) */

/* 16 rows from `row` on by 16 k from 16 k on, a left operand. */
template <int D> __device__ static inline void left_of_rows(uint32_t a[4], const bf16 *tile, int row, int k)
{
    const int lane = threadIdx.x % WARP;
    load_matrices(a, piece_at<D>(tile, row + lane % 16, 2 * k + lane / 16));
}

template <int D> __device__ static inline void left_of_columns(uint32_t a[4], const bf16 *tile, int column, int k)
{
    const int lane = threadIdx.x % WARP;
    load_matrices_transposed(a, piece_at<D>(tile, 16 * k + lane / 16 * 8 + lane % 8, column / PIECE + lane / 8 % 2));
}

/* Two right operands: 16 k by 8 columns in b[0], b[1], by the next 8 in b[2], b[3]. */
template <int D> __device__ static inline void right_of_rows(uint32_t b[4], const bf16 *tile, int row, int k)
{
    const int lane = threadIdx.x % WARP;
    load_matrices(b, piece_at<D>(tile, row + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
}

template <int D> __device__ static inline void right_of_columns(uint32_t b[4], const bf16 *tile, int column, int k)
{
    const int lane = threadIdx.x % WARP;
    load_matrices_transposed(b, piece_at<D>(tile, 16 * k + lane % 16, column / PIECE + lane / 16));
}

/* --- products */

/* c[M][N][4] += A B^T over D: A is M tiles of 16 rows from a_row on, B is 8 N rows. */
template <int D, int M, int N>
__device__ static inline void multiply_rows(float (*c)[N][4], const bf16 *a_tile, int a_row, const bf16 *b_tile)
{
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int m = 0; m < M; m++)
            left_of_rows<D>(a[m], a_tile, a_row + 16 * m, k);
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            right_of_rows<D>(b, b_tile, 8 * n, k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(c[m][n], a[m], b);
                mma_16x8x16(c[m][n + 1], a[m], b + 2);
            }
        }
    }
}

/* An accumulator of 16 x 8 N as the left operand of a product over its columns: a[N / 2][4]. */
template <int N> __device__ static inline void operand_of(uint32_t (*a)[4], const float (*c)[4])
{
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        a[k][0] = bf16_pair(c[2 * k][0], c[2 * k][1]);
        a[k][1] = bf16_pair(c[2 * k][2], c[2 * k][3]);
        a[k][2] = bf16_pair(c[2 * k + 1][0], c[2 * k + 1][1]);
        a[k][3] = bf16_pair(c[2 * k + 1][2], c[2 * k + 1][3]);
    }
}

/* c[M][D / 8][4] += A B over 16 K rows of B: A in registers, a[M][K][4]. */
template <int D, int M, int K>
__device__ static inline void multiply_columns(float (*c)[D / 8][4], const uint32_t (*a)[K][4], const bf16 *b_tile)
{
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];
            right_of_columns<D>(b, b_tile, 8 * n, k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(c[m][n], a[m][k], b);
                mma_16x8x16(c[m][n + 1], a[m][k], b + 2);
            }
        }
}

/* --- results */

/* c[D / 8][4] times factor[0] in its rows 0-7, factor[1] in rows 8-15. */
template <int D> __device__ static inline void scale_rows(float (*c)[4], const float factor[2])
{
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[n][i] *= factor[i / 2];
}

/* 16 rows of an accumulator of D columns, times factor[0] (rows 0-7) and factor[1] (8-15) of this lane's rows, to global memory
 * in 16-byte pieces (or, not in vectors, in elements) by way of `tile` rows that no other warp uses and no lane still reads. Rows
 * at and beyond `limit`, columns at and beyond `columns` are not written. */
template <int D>
__device__ static inline void store_rows(bf16 *to, int64_t stride, int64_t limit, int64_t columns, bf16 *tile, int row0,
                                         const float (*c)[4], const float factor[2], bool vectors = true)
{
    const int lane = threadIdx.x % WARP, g = lane / 4, q = lane % 4;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t *at = (uint32_t *)piece_at<D>(tile, row0 + g + 8 * half, n) + q;
            *at = bf16_pair(c[n][2 * half] * factor[half], c[n][2 * half + 1] * factor[half]);
        }
    warp_barrier();
    if (!vectors) {
#pragma unroll 1
        for (int i = lane; i < 16 * D; i += WARP)
            if (i / D < limit && i % D < columns)
                to[i / D * stride + i % D] = piece_at<D>(tile, row0 + i / D, i % D / PIECE)[i % PIECE];
        return;
    }
#pragma unroll
    for (int i = lane; i < 16 * (D / PIECE); i += WARP) {
        const int row = i / (D / PIECE), piece = i % (D / PIECE);
        if (row < limit && piece * PIECE < columns)
            *(uint4 *)(to + row * stride + piece * PIECE) = *(const uint4 *)piece_at<D>(tile, row0 + row, piece);
    }
}

#endif
