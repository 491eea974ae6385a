/*
 * scan_solve.cu - the delta rule's part of the scan by chunks that does not depend on states: what a chunk's tokens take away
 * from one another's values, for all chunks at once.
 *
 * With the names of scan_chunks.cu, what token i writes is u_i = w_i (v_i - exp(L_i) S^T k_i - sum over j < i of M_ij (k_i k_j)
 * u_j). With A_ij = w_i M_ij k_i k_j below the diagonal that is (I + A) U = diag(w) R, R = V - diag(exp(L)) K S, so
 *
 *     U = X R,  X = (I + A)^-1 diag(w)                        (WY representation: arXiv:2406.06484, section 3; arXiv:2412.06464)
 *
 * Solved in fp32: the four blocks of 16 tokens on the diagonal by forward substitution, a warp each, a lane a column; then block
 * row by block row those below, T_ij = -T_ii sum over k from j to i - 1 of A_ik T_kj. Where no w |k|^2 is above 2
 * no I - w k k^T makes anything longer, and T_ij, which is -w_i k_i by those between i and j by k_j by decays, is no larger
 * than w_i |k_i| |k_j|: at most 1 with keys of one length and w |k|^2 of at most 1. Up to 2 it may be 2: three tokens of one
 * unit key with w = 2 have T_31 = 2. X is rounded to bf16 once, for a product on tensor cores.
 *
 * Strengths below 2^-40 count as that, for gradients' sake, which are divided by them (scan_delta_backward.cu).
 *
 * A block does one chunk of one head of one sequence. Bytes per token and head: 2 N read (from the L2, where heads of a group
 * share keys), 128 written. FLOPs per token and head: 128 N on tensor cores, 2.5 K on none (a third of them with zeros). Limiter:
 * latency of substitution and barriers; there are as many blocks as chunks of all heads.
 */
#include "kernels/scan_chunks.cuh"

enum { SOLVE_THREADS = 128, BLOCK_TOKENS = 16 };
enum { ROW_LANES = SOLVE_THREADS / BLOCK_TOKENS }; /* threads that share a row of a block row */

/* Rows one longer: a column's numbers lie in different banks. */
struct chunk_matrix {
    float at[CHUNK][CHUNK + 1];
};

template <int N> struct solve_tiles {
    static constexpr int KEYS = CHUNK * N;
    static constexpr size_t BYTES = KEYS * sizeof(bf16) + sizeof(chunk_gates) + sizeof(chunk_matrix);
    bf16 *k;
    chunk_gates *gates;
    chunk_matrix *matrix;
    __device__ solve_tiles()
    {
        k = (bf16 *)dynamic_shared();
        gates = (chunk_gates *)(k + KEYS);
        matrix = (chunk_matrix *)(gates + 1);
    }
};

/* A warp's 16 rows of A from `row` on, zeros on the diagonal and above. */
template <int N>
__device__ static inline void products_of_keys(chunk_matrix &matrix, const bf16 *k_tile, const chunk_gates &gates, int row)
{
    const int lane = threadIdx.x % WARP;
    float a[1][N_TILES][4] = {};
    multiply_rows<N, 1, N_TILES>(a, k_tile, row, k_tile);
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int later = row + lane / 4 + i / 2 * 8, earlier = 8 * n + lane % 4 * 2 + i % 2;
            const float kept = some_strength(gates.strength[later]) * exp2_fast(gates.sum[later] - gates.sum[earlier]);
            matrix.at[later][earlier] = earlier < later ? a[0][n][i] * kept : 0;
        }
}

/* The block on the diagonal at `first` becomes the inverse of I + itself, by one warp. */
__device__ static inline void invert_diagonal(chunk_matrix &matrix, int first)
{
    const int lane = threadIdx.x % WARP, column = lane % BLOCK_TOKENS;
    float t[BLOCK_TOKENS];
#pragma unroll
    for (int i = 0; i < BLOCK_TOKENS; i++) {
        float sum = i == column ? 1 : 0;
#pragma unroll
        for (int j = 0; j < i; j++)
            sum -= matrix.at[first + i][first + j] * t[j];
        t[i] = sum;
    }
    warp_barrier(); /* all have read A */
#pragma unroll
    for (int i = 0; i < BLOCK_TOKENS; i++)
        if (lane < BLOCK_TOKENS)
            matrix.at[first + i][first + column] = t[i];
}

/* Block row I of A becomes that of the inverse; the rows before it have, and its own block on the diagonal. A thread has every
 * ROW_LANES-th column of a row. */
template <int I> __device__ static inline void invert_row(chunk_matrix &matrix)
{
    enum { FIRST = I * BLOCK_TOKENS, COLUMNS = FIRST / ROW_LANES };
    const int row = threadIdx.x / ROW_LANES, column = threadIdx.x % ROW_LANES;
    float sums[COLUMNS] = {}, results[COLUMNS] = {};
    for (int k = 0; k < FIRST; k++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            sums[c] += matrix.at[FIRST + row][k] * matrix.at[k][column + c * ROW_LANES];
    warp_barrier(); /* a row's threads have read A's */
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        matrix.at[FIRST + row][column + c * ROW_LANES] = sums[c];
    __syncthreads();
    for (int k = 0; k <= row; k++)
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            results[c] -= matrix.at[FIRST + row][FIRST + k] * matrix.at[FIRST + k][column + c * ROW_LANES];
    __syncthreads(); /* all have read the sums */
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
        matrix.at[FIRST + row][column + c * ROW_LANES] = results[c];
}

/* X of chunk blockIdx.x: solved [batch * heads][chunks]. */
template <int N>
__global__ void __launch_bounds__(SOLVE_THREADS) solve_kernel(scan_call call, chunk_vectors vectors, solved_chunk *solved)
{
    const solve_tiles<N> tiles;
    const chunk_place place = place_of_head(call);
    const int64_t first = (int64_t)blockIdx.x * CHUNK;
    const int warp = threadIdx.x / WARP;
    chunk_matrix &matrix = *tiles.matrix;
    load_keys<N, SOLVE_THREADS>(tiles.k, call, place, call.k, first, vectors.keys);
    copy_async_commit();
    if (warp == 0) {
        gates_read gates;
        gates.read(call, place, first);
        gates.put(tiles.gates);
    }
    copy_async_wait<0>();
    __syncthreads();
    products_of_keys<N>(matrix, tiles.k, *tiles.gates, warp * BLOCK_TOKENS);
    warp_barrier();
    invert_diagonal(matrix, warp * BLOCK_TOKENS);
    __syncthreads();
    invert_row<1>(matrix);
    __syncthreads();
    invert_row<2>(matrix);
    __syncthreads();
    invert_row<3>(matrix);
    __syncthreads();
    bf16 *to = solved[(int64_t)blockIdx.y * gridDim.x + blockIdx.x].at;
    for (int i = threadIdx.x; i < CHUNK * CHUNK / VECTOR; i += SOLVE_THREADS) {
        const int row = i / (CHUNK / VECTOR), column = i % (CHUNK / VECTOR) * VECTOR;
        float x[VECTOR];
#pragma unroll
        for (int j = 0; j < VECTOR; j++)
            x[j] = matrix.at[row][column + j] * some_strength(tiles.gates->strength[column + j]);
        store<VECTOR>(to + i * VECTOR, x);
    }
}

template <int N> static cudaError_t allow_solve(void)
{
    return allow_shared(solve_kernel<N>, solve_tiles<N>::BYTES);
}

template <int N> static int solve(const struct cuda_launch *launch, const struct scan_call *call, struct solved_chunk *solved)
{
    const dim3 grid((unsigned)((call->seq_len + CHUNK - 1) / CHUNK), (unsigned)(call->batch * call->heads));
    const cudaError_t error = allow_solve<N>();
    return error != cudaSuccess ? error
                                : launch_kernel(solve_kernel<N>, grid, dim3(SOLVE_THREADS), solve_tiles<N>::BYTES, launch->stream,
                                                *call, vectors_of(call), solved);
}

int scan_solve_cuda(const struct cuda_launch *launch, const struct scan_call *call, void *solved)
{
    struct solved_chunk *to = (struct solved_chunk *)solved;
    return call->state <= 64    ? solve<64>(launch, call, to)
           : call->state <= 128 ? solve<128>(launch, call, to)
                                : solve<256>(launch, call, to);
}
