/*
 * attention_forward.cu - causal attention, online softmax, on tensor cores (FlashAttention-2; Dao, 2023).
 *
 * A block of four warps takes 128 queries of one head and goes over the keys that they may see, 64 at a time; blocks beyond the
 * diagonal and before the window are never touched. A warp owns 32 queries: scores, running maximum and sum, and the output stay
 * in its registers; scores become the left operand of the second product without leaving them. The values of a step arrive while
 * its scores are computed, the keys of the next while its output is.
 *
 * Variants: tiles for heads of 64, 96, 128, 192 with values of 128 (latent attention), and 256, where a warp owns 16 queries; any
 * narrower head has the rest of its tile filled with zeros. Grouped queries; a window; ALiBi; queries that begin before, within
 * or behind the keys, and whose attention to other keys is there already (context parallelism); operands that are not in 16-byte
 * vectors are read and written by elements. FLOPs: 2 (keys' + values' head size) per query-key pair, of the tile's sizes. Bytes:
 * q, k, v and out once from memory; keys and values again from the second-level cache, 4 head sizes per 128 queries and key.
 * Expected limiter: mma.sync issue, which reaches about 60 % of wgmma's rate on sm_90: there attention_forward_hopper.cu does
 * packed heads of 64 and 128, unless the launch asks for portable kernels.
 */
#include "kernels/attention_tile.cuh"

enum { KEYS = 64, N_TILES = KEYS / 8 };

/* Tiles of 16 queries that a warp owns, and queries of a block, for values of a size. */
template <int DV> struct ownership {
    enum { M_TILES = DV <= 128 ? 2 : 1, QUERIES = ATTENTION_WARPS * 16 * M_TILES };
};

/* What a warp knows of a step: its first query and the step's first key, counted as keys are, and keys that there are. */
struct warp_sight {
    int position, key, keys, window;
    float slope; /* of scores before they are scaled */
};

/* At the first step of a block whose first query has this position. */
__device__ static inline warp_sight sight_at(const query_range_call &call, int position, int warp_row, float scale)
{
    const int window = (int)call.window, seen = window > 0 && position + 1 > window ? position + 1 - window : 0;
    const float slope = call.slopes ? call.slopes[blockIdx.y] * (float)LOG2_E / scale : 0;
    return {position + warp_row, seen / KEYS * KEYS, (int)call.keys, window, slope};
}

/* Scores of the m-th 16 queries of a warp become weights. */
template <int M_TILES>
__device__ static inline void weigh_scores(float (*s)[4], const warp_sight &sight, int m, float max[2], float sum[2],
                                           float shrink[2], float scale)
{
    const int lane = threadIdx.x % WARP, key = sight.key + lane % 4 * 2, ahead = key - sight.position - lane / 4 - 16 * m;
    const bool edge = sight.key + KEYS > sight.position + 1 || sight.key + KEYS > sight.keys ||
                      (sight.window > 0 && sight.key <= sight.position + 16 * M_TILES - 1 - sight.window);
    if (sight.slope != 0)
        lean_scores<N_TILES>(s, sight.slope, ahead, -1);
    if (edge)
        mask_scores<N_TILES>(s, ahead, sight.window, sight.keys - key);
    softmax_scores<N_TILES>(s, max, sum, shrink, scale);
}

/* Outputs of a warp's 16 queries from `query` on, and their log-sum-exp; `tile`: rows that it has for itself. */
template <int DV>
__device__ static inline void finish_queries(const query_range_call &call, int query, bf16 *tile, int row0, float (*out)[4],
                                             const float max[2], const float sum[2], float scale, bool vectors)
{
    const int head = blockIdx.y, limit = (int)call.queries - query;
    float *log_sum_exp = call.log_sum_exp + ((int64_t)blockIdx.z * call.heads + head) * call.queries;
    bf16 *to = (bf16 *)call.out + blockIdx.z * call.out_at.batch + query * call.out_at.row + (int64_t)head * call.value_dim;
    float factor[2] = {1, 1}, inverse[2], kept[2];
    if (call.accumulate) {
        join_rows(log_sum_exp, query, call.queries, max, sum, scale, inverse, kept);
        add_rows<DV>(out, inverse, to, call.out_at.row, limit, call.value_dim, kept);
    } else {
        finish_rows(log_sum_exp, query, call.queries, max, sum, scale, factor);
    }
    store_rows<DV>(to, call.out_at.row, limit, call.value_dim, tile, row0, out, factor, vectors);
}

template <int DK, int DV>
__global__ void __launch_bounds__(ATTENTION_THREADS) attention_forward_kernel(query_range_call call, bool vectors, float scale)
{
    enum { M_TILES = ownership<DV>::M_TILES, QUERIES = ownership<DV>::QUERIES };
    bf16 *q_tile = (bf16 *)dynamic_shared(), *k_tile = q_tile + QUERIES * tile_row<DK>::STRIDE;
    bf16 *v_tile = k_tile + KEYS * tile_row<DK>::STRIDE;
    const int warp_row = threadIdx.x / WARP * 16 * M_TILES, first_query = (int)(gridDim.x - 1 - blockIdx.x) * QUERIES;
    const int position = (int)call.first + first_query, kv = (int)blockIdx.y / (call.heads / call.kv_heads);
    const int end = position + QUERIES < (int)call.keys ? position + QUERIES : (int)call.keys;
    warp_sight sight = sight_at(call, position, warp_row, scale);
    float out[M_TILES][DV / 8][4] = {}, max[M_TILES][2], sum[M_TILES][2] = {};
    for (int m = 0; m < M_TILES; m++)
        max[m][0] = max[m][1] = -INFINITY;

    load_head<DK, QUERIES>(q_tile, call.q, call.q_at, first_query, call.queries, blockIdx.y, call.head_dim, vectors);
    if (sight.key < end)
        load_head<DK, KEYS>(k_tile, call.k, call.k_at, sight.key, call.keys, kv, call.head_dim, vectors);
    copy_async_commit();
    for (; sight.key < end; sight.key += KEYS) {
        copy_async_wait<0>();
        __syncthreads(); /* keys are here, and the values before have been used */
        load_head<DV, KEYS>(v_tile, call.v, call.v_at, sight.key, call.keys, kv, call.value_dim, vectors);
        copy_async_commit();
        float s[M_TILES][N_TILES][4] = {};
        multiply_rows<DK, M_TILES, N_TILES>(s, q_tile, warp_row, k_tile);
        copy_async_wait<0>();
        __syncthreads(); /* values are here, and the keys have been used */
        if (sight.key + KEYS < end)
            load_head<DK, KEYS>(k_tile, call.k, call.k_at, sight.key + KEYS, call.keys, kv, call.head_dim, vectors);
        copy_async_commit();
        uint32_t weights[M_TILES][KEYS / 16][4];
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
            float shrink[2];
            weigh_scores<M_TILES>(s[m], sight, m, max[m], sum[m], shrink, scale);
            scale_rows<DV>(out[m], shrink);
            operand_of<N_TILES>(weights[m], s[m]);
        }
        multiply_columns<DV, M_TILES, KEYS / 16>(out, weights, v_tile);
    }
    copy_async_wait<0>();
    __syncthreads(); /* rows of the output lie across those of other warps' queries, which without a step are still on their way
                      */
#pragma unroll
    for (int m = 0; m < M_TILES; m++)
        finish_queries<DV>(call, first_query + warp_row + 16 * m, q_tile, warp_row + 16 * m, out[m], max[m], sum[m], scale,
                           vectors);
}

struct forward_pass {
    const struct cuda_launch *launch;
    const struct query_range_call *call;
    template <int DK, int DV> cudaError_t run(void) const
    {
        enum { QUERIES = ownership<DV>::QUERIES };
        const size_t shared = ((QUERIES + KEYS) * tile_row<DK>::STRIDE + (size_t)KEYS * tile_row<DV>::STRIDE) * sizeof(bf16);
        const dim3 grid((unsigned)((call->queries + QUERIES - 1) / QUERIES), (unsigned)call->heads, (unsigned)call->batch);
        const cudaError_t error = allow_shared(attention_forward_kernel<DK, DV>, shared);
        if (error != cudaSuccess)
            return error;
        return launch_kernel(attention_forward_kernel<DK, DV>, grid, dim3(ATTENTION_THREADS), shared, launch->stream, *call,
                             query_range_in_vectors(call), LOG2_E / sqrtf((float)call->head_dim));
    }
};

int query_range_forward_cuda(const struct cuda_launch *launch, const struct query_range_call *call)
{
    if (!query_range_fits(call))
        return cudaErrorInvalidValue;
    if (call->queries <= 0 || call->batch <= 0)
        return cudaSuccess;
    return with_widths(call, forward_pass{launch, call});
}

int attention_forward_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    if (call->batch <= 0 || call->seq_len <= 0)
        return cudaSuccess;
    if (!launch->portable && hopper_fits(call)) {
        const int error = attention_forward_hopper_cuda(launch, call);
        if (error != cudaErrorNotSupported)
            return error;
    }
    const struct query_range_call range = query_range_of(call);
    return query_range_forward_cuda(launch, &range);
}
