/*
 * scan.cu - the recurrence of mixers with a state (mixers.h), token by token, forward and backward; for calls that
 * scan_chunks.cu does not support.
 *
 * Columns of a state are independent, except for gradients of what they share. A block computes COLUMNS of them, of one head of
 * one sequence, token by token. LANES threads share a column and keep its rows in registers, HELD each. Keys, queries and decays
 * of STAGED tokens at a time are copied to shared memory. States of up to 256 rows.
 *
 * Backward, a forward pass first keeps the state in front of each chunk. Then one kernel per chunk, from the last to the first,
 * goes through the chunk, keeps the state in front of each token, and goes back through the tokens. The parts of gradients that
 * columns and heads share (keys, queries, decays, strengths) are left in the workspace, and separate kernels add them up in a
 * fixed order, so two runs give the same bits.
 *
 * Workspace, backward, in fp32: for all heads of all sequences a state per chunk, one per token of a chunk, and one for
 * gradients; for each token of a chunk, head and block 2 N + rows + 1 sums. FLOPs per token, head and element of the state: 4
 * forward (6 with `delta`), about 20 backward. Limiter: the latency from one token to the next; backward also the traffic of
 * states, 8 bytes per element and token. Tensor cores are not used.
 */
#include "kernels/vector.cuh"

enum { LANES = 8, SCAN_THREADS = 128, COLUMNS = SCAN_THREADS / LANES, SCAN_WARPS = SCAN_THREADS / WARP, STAGED = 6 };
enum { FEW_ROWS = 4, MORE_ROWS = 16, MOST_ROWS = 32 }; /* of a column, held by a thread */

/* --- the workspace, floats */

static int held_of(const struct scan_call *call)
{
    return call->state <= LANES * FEW_ROWS ? FEW_ROWS : call->state <= LANES * MORE_ROWS ? MORE_ROWS : MOST_ROWS;
}

/* What a block leaves of a token: gradients of its query [N], key [N], decays [rows], strength. */
__device__ static inline int64_t sums_of(const scan_call &call)
{
    return 2 * (int64_t)call.state + call.rows + 1;
}

struct scan_room {
    float *begins; /* [blocks][chunks][HELD][SCAN_THREADS]: as threads hold a state */
    float *states; /* [blocks][chunk][HELD][SCAN_THREADS] */
    float *d;      /* [blocks][HELD][SCAN_THREADS] */
    float *sums;   /* [blocks][chunk][sums_of] */
    float *skips;  /* [tiles][batch][heads] */
    int64_t chunks, tiles;
};

static size_t room_of(const struct scan_call *call, struct scan_room *room)
{
    const int64_t tiles = (call->head_dim + COLUMNS - 1) / COLUMNS, heads = call->batch * call->heads, blocks = tiles * heads;
    const int64_t state = (int64_t)held_of(call) * SCAN_THREADS, chunks = (call->seq_len + call->chunk - 1) / call->chunk;
    room->tiles = tiles;
    room->chunks = chunks;
    room->begins = (float *)call->workspace;
    const int64_t states = blocks * chunks * state, d = states + blocks * call->chunk * state, sums = d + blocks * state;
    const int64_t skips = sums + blocks * call->chunk * (2 * (int64_t)call->state + call->rows + 1);
    if (call->workspace) {
        room->states = room->begins + states;
        room->d = room->begins + d;
        room->sums = room->begins + sums;
        room->skips = room->begins + skips;
    }
    return (size_t)(skips + blocks) * sizeof(float);
}

size_t scan_cuda_workspace(const struct scan_call *call, bool backward)
{
    struct scan_room room;
    struct scan_call sizes = *call;
    sizes.workspace = NULL;
    if (!backward)
        return scan_chunks_fit(call) ? scan_chunks_forward_workspace(call) : 0;
    return scan_chunks_fit_backward(call) ? scan_chunks_backward_workspace(call) : room_of(&sizes, &room);
}

/* --- a thread's part of a column */

/* Keys, queries and exp(decay) of a token in shared memory, zeros beyond the state's rows. */
template <int HELD> struct staged_token {
    float k[HELD * LANES], q[HELD * LANES], factor[HELD * LANES];
};

/* Which column of which head this is, and where its tokens begin. */
struct scan_place {
    int64_t block, head, group, row; /* row: of the sequence's first token */
    int column, lane;
    bool there; /* whether the head has this column */
};

__device__ static inline scan_place place_of(const scan_call &call)
{
    scan_place place;
    place.head = blockIdx.y % call.heads;
    place.group = place.head / (call.heads / call.groups);
    place.row = blockIdx.y / call.heads * call.seq_len;
    place.block = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    place.column = (int)blockIdx.x * COLUMNS + (int)threadIdx.x / LANES;
    place.lane = (int)threadIdx.x % LANES;
    place.there = place.column < call.head_dim;
    return place;
}

/* Tokens [first, first + STAGED) as far as they come before `end`. */
template <int HELD>
__device__ static inline void stage_tokens(const scan_call &call, const scan_place &place, int64_t first, int64_t end,
                                           staged_token<HELD> *staged)
{
    __syncthreads(); /* those before may still be read */
    for (int i = (int)threadIdx.x; i < STAGED * HELD * LANES; i += SCAN_THREADS) {
        const int token = i / (HELD * LANES), n = i % (HELD * LANES);
        const int64_t row = place.row + first + token, at = row * call.k_row + place.group * call.state + n;
        const bool has = first + token < end && n < call.state;
        const float *decay = call.decay + row * call.decay_row + place.head * call.rows + (call.rows > 1 ? n : 0);
        staged[token].k[n] = has ? bf16_to_float(((const bf16 *)call.k)[at]) : 0;
        staged[token].q[n] = has ? bf16_to_float(((const bf16 *)call.q)[at]) : 0;
        staged[token].factor[n] = has ? expf(*decay) : 0;
    }
    __syncthreads();
}

/* The sum over the lanes of a column, for each of them. */
__device__ static inline float lanes_sum(float value)
{
#pragma unroll
    for (int mask = LANES / 2; mask > 0; mask /= 2)
        value += shuffle_xor(value, mask);
    return value;
}

/* The sum over the columns of a warp, lane by lane. */
__device__ static inline float columns_sum(float value)
{
#pragma unroll
    for (int mask = WARP / 2; mask >= LANES; mask /= 2)
        value += shuffle_xor(value, mask);
    return value;
}

/* state^T x. */
template <int HELD> __device__ static inline float read_state(const float state[HELD], const float *x, int lane)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        sum += state[i] * x[lane + i * LANES];
    return lanes_sum(sum);
}

/* A column's numbers of a token. */
struct column_token {
    float v, strength;
};

__device__ static inline column_token column_at(const scan_call &call, const scan_place &place, int64_t t)
{
    const int64_t row = place.row + t;
    const int64_t at = row * call.v_row + place.head * call.head_dim + place.column;
    return {place.there ? bf16_to_float(((const bf16 *)call.v)[at]) : 0,
            call.strength ? call.strength[row * call.heads + place.head] : 1};
}

__device__ static inline float skip_of(const scan_call &call, const scan_place &place)
{
    return call.skip ? bf16_to_float(((const bf16 *)call.skip)[place.head]) : 0;
}

/* What a token does to a column: `state`, that in front of it, decays; *known is what it had for the token's key (`delta`, else
 * 0); gives back what is then written for it, which is not yet added. */
template <int HELD>
__device__ static inline float decay_column(const scan_call &call, const staged_token<HELD> &token, const column_token &mine,
                                            int lane, float state[HELD], float *known)
{
#pragma unroll
    for (int i = 0; i < HELD; i++)
        state[i] *= token.factor[lane + i * LANES];
    *known = call.delta ? read_state<HELD>(state, token.k, lane) : 0;
    return mine.strength * (mine.v - *known);
}

template <int HELD> __device__ static inline void add_product(float state[HELD], const float *x, float y, int lane)
{
#pragma unroll
    for (int i = 0; i < HELD; i++)
        state[i] += x[lane + i * LANES] * y;
}

template <int HELD> __device__ static inline void put_state(float *to, const float state[HELD])
{
#pragma unroll
    for (int i = 0; i < HELD; i++)
        to[i * SCAN_THREADS + (int)threadIdx.x] = state[i];
}

template <int HELD> __device__ static inline void get_state(float state[HELD], const float *from)
{
#pragma unroll
    for (int i = 0; i < HELD; i++)
        state[i] = from[i * SCAN_THREADS + (int)threadIdx.x];
}

/* --- forward */

/* y, or with `begins` the states in front of chunks instead. */
template <int HELD>
__global__ void __launch_bounds__(SCAN_THREADS) scan_forward_kernel(scan_call call, float *begins, int64_t chunks)
{
    alignas(16) __shared__ staged_token<HELD> staged[STAGED];
    const scan_place place = place_of(call);
    const float skip = skip_of(call, place);
    float state[HELD] = {}, known;
    for (int64_t t = 0; t < call.seq_len; t++) {
        if (t % STAGED == 0)
            stage_tokens<HELD>(call, place, t, call.seq_len, staged);
        const staged_token<HELD> &token = staged[t % STAGED];
        const column_token mine = column_at(call, place, t);
        if (begins && t % call.chunk == 0)
            put_state<HELD>(begins + (place.block * chunks + t / call.chunk) * HELD * SCAN_THREADS, state);
        const float u = decay_column<HELD>(call, token, mine, place.lane, state, &known);
        add_product<HELD>(state, token.k, u, place.lane);
        if (begins)
            continue;
        const float y = call.scale * read_state<HELD>(state, token.q, place.lane) + skip * mine.v;
        if (place.there && place.lane == 0)
            ((bf16 *)call.y)[((place.row + t) * call.heads + place.head) * call.head_dim + place.column] = bf16_from_float(y);
    }
}

/* --- backward */

/* The sums of a token over the columns of a warp, in shared memory. */
template <int HELD> struct warp_sums {
    float dq[HELD * LANES], dk[HELD * LANES], ddecay[HELD * LANES], dstrength;
};

/* Token t, `state` in front of it; d, the gradient of the state behind it, becomes that of the one in front. What the warp's
 * columns add up to goes to `sums`. */
template <int HELD>
__device__ static inline void token_backward(const scan_call &call, const scan_place &place, const staged_token<HELD> &token,
                                             int64_t t, float state[HELD], float d[HELD], float *dskip, warp_sums<HELD> &sums)
{
    const int64_t row = place.row + t, lane = place.lane;
    const column_token mine = column_at(call, place, t);
    const int64_t dy_at = (row * call.heads + place.head) * call.head_dim + place.column;
    const float dy = place.there ? bf16_to_float(((const bf16 *)call.dy)[dy_at]) : 0;
    const bool first_column = threadIdx.x % WARP < LANES;
    float known, all = 0;
    const float u = decay_column<HELD>(call, token, mine, place.lane, state, &known);
    add_product<HELD>(d, token.q, call.scale * dy, place.lane);
    const float du = read_state<HELD>(d, token.k, place.lane), written = mine.strength * du, taken = call.delta ? written : 0;
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        const int64_t n = lane + i * LANES;
        const float dq = columns_sum(call.scale * dy * (state[i] + token.k[n] * u));
        const float dk = columns_sum(d[i] * u - state[i] * taken);
        d[i] -= token.k[n] * taken;
        const float ddecay = d[i] * state[i];
        d[i] *= token.factor[n];
        all += ddecay;
        const float row_decay = call.rows > 1 ? columns_sum(ddecay) : 0;
        if (first_column)
            sums.dq[n] = dq, sums.dk[n] = dk, sums.ddecay[n] = row_decay;
    }
    const float dstrength = columns_sum(du * (mine.v - known));
    if (call.rows == 1)
        all = warp_sum(all);
    if (threadIdx.x % WARP == 0) {
        sums.dstrength = dstrength;
        sums.ddecay[0] = call.rows == 1 ? all : sums.ddecay[0];
    }
    *dskip += dy * mine.v;
    if (place.there && place.lane == 0)
        ((bf16 *)call.dv)[row * call.v_row + place.head * call.head_dim + place.column] =
            bf16_from_float(written + skip_of(call, place) * dy);
}

/* The warps' sums of a token become the block's, in the workspace. */
template <int HELD> __device__ static inline void put_sums(const scan_call &call, const warp_sums<HELD> *sums, float *to)
{
    for (int i = (int)threadIdx.x; i < sums_of(call); i += SCAN_THREADS) {
        const int n = call.state, ddecay = i - 2 * n;
        float sum = 0;
        for (int warp = 0; warp < SCAN_WARPS; warp++) {
            const warp_sums<HELD> &one = sums[warp];
            sum += i < n ? one.dq[i] : i < 2 * n ? one.dk[i - n] : ddecay < call.rows ? one.ddecay[ddecay] : one.dstrength;
        }
        to[i] = sum;
    }
}

/* Chunk number `chunk`; those behind it have left the gradient of the state there. */
template <int HELD>
__global__ void __launch_bounds__(SCAN_THREADS) scan_backward_kernel(scan_call call, scan_room room, int64_t chunk)
{
    enum { STATE = HELD * SCAN_THREADS };
    alignas(16) __shared__ staged_token<HELD> staged[STAGED];
    __shared__ warp_sums<HELD> sums[2][SCAN_WARPS]; /* in turns: so a token needs one barrier */
    __shared__ float scratch[WARP];
    const scan_place place = place_of(call);
    const int64_t first = chunk * call.chunk, end = first + call.chunk < call.seq_len ? first + call.chunk : call.seq_len;
    const bool is_last = chunk == room.chunks - 1;
    float *states = room.states + place.block * call.chunk * STATE, *gradient = room.d + place.block * STATE;
    float state[HELD], d[HELD] = {}, known, dskip = 0;
    get_state<HELD>(state, room.begins + (place.block * room.chunks + chunk) * STATE);
    if (!is_last)
        get_state<HELD>(d, gradient);
    for (int64_t t = first; t < end; t++) {
        if ((t - first) % STAGED == 0)
            stage_tokens<HELD>(call, place, t, end, staged);
        const staged_token<HELD> &token = staged[(t - first) % STAGED];
        put_state<HELD>(states + (t - first) * STATE, state);
        const float u = decay_column<HELD>(call, token, column_at(call, place, t), place.lane, state, &known);
        add_product<HELD>(state, token.k, u, place.lane);
    }
    for (int64_t t = end - 1; t >= first; t--) {
        const int64_t i = t - first;
        if (t == end - 1 || i % STAGED == STAGED - 1)
            stage_tokens<HELD>(call, place, t - i % STAGED, end, staged);
        get_state<HELD>(state, states + i * STATE);
        token_backward<HELD>(call, place, staged[i % STAGED], t, state, d, &dskip, sums[t % 2][threadIdx.x / WARP]);
        __syncthreads();
        put_sums<HELD>(call, sums[t % 2], room.sums + (place.block * call.chunk + i) * sums_of(call));
    }
    put_state<HELD>(gradient, d);
    dskip = block_sum(place.lane == 0 ? dskip : 0, scratch);
    float *skip = room.skips + (int64_t)blockIdx.x * gridDim.y + blockIdx.y;
    if (threadIdx.x == 0)
        *skip = dskip + (is_last ? 0 : *skip);
}

static bool fits(const struct scan_call *call)
{
    return call->state <= LANES * MOST_ROWS && call->batch * call->heads <= UINT16_MAX;
}

static dim3 grid_of(const struct scan_call *call)
{
    return dim3((unsigned)((call->head_dim + COLUMNS - 1) / COLUMNS), (unsigned)(call->batch * call->heads));
}

static int go_forward(const struct cuda_launch *launch, const struct scan_call *call, float *begins, int64_t chunks)
{
    const int held = held_of(call);
    return launch_kernel(held == FEW_ROWS    ? scan_forward_kernel<FEW_ROWS>
                         : held == MORE_ROWS ? scan_forward_kernel<MORE_ROWS>
                                             : scan_forward_kernel<MOST_ROWS>,
                         grid_of(call), dim3(SCAN_THREADS), 0, launch->stream, *call, begins, chunks);
}

int scan_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call)
{
    if (call->batch * call->seq_len <= 0)
        return cudaSuccess;
    const struct chunks_memory memory = {call->workspace, NULL, NULL};
    if (scan_chunks_fit(call))
        return scan_chunks_forward_cuda(launch, call, &memory);
    return fits(call) ? go_forward(launch, call, NULL, 0) : (int)cudaErrorInvalidValue;
}

static int chunk_backward(const struct cuda_launch *launch, const struct scan_call *call, const struct scan_room *room,
                          int64_t chunk)
{
    const int held = held_of(call);
    const int64_t first = chunk * call->chunk, left = call->seq_len - first, tokens = left < call->chunk ? left : call->chunk;
    int error = launch_kernel(held == FEW_ROWS    ? scan_backward_kernel<FEW_ROWS>
                              : held == MORE_ROWS ? scan_backward_kernel<MORE_ROWS>
                                                  : scan_backward_kernel<MOST_ROWS>,
                              grid_of(call), dim3(SCAN_THREADS), 0, launch->stream, *call, *room, chunk);
    if (error == cudaSuccess)
        error = scan_sums_cuda(launch, call, room->sums, room->tiles, call->chunk, first, tokens);
    return error;
}

int scan_backward_cuda(const struct cuda_launch *launch, const struct scan_call *call)
{
    struct scan_room room = {};
    if (call->batch * call->seq_len <= 0)
        return cudaSuccess;
    if (scan_chunks_fit_backward(call))
        return scan_chunks_backward_cuda(launch, call);
    if (!fits(call))
        return cudaErrorInvalidValue;
    (void)room_of(call, &room);
    int error = go_forward(launch, call, room.begins, room.chunks);
    for (int64_t chunk = room.chunks - 1; chunk >= 0 && error == cudaSuccess; chunk--)
        error = chunk_backward(launch, call, &room, chunk);
    if (error == cudaSuccess && call->dskip)
        error = partial_sum_cuda(launch, room.skips, room.tiles * call->batch, call->heads, call->heads, call->dskip);
    return error;
}
