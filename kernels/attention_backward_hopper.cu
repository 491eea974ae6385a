/*
 * attention_backward_hopper.cu - gradients of causal attention by warpgroups and tensor copies, for sm_90a.
 *
 * The two passes of attention_backward.cu, with the same formulas and the same order of sums whatever runs beside: keys (dk, dv)
 * and queries (dq). A block holds two tiles of 128 rows, 64 for each of two warpgroups, and goes over pairs of tiles of 64 rows
 * that one thread brings through STAGES buffers:
 *
 *   keys     holds k and v; passing are q and dout, for each query head of the group
 *            s = k q^T, dp = v dout^T, dv += p dout, dk += ds q
 *   queries  holds q and dout; passing are k and v
 *            s = q k^T, dp = dout v^T, dq += ds k
 *
 * p and ds go from accumulators to operands without leaving registers; what is left operand of rows in the first product is right
 * operand of columns in the second, from the same tile. In the pass over keys a warp of the producer's warpgroup brings
 * log-sum-exp and delta of the passing queries. FLOPs and bytes as in attention_backward.cu. Expected limiter: wgmma.
 *
 * Not run on a GPU yet, as attention_forward_hopper.cu.
 */
#include "kernels/attention_tile.cuh"
#include "kernels/hopper_tile.cuh"

enum {
    CONSUMERS = 2, /* warpgroups */
    THREADS = (1 + CONSUMERS) * WARPGROUP,
    HELD = CONSUMERS * BOX,
    PASSING = BOX,
    N_TILES = PASSING / 8,
    STAGES = 2,
    PRODUCER_REGISTERS = 24,
    CONSUMER_REGISTERS = 240,
    FIRST_ALONE = 1 /* named barriers: each warpgroup's own */
};
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (1 + CONSUMERS) * entry_registers(THREADS),
              "warpgroups wait for registers that never come");

/* What a block has in shared memory, from the first multiple of EIGHT_ROWS_BYTES on. */
template <int D> struct backward_shared {
    unsigned char held[2][CONSUMERS][BOX * D * sizeof(bf16)]; /* a tile for each warpgroup; gradients later */
    unsigned char passing[2][STAGES][PASSING * D * sizeof(bf16)];
    float lse[STAGES][PASSING], delta[STAGES][PASSING]; /* of passing queries */
    uint64_t held_here, here[STAGES], used[STAGES];
};

/* What tensor copies bring from. */
struct backward_maps {
    tensor_map qkv, dout;
};

#ifdef MSIM_HOPPER

/* Step i's buffer, and the parity of the phase in which it is filled. */
__device__ static inline int stage_of(unsigned i)
{
    return (int)(i % STAGES);
}

__device__ static inline int parity_of(unsigned i)
{
    return (int)(i / STAGES % 2);
}

/* So many warps bring statistics. */
template <int D> __device__ static inline void make_barriers(backward_shared<D> *shared, int statistics)
{
    barrier_init(&shared->held_here, 2 * CONSUMERS);
    for (int s = 0; s < STAGES; s++) {
        barrier_init(&shared->here[s], 2 + statistics * WARP);
        barrier_init(&shared->used[s], CONSUMERS * WARPGROUP / WARP);
    }
    barrier_init_fence();
}

template <int D>
__device__ static inline void bring_held(backward_shared<D> *shared, int tile, const tensor_map *map, int column, int row,
                                         int batch)
{
    for (int w = 0; w < CONSUMERS; w++)
        copy_tile<D, BOX>(shared->held[tile][w], map, column, row + w * BOX, batch, &shared->held_here);
}

template <int D>
__device__ static inline void bring_passing(backward_shared<D> *shared, int tile, int stage, const tensor_map *map, int column,
                                            int row, int batch)
{
    copy_tile<D, PASSING>(shared->passing[tile][stage], map, column, row, batch, &shared->here[stage]);
}

/* A warp is done with a buffer, its statistics too; the other warps say so for themselves. */
__device__ static inline void release(uint64_t *used)
{
    warp_barrier();
    if (threadIdx.x % WARP == 0)
        barrier_arrive(used);
}

/* The 64 held rows of a warpgroup times the passing ones, of both pairs of tiles. */
template <int D>
__device__ static inline void products_of_rows(float (*s)[4], float (*dp)[4], const backward_shared<D> *shared, int me, int stage)
{
    issue_rows<D, PASSING>(s, rows_descriptor(shared->held[0][me]), rows_descriptor(shared->passing[0][stage]));
    issue_rows<D, PASSING>(dp, rows_descriptor(shared->held[1][me]), rows_descriptor(shared->passing[1][stage]));
    wgmma_wait<0>();
    in_order<N_TILES>(s);
    in_order<N_TILES>(dp);
}

/* A warpgroup's 64 rows of a gradient, by way of a tile that it has used. */
template <int D>
__device__ static inline void store_gradient(bf16 *to, int64_t stride, int64_t limit, unsigned char *tile, float (*c)[4],
                                             float factor)
{
    const int warp_row = threadIdx.x % WARPGROUP / WARP * 16;
    const float factors[2] = {factor, factor};
    store_rows<D>(to + warp_row * stride, stride, limit - warp_row, D, (bf16 *)tile, warp_row, c, factors);
}

/* --- keys */

/* Which queries see a block's keys: `steps` tiles for each head from the first key on. */
__device__ static inline int query_steps(const attention_call &call, int first_key)
{
    int64_t end = call.seq_len;
    if (call.window > 0 && first_key + HELD + call.window - 1 < end)
        end = first_key + HELD + call.window - 1;
    return (int)((end - first_key + PASSING - 1) / PASSING);
}

template <int D>
__device__ static inline void produce_for_keys(const attention_call &call, const backward_maps *maps, backward_shared<D> *shared,
                                               int first_key)
{
    const int kv = blockIdx.y, batch = blockIdx.z, group = call.heads / call.kv_heads, steps = query_steps(call, first_key);
    bring_held<D>(shared, 0, &maps->qkv, (call.heads + kv) * D, first_key, batch);
    bring_held<D>(shared, 1, &maps->qkv, (call.heads + call.kv_heads + kv) * D, first_key, batch);
    unsigned i = 0;
    for (int head = kv * group; head < (kv + 1) * group; head++)
        for (int step = 0; step < steps; step++, i++) {
            const int query = first_key + step * PASSING;
            barrier_wait(&shared->used[stage_of(i)], parity_of(i) ^ 1);
            bring_passing<D>(shared, 0, stage_of(i), &maps->qkv, head * D, query, batch);
            bring_passing<D>(shared, 1, stage_of(i), &maps->dout, head * D, query, batch);
        }
}

/* A warp's part: one number of each passing query, times `factor`, and `beyond` the end. */
template <int D>
__device__ static inline void bring_statistics(const attention_call &call, backward_shared<D> *shared, float (*to)[PASSING],
                                               const float *from, float factor, float beyond, int first_key)
{
    const int group = call.heads / call.kv_heads, steps = query_steps(call, first_key), lane = threadIdx.x % WARP;
    const int limit = (int)call.seq_len - first_key;
    unsigned i = 0;
    from += (blockIdx.z * (int64_t)call.heads + blockIdx.y * group) * call.seq_len + first_key;
    for (int g = 0; g < group; g++, from += call.seq_len)
        for (int step = 0; step < steps; step++, i++) {
            barrier_wait(&shared->used[stage_of(i)], parity_of(i) ^ 1);
#pragma unroll
            for (int j = lane; j < PASSING; j += WARP) {
                const int at = step * PASSING + j;
                to[stage_of(i)][j] = at < limit ? from[at] * factor : beyond;
            }
            barrier_arrive(&shared->here[stage_of(i)]);
        }
}

template <int D>
__device__ static inline void consume_for_keys(const attention_call &call, backward_shared<D> *shared, int first_key, int me,
                                               float scale, float plain_scale)
{
    const int group = call.heads / call.kv_heads, steps = query_steps(call, first_key), lane = threadIdx.x % WARP;
    const int first = first_key + me * BOX, row = threadIdx.x % WARPGROUP / WARP * 16 + lane / 4, window = (int)call.window;
    float dk[D / 8][4] = {}, dv[D / 8][4] = {};
    barrier_wait(&shared->held_here, 0);
    for (unsigned i = 0, step = 0; i < (unsigned)(group * steps); i++, step = step + 1 < (unsigned)steps ? step + 1 : 0) {
        const int stage = stage_of(i), query = first_key + (int)step * PASSING;
        float p[N_TILES][4], ds[N_TILES][4];
        uint32_t p_operand[PASSING / 16][4], ds_operand[PASSING / 16][4];
        barrier_wait(&shared->here[stage], parity_of(i));
        products_of_rows<D>(p, ds, shared, me, stage);
        if (first + BOX - 1 > query || (window > 0 && first - (query + PASSING - 1) <= -window))
            mask_keys<N_TILES>(p, first - query + row - lane % 4 * 2, window);
        weights_of_keys<N_TILES>(p, ds, shared->lse[stage], shared->delta[stage], scale);
        operand_of<N_TILES>(p_operand, p);
        operand_of<N_TILES>(ds_operand, ds);
        issue_columns<D, PASSING>(dv, p_operand, columns_descriptor<PASSING>(shared->passing[1][stage]));
        issue_columns<D, PASSING>(dk, ds_operand, columns_descriptor<PASSING>(shared->passing[0][stage]));
        wgmma_wait<0>();
        in_order<D / 8>(dv);
        in_order<D / 8>(dk);
        release(&shared->used[stage]);
    }
    named_wait(FIRST_ALONE + me, WARPGROUP); /* the held tiles have been used, and give room to the gradients */
    const head_rows rows = rows_of(call, blockIdx.z, blockIdx.y * group);
    bf16 *dqkv = (bf16 *)call.dqkv + first * rows.stride;
    store_gradient<D>(dqkv + rows.k, rows.stride, call.seq_len - first, shared->held[0][me], dk, plain_scale);
    store_gradient<D>(dqkv + rows.v, rows.stride, call.seq_len - first, shared->held[1][me], dv, 1);
}

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    keys_hopper_kernel(attention_call call, const __grid_constant__ backward_maps maps, float scale, float plain_scale)
{
    backward_shared<D> *shared = aligned_shared<backward_shared<D>>();
    const int first_key = (int)blockIdx.x * HELD, warpgroup = warp_uniform(threadIdx.x / WARPGROUP);
    if (threadIdx.x == 0)
        make_barriers<D>(shared, 2);
    __syncthreads();
    if (warpgroup == 0) {
        registers_shrink<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            produce_for_keys<D>(call, &maps, shared, first_key);
        else if (threadIdx.x / WARP == 1) /* beyond the end every weight is exp(-inf) */
            bring_statistics<D>(call, shared, shared->lse, call.log_sum_exp, LOG2_E, INFINITY, first_key);
        else if (threadIdx.x / WARP == 2)
            bring_statistics<D>(call, shared, shared->delta, (const float *)call.workspace, 1, 0, first_key);
    } else {
        registers_grow<CONSUMER_REGISTERS>();
        consume_for_keys<D>(call, shared, first_key, warpgroup - 1, scale, plain_scale);
    }
}

/* --- queries */

/* Which keys a block's queries see: tiles from `first` up to the diagonal. */
struct key_tiles {
    int first, steps;
};

__device__ static inline key_tiles keys_of(const attention_call &call, int first_query)
{
    const int64_t end = first_query + HELD < call.seq_len ? first_query + HELD : call.seq_len;
    const int window = (int)call.window, seen = window > 0 && first_query + 1 > window ? first_query + 1 - window : 0;
    key_tiles keys;
    keys.first = seen / PASSING * PASSING;
    keys.steps = (int)((end - keys.first + PASSING - 1) / PASSING);
    return keys;
}

template <int D>
__device__ static inline void produce_for_queries(const attention_call &call, const backward_maps *maps,
                                                  backward_shared<D> *shared, int first_query)
{
    const int head = blockIdx.y, batch = blockIdx.z, kv = call.heads + head / (call.heads / call.kv_heads);
    const key_tiles keys = keys_of(call, first_query);
    bring_held<D>(shared, 0, &maps->qkv, head * D, first_query, batch);
    bring_held<D>(shared, 1, &maps->dout, head * D, first_query, batch);
    for (int i = 0; i < keys.steps; i++) {
        barrier_wait(&shared->used[stage_of(i)], parity_of(i) ^ 1);
        bring_passing<D>(shared, 0, stage_of(i), &maps->qkv, kv * D, keys.first + i * PASSING, batch);
        bring_passing<D>(shared, 1, stage_of(i), &maps->qkv, (kv + call.kv_heads) * D, keys.first + i * PASSING, batch);
    }
}

template <int D>
__device__ static inline void consume_for_queries(const attention_call &call, backward_shared<D> *shared, int first_query, int me,
                                                  float scale, float plain_scale)
{
    const key_tiles keys = keys_of(call, first_query);
    const head_rows rows = rows_of(call, blockIdx.z, blockIdx.y);
    const int lane = threadIdx.x % WARP, first = first_query + me * BOX, window = (int)call.window;
    const int query = first + threadIdx.x % WARPGROUP / WARP * 16 + lane / 4;
    float dq[D / 8][4] = {}, lse[2], delta[2];
    statistics_of_rows(call.log_sum_exp + rows.statistics, (const float *)call.workspace + rows.statistics, query, call.seq_len,
                       lse, delta);
    barrier_wait(&shared->held_here, 0);
    for (int i = 0; i < keys.steps; i++) {
        const int stage = stage_of(i);
        float s[N_TILES][4], ds[N_TILES][4];
        uint32_t operand[PASSING / 16][4];
        barrier_wait(&shared->here[stage], parity_of(i));
        products_of_rows<D>(s, ds, shared, me, stage);
        const int key = keys.first + i * PASSING;
        if (key + PASSING - 1 > first || (window > 0 && key - (first + BOX - 1) <= -window))
            mask_scores<N_TILES>(s, key - query + lane % 4 * 2, window, PASSING);
        weights_of_queries<N_TILES>(s, ds, lse, delta, scale);
        operand_of<N_TILES>(operand, ds);
        issue_columns<D, PASSING>(dq, operand, columns_descriptor<PASSING>(shared->passing[0][stage]));
        wgmma_wait<0>();
        in_order<D / 8>(dq);
        release(&shared->used[stage]);
    }
    named_wait(FIRST_ALONE + me, WARPGROUP);
    store_gradient<D>((bf16 *)call.dqkv + rows.q + first * rows.stride, rows.stride, call.seq_len - first, shared->held[0][me],
                      dq, plain_scale);
}

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    queries_hopper_kernel(attention_call call, const __grid_constant__ backward_maps maps, float scale, float plain_scale)
{
    backward_shared<D> *shared = aligned_shared<backward_shared<D>>();
    const int first_query = (int)(gridDim.x - 1 - blockIdx.x) * HELD, warpgroup = warp_uniform(threadIdx.x / WARPGROUP);
    if (threadIdx.x == 0)
        make_barriers<D>(shared, 0);
    __syncthreads();
    if (warpgroup == 0) {
        registers_shrink<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            produce_for_queries<D>(call, &maps, shared, first_query);
    } else {
        registers_grow<CONSUMER_REGISTERS>();
        consume_for_queries<D>(call, shared, first_query, warpgroup - 1, scale, plain_scale);
    }
}

#else

template <int D>
__global__ void __launch_bounds__(NO_THREADS)
    keys_hopper_kernel(attention_call, const __grid_constant__ backward_maps, float, float)
{
}

template <int D>
__global__ void __launch_bounds__(NO_THREADS)
    queries_hopper_kernel(attention_call, const __grid_constant__ backward_maps, float, float)
{
}

#endif

template <int D> static constexpr size_t shared_bytes(void)
{
    return EIGHT_ROWS_BYTES + sizeof(backward_shared<D>);
}

template <int D> static cudaError_t maps_of(const struct attention_call *call, backward_maps *maps)
{
    if (!kernel_takes<keys_hopper_kernel<D>>(THREADS, shared_bytes<D>()) ||
        !kernel_takes<queries_hopper_kernel<D>>(THREADS, shared_bytes<D>()))
        return cudaErrorNotSupported;
    const cudaError_t error = tensor_map_make(&maps->qkv, call->qkv, (call->heads + 2 * (int64_t)call->kv_heads) * D,
                                              call->seq_len, call->batch, BOX, BOX, SWIZZLE_128B);
    return error != cudaSuccess ? error
                                : tensor_map_make(&maps->dout, call->dout, (int64_t)call->heads * D, call->seq_len, call->batch,
                                                  BOX, BOX, SWIZZLE_128B);
}

bool attention_backward_has_hopper(const struct attention_call *call)
{
    backward_maps maps;
    return hopper_fits(call) && (call->head_dim == 64 ? maps_of<64>(call, &maps) : maps_of<128>(call, &maps)) == cudaSuccess;
}

template <int D> static cudaError_t backward(const struct cuda_launch *launch, const struct attention_call *call)
{
    const unsigned blocks = (unsigned)((call->seq_len + HELD - 1) / HELD);
    const float plain_scale = 1 / sqrtf((float)D), scale = LOG2_E * plain_scale;
    backward_maps maps;
    if (maps_of<D>(call, &maps) != cudaSuccess)
        return cudaErrorNotSupported;
    cudaError_t error = launch_kernel(keys_hopper_kernel<D>, dim3(blocks, (unsigned)call->kv_heads, (unsigned)call->batch),
                                      dim3(THREADS), shared_bytes<D>(), launch->stream, *call, maps, scale, plain_scale);
    if (error == cudaSuccess)
        error = launch_kernel(queries_hopper_kernel<D>, dim3(blocks, (unsigned)call->heads, (unsigned)call->batch), dim3(THREADS),
                              shared_bytes<D>(), launch->stream, *call, maps, scale, plain_scale);
    return error;
}

int attention_backward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    return call->head_dim == 64 ? backward<64>(launch, call) : backward<128>(launch, call);
}
