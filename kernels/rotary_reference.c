/* rotary_reference.c - rotary position embedding, in plain C. */
#include <math.h>

#include "kernels/reference.h"

static void head_turn(float *head, int head_dim, double position, double base, bool inverse)
{
    int half = head_dim / 2;
    for (int i = 0; i < half; i++) {
        double angle = position * pow(base, -2.0 * i / head_dim);
        double c = cos(angle), s = inverse ? -sin(angle) : sin(angle);
        double a = head[i], b = head[i + half];
        head[i] = (float)(a * c - b * s);
        head[i + half] = (float)(a * s + b * c);
    }
}

void rotary_reference(const struct rotary_call *call)
{
    int64_t width = call->row ? call->row : (int64_t)(call->heads + 2 * call->kv_heads) * call->head_dim;
    int64_t stride = call->stride ? call->stride : call->head_dim;
    for (int64_t row = 0; row < call->t; row++)
        for (int head = 0; head < call->heads + call->kv_heads; head++)
            head_turn((float *)call->qkv + row * width + head * stride, call->head_dim,
                      (double)position_of(&call->positions, call->seq_len, row), call->base, call->inverse);
}
