/*
 * optimizer_host.c - optimizers on the host's cores for a device that computes in bf16: fp32 states and bf16 weights in host
 * memory.
 *
 * The arithmetic is that of the device's kernels (optimizer.cu): fp32, element by element. So the compiler can vectorise it, and
 * every number of threads gives the same bits. Bytes per element: Adam 30, SGD 22. Limiter: memory bandwidth, with several
 * cores.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "kernels/kernels.h"

enum { HOST_THREADS_MAX = 64, HOST_ELEMENTS_LEAST = 1 << 16 /* that are worth a thread: it takes some 20 us to begin */ };

struct part {
    const struct kernel_call *call;
    int64_t first, n;
};

/* To the nearest, ties to even; not a number stays one. */
static inline uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)(x == x ? rounded : (bits >> 16 | 0x40u));
}

static void to_bf16(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = bf16_of(from[i]);
}

static float clip_of(const struct clipping *clip)
{
    float norm = clip->square ? sqrtf(*clip->square) : 0;
    return norm > clip->most ? clip->most / norm : 1;
}

static float inverse_correction(float beta, int64_t step)
{
    return (float)(1 / (1 - pow((double)beta, (double)step)));
}

static void adam_part(const struct adam_call *call, int64_t first, int64_t n)
{
    float *restrict p = call->p + first, *restrict m = call->m + first, *restrict v = call->v + first;
    const float *restrict g = call->g + first;
    const float b1 = call->beta1, b2 = call->beta2, c1 = inverse_correction(b1, call->step);
    const float c2 = inverse_correction(b2, call->step), rate = call->rate, epsilon = call->epsilon, decay = call->decay;
    const float scale = call->gradient_scale * clip_of(&call->clip);
    for (int64_t i = 0; i < n; i++) {
        const float gradient = g[i] * scale;
        m[i] = b1 * m[i] + (1 - b1) * gradient;
        v[i] = b2 * v[i] + (1 - b2) * gradient * gradient;
        p[i] -= rate * (m[i] * c1 / (sqrtf(v[i] * c2) + epsilon) + decay * p[i]);
    }
    if (call->compute)
        to_bf16((uint16_t *)call->compute + first, p, n);
}

static void sgd_part(const struct sgd_call *call, int64_t first, int64_t n)
{
    float *restrict p = call->p + first, *restrict m = call->m + first;
    const float *restrict g = call->g + first;
    const float momentum = call->momentum, rate = call->rate, decay = call->decay, scale = clip_of(&call->clip);
    for (int64_t i = 0; i < n; i++) {
        m[i] = momentum * m[i] + scale * g[i];
        p[i] -= rate * (m[i] + decay * p[i]);
    }
    if (call->compute)
        to_bf16((uint16_t *)call->compute + first, p, n);
}

/* In parts that a core's second cache holds, so that what was updated is cast from there. */
static void *part_run(void *argument)
{
    enum { PART = 1 << 13 };
    const struct part *part = argument;
    for (int64_t at = 0; at < part->n; at += PART) {
        int64_t n = part->n - at < PART ? part->n - at : PART;
        if (part->call->kernel == KERNEL_SGD)
            sgd_part(&part->call->sgd, part->first + at, n);
        else
            adam_part(&part->call->adam, part->first + at, n);
    }
    return NULL;
}

void optimizer_host_run(const struct kernel_call *call, int threads)
{
    struct part parts[HOST_THREADS_MAX];
    pthread_t others[HOST_THREADS_MAX];
    bool runs[HOST_THREADS_MAX] = {false};
    int64_t all = call->kernel == KERNEL_SGD ? call->sgd.n : call->adam.n, most = all / HOST_ELEMENTS_LEAST;
    int n = threads < HOST_THREADS_MAX ? threads : HOST_THREADS_MAX;
    n = n < most ? n : (int)most;
    n = n > 1 ? n : 1;
    for (int t = 0; t < n; t++)
        parts[t] = (struct part){call, all * t / n, all * (t + 1) / n - all * t / n};
    for (int t = 1; t < n; t++)
        runs[t] = pthread_create(&others[t], NULL, part_run, &parts[t]) == 0;
    for (int t = 0; t < n; t++)
        if (!runs[t])
            part_run(&parts[t]);
    for (int t = 1; t < n; t++)
        if (runs[t])
            pthread_join(others[t], NULL);
}
