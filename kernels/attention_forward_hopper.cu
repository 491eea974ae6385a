/*
 * attention_forward_hopper.cu - causal attention by warpgroups and tensor copies, for sm_90a (FlashAttention-3; Shah and others,
 * 2024).
 *
 * A block takes 128 queries of one head: one thread brings queries once, then keys and values 128 at a time through STAGES
 * buffers each; two warpgroups hold 64 queries each. Keys are gone over from the diagonal down. While a warpgroup turns the
 * scores of one step into weights, the product of the weights before with their values is under way, and the two warpgroups take
 * turns at issuing products, so that the softmax of one falls into the products of the other. Weights never leave the registers.
 *
 * Variants, FLOPs and bytes are those of attention_forward.cu; keys and values come from the second-level cache once per 128
 * queries. Expected limiter: wgmma and, half as long, the exponentials: 16 a cycle and multiprocessor where a product of 128 x
 * 128 x 128 takes 512 cycles. Registers: 240 a thread for scores (64), output (64), weights (32).
 *
 * Not run on a GPU yet: what is known is that it computes the right numbers in emulation, and what the assembler makes of it.
 */
#include "kernels/attention_tile.cuh"
#include "kernels/hopper_tile.cuh"

enum {
    CONSUMERS = 2, /* warpgroups */
    THREADS = (1 + CONSUMERS) * WARPGROUP,
    QUERIES = CONSUMERS * BOX,
    KEYS = 128,
    N_TILES = KEYS / 8,
    STAGES = 2,
    PRODUCER_REGISTERS = 24, /* FlashAttention-3's split for two consumers */
    CONSUMER_REGISTERS = 240,
    FIRST_TURN = 1,                      /* named barriers: whose turn it is to issue products, */
    FIRST_ALONE = FIRST_TURN + CONSUMERS /* and each warpgroup's own */
};
static_assert(PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (1 + CONSUMERS) * entry_registers(THREADS),
              "warpgroups wait for registers that never come");

/* What a block holds in shared memory, from the first multiple of EIGHT_ROWS_BYTES on. */
template <int D> struct forward_shared {
    unsigned char queries[CONSUMERS][BOX * D * sizeof(bf16)]; /* a tile for each warpgroup; its output later */
    unsigned char keys[STAGES][KEYS * D * sizeof(bf16)], values[STAGES][KEYS * D * sizeof(bf16)];
    float computed[CONSUMERS][WARPGROUP];
    uint64_t queries_here[CONSUMERS], keys_here[STAGES], values_here[STAGES], keys_used[STAGES], values_used[STAGES];
};

#ifdef MSIM_HOPPER

/* Whose keys a block goes over: steps of KEYS from `last` down. */
struct key_steps {
    int last, steps; /* `last`: first key of the first step */
};

__device__ static inline key_steps steps_of(const attention_call &call, int first_query)
{
    const int window = (int)call.window, seen = window > 0 && first_query + 1 > window ? first_query + 1 - window : 0;
    key_steps keys;
    keys.last = first_query / KEYS * KEYS;
    keys.steps = keys.last / KEYS - seen / KEYS + 1;
    return keys;
}

/* Step i's buffer, and the parity of the phase in which it is filled. */
__device__ static inline int stage_of(int i)
{
    return i % STAGES;
}

__device__ static inline int parity_of(int i)
{
    return i / STAGES % 2;
}

template <int D> __device__ static inline void make_barriers(forward_shared<D> *shared)
{
    for (int w = 0; w < CONSUMERS; w++)
        barrier_init(&shared->queries_here[w], 1);
    for (int s = 0; s < STAGES; s++) {
        barrier_init(&shared->keys_here[s], 1);
        barrier_init(&shared->values_here[s], 1);
        barrier_init(&shared->keys_used[s], CONSUMERS * WARPGROUP / WARP);
        barrier_init(&shared->values_used[s], CONSUMERS * WARPGROUP / WARP);
    }
    barrier_init_fence();
}

/* One thread's part: everything that comes from global memory, in the order in which it will be used. */
template <int D>
__device__ static inline void produce(const attention_call &call, const tensor_map *map, forward_shared<D> *shared,
                                      int first_query)
{
    const int head = blockIdx.y, batch = blockIdx.z, kv = call.heads + head / (call.heads / call.kv_heads);
    const key_steps keys = steps_of(call, first_query);
    for (int w = 0; w < CONSUMERS; w++)
        copy_tile<D, BOX>(shared->queries[w], map, head * D, first_query + w * BOX, batch, &shared->queries_here[w]);
    for (int i = 0; i <= keys.steps; i++) {
        if (i < keys.steps) {
            barrier_wait(&shared->keys_used[stage_of(i)], parity_of(i) ^ 1);
            copy_tile<D, KEYS>(shared->keys[stage_of(i)], map, kv * D, keys.last - i * KEYS, batch,
                               &shared->keys_here[stage_of(i)]);
        }
        if (i > 0) {
            const int before = i - 1;
            barrier_wait(&shared->values_used[stage_of(before)], parity_of(before) ^ 1);
            copy_tile<D, KEYS>(shared->values[stage_of(before)], map, (kv + call.kv_heads) * D, keys.last - before * KEYS, batch,
                               &shared->values_here[stage_of(before)]);
        }
    }
}

/* A warp is done with a buffer; the other warps say so for themselves. */
__device__ static inline void release(uint64_t *used)
{
    if (threadIdx.x % WARP == 0)
        barrier_arrive(used);
}

/* Scores of a step at `key`, of 64 queries from `first` on, masked where they have to be. */
__device__ static inline void mask_step(float (*s)[4], int key, int first, int window)
{
    const int lane = threadIdx.x % WARP, row = threadIdx.x % WARPGROUP / WARP * 16 + lane / 4;
    if (key + KEYS > first + 1 || (window > 0 && key <= first + BOX - 1 - window))
        mask_scores<N_TILES>(s, key - first - row + lane % 4 * 2, window, KEYS);
}

/* A warpgroup's part. */
template <int D>
__device__ static inline void consume(const attention_call &call, forward_shared<D> *shared, int first_query, int me, float scale)
{
    const int first = first_query + me * BOX, window = (int)call.window, next_turn = FIRST_TURN + (me + 1) % CONSUMERS;
    const key_steps keys = steps_of(call, first_query);
    const uint64_t q = rows_descriptor(shared->queries[me]);
    float out[D / 8][4] = {}, s[N_TILES][4], max[2] = {-INFINITY, -INFINITY}, sum[2] = {}, shrink[2];
    uint32_t weights[KEYS / 16][4];

    barrier_wait(&shared->queries_here[me], 0);
    barrier_wait(&shared->keys_here[0], 0);
    issue_rows<D, KEYS>(s, q, rows_descriptor(shared->keys[0]));
    wgmma_wait<0>();
    in_order<N_TILES>(s);
    release(&shared->keys_used[0]);
    mask_step(s, keys.last, first, window);
    softmax_scores<N_TILES>(s, max, sum, shrink, scale);
    operand_of<N_TILES>(weights, s);
    if (me != 0 && keys.steps > 1)
        named_arrive(FIRST_TURN, CONSUMERS * WARPGROUP); /* the first warpgroup begins */
    for (int i = 1; i < keys.steps; i++) {
        const int stage = stage_of(i), before = stage_of(i - 1);
        barrier_wait(&shared->keys_here[stage], parity_of(i));
        named_wait(FIRST_TURN + me, CONSUMERS * WARPGROUP);
        issue_rows<D, KEYS>(s, q, rows_descriptor(shared->keys[stage]));
        barrier_wait(&shared->values_here[before], parity_of(i - 1));
        issue_columns<D, KEYS>(out, weights, columns_descriptor<KEYS>(shared->values[before]));
        if (me != CONSUMERS - 1 || i + 1 < keys.steps)
            named_arrive(next_turn, CONSUMERS * WARPGROUP);
        wgmma_wait<1>();
        in_order<N_TILES>(s);
        release(&shared->keys_used[stage]);
        mask_step(s, keys.last - i * KEYS, first, window);
        softmax_scores<N_TILES>(s, max, sum, shrink, scale);
        computed(&shared->computed[me][threadIdx.x % WARPGROUP], sum[0] + sum[1]); /* while the values' product runs */
        wgmma_wait<0>();
        in_order<D / 8>(out);
        release(&shared->values_used[before]);
        scale_rows<D>(out, shrink);
        operand_of<N_TILES>(weights, s);
    }
    const int stage = stage_of(keys.steps - 1);
    barrier_wait(&shared->values_here[stage], parity_of(keys.steps - 1));
    issue_columns<D, KEYS>(out, weights, columns_descriptor<KEYS>(shared->values[stage]));
    wgmma_wait<0>();
    in_order<D / 8>(out);
    named_wait(FIRST_ALONE + me, WARPGROUP); /* the queries have been used, and give room to the output */
    const int warp_row = threadIdx.x % WARPGROUP / WARP * 16;
    const head_rows rows = rows_of(call, blockIdx.z, blockIdx.y);
    float inverse[2];
    finish_rows(call.log_sum_exp + rows.statistics, first + warp_row, call.seq_len, max, sum, scale, inverse);
    store_rows<D>((bf16 *)call.out + rows.out + (first + warp_row) * rows.out_stride, rows.out_stride,
                  call.seq_len - first - warp_row, D, (bf16 *)shared->queries[me], warp_row, out, inverse);
}

template <int D>
__global__ void __launch_bounds__(THREADS, 1)
    attention_forward_hopper_kernel(attention_call call, const __grid_constant__ tensor_map map, float scale)
{
    forward_shared<D> *shared = aligned_shared<forward_shared<D>>();
    const int first_query = (int)(gridDim.x - 1 - blockIdx.x) * QUERIES; /* the longest first */
    const int warpgroup = warp_uniform(threadIdx.x / WARPGROUP);
    if (threadIdx.x == 0)
        make_barriers<D>(shared);
    __syncthreads();
    if (warpgroup == 0) {
        registers_shrink<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            produce<D>(call, &map, shared, first_query);
    } else {
        registers_grow<CONSUMER_REGISTERS>();
        consume<D>(call, shared, first_query, warpgroup - 1, scale);
    }
}

#else

template <int D>
__global__ void __launch_bounds__(NO_THREADS)
    attention_forward_hopper_kernel(attention_call, const __grid_constant__ tensor_map, float)
{
}

#endif

template <int D> static constexpr size_t shared_bytes(void)
{
    return EIGHT_ROWS_BYTES + sizeof(forward_shared<D>);
}

template <int D> static cudaError_t map_of(const struct attention_call *call, tensor_map *map)
{
    if (!kernel_takes<attention_forward_hopper_kernel<D>>(THREADS, shared_bytes<D>()))
        return cudaErrorNotSupported;
    return tensor_map_make(map, call->qkv, (call->heads + 2 * (int64_t)call->kv_heads) * D, call->seq_len, call->batch, BOX, BOX,
                           SWIZZLE_128B);
}

bool attention_forward_has_hopper(const struct attention_call *call)
{
    tensor_map map;
    return hopper_fits(call) && (call->head_dim == 64 ? map_of<64>(call, &map) : map_of<128>(call, &map)) == cudaSuccess;
}

template <int D> static cudaError_t forward(const struct cuda_launch *launch, const struct attention_call *call)
{
    const dim3 grid((unsigned)((call->seq_len + QUERIES - 1) / QUERIES), (unsigned)call->heads, (unsigned)call->batch);
    tensor_map map;
    if (map_of<D>(call, &map) != cudaSuccess)
        return cudaErrorNotSupported;
    return launch_kernel(attention_forward_hopper_kernel<D>, grid, dim3(THREADS), shared_bytes<D>(), launch->stream, *call, map,
                         LOG2_E / sqrtf((float)D));
}

int attention_forward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    return call->head_dim == 64 ? forward<64>(launch, call) : forward<128>(launch, call);
}
