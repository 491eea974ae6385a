/*
 * head_norm.cu - a norm over each head, forward and backward. Heads have up to 8192 elements; a latent counts as one head.
 *
 * Variants: a warp per head of up to 256 elements, a block per larger one, with the head in registers; 16-byte accesses if sizes
 * and pointers allow, else one element at a time. Backward, a warp or block keeps the gradients of gain and bias in registers
 * over all its heads, and partial_sum_cuda adds up those of all blocks, so two runs give the same bits. Bytes per element: 4
 * forward, 6 backward. FLOPs: about 8 and 16. Limiter: memory bandwidth.
 */
#include "kernels/vector.cuh"

enum { HEAD_THREADS = 256, MOST_OF_WARP = 256, MOST_OF_BLOCK = 8192 };

/* A head over LANES threads, those of a warp or of a block; zeros beyond its end. */
template <int V, int LANES> struct head_lanes {
    enum { MOST = LANES == WARP ? MOST_OF_WARP : MOST_OF_BLOCK, ITEMS = MOST / (LANES * V) };
    float x[ITEMS][V];
    __device__ static int at(int item)
    {
        return (item * LANES + threadIdx.x % LANES) * V;
    }
    __device__ static float sum(float value, float *scratch)
    {
        return LANES == WARP ? warp_sum(value) : block_sum(value, scratch);
    }
    __device__ void read(const bf16 *from, int n)
    {
        for (int i = 0; i < ITEMS; i++) {
            for (int j = 0; j < V; j++)
                x[i][j] = 0;
            if (from && at(i) < n)
                load<V>(x[i], from + at(i));
        }
    }
    template <class Number> __device__ void write(Number *to, int n) const
    {
        for (int i = 0; i < ITEMS; i++)
            if (at(i) < n)
                store<V>(to + at(i), x[i]);
    }
    /* x becomes (x - mean) rstd; gives back rstd. */
    __device__ float normalise(const head_norm_call &call, float *scratch)
    {
        float mean = 0, square = 0;
        for (int i = 0; i < ITEMS; i++)
            for (int j = 0; j < V; j++)
                mean += x[i][j];
        mean = call.rms ? 0 : sum(mean, scratch) / (float)call.head_dim;
        for (int i = 0; i < ITEMS; i++)
            for (int j = 0; j < V; j++) {
                x[i][j] = at(i) < call.head_dim ? x[i][j] - mean : 0;
                square += x[i][j] * x[i][j];
            }
        const float rstd = 1 / sqrtf(sum(square, scratch) / (float)call.head_dim + call.epsilon);
        for (int i = 0; i < ITEMS; i++)
            for (int j = 0; j < V; j++)
                x[i][j] *= rstd;
        return rstd;
    }
};

template <int V, int LANES> __global__ void __launch_bounds__(HEAD_THREADS) head_norm_forward_kernel(head_norm_call call)
{
    enum { HEADS_AT_ONCE = HEAD_THREADS / LANES };
    __shared__ float scratch[WARP];
    head_lanes<V, LANES> x, gain, bias;
    gain.read((const bf16 *)call.gain, call.head_dim);
    bias.read((const bf16 *)call.bias, call.head_dim);
    for (int64_t n = (int64_t)blockIdx.x * HEADS_AT_ONCE + threadIdx.x / LANES; n < call.t * call.heads;
         n += (int64_t)gridDim.x * HEADS_AT_ONCE) {
        const int64_t row = n / call.heads, column = n % call.heads * call.head_dim;
        x.read((const bf16 *)call.x + row * call.x_row + column, call.head_dim);
        (void)x.normalise(call, scratch);
        for (int i = 0; i < x.ITEMS; i++)
            for (int j = 0; j < V; j++)
                x.x[i][j] = x.x[i][j] * gain.x[i][j] + bias.x[i][j];
        x.write((bf16 *)call.y + row * call.y_row + column, call.head_dim);
    }
}

/* What the threads of a block have becomes row 2 blockIdx (+ 1) of partial[, head_dim]: that of its warps by way of `sums`. */
template <int V, int LANES>
__device__ static inline void put_partial(float sums[HEAD_THREADS / WARP][MOST_OF_WARP], const head_lanes<V, LANES> &mine, int n,
                                          float *partial)
{
    if (LANES != WARP) {
        mine.write(partial, n);
        return;
    }
    __syncthreads();
    mine.write(sums[threadIdx.x / WARP], n);
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += HEAD_THREADS) {
        float sum = 0;
        for (int warp = 0; warp < HEAD_THREADS / WARP; warp++)
            sum += sums[warp][i];
        partial[i] = sum;
    }
}

template <int V, int LANES>
__global__ void __launch_bounds__(HEAD_THREADS) head_norm_backward_kernel(head_norm_call call, float *partial)
{
    enum { HEADS_AT_ONCE = HEAD_THREADS / LANES };
    alignas(16) __shared__ float sums[HEAD_THREADS / WARP][MOST_OF_WARP];
    __shared__ float scratch[WARP];
    head_lanes<V, LANES> n, dy, gain, dgain, dbias;
    gain.read((const bf16 *)call.gain, call.head_dim);
    dgain.read(NULL, 0);
    dbias.read(NULL, 0);
    for (int64_t head = (int64_t)blockIdx.x * HEADS_AT_ONCE + threadIdx.x / LANES; head < call.t * call.heads;
         head += (int64_t)gridDim.x * HEADS_AT_ONCE) {
        const int64_t row = head / call.heads, column = head % call.heads * call.head_dim;
        float sum_w = 0, sum_wn = 0;
        dy.read((const bf16 *)call.dy + row * call.y_row + column, call.head_dim);
        n.read((const bf16 *)call.x + row * call.x_row + column, call.head_dim);
        const float rstd = n.normalise(call, scratch);
        for (int i = 0; i < n.ITEMS; i++)
            for (int j = 0; j < V; j++) {
                dgain.x[i][j] += dy.x[i][j] * n.x[i][j];
                dbias.x[i][j] += dy.x[i][j];
                dy.x[i][j] *= gain.x[i][j];
                sum_w += dy.x[i][j];
                sum_wn += dy.x[i][j] * n.x[i][j];
            }
        const float mean_w = call.rms ? 0 : n.sum(sum_w, scratch) / (float)call.head_dim;
        const float mean_wn = n.sum(sum_wn, scratch) / (float)call.head_dim;
        for (int i = 0; i < n.ITEMS; i++)
            for (int j = 0; j < V; j++)
                dy.x[i][j] = rstd * (dy.x[i][j] - mean_w - n.x[i][j] * mean_wn);
        dy.write((bf16 *)call.dx + row * call.y_row + column, call.head_dim);
    }
    put_partial<V, LANES>(sums, dgain, call.head_dim, partial + 2 * (int64_t)blockIdx.x * call.head_dim);
    put_partial<V, LANES>(sums, dbias, call.head_dim, partial + (2 * (int64_t)blockIdx.x + 1) * call.head_dim);
}

static bool vectors_fit(const struct head_norm_call *call)
{
    return call->head_dim % VECTOR == 0 && call->x_row % VECTOR == 0 && call->y_row % VECTOR == 0 && aligned(call->x) &&
           aligned(call->gain) && aligned(call->bias) && aligned(call->y) && aligned(call->dy) && aligned(call->dx);
}

/* Threads that share a head. */
static int lanes_of(const struct head_norm_call *call)
{
    return call->head_dim <= MOST_OF_WARP ? (int)WARP : (int)HEAD_THREADS;
}

template <int LANES> static cudaError_t forward(const struct cuda_launch *launch, const struct head_norm_call *call)
{
    return launch_kernel(vectors_fit(call) ? head_norm_forward_kernel<VECTOR, LANES> : head_norm_forward_kernel<1, LANES>,
                         dim3(blocks_for(launch, call->t * call->heads * LANES, HEAD_THREADS, BLOCKS_IN_TURN)),
                         dim3(HEAD_THREADS), 0, launch->stream, *call);
}

int head_norm_forward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    if (call->head_dim > MOST_OF_BLOCK)
        return cudaErrorInvalidValue;
    return lanes_of(call) == WARP ? forward<WARP>(launch, call) : forward<HEAD_THREADS>(launch, call);
}

template <int LANES>
static cudaError_t backward(const struct cuda_launch *launch, const struct head_norm_call *call, int64_t blocks, float *partial)
{
    return launch_kernel(vectors_fit(call) ? head_norm_backward_kernel<VECTOR, LANES> : head_norm_backward_kernel<1, LANES>,
                         dim3((unsigned)blocks), dim3(HEAD_THREADS), 0, launch->stream, *call, partial);
}

int head_norm_backward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const int64_t row = 2 * (int64_t)call->head_dim, fit = (int64_t)(launch->workspace_bytes / sizeof(float)) / row;
    int64_t blocks = blocks_for(launch, call->t * call->heads * lanes_of(call), HEAD_THREADS, BLOCKS_HELD);
    blocks = blocks > fit ? fit : blocks;
    if (call->head_dim > MOST_OF_BLOCK || blocks < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    int error = lanes_of(call) == WARP ? backward<WARP>(launch, call, blocks, partial)
                                       : backward<HEAD_THREADS>(launch, call, blocks, partial);
    if (error == cudaSuccess)
        error = partial_sum_cuda(launch, partial, blocks, row, call->head_dim, call->dgain);
    if (error == cudaSuccess && call->dbias)
        error = partial_sum_cuda(launch, partial + call->head_dim, blocks, row, call->head_dim, call->dbias);
    return error;
}
