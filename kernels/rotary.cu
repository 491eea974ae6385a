/*
 * rotary.cu - rotary position embedding in place, on the query and key heads of packed rows.
 *
 * Variants: 8 pairs per thread (head dimension a multiple of 16) or one.
 * Bytes: 4 t (heads + kv_heads) head_dim. FLOPs: 6 per pair, and a sine, a cosine and a power, which are not shared among heads.
 * Limiter: memory bandwidth, with the special functions close behind. Angles are fp32: at position 10^5 they are off by up to
 * 4e-3, as in every fp32 implementation.
 */
#include "kernels/vector.cuh"

struct rotary_pairs {
    bf16 *qkv;
    int64_t seq_len, row_width, stride;
    positions where;
    int turned_heads, head_dim; /* query and key heads */
    float minus_log2_base_over_half;
    float sign;
    /* i counts pairs: ((row * turned_heads) + head) * half + pair */
    template <int V> __device__ void run(int64_t i) const
    {
        const int half = head_dim / 2, pair = (int)(i % half), head = (int)(i / half % turned_heads);
        const int64_t row = i / half / turned_heads;
        bf16 *at = qkv + row * row_width + head * stride + pair;
        const int64_t p = row % seq_len;
        const float position = (float)(where.first + p + (2 * p >= seq_len ? where.jump : 0));
        float a[V], b[V];
        load<V>(a, at);
        load<V>(b, at + half);
        for (int j = 0; j < V; j++) {
            float s, c, left = a[j];
            sincosf(position * exp2f(minus_log2_base_over_half * (float)(pair + j)), &s, &c);
            s *= sign;
            a[j] = left * c - b[j] * s;
            b[j] = left * s + b[j] * c;
        }
        store<V>(at, a);
        store<V>(at + half, b);
    }
};

int rotary_cuda(const struct cuda_launch *launch, const struct rotary_call *call)
{
    const int half = call->head_dim / 2, turned = call->heads + call->kv_heads;
    rotary_pairs op = {(bf16 *)call->qkv,
                       call->seq_len,
                       call->row ? call->row : (int64_t)(call->heads + 2 * call->kv_heads) * call->head_dim,
                       call->stride ? call->stride : call->head_dim,
                       call->positions,
                       turned,
                       call->head_dim,
                       -log2f(call->base) / (float)half,
                       call->inverse ? -1.0f : 1.0f};
    bool vector = half % VECTOR == 0 && op.row_width % VECTOR == 0 && op.stride % VECTOR == 0 && aligned(call->qkv);
    return launch_each(launch, call->t * turned * half, vector, op);
}
