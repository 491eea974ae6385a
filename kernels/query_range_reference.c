/* query_range_reference.c - causal attention of a range of queries to a range of keys, in plain C. */
#include <math.h>
#include <string.h>

#include "kernels/reference.h"

/* One query of one head: its rows, and where the head's keys and values begin. */
struct query {
    const float *q, *k, *v, *out, *dout;
    float *dq, *dk, *dv, *log_sum_exp;
    int64_t position, first_key, end; /* keys from first_key to before `end` are seen */
    double slope;
};

static const float *at(const void *tensor, struct strided strides, int64_t batch, int64_t row, int64_t column)
{
    return tensor ? (const float *)tensor + batch * strides.batch + row * strides.row + column : NULL;
}

static float *at_writable(void *tensor, struct strided strides, int64_t batch, int64_t row, int64_t column)
{
    return tensor ? (float *)tensor + batch * strides.batch + row * strides.row + column : NULL;
}

static struct query query_of(const struct query_range_call *call, int64_t batch, int head, int64_t row)
{
    int64_t kv = head / (call->heads / call->kv_heads), d = call->head_dim, v = call->value_dim;
    struct query query = {.q = at(call->q, call->q_at, batch, row, head * d),
                          .k = at(call->k, call->k_at, batch, 0, kv * d),
                          .v = at(call->v, call->v_at, batch, 0, kv * v),
                          .out = at(call->out, call->out_at, batch, row, head * v),
                          .dout = at(call->dout, call->out_at, batch, row, head * v),
                          .dq = at_writable(call->dq, call->q_at, batch, row, head * d),
                          .dk = at_writable(call->dk, call->k_at, batch, 0, kv * d),
                          .dv = at_writable(call->dv, call->v_at, batch, 0, kv * v),
                          .log_sum_exp = call->log_sum_exp + (batch * call->heads + head) * call->queries + row,
                          .position = call->first + row,
                          .slope = call->slopes ? call->slopes[head] : 0};
    if (call->window > 0 && query.position + 1 > call->window)
        query.first_key = query.position + 1 - call->window;
    query.end = query.position < call->keys ? query.position + 1 : call->keys;
    return query;
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static double score_of(const struct query_range_call *call, const struct query *query, int64_t key)
{
    return dot(query->q, query->k + key * call->k_at.row, call->head_dim) / sqrt(call->head_dim) -
           query->slope * (double)(query->position - key);
}

static void add_scaled(float *to, const float *from, double factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += (float)(factor * from[i]);
}

/* Two passes over the keys: the sum of the weights, then the weighted values. What the query has seen before has one weight. */
static void query_forward(const struct query_range_call *call, const struct query *query, float *out)
{
    double before = call->accumulate ? (double)*query->log_sum_exp : -INFINITY, max = before, sum = isinf(before) ? 0 : 1;
    for (int64_t key = query->first_key; key < query->end; key++) {
        double score = score_of(call, query, key), larger = score > max ? score : max;
        sum = sum * exp(max - larger) + exp(score - larger);
        max = larger;
    }
    double kept = isinf(before) ? 0 : exp(before - max) / sum;
    for (int i = 0; i < call->value_dim; i++)
        out[i] = kept > 0 ? (float)(kept * out[i]) : 0;
    for (int64_t key = query->first_key; key < query->end; key++)
        add_scaled(out, query->v + key * call->v_at.row, exp(score_of(call, query, key) - max) / sum, call->value_dim);
    *query->log_sum_exp = sum > 0 ? (float)(max + log(sum)) : -INFINITY;
}

static void query_backward(const struct query_range_call *call, const struct query *query)
{
    double scale = 1 / sqrt(call->head_dim), delta = dot(query->dout, query->out, call->value_dim);
    if (!call->accumulate)
        memset(query->dq, 0, (size_t)call->head_dim * sizeof *query->dq);
    for (int64_t key = query->first_key; key < query->end; key++) {
        const float *k = query->k + key * call->k_at.row, *v = query->v + key * call->v_at.row;
        double p = exp(score_of(call, query, key) - *query->log_sum_exp);
        double ds = scale * p * (dot(query->dout, v, call->value_dim) - delta);
        add_scaled(query->dq, k, ds, call->head_dim);
        add_scaled(query->dk + key * call->k_at.row, query->q, ds, call->head_dim);
        add_scaled(query->dv + key * call->v_at.row, query->dout, p, call->value_dim);
    }
}

static void each_query(const struct query_range_call *call, bool backward)
{
    for (int64_t batch = 0; batch < call->batch; batch++)
        for (int head = 0; head < call->heads; head++)
            for (int64_t row = 0; row < call->queries; row++) {
                struct query query = query_of(call, batch, head, row);
                if (backward)
                    query_backward(call, &query);
                else
                    query_forward(call, &query, at_writable(call->out, call->out_at, batch, row, head * call->value_dim));
            }
}

void query_range_forward_reference(const struct query_range_call *call)
{
    each_query(call, false);
}

void query_range_backward_reference(const struct query_range_call *call)
{
    each_query(call, true);
}
