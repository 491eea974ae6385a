/*
 * attention_forward.cu - causal attention, online softmax, on tensor cores (FlashAttention-2; Dao, 2023).
 *
 * A block of four warps takes 128 queries of one head and goes over the keys that they may see, 64 at a time; blocks beyond the
 * diagonal and before the window are never touched. A warp owns 32 queries: scores, running maximum and sum, and the output stay
 * in its registers; scores become the left operand of the second product without leaving them. The values of a step arrive while
 * its scores are computed, the keys of the next while its output is. Variants: head dimension 64 and 128; grouped queries; a
 * window. FLOPs: 4 head_dim per query-key pair. Bytes: qkv and out once from memory; keys and values again from the second-level
 * cache, 4 head_dim per 128 queries and key. Expected limiter: mma.sync issue, which reaches about 60 % of wgmma's rate on sm_90:
 * there attention_forward_hopper.cu does it, unless the launch asks for portable kernels.
 */
#include "kernels/attention_tile.cuh"

enum { QUERIES = 128, KEYS = 64, M_TILES = QUERIES / ATTENTION_WARPS / 16, N_TILES = KEYS / 8 };

template <int D> __global__ void __launch_bounds__(ATTENTION_THREADS) attention_forward_kernel(attention_call call, float scale)
{
    bf16 *q_tile = (bf16 *)dynamic_shared(), *k_tile = q_tile + QUERIES * D, *v_tile = k_tile + KEYS * D;
    const head_rows rows = rows_of(call, blockIdx.z, blockIdx.y);
    const bf16 *qkv = (const bf16 *)call.qkv;
    const int64_t first_query = (int64_t)(gridDim.x - 1 - blockIdx.x) * QUERIES; /* the longest first */
    const int64_t end = first_query + QUERIES < call.seq_len ? first_query + QUERIES : call.seq_len;
    const int64_t seen = call.window > 0 && first_query + 1 > call.window ? first_query + 1 - call.window : 0;
    const int lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16 * M_TILES;
    const int64_t lane_query = first_query + warp_row + lane / 4;
    float out[M_TILES][D / 8][4] = {}, max[M_TILES][2], sum[M_TILES][2] = {};
    for (int m = 0; m < M_TILES; m++)
        max[m][0] = max[m][1] = -INFINITY;

    int64_t key = seen / KEYS * KEYS;
    load_tile<D, QUERIES>(q_tile, qkv + rows.q + first_query * rows.stride, rows.stride, call.seq_len - first_query);
    load_tile<D, KEYS>(k_tile, qkv + rows.k + key * rows.stride, rows.stride, call.seq_len - key);
    copy_async_commit();
    for (; key < end; key += KEYS) {
        copy_async_wait<0>();
        __syncthreads(); /* keys are here, and the values before have been used */
        load_tile<D, KEYS>(v_tile, qkv + rows.v + key * rows.stride, rows.stride, call.seq_len - key);
        copy_async_commit();
        float s[M_TILES][N_TILES][4] = {};
        multiply_rows<D, M_TILES, N_TILES>(s, q_tile, warp_row, k_tile);
        copy_async_wait<0>();
        __syncthreads(); /* values are here, and the keys have been used */
        if (key + KEYS < end)
            load_tile<D, KEYS>(k_tile, qkv + rows.k + (key + KEYS) * rows.stride, rows.stride, call.seq_len - key - KEYS);
        copy_async_commit();
        const bool edge = key + KEYS > first_query + warp_row + 1 ||
                          (call.window > 0 && key <= first_query + warp_row + 16 * M_TILES - 1 - call.window);
        uint32_t weights[M_TILES][KEYS / 16][4];
#pragma unroll
        for (int m = 0; m < M_TILES; m++) {
            if (edge)
                mask_scores<N_TILES>(s[m], (int)(key - lane_query) + lane % 4 * 2 - 16 * m, (int)call.window);
            float shrink[2];
            softmax_scores<N_TILES>(s[m], max[m], sum[m], shrink, scale);
            scale_rows<D>(out[m], shrink);
            operand_of<N_TILES>(weights[m], s[m]);
        }
        multiply_columns<D, M_TILES, KEYS / 16>(out, weights, v_tile);
    }

#pragma unroll
    for (int m = 0; m < M_TILES; m++) {
        float inverse[2];
        const int64_t query = first_query + warp_row + 16 * m;
        finish_rows(call.log_sum_exp + rows.statistics, query, call.seq_len, max[m], sum[m], scale, inverse);
        store_rows<D>((bf16 *)call.out + rows.out + query * rows.out_stride, rows.out_stride, call.seq_len - query, q_tile,
                      warp_row + 16 * m, out[m], inverse);
    }
}

template <int D> static cudaError_t forward(const struct cuda_launch *launch, const struct attention_call *call)
{
    const size_t shared = (QUERIES + 2 * KEYS) * D * sizeof(bf16);
    const dim3 grid((unsigned)((call->seq_len + QUERIES - 1) / QUERIES), (unsigned)call->heads, (unsigned)call->batch);
    cudaError_t error = allow_shared(attention_forward_kernel<D>, shared);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(attention_forward_kernel<D>, grid, dim3(ATTENTION_THREADS), shared, launch->stream, *call,
                         LOG2_E / sqrtf((float)D));
}

int attention_forward_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    if (!attention_fits(call))
        return cudaErrorInvalidValue;
    if (call->batch <= 0 || call->seq_len <= 0)
        return cudaSuccess;
    if (!launch->portable) {
        const int error = attention_forward_hopper_cuda(launch, call);
        if (error != cudaErrorNotSupported)
            return error;
    }
    return call->head_dim == 64 ? forward<64>(launch, call) : forward<128>(launch, call);
}
