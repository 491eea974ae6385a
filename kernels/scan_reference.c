/* scan_reference.c - the recurrence of mixers with a state, forward and backward: mixers.h says what it is.
 *
 * Head by head and token by token. A state is [N, P], its rows one behind the other. */
#include <math.h>
#include <string.h>

#include "kernels/reference.h"

/* A head of a sequence. */
struct head {
    const struct scan_call *call;
    int64_t row; /* of its first token */
    int64_t h, group;
};

/* One token of it. */
struct token {
    const float *k, *q, *v, *decay;
    float strength, skip;
    int64_t row, k_at, v_at;
};

static int64_t state_size(const struct scan_call *call)
{
    return (int64_t)call->state * call->head_dim;
}

static struct token token_of(const struct head *head, int64_t t)
{
    const struct scan_call *call = head->call;
    int64_t row = head->row + t;
    struct token a = {.row = row,
                      .k_at = row * call->k_row + head->group * call->state,
                      .v_at = row * call->v_row + head->h * call->head_dim,
                      .strength = call->strength ? call->strength[row * call->heads + head->h] : 1,
                      .skip = call->skip ? ((const float *)call->skip)[head->h] : 0,
                      .decay = call->decay + row * call->decay_row + head->h * call->rows};
    a.k = (const float *)call->k + a.k_at;
    a.q = (const float *)call->q + a.k_at;
    a.v = (const float *)call->v + a.v_at;
    return a;
}

/* state = diag(exp(decay)) before; `to` may be `before`. */
static void decay_state(const struct scan_call *call, const struct token *a, const float *before, float *to)
{
    int64_t width = call->head_dim;
    float factor = expf(a->decay[0]);
    for (int64_t n = 0; n < call->state; n++) {
        factor = call->rows > 1 ? expf(a->decay[n]) : factor;
        for (int64_t p = 0; p < width; p++)
            to[n * width + p] = factor * before[n * width + p];
    }
}

/* out[P] = state^T x. */
static void read_state(const struct scan_call *call, const float *state, const float *x, float *out)
{
    int64_t width = call->head_dim;
    memset(out, 0, (size_t)width * sizeof *out);
    for (int64_t n = 0; n < call->state; n++)
        for (int64_t p = 0; p < width; p++)
            out[p] += x[n] * state[n * width + p];
}

/* state += factor x y^T. */
static void add_product(const struct scan_call *call, float *state, float factor, const float *x, const float *y)
{
    int64_t width = call->head_dim;
    for (int64_t n = 0; n < call->state; n++)
        for (int64_t p = 0; p < width; p++)
            state[n * width + p] += factor * x[n] * y[p];
}

/* The state behind a token from the one before it, and u [P], what was written for its key. */
static void advance(const struct scan_call *call, const struct token *a, const float *before, float *state, float *u)
{
    decay_state(call, a, before, state);
    if (call->delta)
        read_state(call, state, a->k, u);
    for (int64_t p = 0; p < call->head_dim; p++)
        u[p] = a->strength * (a->v[p] - (call->delta ? u[p] : 0));
    add_product(call, state, 1, a->k, u);
}

static void head_forward(const struct head *head)
{
    const struct scan_call *call = head->call;
    float *state = call->workspace, *u = state + state_size(call);
    memset(state, 0, (size_t)state_size(call) * sizeof *state);
    for (int64_t t = 0; t < call->seq_len; t++) {
        struct token a = token_of(head, t);
        float *y = (float *)call->y + (a.row * call->heads + head->h) * call->head_dim;
        advance(call, &a, state, state, u);
        read_state(call, state, a.q, y);
        for (int64_t p = 0; p < call->head_dim; p++)
            y[p] = call->scale * y[p] + a.skip * a.v[p];
    }
}

/* --- backward */

/* What a head's backward pass has: states at the beginnings of chunks, those in front of and behind the tokens of one chunk, what
 * was written there, the gradient of a state. */
struct trace {
    float *begins, *states, *written, *d, *decayed, *du;
};

static int64_t chunks_of(const struct scan_call *call)
{
    return (call->seq_len + call->chunk - 1) / call->chunk;
}

static struct trace trace_of(const struct scan_call *call)
{
    int64_t size = state_size(call), width = call->head_dim;
    struct trace t = {.begins = call->workspace};
    t.states = t.begins + chunks_of(call) * size;
    t.written = t.states + (call->chunk + 1) * size;
    t.d = t.written + call->chunk * width;
    t.decayed = t.d + size;
    t.du = t.decayed + size;
    return t;
}

size_t scan_reference_workspace(const struct scan_call *call, bool backward)
{
    int64_t size = state_size(call), width = call->head_dim;
    int64_t floats = backward ? (chunks_of(call) + call->chunk + 3) * size + (call->chunk + 1) * width : size + width;
    return (size_t)floats * sizeof(float);
}

/* sums[n] += state x, both ways of a product with a row of the state. */
static void add_rows(const struct scan_call *call, const float *state, float factor, const float *x, float *sums)
{
    int64_t width = call->head_dim;
    for (int64_t n = 0; n < call->state; n++) {
        double sum = 0;
        for (int64_t p = 0; p < width; p++)
            sum += (double)state[n * width + p] * x[p];
        sums[n] += (float)(factor * sum);
    }
}

/* Gradients of decays; d becomes that of the state in front of the token. */
static void decay_backward(const struct head *head, const struct token *a, const struct trace *trace)
{
    const struct scan_call *call = head->call;
    int64_t width = call->head_dim;
    float *ddecay = call->ddecay ? call->ddecay + (a->row * call->heads + head->h) * call->rows : NULL;
    double all = 0;
    for (int64_t n = 0; n < call->state; n++) {
        double sum = 0;
        for (int64_t p = 0; p < width; p++)
            sum += (double)trace->d[n * width + p] * trace->decayed[n * width + p];
        all += sum;
        if (ddecay && call->rows > 1)
            ddecay[n] = (float)sum;
    }
    if (ddecay && call->rows == 1)
        ddecay[0] = (float)all;
    decay_state(call, a, trace->d, trace->d);
}

/* Token `t` of a sequence, whose trace is number `i` of its chunk. */
static void token_backward(const struct head *head, const struct trace *trace, int64_t t, int64_t i)
{
    const struct scan_call *call = head->call;
    struct token a = token_of(head, t);
    const float *before = trace->states + i * state_size(call), *after = before + state_size(call);
    const float *u = trace->written + i * call->head_dim;
    const float *dy = (const float *)call->dy + (a.row * call->heads + head->h) * call->head_dim;
    float *dv = (float *)call->dv + a.v_at, *dk = (float *)call->dk + a.k_at, *dq = (float *)call->dq + a.k_at, *du = trace->du;
    double dstrength = 0, dskip = 0;
    add_rows(call, after, call->scale, dy, dq);
    add_product(call, trace->d, call->scale, a.q, dy);
    read_state(call, trace->d, a.k, du);
    add_rows(call, trace->d, 1, u, dk);
    decay_state(call, &a, before, trace->decayed);
    if (call->delta)
        read_state(call, trace->decayed, a.k, dv);
    for (int64_t p = 0; p < call->head_dim; p++) {
        dstrength += (double)du[p] * (a.v[p] - (call->delta ? dv[p] : 0));
        dskip += (double)dy[p] * a.v[p];
        du[p] *= a.strength;
        dv[p] = du[p] + a.skip * dy[p];
    }
    if (call->delta) {
        add_rows(call, trace->decayed, -1, du, dk);
        add_product(call, trace->d, -1, a.k, du);
    }
    decay_backward(head, &a, trace);
    if (call->dstrength)
        call->dstrength[a.row * call->heads + head->h] = (float)dstrength;
    if (call->dskip)
        call->dskip[head->h] += (float)dskip;
}

/* Through tokens [first, end), from the state in front of them; `states` of all of them, or NULL. */
static void go_through(const struct head *head, const struct trace *trace, int64_t first, int64_t end, float *state, bool keeps)
{
    const struct scan_call *call = head->call;
    for (int64_t t = first; t < end; t++) {
        struct token a = token_of(head, t);
        float *next = keeps ? state + state_size(call) : state;
        advance(call, &a, state, next, trace->written + (keeps ? t - first : 0) * call->head_dim);
        state = next;
    }
}

static void head_backward(const struct head *head)
{
    const struct scan_call *call = head->call;
    struct trace trace = trace_of(call);
    int64_t size = state_size(call), chunks = chunks_of(call);
    size_t bytes = (size_t)size * sizeof(float);
    memset(trace.begins, 0, bytes);
    memset(trace.d, 0, bytes);
    for (int64_t c = 0; c + 1 < chunks; c++) {
        memcpy(trace.begins + (c + 1) * size, trace.begins + c * size, bytes);
        go_through(head, &trace, c * call->chunk, (c + 1) * call->chunk, trace.begins + (c + 1) * size, false);
    }
    for (int64_t c = chunks - 1; c >= 0; c--) {
        int64_t first = c * call->chunk, end = first + call->chunk < call->seq_len ? first + call->chunk : call->seq_len;
        memcpy(trace.states, trace.begins + c * size, bytes);
        go_through(head, &trace, first, end, trace.states, true);
        for (int64_t t = end - 1; t >= first; t--)
            token_backward(head, &trace, t, t - first);
    }
}

/* --- heads */

static void each_head(const struct scan_call *call, void (*visit)(const struct head *head))
{
    for (int64_t batch = 0; batch < call->batch; batch++)
        for (int64_t h = 0; h < call->heads; h++)
            visit(&(struct head){.call = call, .row = batch * call->seq_len, .h = h, .group = h / (call->heads / call->groups)});
}

void scan_forward_reference(const struct scan_call *call)
{
    each_head(call, head_forward);
}

void scan_backward_reference(const struct scan_call *call)
{
    size_t keys = (size_t)call->groups * (size_t)call->state * sizeof(float);
    for (int64_t row = 0; row < call->batch * call->seq_len; row++) {
        memset((float *)call->dk + row * call->k_row, 0, keys);
        memset((float *)call->dq + row * call->k_row, 0, keys);
    }
    each_head(call, head_backward);
}
