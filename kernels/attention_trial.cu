/*
 * attention_trial.cu - attention by the device's own kernels held against the portable ones, before a run trusts them.
 *
 * A case small enough to cost milliseconds and large enough to show what a misread instruction does: grouped queries, steps
 * enough that every buffer is filled three times and its barriers come back to their first phase, a sequence that ends within a
 * box and boxes beyond its end, a batch of two whose rows follow each other. Inputs are made on the device; everything lies in
 * the launch's workspace. What is compared is out, log_sum_exp and dqkv, each by its largest difference over the largest number
 * of the portable result: rounding leaves less than 2e-2 (what tests/kernels allows each against the reference), another element
 * in an operand's place about 1.
 */
#include "kernels/vector.cuh"

enum { HEADS = 2, KV_HEADS = 1, SEQ_LEN = 520, BATCH = 2, WINDOW = 150, THREADS = 256 };

/* Numbers in [-2, 2) that look like random ones: a multiplicative hash of the index (Knuth, volume 3, 6.4). */
struct fill_operation {
    bf16 *to;
    uint32_t salt;
    template <int V> __device__ void run(int64_t i) const
    {
        for (int j = 0; j < V; j++) {
            uint32_t x = ((uint32_t)(i + j) ^ salt) * 2654435769u;
            x = (x ^ x >> 15) * 2246822519u;
            to[i + j] = bf16_from_float((float)(x >> 8) * 0x1p-22f - 2);
        }
    }
};

__device__ static inline float number_at(const bf16 *from, int64_t i)
{
    return bf16_to_float(from[i]);
}

__device__ static inline float number_at(const float *from, int64_t i)
{
    return from[i];
}

/* *error = max(*error, max |a - b| / max |b|); infinite where a number is none. One block. */
template <class Number>
__global__ void __launch_bounds__(THREADS) difference_kernel(int64_t n, const Number *a, const Number *b, float *error)
{
    __shared__ float scratch[WARP];
    float difference = 0, largest = 0;
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
        const float d = fabsf(number_at(a, i) - number_at(b, i));
        difference = d <= 3e38f ? fmaxf(difference, d) : INFINITY; /* not of NaN */
        if (difference == INFINITY)
            break;
        largest = fmaxf(largest, fabsf(number_at(b, i)));
    }
    difference = block_max(difference, scratch);
    largest = block_max(largest, scratch);
    if (threadIdx.x == 0)
        *error = fmaxf(*error, largest > 0 ? difference / largest : INFINITY);
}

/* What one of the two writes. */
struct trial_results {
    bf16 *out, *dqkv;
    float *log_sum_exp;
};

struct trial {
    attention_call call;   /* qkv, dout and sizes */
    trial_results made[2]; /* by the device's own kernels, by portable ones */
    int64_t n_qkv, n_out, n_rows;
    float *error;
};

/* The next part of the workspace, aligned as copies want it. */
static void *take(char **at, size_t bytes)
{
    void *part = *at;
    *at += (bytes + 255) / 256 * 256;
    return part;
}

static trial trial_in(const struct cuda_launch *launch, int head_dim, int64_t window)
{
    char *at = (char *)launch->workspace;
    trial t = {};
    t.call.batch = BATCH, t.call.seq_len = SEQ_LEN, t.call.window = window;
    t.call.heads = HEADS, t.call.kv_heads = KV_HEADS, t.call.head_dim = head_dim;
    t.n_rows = BATCH * HEADS * SEQ_LEN;
    t.n_out = t.n_rows * head_dim;
    t.n_qkv = t.n_out / HEADS * (HEADS + 2 * KV_HEADS);
    t.error = (float *)take(&at, sizeof(float));
    t.call.qkv = take(&at, (size_t)t.n_qkv * sizeof(bf16));
    t.call.dout = take(&at, (size_t)t.n_out * sizeof(bf16));
    t.call.workspace = take(&at, attention_cuda_workspace(t.n_rows, true));
    for (trial_results &r : t.made) {
        r.out = (bf16 *)take(&at, (size_t)t.n_out * sizeof(bf16));
        r.dqkv = (bf16 *)take(&at, (size_t)t.n_qkv * sizeof(bf16));
        r.log_sum_exp = (float *)take(&at, (size_t)t.n_rows * sizeof(float));
    }
    return t;
}

/* Forward and backward, over outputs that hold no numbers. */
static cudaError_t attend(const struct cuda_launch *launch, const trial &t, bool portable)
{
    const trial_results &r = t.made[portable];
    struct cuda_launch chosen = *launch;
    attention_call call = t.call;
    chosen.portable = portable;
    call.out = r.out, call.dqkv = r.dqkv, call.log_sum_exp = r.log_sum_exp;
    cudaError_t error = cudaMemsetAsync(r.out, 0xff, (size_t)t.n_out * sizeof(bf16), launch->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(r.dqkv, 0xff, (size_t)t.n_qkv * sizeof(bf16), launch->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(r.log_sum_exp, 0xff, (size_t)t.n_rows * sizeof(float), launch->stream);
    if (error == cudaSuccess)
        error = (cudaError_t)attention_forward_cuda(&chosen, &call);
    if (error == cudaSuccess)
        error = (cudaError_t)attention_backward_cuda(&chosen, &call);
    return error;
}

template <class Number>
static cudaError_t compare(const struct cuda_launch *launch, int64_t n, const Number *own, const Number *portable, float *error)
{
    return launch_kernel(difference_kernel<Number>, dim3(1), dim3(THREADS), 0, launch->stream, n, own, portable, error);
}

int attention_trial_cuda(const struct cuda_launch *launch, int head_dim, bool windowed, const float **result)
{
    const trial t = trial_in(launch, head_dim, windowed ? WINDOW : 0);
    if (launch->portable || !attention_forward_has_hopper(&t.call) || !attention_backward_has_hopper(&t.call))
        return cudaErrorNotSupported;
    const fill_operation fill_qkv = {(bf16 *)t.call.qkv, 0}, fill_dout = {(bf16 *)t.call.dout, 0x5bd1e995u};
    cudaError_t error = cudaMemsetAsync(t.error, 0, sizeof(float), launch->stream);
    if (error == cudaSuccess)
        error = launch_each(launch, t.n_qkv, true, fill_qkv);
    if (error == cudaSuccess)
        error = launch_each(launch, t.n_out, true, fill_dout);
    for (int portable = 0; portable < 2 && error == cudaSuccess; portable++)
        error = attend(launch, t, portable);
    if (error == cudaSuccess)
        error = compare(launch, t.n_out, t.made[0].out, t.made[1].out, t.error);
    if (error == cudaSuccess)
        error = compare(launch, t.n_rows, t.made[0].log_sum_exp, t.made[1].log_sum_exp, t.error);
    if (error == cudaSuccess)
        error = compare(launch, t.n_qkv, t.made[0].dqkv, t.made[1].dqkv, t.error);
    if (error == cudaSuccess)
        *result = t.error;
    return error;
}
