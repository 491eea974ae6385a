/* thread_meeting.c - one member's share of a collective: its part of a sum, its copy of a gathered result. */
#include <string.h>

#include "runtime/comm/thread_meeting.h"

struct parties {
    struct exchange_call *const *calls; /* [n] */
    int n;
};

/* out[i] = reduction over members of in[i + offset], in the order of members. */
static void reduce_fp32(const struct parties *meeting, enum reduction reduction, int64_t offset, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float sum = ((const float *)meeting->calls[0]->in)[offset + i];
        for (int m = 1; m < meeting->n; m++) {
            float x = ((const float *)meeting->calls[m]->in)[offset + i];
            sum = reduction == REDUCTION_SUM ? sum + x : sum > x ? sum : x;
        }
        out[i] = sum;
    }
}

static void reduce_fp64(const struct parties *meeting, enum reduction reduction, int64_t offset, double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = ((const double *)meeting->calls[0]->in)[offset + i];
        for (int m = 1; m < meeting->n; m++) {
            double x = ((const double *)meeting->calls[m]->in)[offset + i];
            sum = reduction == REDUCTION_SUM ? sum + x : sum > x ? sum : x;
        }
        out[i] = sum;
    }
}

static void reduce(const struct parties *meeting, const struct exchange_call *call, int64_t offset, void *out, int64_t n)
{
    if (call->element == ELEMENT_FP64)
        reduce_fp64(meeting, call->reduction, offset, out, n);
    else
        reduce_fp32(meeting, call->reduction, offset, out, n);
}

/* Computes slice `me` of every member's result; no other member reads or writes that slice. */
static void all_reduce_slice(const struct parties *meeting, const struct exchange_call *call, int me)
{
    size_t size = element_bytes(call->element);
    int64_t begin = call->count * me / meeting->n, end = call->count * (me + 1) / meeting->n;
    unsigned char *mine = (unsigned char *)call->out + (size_t)begin * size;
    reduce(meeting, call, begin, mine, end - begin);
    for (int m = 0; m < meeting->n; m++)
        if (m != me)
            memcpy((unsigned char *)meeting->calls[m]->out + (size_t)begin * size, mine, (size_t)(end - begin) * size);
}

static void gather_parts(const struct parties *meeting, const struct exchange_call *call)
{
    int blocks = exchange_blocks(call);
    size_t part = (size_t)(call->count / blocks) * element_bytes(call->element);
    unsigned char *to = call->out;
    for (int b = 0; b < blocks; b++)
        for (int m = 0; m < meeting->n; m++, to += part) {
            const unsigned char *from = (const unsigned char *)meeting->calls[m]->in + (size_t)b * part;
            if (to != from)
                memcpy(to, from, part);
        }
}

static void scatter_parts(const struct parties *meeting, const struct exchange_call *call, int me)
{
    int blocks = exchange_blocks(call);
    int64_t part = call->count / blocks;
    for (int b = 0; b < blocks; b++)
        reduce(meeting, call, (b * meeting->n + me) * part,
               (unsigned char *)call->out + (size_t)(b * part) * element_bytes(call->element), part);
}

static void exchange_parts(const struct parties *meeting, const struct exchange_call *call, int me)
{
    size_t part = (size_t)call->count * element_bytes(call->element);
    for (int m = 0; m < meeting->n; m++)
        memcpy((unsigned char *)call->out + (size_t)m * part, (const unsigned char *)meeting->calls[m]->in + (size_t)me * part,
               part);
}

/* --- parts of different sizes */

static int64_t rows_before(const int32_t *rows, int member)
{
    int64_t before = 0;
    for (int m = 0; m < member; m++)
        before += rows[m];
    return before;
}

/* Member `me`'s part of what every member sends to each. */
static void exchange_ragged(const struct parties *meeting, const struct exchange_call *call, int me)
{
    size_t row = (size_t)call->count * element_bytes(call->element);
    unsigned char *to = call->out;
    for (int m = 0; m < meeting->n; m++) {
        const struct exchange_call *other = meeting->calls[m];
        const unsigned char *from = (const unsigned char *)other->in + (size_t)rows_before(other->parts.sent, me) * row;
        memcpy(to, from, (size_t)other->parts.sent[me] * row);
        to += (size_t)other->parts.sent[me] * row;
    }
}

static void gather_ragged(const struct parties *meeting, const struct exchange_call *call)
{
    size_t row = (size_t)call->count * element_bytes(call->element);
    unsigned char *to = call->out;
    for (int m = 0; m < meeting->n; m++) {
        memcpy(to, meeting->calls[m]->in, (size_t)call->parts.received[m] * row);
        to += (size_t)call->parts.received[m] * row;
    }
}

static void share_ragged(const struct parties *meeting, const struct exchange_call *call, int me)
{
    const int32_t *sent = call->parts.sent;
    if (call->exchange == EXCHANGE_ALL_TO_ALL)
        exchange_ragged(meeting, call, me);
    else if (call->exchange == EXCHANGE_ALL_GATHER)
        gather_ragged(meeting, call);
    else if (call->exchange == EXCHANGE_REDUCE_SCATTER)
        reduce(meeting, call, rows_before(sent, me) * call->count, call->out, sent[me] * call->count);
}

void thread_meeting_share(struct exchange_call *const *calls, int n, int me)
{
    const struct parties all = {calls, n}, *meeting = &all;
    const struct exchange_call *call = calls[me];

    if (call->parts.sent || call->parts.received) {
        share_ragged(meeting, call, me);
        return;
    }
    switch (call->exchange) {
    case EXCHANGE_ALL_REDUCE: all_reduce_slice(meeting, call, me); break;
    case EXCHANGE_ALL_GATHER: gather_parts(meeting, call); break;
    case EXCHANGE_REDUCE_SCATTER: scatter_parts(meeting, call, me); break;
    case EXCHANGE_ALL_TO_ALL: exchange_parts(meeting, call, me); break;
    case EXCHANGE_BROADCAST:
        if (call->out && call->out != meeting->calls[call->peer]->in)
            memcpy(call->out, meeting->calls[call->peer]->in, (size_t)call->count * element_bytes(call->element));
        break;
    default: break;
    }
}
