/* comm_processes_exchanges.c - each exchange as messages between its members. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/base/comm_collective.h"
#include "runtime/comm/comm_processes_internal.h"

/* One part from each member, own part included, to out + i * stride; what each member gets is in + to_stride * i. */
static bool swap_parts(const struct waiting *w, const unsigned char *in, size_t to_stride, unsigned char *out, size_t part)
{
    const int n = w->communicator->base.n, me = w->communicator->base.me;
    struct receipts *receipts = receipts_new(w);
    for (int i = 0; i < n; i++)
        if (i != me)
            processes_send(w, i, in + (size_t)i * to_stride, part);
    for (int i = 0; i < n; i++)
        if (i != me)
            processes_expect(w, i, out + (size_t)i * part, part, receipts);
    if (out + (size_t)me * part != in + (size_t)me * to_stride)
        memmove(out + (size_t)me * part, in + (size_t)me * to_stride, part);
    return processes_await(w, receipts);
}

/* --- exchanges */

static void all_gather(const struct waiting *w, const struct exchange_call *call)
{
    const int n = w->communicator->base.n;
    const size_t part = (size_t)call->count * element_bytes(call->element);
    unsigned char *parts = exchange_blocks(call) > 1 ? memory_new((size_t)n, part) : NULL;
    if (swap_parts(w, call->in, 0, parts ? parts : call->out, part) && parts)
        parts_to_whole(call, n, parts, call->out);
    free(parts);
}

static void reduce_scatter(const struct waiting *w, const struct exchange_call *call)
{
    const int n = w->communicator->base.n;
    const size_t part = (size_t)call->count * element_bytes(call->element);
    unsigned char *parts = memory_new((size_t)n, part), *own = exchange_blocks(call) > 1 ? memory_new((size_t)n, part) : NULL;
    if (own)
        parts_of_whole(call, n, call->in, own);
    if (swap_parts(w, own ? own : call->in, part, parts, part))
        parts_reduce(call, parts, n, call->count, call->out);
    free(parts);
    free(own);
}

/* Slice i of an all-reduce; slice n begins at the end. */
static int64_t slice_begin(const struct exchange_call *call, int n, int i)
{
    return call->count * i / n;
}

/* Slices have unequal sizes; messages are as large as the largest. */
static void all_reduce(const struct waiting *w, const struct exchange_call *call)
{
    const int n = w->communicator->base.n, me = w->communicator->base.me;
    const size_t size = element_bytes(call->element);
    const size_t part = (size_t)(call->count / n + 1) * size;
    unsigned char *parts = memory_new((size_t)n, part), *slices = memory_new((size_t)n, part);
    for (int i = 0; i < n; i++) {
        int64_t begin = slice_begin(call, n, i), count = slice_begin(call, n, i + 1) - begin;
        memcpy(slices + (size_t)i * part, (const unsigned char *)call->in + (size_t)begin * size, (size_t)count * size);
    }
    bool done = swap_parts(w, slices, part, parts, part);
    if (done) {
        int64_t own = (int64_t)(part / size);
        unsigned char *sum = slices + (size_t)me * part;
        parts_reduce(call, parts, n, own, sum);
        done = swap_parts(w, sum, 0, parts, part);
    }
    for (int i = 0; i < n && done; i++) {
        int64_t begin = slice_begin(call, n, i), count = slice_begin(call, n, i + 1) - begin;
        memcpy((unsigned char *)call->out + (size_t)begin * size, parts + (size_t)i * part, (size_t)count * size);
    }
    free(parts);
    free(slices);
}

static void receive(const struct waiting *w, int from, void *to, size_t bytes)
{
    struct receipts *receipts = receipts_new(w);
    processes_expect(w, from, to, bytes, receipts);
    (void)processes_await(w, receipts);
}

static void broadcast(const struct waiting *w, const struct exchange_call *call)
{
    const size_t bytes = (size_t)call->count * element_bytes(call->element);
    if (call->peer != w->communicator->base.me) {
        receive(w, call->peer, call->out, bytes);
        return;
    }
    for (int i = 0; i < w->communicator->base.n; i++)
        if (i != call->peer)
            processes_send(w, i, call->in, bytes);
    if (call->out && call->out != call->in)
        memmove(call->out, call->in, bytes);
}

/* --- parts of different sizes (comm.h) */

/* Bytes to and from each member, and where those to a member begin. */
struct shares {
    size_t *given, *taken, *begin;
};

static struct shares shares_of(const struct waiting *w, const struct exchange_call *call)
{
    const int n = w->communicator->base.n, me = w->communicator->base.me;
    const size_t row = (size_t)call->count * element_bytes(call->element);
    const bool gather = call->exchange == EXCHANGE_ALL_GATHER, scatter = call->exchange == EXCHANGE_REDUCE_SCATTER;
    size_t *numbers = memory_new(3 * (size_t)n, sizeof *numbers), at = 0;
    struct shares shares = {numbers, numbers + n, numbers + 2 * n};
    for (int m = 0; m < n; m++) {
        shares.given[m] = row * (size_t)(gather ? call->parts.received[me] : call->parts.sent[m]);
        shares.taken[m] = row * (size_t)(scatter ? call->parts.sent[me] : call->parts.received[m]);
        shares.begin[m] = gather ? 0 : at;
        at += shares.given[m];
    }
    return shares;
}

/* Exchanges shares: `out` gets those of the others in the order of members. False after a failure. */
static bool swap_shares(const struct waiting *w, const unsigned char *in, const struct shares *shares, unsigned char *out)
{
    const int n = w->communicator->base.n, me = w->communicator->base.me;
    for (int m = 0; m < n; m++)
        if (m != me && !(processes_can_send(w, shares->given[m]) && processes_can_send(w, shares->taken[m])))
            return false;
    struct receipts *receipts = receipts_new(w);
    for (int m = 0; m < n; m++)
        if (m != me && shares->given[m])
            processes_send(w, m, in + shares->begin[m], shares->given[m]);
    for (int m = 0; m < n; m++) {
        if (m == me)
            memmove(out, in + shares->begin[me], shares->taken[me]);
        else if (shares->taken[m])
            processes_expect(w, m, out, shares->taken[m], receipts);
        out += shares->taken[m];
    }
    return processes_await(w, receipts);
}

static void exchange_ragged(const struct waiting *w, const struct exchange_call *call)
{
    const int n = w->communicator->base.n, me = w->communicator->base.me;
    struct shares shares = shares_of(w, call);
    if (call->exchange == EXCHANGE_REDUCE_SCATTER) {
        unsigned char *parts = memory_new((size_t)n, shares.taken[me] + 1);
        if (swap_shares(w, call->in, &shares, parts))
            parts_reduce(call, parts, n, (int64_t)call->parts.sent[me] * call->count, call->out);
        free(parts);
    } else {
        (void)swap_shares(w, call->in, &shares, call->out);
    }
    free(shares.given);
}

void processes_exchange(const struct waiting *w, const struct exchange_call *call)
{
    const size_t part = (size_t)call->count * element_bytes(call->element);
    if (!processes_can_send(w, part))
        return;
    if (call->parts.sent || call->parts.received) {
        exchange_ragged(w, call);
        return;
    }
    switch (call->exchange) {
    case EXCHANGE_SEND: processes_send(w, call->peer, call->in, part); break;
    case EXCHANGE_RECV: receive(w, call->peer, call->out, part); break;
    case EXCHANGE_ALL_REDUCE: all_reduce(w, call); break;
    case EXCHANGE_ALL_GATHER: all_gather(w, call); break;
    case EXCHANGE_REDUCE_SCATTER: reduce_scatter(w, call); break;
    case EXCHANGE_ALL_TO_ALL: (void)swap_parts(w, call->in, part, call->out, part); break;
    case EXCHANGE_BROADCAST: broadcast(w, call); break;
    case N_EXCHANGES: break;
    }
}
