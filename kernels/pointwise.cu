/*
 * pointwise.cu - sums of tensors with a bias, dropout with bias and residual, casts.
 *
 * Variants: 16-byte accesses where pointers and the bias's width allow, one element at a time otherwise.
 * Bytes per element: add 6 (fp32 12); dropout forward 6 with a residual, 4 without, backward 4; cast 6. FLOPs: a few; dropout
 * draws its mask by two 64-bit multiplications per element, which comes within a factor of about two of the memory time on Hopper
 * (estimated). Limiter: memory bandwidth.
 */
#include "kernels/vector.cuh"

template <class Element> struct add_elements {
    const Element *a, *b, *bias;
    Element *y;
    int64_t h;
    template <int V> __device__ void run(int64_t i) const
    {
        float left[V], right[V];
        load<V>(left, a + i);
        load<V>(right, b + i);
        for (int j = 0; j < V; j++)
            left[j] += right[j];
        if (bias) {
            load<V>(right, bias + i % h);
            for (int j = 0; j < V; j++)
                left[j] += right[j];
        }
        store<V>(y + i, left);
    }
};

template <class Element> static cudaError_t add(const struct cuda_launch *launch, const struct add_call *call)
{
    add_elements<Element> op = {(const Element *)call->a, (const Element *)call->b, (const Element *)call->bias,
                                (Element *)call->y, call->h};
    bool vector = aligned(op.a) && aligned(op.b) && aligned(op.y) && aligned(op.bias) && (!op.bias || op.h % VECTOR == 0);
    return launch_each<16 / sizeof(Element)>(launch, call->n, vector, op);
}

int add_cuda(const struct cuda_launch *launch, const struct add_call *call)
{
    return call->wide ? add<float>(launch, call) : add<bf16>(launch, call);
}

/* dropout_bits of kernels.h, which is a host function. */
__device__ static inline uint32_t mask_bits(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

struct dropout_elements {
    const bf16 *x, *bias, *residual;
    bf16 *y;
    int64_t h;
    uint64_t seed, first;
    uint32_t threshold;
    float scale;
    template <int V> __device__ void run(int64_t i) const
    {
        float value[V], other[V];
        load<V>(value, x + i);
        if (bias) {
            load<V>(other, bias + i % h);
            for (int j = 0; j < V; j++)
                value[j] += other[j];
        }
        for (int j = 0; j < V; j++)
            value[j] = threshold == 0 || mask_bits(seed, first + i + j) >= threshold ? scale * value[j] : 0;
        if (residual) {
            load<V>(other, residual + i);
            for (int j = 0; j < V; j++)
                value[j] += other[j];
        }
        store<V>(y + i, value);
    }
};

static dropout_elements mask_of(const struct dropout_call *call)
{
    dropout_elements op = {};
    op.h = call->h;
    op.seed = call->seed;
    op.first = (uint64_t)call->first;
    op.threshold = dropout_threshold(call->p);
    op.scale = 1 / (1 - call->p);
    return op;
}

int dropout_forward_cuda(const struct cuda_launch *launch, const struct dropout_call *call)
{
    dropout_elements op = mask_of(call);
    op.x = (const bf16 *)call->x, op.bias = (const bf16 *)call->bias, op.residual = (const bf16 *)call->residual;
    op.y = (bf16 *)call->y;
    bool vector = aligned(op.x) && aligned(op.y) && aligned(op.residual) && aligned(op.bias) && (!op.bias || op.h % VECTOR == 0);
    return launch_each(launch, call->n, vector, op);
}

int dropout_backward_cuda(const struct cuda_launch *launch, const struct dropout_call *call)
{
    dropout_elements op = mask_of(call);
    op.x = (const bf16 *)call->dy, op.y = (bf16 *)call->dx;
    return launch_each(launch, call->n, aligned(op.x) && aligned(op.y), op);
}

template <class From, class To> struct cast_elements {
    const From *from;
    To *to;
    template <int V> __device__ void run(int64_t i) const
    {
        float value[V];
        load<V>(value, from + i);
        store<V>(to + i, value);
    }
};

int cast_cuda(const struct cuda_launch *launch, const struct cast_call *call)
{
    bool vector = aligned(call->from) && aligned(call->to);
    if (call->widen)
        return launch_each<WIDE_VECTOR>(launch, call->n, vector,
                                        cast_elements<bf16, float>{(const bf16 *)call->from, (float *)call->to});
    return launch_each<WIDE_VECTOR>(launch, call->n, vector,
                                    cast_elements<float, bf16>{(const float *)call->from, (bf16 *)call->to});
}
