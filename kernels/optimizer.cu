/*
 * optimizer.cu - sum of squares (gradient norm), Adam, LAMB (of a whole tensor or a part), SGD and what Muon does
 * beside products, on fp32 states.
 *
 * Variants: 16-byte accesses where pointers are aligned, one element at a time otherwise.
 * Bytes per element: square sum 4; Adam 28 (reads p m v g, writes p m v), 30 with the bf16 copy; LAMB 32 in its first kernel and
 * 12 or 14 in its second; Muon 14 (update), 4 to 6 (combine) and 12 (apply). FLOPs: about 15, a square root and two divisions.
 * Limiter: memory bandwidth. Sums go through one partial per block, added by one block in order: the same bits each run.
 */
#include "kernels/vector.cuh"

enum { OPTIMIZER_THREADS = 256 };

__device__ static inline float clip_of(const clipping &clip)
{
    const float norm = clip.square ? sqrtf(*clip.square) : 0;
    return norm > clip.most ? clip.most / norm : 1;
}

struct adam_rates {
    float beta1, beta2, inverse_c1, inverse_c2, epsilon, decay, gradient_scale;
    clipping clip;
    /* Moves the moments; the step that Adam and LAMB take of them, before the rate. */
    __device__ float update(float p, float &m, float &v, float g) const
    {
        g *= gradient_scale * clip_of(clip);
        m = beta1 * m + (1 - beta1) * g;
        v = beta2 * v + (1 - beta2) * g * g;
        return m * inverse_c1 / (sqrtf(v * inverse_c2) + epsilon) + decay * p;
    }
};

static float inverse_correction(float beta, int64_t step)
{
    return (float)(1 / (1 - pow((double)beta, (double)step)));
}

struct adam_elements {
    float *p, *m, *v;
    const float *g;
    bf16 *compute;
    float rate;
    adam_rates rates;
    template <int V> __device__ void run(int64_t i) const
    {
        float pi[V], mi[V], vi[V], gi[V];
        load<V>(pi, p + i);
        load<V>(mi, m + i);
        load<V>(vi, v + i);
        load<V>(gi, g + i);
        for (int j = 0; j < V; j++)
            pi[j] -= rate * rates.update(pi[j], mi[j], vi[j], gi[j]);
        store<V>(p + i, pi);
        store<V>(m + i, mi);
        store<V>(v + i, vi);
        if (compute)
            store<V>(compute + i, pi);
    }
};

template <class Call> static adam_rates rates_of(const Call &call, float gradient_scale, struct clipping clip)
{
    return {call.beta1,
            call.beta2,
            inverse_correction(call.beta1, call.step),
            inverse_correction(call.beta2, call.step),
            call.epsilon,
            call.decay,
            gradient_scale,
            clip};
}

int adam_cuda(const struct cuda_launch *launch, const struct adam_call *call)
{
    adam_rates rates = rates_of(*call, call->gradient_scale, call->clip);
    adam_elements op = {call->p, call->m, call->v, call->g, (bf16 *)call->compute, call->rate, rates};
    bool vector = aligned(op.p) && aligned(op.m) && aligned(op.v) && aligned(op.g) && aligned(op.compute);
    return launch_each<WIDE_VECTOR>(launch, call->n, vector, op);
}

/* --- sums of squares */

template <int V> __device__ static inline float squares(const float *x, int64_t i)
{
    float item[V], sum = 0;
    load<V>(item, x + i);
    for (int j = 0; j < V; j++)
        sum += item[j] * item[j];
    return sum;
}

template <int V> __global__ void __launch_bounds__(OPTIMIZER_THREADS) square_sum_kernel(square_sum_call call, float *partial)
{
    __shared__ float scratch[WARP];
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
    float sum = 0;
    for (int64_t i = thread; i < call.n / V; i += threads)
        sum += squares<V>(call.x, i * V);
    if (call.n / V * V + thread < call.n)
        sum += squares<1>(call.x, call.n / V * V + thread);
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sum;
}

/* sum[blockIdx] (+)= the sum of partial[parts * blockIdx ...], in a fixed order. */
__global__ void __launch_bounds__(OPTIMIZER_THREADS) gather_partials(const float *partial, int parts, float *sum, bool add)
{
    __shared__ double scratch[WARP];
    double total = 0;
    for (int i = threadIdx.x; i < parts; i += OPTIMIZER_THREADS)
        total += (double)partial[(int64_t)blockIdx.x * parts + i];
    total = block_sum(total, scratch);
    if (threadIdx.x == 0)
        sum[blockIdx.x] = (add ? sum[blockIdx.x] : 0) + (float)total;
}

int square_sum_cuda(const struct cuda_launch *launch, const struct square_sum_call *call)
{
    const unsigned blocks = blocks_for(launch, (call->n + WIDE_VECTOR - 1) / WIDE_VECTOR, OPTIMIZER_THREADS, BLOCKS_HELD);
    float *partial = (float *)launch->workspace;
    if (call->n <= 0)
        return cudaSuccess;
    if (launch->workspace_bytes < blocks * sizeof(float))
        return cudaErrorInvalidValue;
    cudaError_t error = launch_kernel(aligned(call->x) ? square_sum_kernel<WIDE_VECTOR> : square_sum_kernel<1>, dim3(blocks),
                                      dim3(OPTIMIZER_THREADS), 0, launch->stream, *call, partial);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(gather_partials, dim3(1), dim3(OPTIMIZER_THREADS), 0, launch->stream, (const float *)partial,
                         (int)blocks, call->sum, true);
}

/* --- LAMB */

struct lamb_sums {
    float p, u;
};

template <int V, class Call>
__device__ static inline void lamb_update(const Call &call, const adam_rates &rates, int64_t i, lamb_sums &sums)
{
    float p[V], m[V], v[V], g[V];
    load<V>(p, call.p + i);
    load<V>(m, call.m + i);
    load<V>(v, call.v + i);
    load<V>(g, call.g + i);
    for (int j = 0; j < V; j++) {
        g[j] = rates.update(p[j], m[j], v[j], g[j]);
        sums.p += p[j] * p[j];
        sums.u += g[j] * g[j];
    }
    store<V>(call.m + i, m);
    store<V>(call.v + i, v);
    store<V>(call.update + i, g);
}

template <int V, class Call>
__global__ void __launch_bounds__(OPTIMIZER_THREADS) lamb_update_kernel(Call call, adam_rates rates, float *partial)
{
    __shared__ float scratch[WARP];
    const int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
    lamb_sums sums = {0, 0};
    for (int64_t i = thread; i < call.n / V; i += threads)
        lamb_update<V>(call, rates, i * V, sums);
    if (call.n / V * V + thread < call.n)
        lamb_update<1>(call, rates, call.n / V * V + thread, sums);
    sums.p = block_sum(sums.p, scratch);
    sums.u = block_sum(sums.u, scratch);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums.p;
        partial[gridDim.x + blockIdx.x] = sums.u;
    }
}

struct lamb_apply {
    float *p;
    const float *update, *norms;
    bf16 *compute;
    float rate;
    template <int V> __device__ void run(int64_t i) const
    {
        const float p_square = norms[0], u_square = norms[1];
        const float trust = p_square > 0 && u_square > 0 ? sqrtf(p_square / u_square) : 1;
        float pi[V], ui[V];
        load<V>(pi, p + i);
        load<V>(ui, update + i);
        for (int j = 0; j < V; j++)
            pi[j] -= rate * trust * ui[j];
        store<V>(p + i, pi);
        if (compute)
            store<V>(compute + i, pi);
    }
};

/* The first kernel, whose norms replace the present ones or are added to them. */
template <class Call>
static cudaError_t launch_update(const struct cuda_launch *launch, const Call *call, const adam_rates &rates, bool vector,
                                 bool add)
{
    const unsigned blocks = blocks_for(launch, (call->n + WIDE_VECTOR - 1) / WIDE_VECTOR, OPTIMIZER_THREADS, BLOCKS_IN_TURN);
    float *partial = (float *)launch->workspace;
    if (launch->workspace_bytes < 2 * blocks * sizeof(float))
        return cudaErrorInvalidValue;
    cudaError_t error = launch_kernel(vector ? lamb_update_kernel<WIDE_VECTOR, Call> : lamb_update_kernel<1, Call>, dim3(blocks),
                                      dim3(OPTIMIZER_THREADS), 0, launch->stream, *call, rates, partial);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(gather_partials, dim3(2), dim3(OPTIMIZER_THREADS), 0, launch->stream, (const float *)partial,
                         (int)blocks, call->norms, add);
}

int lamb_update_cuda(const struct cuda_launch *launch, const struct lamb_part_call *call)
{
    adam_rates rates = rates_of(*call, 1, call->clip);
    const bool vector = aligned(call->p) && aligned(call->m) && aligned(call->v) && aligned(call->g) && aligned(call->update);
    return call->n <= 0 ? cudaSuccess : launch_update(launch, call, rates, vector, true);
}

int lamb_apply_cuda(const struct cuda_launch *launch, const struct lamb_part_call *call)
{
    const bool vector = aligned(call->p) && aligned(call->update) && aligned(call->compute);
    return launch_each<WIDE_VECTOR>(launch, call->n, vector,
                                    lamb_apply{call->p, call->update, call->norms, (bf16 *)call->compute, call->rate});
}

int lamb_cuda(const struct cuda_launch *launch, const struct lamb_call *call)
{
    adam_rates rates = rates_of(*call, call->gradient_scale, {});
    const bool vector = aligned(call->p) && aligned(call->m) && aligned(call->v) && aligned(call->g) && aligned(call->update) &&
                        aligned(call->compute);
    if (call->n <= 0)
        return cudaSuccess;
    cudaError_t error = launch_update(launch, call, rates, vector, false);
    if (error != cudaSuccess)
        return error;
    return launch_each<WIDE_VECTOR>(launch, call->n, vector,
                                    lamb_apply{call->p, call->update, call->norms, (bf16 *)call->compute, call->rate});
}

/* --- SGD */

struct sgd_elements {
    float *p, *m;
    const float *g;
    bf16 *compute;
    float rate, momentum, decay;
    clipping clip;
    template <int V> __device__ void run(int64_t i) const
    {
        const float scale = clip_of(clip);
        float pi[V], mi[V], gi[V];
        load<V>(pi, p + i);
        load<V>(mi, m + i);
        load<V>(gi, g + i);
        for (int j = 0; j < V; j++) {
            mi[j] = momentum * mi[j] + scale * gi[j];
            pi[j] -= rate * (mi[j] + decay * pi[j]);
        }
        store<V>(p + i, pi);
        store<V>(m + i, mi);
        if (compute)
            store<V>(compute + i, pi);
    }
};

int sgd_cuda(const struct cuda_launch *launch, const struct sgd_call *call)
{
    sgd_elements op = {call->p, call->m, call->g, (bf16 *)call->compute, call->rate, call->momentum, call->decay, call->clip};
    return launch_each<WIDE_VECTOR>(launch, call->n, aligned(op.p) && aligned(op.m) && aligned(op.g) && aligned(op.compute), op);
}

/* --- Muon */

struct muon_update_elements {
    float *m;
    const float *g;
    bf16 *update;
    float momentum;
    clipping clip;
    template <int V> __device__ void run(int64_t i) const
    {
        const float scale = clip_of(clip);
        float mi[V], gi[V];
        load<V>(mi, m + i);
        load<V>(gi, g + i);
        for (int j = 0; j < V; j++) {
            gi[j] *= scale;
            mi[j] = momentum * mi[j] + gi[j];
            gi[j] += momentum * mi[j];
        }
        store<V>(m + i, mi);
        store<V>(update + i, gi);
    }
};

int muon_update_cuda(const struct cuda_launch *launch, const struct muon_call *call)
{
    muon_update_elements op = {call->m, call->g, (bf16 *)call->update, call->momentum, call->clip};
    return launch_each<WIDE_VECTOR>(launch, call->n, aligned(op.m) && aligned(op.g) && aligned(op.update), op);
}

struct muon_combine_elements {
    const bf16 *x, *z;
    const float *square;
    bf16 *y;
    float alpha, beta;
    template <int V> __device__ void run(int64_t i) const
    {
        const float of_x = square ? alpha / (sqrtf(*square) + 1e-7f) : alpha;
        float xi[V], zi[V];
        load<V>(xi, x + i);
        if (z)
            load<V>(zi, z + i);
        for (int j = 0; j < V; j++)
            xi[j] = of_x * xi[j] + (z ? beta * zi[j] : 0);
        store<V>(y + i, xi);
    }
};

int muon_combine_cuda(const struct cuda_launch *launch, const struct muon_call *call)
{
    muon_combine_elements op = {(const bf16 *)call->x, (const bf16 *)call->z, call->square,
                                (bf16 *)call->y,       call->alpha,           call->beta};
    return launch_each(launch, call->n, aligned(op.x) && aligned(op.z) && aligned(op.y), op);
}

struct muon_apply_elements {
    float *p;
    const bf16 *update;
    bf16 *compute;
    float rate, decay;
    template <int V> __device__ void run(int64_t i) const
    {
        float pi[V], ui[V];
        load<V>(pi, p + i);
        load<V>(ui, update + i);
        for (int j = 0; j < V; j++)
            pi[j] -= rate * (ui[j] + decay * pi[j]);
        store<V>(p + i, pi);
        if (compute)
            store<V>(compute + i, pi);
    }
};

int muon_apply_cuda(const struct cuda_launch *launch, const struct muon_call *call)
{
    muon_apply_elements op = {call->p, (const bf16 *)call->update, (bf16 *)call->compute, call->rate, call->decay};
    return launch_each<WIDE_VECTOR>(launch, call->n, aligned(op.p) && aligned(op.update) && aligned(op.compute), op);
}
