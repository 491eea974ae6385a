/* scan_exact.c - the delta rule in double precision, and what its sums by chunks are sums of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/kernels/kernel_case.h"

enum { CHUNK = 64 };

/* A head of a sequence in double precision, token by token, and beside it what the sums by chunks are sums of. */
struct exact_head {
    const struct scan_call *call;
    int64_t row; /* of its first token */
    int h, group;
    double *state, *begin;       /* [N, P]: in front of the token, of its chunk */
    double *written;             /* [CHUNK, P] */
    double sums[CHUNK];          /* of decays */
    double square_terms, square; /* of outputs without skips */
};

static const float *key_of(const struct exact_head *e, const void *keys, int64_t t)
{
    return (const float *)keys + (e->row + t) * e->call->k_row + (int64_t)e->group * e->call->state;
}

/* The token decays the state and writes. */
static void exact_write(struct exact_head *e, int64_t t)
{
    const struct scan_call *call = e->call;
    const float *k = key_of(e, call->k, t), *v = (const float *)call->v + (e->row + t) * call->v_row + e->h * call->head_dim;
    const int64_t n = call->state, width = call->head_dim, i = t % CHUNK;
    const double decay = (double)call->decay[(e->row + t) * call->decay_row + e->h];
    e->sums[i] = (i ? e->sums[i - 1] : 0) + fmax(decay, -1000);
    for (int64_t p = 0; p < width; p++) {
        double found = 0;
        for (int64_t r = 0; r < n; r++)
            found += (double)k[r] * (e->state[r * width + p] *= exp(decay));
        const double u =
            (call->strength ? (double)call->strength[(e->row + t) * call->heads + e->h] : 1) * ((double)v[p] - found);
        e->written[i * width + p] = u;
        for (int64_t r = 0; r < n; r++)
            e->state[r * width + p] += (double)k[r] * u;
    }
}

/* What the token's query reads, and the terms of that by chunks: of each token of the chunk, and of each row of the state. */
static void exact_read(struct exact_head *e, int64_t t)
{
    const struct scan_call *call = e->call;
    const float *q = key_of(e, call->q, t);
    const int64_t n = call->state, width = call->head_dim, i = t % CHUNK;
    for (int64_t p = 0; p < width; p++) {
        double y = 0;
        for (int64_t r = 0; r < n; r++) {
            y += (double)q[r] * e->state[r * width + p];
            const double kept = exp(e->sums[i]) * (double)q[r] * e->begin[r * width + p];
            e->square_terms += kept * kept;
        }
        e->square += y * y;
    }
    for (int64_t j = 0; j <= i; j++) {
        const float *k = key_of(e, call->k, t - i + j);
        double score = 0, square = 0;
        for (int64_t r = 0; r < n; r++)
            score += (double)q[r] * (double)k[r];
        score *= exp(e->sums[i] - e->sums[j]);
        for (int64_t p = 0; p < width; p++)
            square += e->written[j * width + p] * e->written[j * width + p];
        e->square_terms += score * score * square;
    }
}

double scan_amplification(const struct scan_call *call)
{
    const size_t size = (size_t)(call->state * call->head_dim) * sizeof(double);
    struct exact_head e = {.call = call, .state = memory_new(1, size), .begin = memory_new(1, size)};
    e.written = memory_new(1, (size_t)(CHUNK * call->head_dim) * sizeof(double));
    for (int64_t sequence = 0; sequence < call->batch; sequence++)
        for (e.h = 0; e.h < call->heads; e.h++) {
            e.row = sequence * call->seq_len;
            e.group = e.h / (call->heads / call->groups);
            memset(e.state, 0, size);
            for (int64_t t = 0; t < call->seq_len; t++) {
                if (t % CHUNK == 0)
                    memcpy(e.begin, e.state, size);
                exact_write(&e, t);
                exact_read(&e, t);
            }
        }
    free(e.state), free(e.begin), free(e.written);
    return fmax(1, sqrt(e.square_terms / e.square));
}
