/*
 * activation.cu - GeLU (tanh form), SwiGLU and its clamped form, forward and backward.
 *
 * Variants: gate and up side by side or apart; 16-byte accesses where the width is a multiple of 8, otherwise single elements.
 * Bytes: GeLU 4 t f forward, 6 t f backward; SwiGLU 6 t f and 10 t f. FLOPs: 10 to 25 per element, one exponential.
 * Limiter: memory bandwidth.
 */
#include "kernels/sigmoid.cuh"

#define SQRT_2_OVER_PI 0.7978845608f
#define GELU_CUBIC     0.044715f /* Hendrycks and Gimpel, 2016 */
#define GELU_SIGMOID   1.702f    /* there too: x sigmoid(1.702 x) is about GeLU */

/* Whether element i of rows `f` wide is one of those that there are. */
struct row_count {
    const int32_t *count;
    int64_t f;
    __device__ bool has(int64_t i) const
    {
        return !count || i < *count * f;
    }
};

/* tanh(y) = 2 sigmoid(2 y) - 1, so GeLU's 0.5 (1 + tanh(y)) is sigmoid(2 y). */
__device__ static inline float gelu_gate(float x)
{
    return sigmoid(2 * SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x));
}

struct gelu_forward {
    const bf16 *u;
    bf16 *a;
    row_count rows;
    template <int V> __device__ void run(int64_t i) const
    {
        if (!rows.has(i))
            return;
        float x[V];
        load<V>(x, u + i);
        for (int j = 0; j < V; j++)
            x[j] *= gelu_gate(x[j]);
        store<V>(a + i, x);
    }
};

struct gelu_backward {
    const bf16 *u, *da;
    bf16 *du;
    row_count rows;
    template <int V> __device__ void run(int64_t i) const
    {
        if (!rows.has(i))
            return;
        float x[V], d[V];
        load<V>(x, u + i);
        load<V>(d, da + i);
        for (int j = 0; j < V; j++) {
            float gate = gelu_gate(x[j]), slope = 2 * SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x[j] * x[j]);
            d[j] *= gate + x[j] * gate * (1 - gate) * slope;
        }
        store<V>(du + i, d);
    }
};

/* Gate and up of element i of [t, f]: `between` elements from a row's gate to the next one's, f where they are apart. */
struct gated_rows {
    const bf16 *gate, *up;
    int64_t f, between;
    __device__ int64_t at(int64_t i) const
    {
        return i + i / f * (between - f);
    }
};

static gated_rows gated_rows_of(const struct activation_call *call, const void *u, const void *gate)
{
    const bf16 *packed = (const bf16 *)u;
    if (call->gate)
        return {(const bf16 *)gate, packed, call->f, call->f};
    return {packed, packed + call->f, call->f, 2 * call->f};
}

/* a = g sigmoid(steepness g) (x + offset) of a gate g and an x within limits; a NaN stays one. */
struct gate_form {
    float limit, steepness, offset;
    __device__ float gate(float g) const
    {
        return g > limit ? limit : g;
    }
    __device__ float up(float x) const
    {
        return fabsf(x) > limit ? copysignf(limit, x) : x;
    }
};

static gate_form gate_form_of(const struct activation_call *call)
{
    if (call->limit > 0)
        return {call->limit, GELU_SIGMOID, 1};
    return {INFINITY, 1, 0};
}

struct swiglu_forward {
    gated_rows u;
    gate_form form;
    bf16 *a;
    row_count rows;
    template <int V> __device__ void run(int64_t i) const
    {
        if (!rows.has(i))
            return;
        float gate[V], up[V];
        load<V>(gate, u.gate + u.at(i));
        load<V>(up, u.up + u.at(i));
        for (int j = 0; j < V; j++) {
            const float g = form.gate(gate[j]);
            up[j] = g * sigmoid(form.steepness * g) * (form.up(up[j]) + form.offset);
        }
        store<V>(a + i, up);
    }
};

struct swiglu_backward {
    gated_rows u;
    gate_form form;
    const bf16 *da;
    bf16 *dgate, *dup;
    row_count rows;
    template <int V> __device__ void run(int64_t i) const
    {
        if (!rows.has(i))
            return;
        float gate[V], up[V], d[V];
        const int64_t at = u.at(i);
        load<V>(gate, u.gate + at);
        load<V>(up, u.up + at);
        load<V>(d, da + i);
        for (int j = 0; j < V; j++) {
            const float g = form.gate(gate[j]), s = sigmoid(form.steepness * g), x = form.up(up[j]) + form.offset;
            gate[j] = gate[j] > form.limit ? 0 : d[j] * x * s * (1 + form.steepness * g * (1 - s));
            up[j] = fabsf(up[j]) > form.limit ? 0 : d[j] * g * s;
        }
        store<V>(dgate + at, gate);
        store<V>(dup + at, up);
    }
};

int activation_forward_cuda(const struct cuda_launch *launch, const struct activation_call *call)
{
    const row_count rows = {call->count, call->f};
    bool vector = call->f % VECTOR == 0 && aligned(call->u) && aligned(call->gate) && aligned(call->a);
    if (call->gated)
        return launch_each(launch, call->t * call->f, vector,
                           swiglu_forward{gated_rows_of(call, call->u, call->gate), gate_form_of(call), (bf16 *)call->a, rows});
    return launch_each(launch, call->t * call->f, vector, gelu_forward{(const bf16 *)call->u, (bf16 *)call->a, rows});
}

int activation_backward_cuda(const struct cuda_launch *launch, const struct activation_call *call)
{
    const bf16 *u = (const bf16 *)call->u, *da = (const bf16 *)call->da;
    const row_count rows = {call->count, call->f};
    bool vector =
        call->f % VECTOR == 0 && aligned(u) && aligned(call->gate) && aligned(da) && aligned(call->du) && aligned(call->dgate);
    if (call->gated) {
        const gated_rows d = gated_rows_of(call, call->du, call->dgate);
        return launch_each(launch, call->t * call->f, vector,
                           swiglu_backward{gated_rows_of(call, call->u, call->gate), gate_form_of(call), da, (bf16 *)d.gate,
                                           (bf16 *)d.up, rows});
    }
    return launch_each(launch, call->t * call->f, vector, gelu_backward{u, da, (bf16 *)call->du, rows});
}
