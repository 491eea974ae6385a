/*
 * hopper_tile.cuh - tiles in shared memory as tensor copies write them and products by warpgroups read them.
 *
 * A tile of ROWS x D bf16 is made of boxes of 64 rows x 64 columns: the columns of a box fill the 128 bytes over which pieces of
 * 16 bytes are permuted (SWIZZLE_128B), so eight rows are 1024 bytes, a box is 8 KiB, and begins at a multiple of 1024. Boxes of
 * the same columns follow each other, then those of the next columns: column c of row r is 128 ROWS (c / 64) + 128 r + 2 (c mod
 * 64) bytes from the tile's beginning, before the permutation.
 */
#ifndef MSIM_KERNELS_HOPPER_TILE_CUH
#define MSIM_KERNELS_HOPPER_TILE_CUH

#include "kernels/hopper.cuh"

enum { BOX = 64, BOX_ROW_BYTES = BOX * sizeof(bf16), BOX_BYTES = BOX * BOX_ROW_BYTES, EIGHT_ROWS_BYTES = 8 * BOX_ROW_BYTES };

/* Registers of each thread where one block has a multiprocessor, as the compiler gives them; setmaxnreg can only divide those
 * anew. */
static constexpr int entry_registers(int threads)
{
    return 65536 / threads / 8 * 8;
}

#ifdef MSIM_HOPPER

/* The block's shared memory from the first multiple of EIGHT_ROWS_BYTES on. By steps from where it begins: a pointer that was
 * made of an integer would be to any memory for the compiler, and each access through it a generic one. */
template <class Shared> __device__ static inline Shared *aligned_shared(void)
{
    unsigned char *start = dynamic_shared();
    return (Shared *)(start + (0u - shared_address(start)) % EIGHT_ROWS_BYTES);
}

/* PTX ISA, matrix descriptor: bits 13-0 start address, 29-16 leading dimension byte offset, 45-32 stride dimension byte offset,
 * all in units of 16 bytes; 51-49 base offset (0: the permutation's pattern begins at a multiple of its size); 63-62 the swizzle.
 *   k contiguous:       `stride` from eight rows to the next eight; `leading` is not used (with SWIZZLE_128B and 16 k)
 *   columns contiguous: `stride` from eight k to the next eight, `leading` from 64 columns to the next 64 */
__device__ static inline uint64_t matrix_descriptor(const void *start, int leading, int stride, enum swizzle swizzle)
{
    return (uint64_t)((shared_address(start) & 0x3ffff) >> 4) | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
           (uint64_t)swizzle << 62;
}

/* A descriptor that starts `bytes` bytes later. */
__device__ static inline uint64_t descriptor_at(uint64_t descriptor, int bytes)
{
    return descriptor + (uint64_t)(bytes >> 4);
}

/* Of a tile as an operand with its rows for rows of a or columns of b, and columns for k. */
__device__ static inline uint64_t rows_descriptor(const void *tile)
{
    return matrix_descriptor(tile, 16, EIGHT_ROWS_BYTES, SWIZZLE_128B);
}

/* Of a tile as b with its rows for k, and columns for columns. */
template <int ROWS> __device__ static inline uint64_t columns_descriptor(const void *tile)
{
    return matrix_descriptor(tile, ROWS * BOX_ROW_BYTES, EIGHT_ROWS_BYTES, SWIZZLE_128B);
}

/* Bytes from the tile's beginning to columns 16 k. */
template <int ROWS> __device__ static inline int column_step(int k)
{
    return k / (BOX / 16) * (ROWS * BOX_ROW_BYTES) + k % (BOX / 16) * 32;
}

/* By one thread: the tile's boxes, from (column, row, plane) of the map on, will report to the barrier. */
template <int D, int ROWS>
__device__ static inline void copy_tile(unsigned char *tile, const tensor_map *map, int column, int row, int plane,
                                        uint64_t *barrier)
{
    barrier_expect(barrier, ROWS * D * (int)sizeof(bf16));
#pragma unroll
    for (int c = 0; c < D / BOX; c++)
#pragma unroll
        for (int r = 0; r < ROWS / BOX; r++)
            copy_box(tile + (c * (ROWS / BOX) + r) * BOX_BYTES, map, column + c * BOX, row + r * BOX, plane, barrier);
}

/* Issues c[N / 8][4] = A B^T over D: A is 64 rows of a tile of 64, B the N rows of a tile. One group. */
template <int D, int N> __device__ static inline void issue_rows(float (*c)[4], uint64_t a, uint64_t b)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < D / 16; k++)
        wgmma_shared<N>(c, descriptor_at(a, column_step<BOX>(k)), descriptor_at(b, column_step<N>(k)), k > 0);
    wgmma_commit();
}

/* Issues c[D / 8][4] += A B over the K rows of a tile B: A in registers, a[K / 16][4]. One group. */
template <int D, int K> __device__ static inline void issue_columns(float (*c)[4], const uint32_t (*a)[4], uint64_t b)
{
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < K / 16; k++)
        wgmma_registers<D>(c, a[k], descriptor_at(b, k * 16 * BOX_ROW_BYTES));
    wgmma_commit();
}

#endif
#endif
