/*
 * rotary.cu - rotary position embedding in place, on the query and key heads of packed rows.
 *
 * Variants: 8 pairs per thread (head dimension a multiple of 16) or one; a thread turns them in up to 8 heads, which share their
 * angles.
 * Bytes: 4 t (heads + kv_heads) head_dim. FLOPs: 6 per pair, and an eighth of a sine, a cosine and a power.
 * Limiter: memory bandwidth. Angles are fp32: at position 10^5 they are off by up to 4e-3, as in every fp32 implementation.
 */
#include "kernels/vector.cuh"

enum { HEADS_AT_ONCE = 8 };

struct rotary_pairs {
    bf16 *qkv;
    int64_t seq_len, row_width, stride;
    positions where;
    int turned_heads, groups, head_dim; /* query and key heads; groups of HEADS_AT_ONCE of them */
    float minus_log2_base_over_half;
    float sign;
    template <int V> __device__ void turn(bf16 *at, const float sine[V], const float cosine[V]) const
    {
        float a[V], b[V];
        load<V>(a, at);
        load<V>(b, at + head_dim / 2);
        for (int j = 0; j < V; j++) {
            const float left = a[j];
            a[j] = left * cosine[j] - b[j] * sine[j];
            b[j] = left * sine[j] + b[j] * cosine[j];
        }
        store<V>(at, a);
        store<V>(at + head_dim / 2, b);
    }
    /* i counts pairs of groups: ((row * groups) + group) * half + pair */
    template <int V> __device__ void run(int64_t i) const
    {
        const int half = head_dim / 2, pair = (int)(i % half), first = (int)(i / half % groups) * HEADS_AT_ONCE;
        const int64_t row = i / half / groups, p = row % seq_len;
        const int end = first + HEADS_AT_ONCE < turned_heads ? first + HEADS_AT_ONCE : turned_heads;
        const float position = (float)(where.first + p + (2 * p >= seq_len ? where.jump : 0));
        float sine[V], cosine[V];
        for (int j = 0; j < V; j++) {
            sincosf(position * exp2f(minus_log2_base_over_half * (float)(pair + j)), &sine[j], &cosine[j]);
            sine[j] *= sign;
        }
        for (int head = first; head < end; head++)
            turn<V>(qkv + row * row_width + head * stride + pair, sine, cosine);
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
                       (turned + HEADS_AT_ONCE - 1) / HEADS_AT_ONCE,
                       call->head_dim,
                       -log2f(call->base) / (float)half,
                       call->inverse ? -1.0f : 1.0f};
    bool vector = half % VECTOR == 0 && op.row_width % VECTOR == 0 && op.stride % VECTOR == 0 && aligned(call->qkv);
    return launch_each(launch, call->t * op.groups * half, vector, op);
}
