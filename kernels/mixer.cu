/*
 * mixer.cu - the kernels around the recurrence of a mixer with a state (mixers.h): convolution, gates, keys of length 1, gated
 * norm.
 *
 * Variants: 8-byte accesses of bf16 if widths, rows and pointers allow, else one element at a time. The convolution runs along
 * tokens with the inputs of its taps in registers, with variants for four and for eight taps. Backward it continues beyond its
 * run as far as the taps reach, and computes the activations of those tokens twice. Sums over tokens stay in registers (gains:
 * shared memory) of a warp or block over its whole run, and partial_sum_cuda adds them up, so two runs give the same bits. Bytes
 * per element: convolution 4 and 6, unit 4 and 6, gated norm 6 and 10, gates 6 and 8. FLOPs: about 15 and 40 with an
 * exponential. Limiter: memory bandwidth.
 */
#include "kernels/sigmoid.cuh"

enum { LANES_WIDE = 4, PASS_WARPS = 4, PASS_THREADS = PASS_WARPS * WARP };

__device__ static inline float silu_slope(float x)
{
    const float s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* Warps side by side that each leave a row of `floats` partial sums, over grid.x blocks of columns: at most one for each of so
 * many pieces of work. 0: there is no room for one. */
static int64_t parts_of(const struct cuda_launch *launch, int64_t blocks, int64_t pieces, int64_t floats)
{
    const int64_t fit = (int64_t)(launch->workspace_bytes / ((size_t)floats * sizeof(float)));
    const int64_t held = (int64_t)BLOCKS_HELD * launch->multiprocessors * PASS_WARPS / blocks + 1;
    const int64_t parts = pieces < held ? pieces : held;
    return parts < fit ? parts : fit;
}

static dim3 pass_grid(int64_t columns, int v, int64_t parts)
{
    return dim3((unsigned)((columns + WARP * v - 1) / (WARP * v)), (unsigned)((parts + PASS_WARPS - 1) / PASS_WARPS));
}

/* --- convolution */

enum { RUN = 64, MOST_TAPS = 8, FEW_TAPS = 4 };

/* Of V channels side by side: their weights, fewer taps behind zeros (no taps are one of weight 1), and the last inputs. */
template <int V, int TAPS> struct channels_of {
    float w[TAPS][V], bias[V], x[TAPS][V];
    __device__ void begin(const convolution_call &call, int64_t c, const bf16 *sequence, int64_t first)
    {
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            const int tap = k - TAPS + call.taps;
            const int64_t at = first - TAPS + k;
            for (int j = 0; j < V; j++) {
                w[k][j] = tap >= 0 ? bf16_to_float(((const bf16 *)call.w)[(c + j) * call.taps + tap]) : 0;
                w[k][j] = call.taps == 0 && k == TAPS - 1 ? 1 : w[k][j];
                x[k][j] = 0;
            }
            if (at >= 0)
                load<V>(x[k], sequence + at * call.x_row);
        }
        for (int j = 0; j < V; j++)
            bias[j] = 0;
        if (call.bias)
            load<V>(bias, (const bf16 *)call.bias + c);
    }
    static __device__ void shift(float window[TAPS][V])
    {
#pragma unroll
        for (int k = 0; k + 1 < TAPS; k++)
            for (int j = 0; j < V; j++)
                window[k][j] = window[k + 1][j];
        for (int j = 0; j < V; j++)
            window[TAPS - 1][j] = 0;
    }
    /* What the activation reads at a token. */
    __device__ float convolved(int j) const
    {
        float sum = bias[j];
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            sum += w[k][j] * x[k][j];
        return sum;
    }
};

/* Tokens [first, end) of a sequence, whose first row is `row`. */
struct token_run {
    int64_t row, first, end;
};

__device__ static inline token_run run_at(const convolution_call &call, int64_t number)
{
    const int64_t runs = (call.seq_len + RUN - 1) / RUN, first = number % runs * RUN;
    return {number / runs * call.seq_len, first, first + RUN < call.seq_len ? first + RUN : call.seq_len};
}

static int64_t runs_of(const struct convolution_call *call)
{
    return call->batch * ((call->seq_len + RUN - 1) / RUN);
}

template <int V, int TAPS> __global__ void __launch_bounds__(PASS_THREADS) convolution_forward_kernel(convolution_call call)
{
    const int64_t c = ((int64_t)blockIdx.x * WARP + threadIdx.x % WARP) * V, runs = (call.seq_len + RUN - 1) / RUN * call.batch;
    channels_of<V, TAPS> mine;
    float y[V];
    for (int64_t number = (int64_t)blockIdx.y * PASS_WARPS + threadIdx.x / WARP; number < runs && c < call.channels;
         number += (int64_t)gridDim.y * PASS_WARPS) {
        const token_run run = run_at(call, number);
        const bf16 *x = (const bf16 *)call.x + run.row * call.x_row + c;
        mine.begin(call, c, x, run.first);
        for (int64_t t = run.first; t < run.end; t++) {
            mine.shift(mine.x);
            load<V>(mine.x[TAPS - 1], x + t * call.x_row);
            for (int j = 0; j < V; j++) {
                const float sum = mine.convolved(j);
                y[j] = sum * sigmoid(sum);
            }
            store<V>((bf16 *)call.y + (run.row + t) * call.channels + c, y);
        }
    }
}

/* partial[part][channels, taps], then [channels]: gradients of weights and biases. */
template <int V, int TAPS>
__global__ void __launch_bounds__(PASS_THREADS) convolution_backward_kernel(convolution_call call, int64_t parts, float *partial)
{
    const int64_t c = ((int64_t)blockIdx.x * WARP + threadIdx.x % WARP) * V, runs = (call.seq_len + RUN - 1) / RUN * call.batch;
    const int64_t part = (int64_t)blockIdx.y * PASS_WARPS + threadIdx.x / WARP;
    float d[TAPS][V], dw[TAPS][V] = {}, dbias[V] = {};
    channels_of<V, TAPS> mine;
    if (part >= parts || c >= call.channels)
        return;
    for (int64_t number = part; number < runs; number += parts) {
        const token_run run = run_at(call, number);
        const bf16 *x = (const bf16 *)call.x + run.row * call.x_row + c;
        bf16 *dx = (bf16 *)call.dx + run.row * call.x_row + c;
        mine.begin(call, c, x, run.first);
        for (int64_t t = run.first; t < run.end + TAPS - 1; t++) {
            mine.shift(mine.x);
            mine.shift(d);
            if (t < call.seq_len) {
                load<V>(mine.x[TAPS - 1], x + t * call.x_row);
                load<V>(d[TAPS - 1], (const bf16 *)call.dy + (run.row + t) * call.channels + c);
            }
            for (int j = 0; j < V; j++) {
                d[TAPS - 1][j] *= silu_slope(mine.convolved(j));
                const float own = t < run.end ? d[TAPS - 1][j] : 0; /* the others are the next run's */
                dbias[j] += own;
#pragma unroll
                for (int k = 0; k < TAPS; k++)
                    dw[k][j] += own * mine.x[k][j];
            }
            if (t < run.first + TAPS - 1)
                continue;
            float sum[V] = {};
#pragma unroll
            for (int k = 0; k < TAPS; k++)
                for (int j = 0; j < V; j++)
                    sum[j] += mine.w[TAPS - 1 - k][j] * d[k][j];
            store<V>(dx + (t - TAPS + 1) * call.x_row, sum);
        }
    }
    float *row = partial + part * call.channels * (call.taps + 1);
    for (int j = 0; j < V && call.taps; j++) {
        row[call.channels * call.taps + c + j] = dbias[j];
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            if (k >= TAPS - call.taps)
                row[(c + j) * call.taps + k - TAPS + call.taps] = dw[k][j];
    }
}

static bool channels_are_wide(const struct convolution_call *call)
{
    return call->taps <= FEW_TAPS && call->channels % LANES_WIDE == 0 && call->x_row % LANES_WIDE == 0 && aligned(call->x) &&
           aligned(call->bias) && aligned(call->y) && aligned(call->dy) && aligned(call->dx);
}

int convolution_forward_cuda(const struct cuda_launch *launch, const struct convolution_call *call)
{
    const bool wide = channels_are_wide(call);
    if (call->taps > MOST_TAPS)
        return cudaErrorInvalidValue;
    const int64_t most = (int64_t)launch->multiprocessors * BLOCKS_IN_TURN * PASS_WARPS, runs = runs_of(call);
    if (runs <= 0)
        return cudaSuccess;
    return launch_kernel(wide ? convolution_forward_kernel<LANES_WIDE, FEW_TAPS> : convolution_forward_kernel<1, MOST_TAPS>,
                         pass_grid(call->channels, wide ? LANES_WIDE : 1, runs < most ? runs : most), dim3(PASS_THREADS), 0,
                         launch->stream, *call);
}

int convolution_backward_cuda(const struct cuda_launch *launch, const struct convolution_call *call)
{
    const bool wide = channels_are_wide(call);
    const int64_t runs = runs_of(call), floats = call->channels * (call->taps + 1), weights = call->channels * call->taps;
    if (runs <= 0)
        return cudaSuccess;
    const int64_t parts = parts_of(launch, pass_grid(call->channels, wide ? LANES_WIDE : 1, 1).x, runs, floats);
    if (call->taps > MOST_TAPS || parts < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    int error = launch_kernel(
        wide ? convolution_backward_kernel<LANES_WIDE, FEW_TAPS> : convolution_backward_kernel<1, MOST_TAPS>,
        pass_grid(call->channels, wide ? LANES_WIDE : 1, parts), dim3(PASS_THREADS), 0, launch->stream, *call, parts, partial);
    if (error == cudaSuccess && call->taps)
        error = partial_sum_cuda(launch, partial, parts, floats, weights, call->dw);
    if (error == cudaSuccess && call->dbias)
        error = partial_sum_cuda(launch, partial + weights, parts, floats, call->channels, call->dbias);
    return error;
}

/* --- gates */

/* log(1 + exp(x)) without overflow. */
__device__ static inline float softplus(float x)
{
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
}

/* Element i: a head's number of a token; its first also does what the head has one of. */
struct gates_forward {
    gates_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int64_t numbers = (int64_t)call.heads * call.rows, row = i / numbers;
        const int at = (int)(i % numbers);
        float x[V], bias[V];
        load<V>(x, (const bf16 *)call.steps + row * call.steps_row + at);
        load<V>(bias, (const bf16 *)call.bias + at);
        for (int j = 0; j < V; j++) {
            const int head = (at + j) / call.rows;
            x[j] = softplus(x[j] + bias[j]);
            if ((at + j) % call.rows == 0)
                call.strength[row * call.heads + head] =
                    call.by_step ? x[j] : sigmoid(bf16_to_float(((const bf16 *)call.strengths)[row * call.strengths_row + head]));
            x[j] *= -expf(bf16_to_float(((const bf16 *)call.rates)[head]));
        }
        store<V>(call.decay + i, x);
    }
};

/* partial[part][numbers] of biases, and behind those of all parts [part][rows][heads] of rates: both are sums of rows. */
__global__ void __launch_bounds__(PASS_THREADS) gates_backward_kernel(gates_call call, int64_t parts, float *partial)
{
    const int64_t numbers = (int64_t)call.heads * call.rows, part = (int64_t)blockIdx.y * PASS_WARPS + threadIdx.x / WARP;
    const int64_t at = (int64_t)blockIdx.x * WARP + threadIdx.x % WARP, head = at / call.rows, place = at % call.rows;
    float drate = 0, dbias = 0;
    if (part >= parts || at >= numbers)
        return;
    const float rate = expf(bf16_to_float(((const bf16 *)call.rates)[head])), bias = bf16_to_float(((const bf16 *)call.bias)[at]);
    for (int64_t row = part; row < call.t; row += parts) {
        const float x = bf16_to_float(((const bf16 *)call.steps)[row * call.steps_row + at]) + bias;
        const float ddecay = call.ddecay[row * numbers + at], dstrength = call.dstrength[row * call.heads + head];
        const float d = (call.by_step ? dstrength - rate * ddecay : -rate * ddecay) * sigmoid(x);
        drate -= rate * softplus(x) * ddecay;
        dbias += d;
        ((bf16 *)call.dsteps)[row * call.steps_row + at] = bf16_from_float(d);
        if (call.by_step || place > 0)
            continue;
        const int64_t strength = row * call.strengths_row + head;
        const float s = sigmoid(bf16_to_float(((const bf16 *)call.strengths)[strength]));
        ((bf16 *)call.dstrengths)[strength] = bf16_from_float(dstrength * s * (1 - s));
    }
    partial[part * numbers + at] = dbias;
    partial[parts * numbers + (part * call.rows + place) * call.heads + head] = drate;
}

int gates_forward_cuda(const struct cuda_launch *launch, const struct gates_call *call)
{
    const int64_t numbers = (int64_t)call->heads * call->rows;
    const bool wide = numbers % LANES_WIDE == 0 && call->steps_row % LANES_WIDE == 0 && aligned(call->steps) &&
                      aligned(call->bias) && aligned(call->decay);
    return launch_each<LANES_WIDE>(launch, call->t * numbers, wide, gates_forward{*call});
}

int gates_backward_cuda(const struct cuda_launch *launch, const struct gates_call *call)
{
    const int64_t numbers = (int64_t)call->heads * call->rows;
    if (call->t <= 0)
        return cudaSuccess;
    const int64_t parts = parts_of(launch, pass_grid(numbers, 1, 1).x, (call->t + 15) / 16, 2 * numbers);
    if (parts < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    int error = launch_kernel(gates_backward_kernel, pass_grid(numbers, 1, parts), dim3(PASS_THREADS), 0, launch->stream, *call,
                              parts, partial);
    if (error == cudaSuccess)
        error = partial_sum_cuda(launch, partial, parts, numbers, numbers, call->dbias);
    if (error == cudaSuccess)
        error = partial_sum_cuda(launch, partial + parts * numbers, parts * call->rows, call->heads, call->heads, call->drates);
    return error;
}

/* --- vectors of length 1: a warp each */

template <int V, bool BACKWARD> __global__ void __launch_bounds__(PASS_THREADS) unit_kernel(unit_call call)
{
    const int64_t first = (int64_t)(threadIdx.x % WARP) * V;
    for (int64_t i = (int64_t)blockIdx.x * PASS_WARPS + threadIdx.x / WARP; i < call.t * call.n;
         i += (int64_t)gridDim.x * PASS_WARPS) {
        const int64_t at = i / call.n * call.x_row + i % call.n * call.width;
        const bf16 *x = (const bf16 *)call.x + at, *dy = (const bf16 *)call.dy + i * call.width;
        float item[V], d[V], square = 0, along = 0;
        for (int64_t k = first; k < call.width; k += WARP * V) {
            load<V>(item, x + k);
            if (BACKWARD)
                load<V>(d, dy + k);
            for (int j = 0; j < V; j++) {
                square += item[j] * item[j];
                along += BACKWARD ? item[j] * d[j] : 0;
            }
        }
        const float inverse = 1 / sqrtf(warp_sum(square) + call.epsilon);
        along = BACKWARD ? warp_sum(along) * inverse * inverse : 0;
        for (int64_t k = first; k < call.width; k += WARP * V) {
            load<V>(item, x + k);
            if (BACKWARD)
                load<V>(d, dy + k);
            for (int j = 0; j < V; j++)
                item[j] = inverse * (BACKWARD ? d[j] - item[j] * along : item[j]);
            store<V>(BACKWARD ? (bf16 *)call.dx + at + k : (bf16 *)call.y + i * call.width + k, item);
        }
    }
}

template <bool BACKWARD> static cudaError_t unit(const struct cuda_launch *launch, const struct unit_call *call)
{
    const bool wide = call->width % LANES_WIDE == 0 && call->x_row % LANES_WIDE == 0 && aligned(call->x) && aligned(call->y) &&
                      aligned(call->dy) && aligned(call->dx);
    if (call->t * call->n <= 0)
        return cudaSuccess;
    return launch_kernel(wide ? unit_kernel<LANES_WIDE, BACKWARD> : unit_kernel<1, BACKWARD>,
                         dim3(blocks_for(launch, call->t * call->n * WARP, PASS_THREADS, BLOCKS_IN_TURN)), dim3(PASS_THREADS), 0,
                         launch->stream, *call);
}

int unit_forward_cuda(const struct cuda_launch *launch, const struct unit_call *call)
{
    return unit<false>(launch, call);
}

int unit_backward_cuda(const struct cuda_launch *launch, const struct unit_call *call)
{
    return unit<true>(launch, call);
}

/* --- gate and norm: a block per segment */

enum { MOST_GATED_THREADS = 256 };

/* V elements of a segment, and what both passes make of them: z the gate's value, u what is normed. */
template <int V> struct gated_items {
    float x[V], gate[V], gain[V], dy[V];
    __device__ void read(const gated_norm_call &call, const bf16 *from, const bf16 *gates, const bf16 *gains, const bf16 *dys)
    {
        load<V>(x, from);
        load<V>(gate, gates);
        for (int j = 0; j < V; j++)
            gain[j] = 1;
        if (call.gain)
            load<V>(gain, gains);
        if (dys)
            load<V>(dy, dys);
    }
    __device__ static float value(const gated_norm_call &call, float z)
    {
        return call.sigmoid ? sigmoid(z) : z * sigmoid(z);
    }
    __device__ static float slope(const gated_norm_call &call, float z)
    {
        return call.sigmoid ? sigmoid(z) * (1 - sigmoid(z)) : silu_slope(z);
    }
};

/* Segment number i: where its elements begin. */
struct gated_place {
    int64_t at, gate_at, gain_at;
};

__device__ static inline gated_place gated_at(const gated_norm_call &call, int64_t i)
{
    const int64_t column = i % call.n * call.width;
    return {i * call.width, i / call.n * call.gate_row + column, call.shared ? 0 : column};
}

template <int V> __global__ void __launch_bounds__(MOST_GATED_THREADS) gated_norm_forward_kernel(gated_norm_call call)
{
    __shared__ float scratch[WARP];
    const int64_t first = (int64_t)threadIdx.x * V, step = (int64_t)blockDim.x * V;
    gated_items<V> item;
    for (int64_t i = blockIdx.x; i < call.t * call.n; i += gridDim.x) {
        const gated_place place = gated_at(call, i);
        const bf16 *x = (const bf16 *)call.x + place.at, *gate = (const bf16 *)call.gate + place.gate_at;
        const bf16 *gain = (const bf16 *)call.gain + place.gain_at;
        float square = 0;
        for (int64_t k = first; call.gain && k < call.width; k += step) {
            item.read(call, x + k, gate + k, gain + k, NULL);
            for (int j = 0; j < V; j++) {
                const float u = call.gate_first ? item.x[j] * item.value(call, item.gate[j]) : item.x[j];
                square += u * u;
            }
        }
        const float rstd = call.gain ? 1 / sqrtf(block_sum(square, scratch) / (float)call.width + call.epsilon) : 1;
        for (int64_t k = first; k < call.width; k += step) {
            item.read(call, x + k, gate + k, gain + k, NULL);
            for (int j = 0; j < V; j++)
                item.x[j] *= item.value(call, item.gate[j]) * rstd * item.gain[j];
            store<V>((bf16 *)call.y + place.at + k, item.x);
        }
    }
}

/* What one pass over a segment makes of V of its elements: gradients, given the sum of d n over the width. */
template <int V>
__device__ static inline void gated_gradients(const gated_norm_call &call, gated_items<V> &item, float rstd, float along,
                                              float dgain[V])
{
    for (int j = 0; j < V; j++) {
        const float z = item.value(call, item.gate[j]), slope = item.slope(call, item.gate[j]), x = item.x[j];
        const float n = rstd * (call.gate_first ? x * z : x), w = call.gate_first ? item.dy[j] : item.dy[j] * z;
        const float dn = rstd * (w * item.gain[j] - n * along);
        item.x[j] = call.gate_first ? dn * z : dn;
        item.gate[j] = call.gate_first ? dn * x * slope : item.dy[j] * item.gain[j] * n * slope;
        dgain[j] = w * n;
    }
}

/* Segments blockIdx.x, + gridDim.x, ...: of all, or of those that have gain blockIdx.y. partial[blockIdx.x][gains]. A thread's
 * sums in shared memory are its own. */
template <int V>
__global__ void __launch_bounds__(MOST_GATED_THREADS) gated_norm_backward_kernel(gated_norm_call call, float *partial)
{
    __shared__ float scratch[WARP];
    float *sums = (float *)dynamic_shared();
    const int64_t first = (int64_t)threadIdx.x * V, step = (int64_t)blockDim.x * V;
    gated_items<V> item;
    float dgain[V];
    for (int64_t k = first; call.gain && k < call.width; k += step)
        for (int j = 0; j < V; j++)
            sums[k + j] = 0;
    for (int64_t i = (int64_t)blockIdx.x * gridDim.y + blockIdx.y; i < call.t * call.n; i += (int64_t)gridDim.x * gridDim.y) {
        const gated_place place = gated_at(call, i);
        const bf16 *x = (const bf16 *)call.x + place.at, *gate = (const bf16 *)call.gate + place.gate_at;
        const bf16 *gain = (const bf16 *)call.gain + place.gain_at, *dy = (const bf16 *)call.dy + place.at;
        float square = 0, along = 0;
        for (int64_t k = first; call.gain && k < call.width; k += step) {
            item.read(call, x + k, gate + k, gain + k, dy + k);
            for (int j = 0; j < V; j++) { /* of d and u: the gate stands before the norm or behind it */
                const float z = item.value(call, item.gate[j]), u = call.gate_first ? item.x[j] * z : item.x[j];
                square += u * u;
                along += item.dy[j] * item.gain[j] * item.x[j] * z;
            }
        }
        float rstd = 1;
        if (call.gain) {
            rstd = 1 / sqrtf(block_sum(square, scratch) / (float)call.width + call.epsilon);
            along = block_sum(along, scratch) * rstd / (float)call.width;
        }
        for (int64_t k = first; k < call.width; k += step) {
            item.read(call, x + k, gate + k, gain + k, dy + k);
            gated_gradients<V>(call, item, rstd, along, dgain);
            for (int j = 0; j < V && call.gain; j++)
                sums[k + j] += dgain[j];
            store<V>((bf16 *)call.dx + place.at + k, item.x);
            store<V>((bf16 *)call.dgate + place.gate_at + k, item.gate);
        }
    }
    for (int64_t k = first; call.gain && k < call.width; k += step)
        for (int j = 0; j < V; j++)
            partial[((int64_t)blockIdx.x * gridDim.y + blockIdx.y) * call.width + k + j] = sums[k + j];
}

static bool segments_are_wide(const struct gated_norm_call *call)
{
    return call->width % LANES_WIDE == 0 && call->gate_row % LANES_WIDE == 0 && aligned(call->x) && aligned(call->gate) &&
           aligned(call->gain) && aligned(call->y) && aligned(call->dy) && aligned(call->dx) && aligned(call->dgate);
}

static int threads_of(const struct gated_norm_call *call)
{
    const int64_t each = WARP * (segments_are_wide(call) ? LANES_WIDE : 1), threads = (call->width + each - 1) / each * WARP;
    return (int)(threads < MOST_GATED_THREADS ? threads : (int64_t)MOST_GATED_THREADS);
}

int gated_norm_forward_cuda(const struct cuda_launch *launch, const struct gated_norm_call *call)
{
    if (call->t * call->n <= 0)
        return cudaSuccess;
    return launch_kernel(segments_are_wide(call) ? gated_norm_forward_kernel<LANES_WIDE> : gated_norm_forward_kernel<1>,
                         dim3(blocks_for(launch, call->t * call->n, 1, BLOCKS_IN_TURN)), dim3(threads_of(call)), 0,
                         launch->stream, *call);
}

int gated_norm_backward_cuda(const struct cuda_launch *launch, const struct gated_norm_call *call)
{
    const int64_t apart = call->shared ? 1 : call->n, gains = apart * call->width, n = call->t * call->n / apart;
    if (n <= 0)
        return cudaSuccess;
    const int64_t parts = parts_of(launch, apart, n, gains);
    const size_t shared_bytes = call->gain ? (size_t)call->width * sizeof(float) : 0;
    void (*kernel)(gated_norm_call, float *) =
        segments_are_wide(call) ? gated_norm_backward_kernel<LANES_WIDE> : gated_norm_backward_kernel<1>;
    if (parts < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    int error = allow_shared(kernel, shared_bytes);
    if (error == cudaSuccess)
        error = launch_kernel(kernel, dim3((unsigned)parts, (unsigned)apart), dim3(threads_of(call)), shared_bytes,
                              launch->stream, *call, partial);
    if (error == cudaSuccess && call->gain)
        error = partial_sum_cuda(launch, partial, parts, gains, gains, call->dgain);
    return error;
}
