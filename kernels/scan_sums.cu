/*
 * scan_sums.cu - adds up the parts of gradients that several columns and heads of a scan share, in a fixed order.
 *
 * One thread per number of the result. Bytes: those of the sums, once. Limiter: memory bandwidth.
 */
#include "kernels/vector.cuh"

/* The sums that blocks left in the workspace: see scan_sums_cuda in cuda_operations.h. */
struct scan_sums {
    scan_call call;
    const float *sums;
    int64_t tiles, span, first, tokens;
    int64_t width; /* numbers of a token: gradients of its query [N], key [N], decays [rows], strength */

    /* The sum of number `i` over the head's blocks. */
    __device__ float of_head(int64_t sequence, int64_t head, int64_t token, int64_t i) const
    {
        float sum = 0;
        for (int64_t tile = 0; tile < tiles; tile++)
            sum += sums[(((sequence * call.heads + head) * tiles + tile) * span + token) * width + i];
        return sum;
    }
};

/* Element: of [batch][tokens][groups][2 N], dq before dk. */
struct keys_gradients {
    scan_sums sums;
    template <int V> __device__ void run(int64_t at) const
    {
        const scan_call &call = sums.call;
        const int64_t n = 2 * (int64_t)call.state, i = at % n, group = at / n % call.groups,
                      token = at / (n * call.groups) % sums.tokens;
        const int64_t sequence = at / (n * call.groups * sums.tokens), shared = call.heads / call.groups;
        float sum = 0;
        for (int64_t head = group * shared; head < (group + 1) * shared; head++)
            sum += sums.of_head(sequence, head, token, i);
        bf16 *to = (bf16 *)(i < call.state ? call.dq : call.dk);
        to[(sequence * call.seq_len + sums.first + token) * call.k_row + group * call.state + i % call.state] =
            bf16_from_float(sum);
    }
};

/* Element: of [batch][tokens][heads][rows + 1], decays before the strength. */
struct gates_gradients {
    scan_sums sums;
    template <int V> __device__ void run(int64_t at) const
    {
        const scan_call &call = sums.call;
        const int64_t n = call.rows + 1, i = at % n, head = at / n % call.heads, token = at / (n * call.heads) % sums.tokens;
        const int64_t sequence = at / (n * call.heads * sums.tokens),
                      of = (sequence * call.seq_len + sums.first + token) * call.heads + head;
        const float sum = sums.of_head(sequence, head, token, 2 * (int64_t)call.state + i);
        if (i < call.rows && call.ddecay)
            call.ddecay[of * call.rows + i] = sum;
        if (i == call.rows && call.dstrength)
            call.dstrength[of] = sum;
    }
};

int scan_sums_cuda(const struct cuda_launch *launch, const struct scan_call *call, const float *sums, int64_t tiles, int64_t span,
                   int64_t first, int64_t tokens)
{
    const scan_sums all = {*call, sums, tiles, span, first, tokens, 2 * (int64_t)call->state + call->rows + 1};
    cudaError_t error = launch_each<1>(launch, call->batch * tokens * call->groups * 2 * call->state, false, keys_gradients{all});
    if (error == cudaSuccess && (call->ddecay || call->dstrength))
        error = launch_each<1>(launch, call->batch * tokens * call->heads * (call->rows + 1), false, gates_gradients{all});
    return error;
}
