/* optimizer_reference.c - Adam, LAMB, SGD and the parts of Muon, in plain C. */
#include <math.h>

#include "kernels/reference.h"

void square_sum_reference(const struct square_sum_call *call)
{
    double sum = 0;
    for (int64_t i = 0; i < call->n; i++)
        sum += (double)call->x[i] * call->x[i];
    *call->sum += (float)sum;
}

static float clip_of(const struct clipping *clip)
{
    float norm = clip->square ? sqrtf(*clip->square) : 0;
    return norm > clip->most ? clip->most / norm : 1;
}

void adam_reference(const struct adam_call *call)
{
    double c1 = 1 - pow(call->beta1, (double)call->step), c2 = 1 - pow(call->beta2, (double)call->step);
    float scale = call->gradient_scale * clip_of(&call->clip);
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->g[i] * scale;
        float m = call->m[i] = call->beta1 * call->m[i] + (1 - call->beta1) * g;
        float v = call->v[i] = call->beta2 * call->v[i] + (1 - call->beta2) * g * g;
        double step = m / c1 / (sqrt(v / c2) + call->epsilon) + (double)call->decay * call->p[i];
        call->p[i] -= (float)(call->rate * step);
        if (call->compute)
            ((float *)call->compute)[i] = call->p[i];
    }
}

void lamb_reference(const struct lamb_call *call)
{
    double c1 = 1 - pow(call->beta1, (double)call->step), c2 = 1 - pow(call->beta2, (double)call->step);
    double p_square = 0, u_square = 0;
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->g[i] * call->gradient_scale;
        float m = call->m[i] = call->beta1 * call->m[i] + (1 - call->beta1) * g;
        float v = call->v[i] = call->beta2 * call->v[i] + (1 - call->beta2) * g * g;
        float u = call->update[i] = (float)(m / c1 / (sqrt(v / c2) + call->epsilon) + (double)call->decay * call->p[i]);
        p_square += (double)call->p[i] * call->p[i];
        u_square += (double)u * u;
    }
    call->norms[0] = (float)p_square;
    call->norms[1] = (float)u_square;
    double trust = p_square > 0 && u_square > 0 ? sqrt(p_square / u_square) : 1;
    for (int64_t i = 0; i < call->n; i++) {
        call->p[i] -= (float)(call->rate * trust * call->update[i]);
        if (call->compute)
            ((float *)call->compute)[i] = call->p[i];
    }
}

void lamb_update_reference(const struct lamb_part_call *call)
{
    double c1 = 1 - pow(call->beta1, (double)call->step), c2 = 1 - pow(call->beta2, (double)call->step);
    double p_square = 0, u_square = 0;
    float scale = clip_of(&call->clip);
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->g[i] * scale;
        float m = call->m[i] = call->beta1 * call->m[i] + (1 - call->beta1) * g;
        float v = call->v[i] = call->beta2 * call->v[i] + (1 - call->beta2) * g * g;
        float u = call->update[i] = (float)(m / c1 / (sqrt(v / c2) + call->epsilon) + (double)call->decay * call->p[i]);
        p_square += (double)call->p[i] * call->p[i];
        u_square += (double)u * u;
    }
    call->norms[0] += (float)p_square;
    call->norms[1] += (float)u_square;
}

void lamb_apply_reference(const struct lamb_part_call *call)
{
    double p = call->norms[0], u = call->norms[1], trust = p > 0 && u > 0 ? sqrt(p / u) : 1;
    for (int64_t i = 0; i < call->n; i++) {
        call->p[i] -= (float)(call->rate * trust * call->update[i]);
        if (call->compute)
            ((float *)call->compute)[i] = call->p[i];
    }
}

void sgd_reference(const struct sgd_call *call)
{
    float scale = clip_of(&call->clip);
    for (int64_t i = 0; i < call->n; i++) {
        float m = call->m[i] = call->momentum * call->m[i] + scale * call->g[i];
        call->p[i] -= call->rate * (m + call->decay * call->p[i]);
        if (call->compute)
            ((float *)call->compute)[i] = call->p[i];
    }
}

void muon_update_reference(const struct muon_call *call)
{
    float scale = clip_of(&call->clip), *update = call->update;
    for (int64_t i = 0; i < call->n; i++) {
        float g = call->g[i] * scale, m = call->m[i] = call->momentum * call->m[i] + g;
        update[i] = g + call->momentum * m;
    }
}

void muon_combine_reference(const struct muon_call *call)
{
    const float *x = call->x, *z = call->z;
    float alpha = call->square ? call->alpha / (sqrtf(*call->square) + 1e-7f) : call->alpha, *y = call->y;
    for (int64_t i = 0; i < call->n; i++)
        y[i] = alpha * x[i] + (z ? call->beta * z[i] : 0);
}

void muon_apply_reference(const struct muon_call *call)
{
    const float *update = call->update;
    for (int64_t i = 0; i < call->n; i++) {
        call->p[i] -= call->rate * (update[i] + call->decay * call->p[i]);
        if (call->compute)
            ((float *)call->compute)[i] = call->p[i];
    }
}
