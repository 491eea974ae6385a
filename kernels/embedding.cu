/*
 * embedding.cu - token and position lookup in this rank's part of the vocabulary, and its gradient.
 *
 * Variants: 16-byte accesses where the width is a multiple of 8, one element at a time otherwise.
 * Forward bytes: 4 t h, 6 t h with positions. Limiter: memory bandwidth.
 *
 * Backward adds without atomics, so its bits do not change from run to run: the blocks of a token's first row add up its rows in
 * order, a slice of columns each. Rows of one token are found in two steps: within chunks of 512 rows by comparing, which links
 * each row to the next one there; between chunks by a table of the first row of each token in each chunk. Bytes: 2 t h, 8 h per
 * distinct token, and 4 t / 512 per row of the vocabulary for the table. Limiter: memory bandwidth; the chain of a very frequent
 * token, about a microsecond per row.
 */
#include "kernels/vector.cuh"

enum { THREADS = 128, CHUNK = 512 };

/* position_of of kernels.h, which is a host function. */
__device__ static inline int64_t position_at(const embedding_call &call, int64_t row)
{
    const int64_t p = row % call.seq_len;
    return call.at.first + p + (2 * p >= call.seq_len ? call.at.jump : 0);
}

template <int V> __global__ void __launch_bounds__(THREADS) embedding_forward_kernel(embedding_call call)
{
    const int64_t row = blockIdx.x, token = call.tokens[row] - call.first;
    const bool held = token >= 0 && token < call.count;
    const bf16 *at = (const bf16 *)call.table + token * call.h;
    const bf16 *position = call.positions ? (const bf16 *)call.positions + position_at(call, row) * call.h : NULL;
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.h; i += THREADS * V) {
        float x[V] = {}, more[V];
        if (held)
            load<V>(x, at + i);
        if (position) {
            load<V>(more, position + i);
            for (int j = 0; j < V; j++)
                x[j] += more[j];
        }
        store<V>((bf16 *)call.x + row * call.h + i, x);
    }
}

/* Where the rows of a token are; -1: nowhere. In the workspace of the stream. */
struct occurrences {
    int32_t *next;   /* [t]: in the same chunk */
    int32_t *firsts; /* [chunks, count]: first row of a token in a chunk */
    int64_t chunks;
};

/* One chunk: `firsts` is all -1 before. */
__global__ void __launch_bounds__(CHUNK) embedding_link_kernel(embedding_call call, occurrences rows)
{
    __shared__ int32_t tokens[CHUNK];
    const int64_t base = (int64_t)blockIdx.x * CHUNK, row = base + threadIdx.x;
    const int64_t token = row < call.t ? call.tokens[row] - call.first : -1;
    const int32_t mine = token >= 0 && token < call.count ? (int32_t)token : -1;
    tokens[threadIdx.x] = mine;
    __syncthreads();
    if (mine < 0)
        return;
    int next = CHUNK;
    bool first = true;
    for (int i = 0; i < CHUNK; i++) {
        const bool same = tokens[i] == mine;
        first = first && !(same && i < (int)threadIdx.x);
        next = same && i > (int)threadIdx.x && i < next ? i : next;
    }
    rows.next[row] = next < CHUNK ? (int32_t)(base + next) : -1;
    if (first)
        rows.firsts[(int64_t)blockIdx.x * call.count + mine] = (int32_t)row;
}

/* The first row of the token in chunks [from, to). */
__device__ static int64_t first_within(const occurrences &rows, int64_t count, int64_t token, int64_t from, int64_t to)
{
    for (int64_t chunk = from; chunk < to; chunk++)
        if (rows.firsts[chunk * count + token] >= 0)
            return rows.firsts[chunk * count + token];
    return -1;
}

template <int V> __global__ void __launch_bounds__(THREADS) embedding_backward_kernel(embedding_call call, occurrences rows)
{
    int64_t row = blockIdx.x;
    const int64_t token = call.tokens[row] - call.first, column = ((int64_t)blockIdx.y * THREADS + threadIdx.x) * V;
    if (token < 0 || token >= call.count || first_within(rows, call.count, token, 0, row / CHUNK + 1) != row)
        return;
    if (column >= call.h)
        return;
    float *to = call.dtable + token * call.h + column, sum[V], dx[V];
    load<V>(sum, to);
    while (row >= 0) {
        load<V>(dx, (const bf16 *)call.dx + row * call.h + column);
        const int64_t chunk = row / CHUNK;
        row = rows.next[row];
        if (row < 0)
            row = first_within(rows, call.count, token, chunk + 1, rows.chunks);
        for (int j = 0; j < V; j++)
            sum[j] += dx[j];
    }
    store<V>(to, sum);
}

/* Adds dx[row] to `to` for the columns of this thread. */
template <int V> __device__ static void add_row(float *to, const embedding_call &call, int64_t row)
{
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.h; i += THREADS * V) {
        float sum[V], dx[V];
        load<V>(sum, to + i);
        load<V>(dx, (const bf16 *)call.dx + row * call.h + i);
        for (int j = 0; j < V; j++)
            sum[j] += dx[j];
        store<V>(to + i, sum);
    }
}

template <int V> __global__ void __launch_bounds__(THREADS) position_backward_kernel(embedding_call call)
{
    for (int64_t row = blockIdx.x; row < call.t; row += call.seq_len)
        add_row<V>(call.dpositions + position_at(call, blockIdx.x) * call.h, call, row);
}

int embedding_forward_cuda(const struct cuda_launch *launch, const struct embedding_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->table) && aligned(call->positions) && aligned(call->x);
    return launch_kernel(vector ? embedding_forward_kernel<VECTOR> : embedding_forward_kernel<1>, dim3((unsigned)call->t),
                         dim3(THREADS), 0, launch->stream, *call);
}

/* Gradients of the table's rows [first, first + count) of the call. */
template <int V> static cudaError_t add_tokens(const struct cuda_launch *launch, const struct embedding_call *call)
{
    const int64_t chunks = (call->t + CHUNK - 1) / CHUNK, slice = THREADS * V;
    int32_t *next = (int32_t *)launch->workspace;
    const occurrences rows = {next, next + call->t, chunks};
    cudaError_t error = cudaMemsetAsync(rows.firsts, 0xff, (size_t)(chunks * call->count) * sizeof(int32_t), launch->stream);
    if (error == cudaSuccess)
        error = launch_kernel(embedding_link_kernel, dim3((unsigned)chunks), dim3(CHUNK), 0, launch->stream, *call, rows);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(embedding_backward_kernel<V>, dim3((unsigned)call->t, (unsigned)((call->h + slice - 1) / slice)),
                         dim3(THREADS), 0, launch->stream, *call, rows);
}

/* As many rows of the table at a time as the workspace has room for. */
static cudaError_t add_all_tokens(const struct cuda_launch *launch, const struct embedding_call *call, bool vector)
{
    const int64_t chunks = (call->t + CHUNK - 1) / CHUNK;
    const int64_t most = ((int64_t)(launch->workspace_bytes / sizeof(int32_t)) - call->t) / chunks;
    cudaError_t error = most > 0 && call->t < INT32_MAX ? cudaSuccess : cudaErrorInvalidValue;
    for (int64_t done = 0; done < call->count && error == cudaSuccess; done += most) {
        struct embedding_call part = *call;
        part.first = call->first + done;
        part.count = call->count - done < most ? call->count - done : most;
        part.dtable = call->dtable + done * call->h;
        error = vector ? add_tokens<VECTOR>(launch, &part) : add_tokens<1>(launch, &part);
    }
    return error;
}

int embedding_backward_cuda(const struct cuda_launch *launch, const struct embedding_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->dx) && aligned(call->dtable) && aligned(call->dpositions);
    cudaError_t error = add_all_tokens(launch, call, vector);
    if (error != cudaSuccess || !call->dpositions)
        return error;
    const int64_t positions = call->seq_len < call->t ? call->seq_len : call->t;
    return launch_kernel(vector ? position_backward_kernel<VECTOR> : position_backward_kernel<1>, dim3((unsigned)positions),
                         dim3(THREADS), 0, launch->stream, *call);
}
