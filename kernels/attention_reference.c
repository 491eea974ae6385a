/* attention_reference.c - causal attention of packed rows, in plain C. */
#include <math.h>
#include <string.h>

#include "kernels/reference.h"

/* One query head of one sequence: pointers to position 0 and distances between positions, in elements. */
struct head {
    const float *q, *k, *v, *out, *dout;
    float *dq, *dk, *dv, *log_sum_exp;
    int64_t row, out_row; /* distance between positions in q, k, v and in out */
};

static struct head head_at(const struct attention_call *call, int64_t batch, int head)
{
    int64_t d = call->head_dim, row = (call->heads + 2 * call->kv_heads) * d, out_row = call->heads * d;
    int64_t first = batch * call->seq_len * row, out = batch * call->seq_len * out_row + head * d;
    int64_t kv = call->heads + head / (call->heads / call->kv_heads);
    const float *qkv = (const float *)call->qkv + first;
    float *dqkv = call->dqkv ? (float *)call->dqkv + first : NULL;
    return (struct head){.q = qkv + head * d,
                         .k = qkv + kv * d,
                         .v = qkv + (kv + call->kv_heads) * d,
                         .out = (const float *)call->out + out,
                         .dout = call->dout ? (const float *)call->dout + out : NULL,
                         .dq = dqkv ? dqkv + head * d : NULL,
                         .dk = dqkv ? dqkv + kv * d : NULL,
                         .dv = dqkv ? dqkv + (kv + call->kv_heads) * d : NULL,
                         .log_sum_exp = call->log_sum_exp + (batch * call->heads + head) * call->seq_len,
                         .row = row,
                         .out_row = out_row};
}

static int64_t first_key(const struct attention_call *call, int64_t query)
{
    return call->window > 0 && query + 1 > call->window ? query + 1 - call->window : 0;
}

static double dot(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

static void add_scaled(float *to, const float *from, double factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += (float)(factor * from[i]);
}

/* Softmax in one pass over the keys (Milakov and Gimelshein, 2018): when the maximum grows, what was summed shrinks. */
static void query_forward(const struct attention_call *call, const struct head *head, float *out, int64_t query)
{
    double scale = 1 / sqrt(call->head_dim), max = -INFINITY, sum = 0;
    memset(out, 0, (size_t)call->head_dim * sizeof *out);
    for (int64_t key = first_key(call, query); key <= query; key++) {
        double score = scale * dot(head->q + query * head->row, head->k + key * head->row, call->head_dim);
        if (score > max) {
            double shrink = exp(max - score);
            sum *= shrink;
            for (int i = 0; i < call->head_dim; i++)
                out[i] = (float)(out[i] * shrink);
            max = score;
        }
        double weight = exp(score - max);
        sum += weight;
        add_scaled(out, head->v + key * head->row, weight, call->head_dim);
    }
    for (int i = 0; i < call->head_dim; i++)
        out[i] = (float)(out[i] / sum);
    head->log_sum_exp[query] = (float)(max + log(sum));
}

void attention_forward_reference(const struct attention_call *call)
{
    for (int64_t batch = 0; batch < call->batch; batch++)
        for (int j = 0; j < call->heads; j++) {
            struct head head = head_at(call, batch, j);
            float *out = (float *)call->out + (head.out - (const float *)call->out);
            for (int64_t query = 0; query < call->seq_len; query++)
                query_forward(call, &head, out + query * head.out_row, query);
        }
}

/* p = exp(score - lse); dp = dout . v; ds = p (dp - dout . out); dq = scale sum ds k, dk = scale sum ds q, dv = sum p dout. */
static void query_backward(const struct attention_call *call, const struct head *head, int64_t query)
{
    double scale = 1 / sqrt(call->head_dim);
    const float *q = head->q + query * head->row, *dout = head->dout + query * head->out_row;
    double delta = dot(dout, head->out + query * head->out_row, call->head_dim);
    for (int64_t key = first_key(call, query); key <= query; key++) {
        const float *k = head->k + key * head->row;
        double p = exp(scale * dot(q, k, call->head_dim) - head->log_sum_exp[query]);
        double ds = scale * p * (dot(dout, head->v + key * head->row, call->head_dim) - delta);
        add_scaled(head->dq + query * head->row, k, ds, call->head_dim);
        add_scaled(head->dk + key * head->row, q, ds, call->head_dim);
        add_scaled(head->dv + key * head->row, dout, p, call->head_dim);
    }
}

void attention_backward_reference(const struct attention_call *call)
{
    int64_t width = (int64_t)(call->heads + 2 * call->kv_heads) * call->head_dim;
    memset(call->dqkv, 0, (size_t)(call->batch * call->seq_len * width) * sizeof(float));
    for (int64_t batch = 0; batch < call->batch; batch++)
        for (int j = 0; j < call->heads; j++) {
            struct head head = head_at(call, batch, j);
            for (int64_t query = 0; query < call->seq_len; query++)
                query_backward(call, &head, query);
        }
}
