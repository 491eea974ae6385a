/*
 * mixture.cu - mixtures of experts: the router, the places of copies of tokens, and combining copies.
 *
 * There are no atomic additions: copies keep the order of tokens, so two runs give the same bits.
 *
 * Variants: one thread per token (router), expert (sort), pair of source and expert (arrivals), 8 elements (combine forward); a
 * block per copy (combine backward); 16-byte accesses in combine if the width is a multiple of 8. Bytes: router 2 t E; sort 4 n
 * E from the second-level cache; combine 2 t h (k + 1). Limiter: memory bandwidth for combine; latency for the others, which
 * move few integers.
 */
#include "kernels/vector.cuh"

#define LOG2_E 1.4426950409f
enum { COMBINE_THREADS = 128 };

/* --- the router */

struct route_tokens {
    route_call call;
    __device__ bool is_chosen(const int32_t *chosen, int n, int expert) const
    {
        for (int i = 0; i < n; i++)
            if (chosen[i] == expert)
                return true;
        return false;
    }
    __device__ float largest_of_group(const bf16 *logits, int group) const
    {
        const int n = call.experts / call.groups;
        float largest = bf16_to_float(logits[group * n]);
        for (int i = 1; i < n; i++)
            largest = fmaxf(largest, bf16_to_float(logits[group * n + i]));
        return largest;
    }
    __device__ bool is_open(const bf16 *logits, int expert) const
    {
        if (!call.groups || call.top_groups >= call.groups)
            return true;
        const int group = expert / (call.experts / call.groups);
        const float own = largest_of_group(logits, group);
        int before = 0;
        for (int g = 0; g < call.groups; g++) {
            const float other = largest_of_group(logits, g);
            before += other > own || (g < group && other == own);
        }
        return before < call.top_groups;
    }
    template <int V> __device__ void run(int64_t row) const
    {
        const bf16 *logits = (const bf16 *)call.logits + row * call.experts;
        int32_t *expert = call.expert + row * call.top_k;
        float *gate = call.gate + row * call.top_k, first = 0, sum = 0;
        for (int j = 0; j < call.top_k; j++) {
            int best = -1;
            float most = 0;
            for (int e = 0; e < call.experts; e++) {
                const float logit = bf16_to_float(logits[e]);
                if ((best < 0 || logit > most) && !is_chosen(expert, j, e) && is_open(logits, e))
                    best = e, most = logit;
            }
            first = j == 0 ? most : first;
            expert[j] = best;
            gate[j] = exp2_fast(LOG2_E * (most - first));
            sum += gate[j];
        }
        for (int j = 0; j < call.top_k; j++)
            gate[j] /= sum;
    }
};

int route_forward_cuda(const struct cuda_launch *launch, const struct route_call *call)
{
    return launch_each(launch, call->t, false, route_tokens{*call});
}

struct route_gradients {
    route_call call;
    template <int V> __device__ void run(int64_t row) const
    {
        const float *gate = call.gate + row * call.top_k, *dgate = call.dgate + row * call.top_k;
        bf16 *dlogits = (bf16 *)call.dlogits + row * call.experts;
        float mean = 0;
        for (int j = 0; j < call.top_k; j++)
            mean += gate[j] * dgate[j];
        for (int e = 0; e < call.experts; e++)
            dlogits[e] = bf16_from_float(0);
        for (int j = 0; j < call.top_k; j++)
            dlogits[call.expert[row * call.top_k + j]] = bf16_from_float(gate[j] * (dgate[j] - mean));
    }
};

int route_backward_cuda(const struct cuda_launch *launch, const struct route_call *call)
{
    return launch_each(launch, call->t, false, route_gradients{*call});
}

/* --- where copies stand */

struct sort_experts {
    expert_sort_call call;
    template <int V> __device__ void run(int64_t expert) const
    {
        int32_t count = 0;
        for (int64_t i = 0; i < call.n; i++)
            if (call.expert[i] == expert)
                call.place[i] = count++;
        call.counts[expert] = count;
    }
};

struct sort_copies {
    expert_sort_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        int32_t before = 0;
        for (int e = 0; e < call.expert[i]; e++)
            before += call.counts[e];
        call.place[i] += before;
    }
};

int expert_sort_cuda(const struct cuda_launch *launch, const struct expert_sort_call *call)
{
    cudaError_t error = launch_each(launch, call->experts, false, sort_experts{*call});
    return error == cudaSuccess ? launch_each(launch, call->n, false, sort_copies{*call}) : error;
}

__device__ static inline int32_t sum_of(const int32_t *numbers, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += numbers[i];
    return sum;
}

/* Number i of sent and received, of members, of offsets. */
struct arrival_sums {
    expert_arrivals_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int n = call.experts, sources = call.tp * call.ep;
        if (i < call.ep) {
            call.sent[i] = sum_of(call.counts + i * n, n);
            call.received[i] = sum_of(call.arrived + (call.me * call.ep + i) * n, n);
        }
        if (i < call.tp)
            call.members[i] = sum_of(call.arrived + i * call.ep * n, call.ep * n);
        if (i > n)
            return;
        int32_t before = 0;
        for (int s = 0; s < sources; s++)
            before += sum_of(call.arrived + s * n, (int)i);
        call.offsets[i] = before;
    }
};

struct arrival_order {
    expert_arrivals_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int n = call.experts, source = (int)(i / n), expert = (int)(i % n);
        const int32_t from = sum_of(call.arrived, (int)i);
        int32_t to = call.offsets[expert];
        for (int s = 0; s < source; s++)
            to += call.arrived[s * n + expert];
        for (int32_t k = 0; k < call.arrived[i]; k++)
            call.order[from + k] = to + k;
    }
};

int expert_arrivals_cuda(const struct cuda_launch *launch, const struct expert_arrivals_call *call)
{
    int64_t numbers = call->experts + 1;
    numbers = numbers > call->ep ? numbers : call->ep;
    numbers = numbers > call->tp ? numbers : call->tp;
    cudaError_t error = launch_each(launch, numbers, false, arrival_sums{*call});
    if (error != cudaSuccess)
        return error;
    return launch_each(launch, (int64_t)call->tp * call->ep * call->experts, false, arrival_order{*call});
}

/* --- copies back to tokens */

struct combine_elements {
    combine_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int64_t row = i / call.h, column = i % call.h;
        float y[V] = {}, item[V];
        for (int j = 0; j < call.top_k; j++) {
            const int64_t copy = row * call.top_k + j;
            const float gate = call.gate ? call.gate[copy] : 1;
            load<V>(item, (const bf16 *)call.rows + call.place[copy] * call.h + column);
            for (int e = 0; e < V; e++)
                y[e] += gate * item[e];
        }
        store<V>((bf16 *)call.y + i, y);
    }
};

int combine_forward_cuda(const struct cuda_launch *launch, const struct combine_call *call)
{
    const bool vector = call->h % VECTOR == 0 && aligned(call->rows) && aligned(call->y);
    return launch_each(launch, call->t * call->h, vector, combine_elements{*call});
}

template <int V> __global__ void __launch_bounds__(COMBINE_THREADS) combine_backward_kernel(combine_call call)
{
    __shared__ float scratch[WARP];
    for (int64_t copy = blockIdx.x; copy < call.t * call.top_k; copy += gridDim.x) {
        const int64_t at = call.place[copy] * call.h;
        const bf16 *dy = (const bf16 *)call.dy + copy / call.top_k * call.h, *row = (const bf16 *)call.rows + at;
        const float gate = call.gate[copy];
        float dgate = 0, d[V], x[V];
        for (int64_t i = (int64_t)threadIdx.x * V; i < call.h; i += COMBINE_THREADS * V) {
            load<V>(d, dy + i);
            load<V>(x, row + i);
            for (int e = 0; e < V; e++) {
                dgate += d[e] * x[e];
                d[e] *= gate;
            }
            store<V>((bf16 *)call.drows + at + i, d);
        }
        dgate = block_sum(dgate, scratch);
        if (threadIdx.x == 0)
            call.dgate[copy] = dgate;
    }
}

int combine_backward_cuda(const struct cuda_launch *launch, const struct combine_call *call)
{
    const int64_t copies = call->t * call->top_k;
    if (copies <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->dy) && aligned(call->rows) && aligned(call->drows);
    return launch_kernel(vector ? combine_backward_kernel<VECTOR> : combine_backward_kernel<1>,
                         dim3(blocks_for(launch, copies * COMBINE_THREADS, COMBINE_THREADS, BLOCKS_IN_TURN)),
                         dim3(COMBINE_THREADS), 0, launch->stream, *call);
}
