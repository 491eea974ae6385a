/*
 * stretch.cu - causal attention of a stretch of queries, forward and backward: context parallelism, ALiBi, latent attention.
 *
 * Variants: one. A warp per query and head walks over the keys it sees (forward, and the queries' gradient); a warp per key and
 * key/value head walks over the queries that see it (the keys' and values' gradients). No atomics: the same bits each run.
 * FLOPs as any attention; bytes: keys and values once per query from the caches. Limiter: the sum over lanes for every score.
 * It is there so that every program runs; the packed kernels on tensor cores do what is common.
 */
#include "kernels/vector.cuh"

#define LOG2_E 1.4426950409f
enum { MOST_DIM = 256, PARTS = MOST_DIM / WARP };

/* A vector of up to MOST_DIM numbers over the lanes of a warp. */
struct lanes {
    float x[PARTS];
    __device__ void clear(void)
    {
        for (int i = 0; i < PARTS; i++)
            x[i] = 0;
    }
    __device__ void read(const bf16 *from, int n)
    {
        for (int i = 0; i < PARTS; i++) {
            const int at = i * WARP + threadIdx.x;
            x[i] = at < n ? bf16_to_float(from[at]) : 0;
        }
    }
    __device__ void write(bf16 *to, int n, float scale, bool add) const
    {
        for (int i = 0; i < PARTS; i++) {
            const int at = i * WARP + threadIdx.x;
            if (at < n)
                to[at] = bf16_from_float(scale * x[i] + (add ? bf16_to_float(to[at]) : 0));
        }
    }
    __device__ float dot(const lanes &other) const
    {
        float sum = 0;
        for (int i = 0; i < PARTS; i++)
            sum += x[i] * other.x[i];
        return warp_sum(sum);
    }
    __device__ void add(const lanes &other, float factor)
    {
        for (int i = 0; i < PARTS; i++)
            x[i] += factor * other.x[i];
    }
    __device__ void shrink(float factor)
    {
        for (int i = 0; i < PARTS; i++)
            x[i] *= factor;
    }
};

__device__ static inline const bf16 *row_of(const void *tensor, const strided &at, int64_t batch, int64_t row, int64_t column)
{
    return (const bf16 *)tensor + batch * at.batch + row * at.row + column;
}

__device__ static inline int64_t first_key_of(const stretch_call &call, int64_t position)
{
    return call.window > 0 && position + 1 > call.window ? position + 1 - call.window : 0;
}

__device__ static inline float score_of(const stretch_call &call, const lanes &q, const lanes &k, int head, int64_t distance)
{
    return q.dot(k) * 1 / sqrtf((float)call.head_dim) - (call.slopes ? call.slopes[head] * (float)distance : 0);
}

__global__ void __launch_bounds__(WARP) stretch_forward_kernel(stretch_call call)
{
    const int64_t query = blockIdx.x, batch = blockIdx.z, position = call.first + query;
    const int head = (int)blockIdx.y, kv = head / (call.heads / call.kv_heads);
    lanes q, k, v, out;
    float most = -INFINITY, sum = 0;
    q.read(row_of(call.q, call.q_at, batch, query, (int64_t)head * call.head_dim), call.head_dim);
    out.clear();
    for (int64_t key = first_key_of(call, position); key <= position; key++) {
        k.read(row_of(call.k, call.k_at, batch, key, (int64_t)kv * call.head_dim), call.head_dim);
        v.read(row_of(call.v, call.v_at, batch, key, (int64_t)kv * call.value_dim), call.value_dim);
        const float score = score_of(call, q, k, head, position - key), larger = fmaxf(score, most);
        const float shrink = exp2_fast(LOG2_E * (most - larger)), weight = exp2_fast(LOG2_E * (score - larger));
        out.shrink(shrink);
        out.add(v, weight);
        sum = sum * shrink + weight;
        most = larger;
    }
    out.write((bf16 *)row_of(call.out, call.out_at, batch, query, (int64_t)head * call.value_dim), call.value_dim, 1 / sum,
              false);
    if (threadIdx.x == 0)
        call.log_sum_exp[(batch * call.heads + head) * call.queries + query] = most + logf(sum);
}

/* What a query's backward pass needs besides its keys. */
struct query_state {
    lanes q, dout;
    float delta, log_sum_exp;
    __device__ void read(const stretch_call &call, int64_t batch, int head, int64_t query)
    {
        lanes out;
        q.read(row_of(call.q, call.q_at, batch, query, (int64_t)head * call.head_dim), call.head_dim);
        dout.read(row_of(call.dout, call.out_at, batch, query, (int64_t)head * call.value_dim), call.value_dim);
        out.read(row_of(call.out, call.out_at, batch, query, (int64_t)head * call.value_dim), call.value_dim);
        delta = dout.dot(out);
        log_sum_exp = call.log_sum_exp[(batch * call.heads + head) * call.queries + query];
    }
    __device__ float probability(const stretch_call &call, const lanes &k, int head, int64_t distance) const
    {
        return exp2_fast(LOG2_E * (score_of(call, q, k, head, distance) - log_sum_exp));
    }
};

__global__ void __launch_bounds__(WARP) stretch_query_kernel(stretch_call call)
{
    const int64_t query = blockIdx.x, batch = blockIdx.z, position = call.first + query;
    const int head = (int)blockIdx.y, kv = head / (call.heads / call.kv_heads);
    lanes k, v, dq;
    query_state state;
    state.read(call, batch, head, query);
    dq.clear();
    for (int64_t key = first_key_of(call, position); key <= position; key++) {
        k.read(row_of(call.k, call.k_at, batch, key, (int64_t)kv * call.head_dim), call.head_dim);
        v.read(row_of(call.v, call.v_at, batch, key, (int64_t)kv * call.value_dim), call.value_dim);
        const float p = state.probability(call, k, head, position - key);
        dq.add(k, p * (state.dout.dot(v) - state.delta));
    }
    dq.write((bf16 *)row_of(call.dq, call.q_at, batch, query, (int64_t)head * call.head_dim), call.head_dim,
             1 / sqrtf((float)call.head_dim), false);
}

__global__ void __launch_bounds__(WARP) stretch_key_kernel(stretch_call call)
{
    const int64_t key = blockIdx.x, batch = blockIdx.z;
    const int kv = (int)blockIdx.y, sharers = call.heads / call.kv_heads;
    const int64_t begin = key > call.first ? key - call.first : 0;
    const int64_t seen = call.window > 0 ? key + call.window - call.first : call.queries;
    const int64_t end = seen < call.queries ? seen : call.queries;
    lanes k, v, dk, dv;
    k.read(row_of(call.k, call.k_at, batch, key, (int64_t)kv * call.head_dim), call.head_dim);
    v.read(row_of(call.v, call.v_at, batch, key, (int64_t)kv * call.value_dim), call.value_dim);
    dk.clear();
    dv.clear();
    for (int head = kv * sharers; head < (kv + 1) * sharers; head++)
        for (int64_t query = begin; query < end; query++) {
            query_state state;
            state.read(call, batch, head, query);
            const float p = state.probability(call, k, head, call.first + query - key);
            dk.add(state.q, p * (state.dout.dot(v) - state.delta));
            dv.add(state.dout, p);
        }
    dk.write((bf16 *)row_of(call.dk, call.k_at, batch, key, (int64_t)kv * call.head_dim), call.head_dim,
             1 / sqrtf((float)call.head_dim), true);
    dv.write((bf16 *)row_of(call.dv, call.v_at, batch, key, (int64_t)kv * call.value_dim), call.value_dim, 1, true);
}

static bool can_do(const struct stretch_call *call)
{
    return call->head_dim <= MOST_DIM && call->value_dim <= MOST_DIM && call->heads <= 65535 && call->batch <= 65535;
}

int stretch_forward_cuda(const struct cuda_launch *launch, const struct stretch_call *call)
{
    if (call->queries <= 0 || call->batch <= 0)
        return cudaSuccess;
    if (!can_do(call))
        return cudaErrorInvalidValue;
    return launch_kernel(stretch_forward_kernel, dim3((unsigned)call->queries, (unsigned)call->heads, (unsigned)call->batch),
                         dim3(WARP), 0, launch->stream, *call);
}

int stretch_backward_cuda(const struct cuda_launch *launch, const struct stretch_call *call)
{
    if (call->queries <= 0 || call->batch <= 0)
        return cudaSuccess;
    if (!can_do(call))
        return cudaErrorInvalidValue;
    cudaError_t error =
        launch_kernel(stretch_query_kernel, dim3((unsigned)call->queries, (unsigned)call->heads, (unsigned)call->batch),
                      dim3(WARP), 0, launch->stream, *call);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(stretch_key_kernel, dim3((unsigned)call->keys, (unsigned)call->kv_heads, (unsigned)call->batch),
                         dim3(WARP), 0, launch->stream, *call);
}
