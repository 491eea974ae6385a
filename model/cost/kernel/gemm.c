#include "model/cost/kernel/gemm.h"

#include <math.h>

#include "model/cost/work/precision_bytes.h"

enum { MANY_WAVES = 16 }; /* there splitting k has nothing left to gain */
enum { K_STEP = 64 };     /* elements of k a main loop consumes at a time; shorter remainders cost a whole step */

enum { WHOLE_TILE = 256 * 128 };

struct tile {
    int m, n;
    double halvings; /* log2(WHOLE_TILE / (m n)) */
};
struct tile_list {
    const struct tile *tiles; /* those of one size stand together */
    size_t n;
};

static const struct tile tiles_before_blackwell[] = {{256, 128, 0}, {128, 256, 0}, {256, 64, 1}, {128, 128, 1},
                                                     {64, 256, 1},  {128, 64, 2},  {64, 128, 2}, {64, 64, 3}};

/* An instruction of the fifth generation of tensor cores (tcgen05.mma) has 128 rows an SM and any multiple of 16 columns up to
 * 256 (PTX ISA, section of tcgen05; not checked against its text), and its result waits in a memory of its own instead of the
 * registers of the warps, so that a library can have every width: here in steps of 32. */
#define LOG2_8_7 0.19264507794239583
#define LOG2_4_3 0.41503749927884376
#define LOG2_8_5 0.6780719051126377
static const struct tile tiles_of_blackwell[] = {
    {128, 256, 0},           {256, 128, 0},        {128, 224, LOG2_8_7}, {224, 128, LOG2_8_7}, {128, 192, LOG2_4_3},
    {192, 128, LOG2_4_3},    {128, 160, LOG2_8_5}, {160, 128, LOG2_8_5}, {128, 128, 1},        {128, 96, 1 + LOG2_4_3},
    {96, 128, 1 + LOG2_4_3}, {128, 64, 2},         {64, 128, 2},         {128, 32, 3},         {32, 128, 3}};

static struct tile_list tiles_of(const struct gpu *gpu, bool on_tensor_cores)
{
    if (gpu->architecture == ARCHITECTURE_BLACKWELL && on_tensor_cores)
        return (struct tile_list){tiles_of_blackwell, sizeof tiles_of_blackwell / sizeof tiles_of_blackwell[0]};
    return (struct tile_list){tiles_before_blackwell, sizeof tiles_before_blackwell / sizeof tiles_before_blackwell[0]};
}

#define ROUNDED (1 - 1e-9) /* a bound, less what rounding may add to it */

enum { N_SPLITS = 8 };
static const int splits[N_SPLITS] = {1, 2, 3, 4, 6, 8, 12, 16};

/* ceil() of what is not negative, without the call that it is on processors of any age. */
static inline double whole_above(double x)
{
    if (!(x < 0x1p52)) /* whole, or infinite */
        return x;
    double whole = (double)(int64_t)x;
    return whole + (whole < x);
}

static double ceil_div(double a, double b)
{
    return whole_above(a / b);
}

/* pow(), which most exponents here do not need. */
static double power(double base, double exponent)
{
    if (exponent <= 0)
        return 1;
    if (exponent >= 1 && exponent <= 1)
        return base;
    return exponent >= 2 && exponent <= 2 ? base * base : pow(base, exponent);
}

/* r1 to the power of what a tile is below a whole one in halvings, up to one; r2 to the power of the rest. */
static double tile_fraction(const struct gemm_parameters *p, double halvings)
{
    double first = halvings < 1 ? halvings : 1, others = halvings - first;
    return power(p->small_tile_fraction, first) * power(p->smallest_tile_fraction, others);
}

static double waves_of(double x, double quantisation)
{
    double waves = quantisation * whole_above(x) + (1 - quantisation) * x;
    return waves > 1 ? waves : 1;
}

/* Tensor cores are fed 16 bytes at a time. Frameworks fill a linear layer's dimensions up to that; one head's slice of a matrix
 * is what it is, and where it is no multiple of eight elements of two bytes the library falls back on the ordinary cores. (Of
 * BLOOM's search, two runs with heads of 108 took 40 % longer than their neighbours: scores at 9 to 11 TFLOP/s.) */
static bool is_on_tensor_cores(const struct gpu *gpu, const struct work_gemm *gemm, enum precision precision)
{
    enum { ELEMENTS = 8 };
    bool aligned = gemm->n % ELEMENTS == 0 && gemm->k % ELEMENTS == 0;
    return precision != PRECISION_FP32 && (aligned || !gemm->sliced || gpu->peak_flops[PRECISION_FP32] <= 0);
}

/* What k's division among SMs makes of it, whatever the tile. */
struct k_split {
    double depth;     /* of k for each, in whole steps */
    double reduced_s; /* fp32 partial sums written and read again, half of it in cache */
};

static void split_k(const struct gpu *gpu, const struct work_gemm *g, const struct gemm_parameters *p, struct k_split k[N_SPLITS])
{
    double sums = g->count * (double)g->m * (double)g->n * 4, rate = gpu->hbm_rate * p->memory_fraction;
    int n = g->serial ? 1 : N_SPLITS;
    for (int s = 0; s < n; s++) {
        k[s].depth = ceil_div((double)g->k, (double)splits[s] * K_STEP) * K_STEP;
        k[s].reduced_s = splits[s] > 1 ? p->split_s + sums * splits[s] / rate : 0;
    }
}

static double arithmetic_seconds(const struct gpu *gpu, const struct work_gemm *g, double peak, bool on_tensor_cores)
{
    const struct gemm_parameters *p = &gpu->gemm[precision_there(gpu, g->precision)];
    double best = INFINITY, ideal = g->count * 2.0 * (double)g->m * (double)g->n * (double)g->k / (peak * p->peak_fraction);
    if (gpu->sms == 1) /* measured as a whole: no tiles to fill */
        return ideal;
    struct k_split k[N_SPLITS];
    struct tile_list list = tiles_of(gpu, on_tensor_cores);
    double sm_rate = 0, halvings = -1;
    split_k(gpu, g, p, k);
    for (size_t t = 0; t < list.n; t++) {
        const struct tile *tile = &list.tiles[t];
        double n_tiles = g->count * ceil_div((double)g->m, tile->m) * ceil_div((double)g->n, tile->n);
        if (tile->halvings > halvings)
            sm_rate = peak / gpu->sms * p->peak_fraction * tile_fraction(p, halvings = tile->halvings);
        double overhead = p->tile_overhead_s * tile->m * tile->n / WHOLE_TILE;
        double least = n_tiles / gpu->sms * (2.0 * tile->m * tile->n * (double)g->k / sm_rate + overhead); /* waves all full */
        for (size_t s = 0; s < N_SPLITS && (least + k[s].reduced_s) * ROUNDED < best; s++) {
            double waves = waves_of(n_tiles * splits[s] / gpu->sms, p->quantisation);
            double seconds = waves * (2.0 * tile->m * tile->n * k[s].depth / sm_rate + overhead) + k[s].reduced_s;
            if (seconds < best)
                best = seconds;
            if (g->serial || n_tiles * splits[s] > MANY_WAVES * gpu->sms)
                break;
        }
    }
    return best * (1 + p->droop * ideal / (ideal + p->droop_s));
}

/* The p-norm of two times that hide each other in part, p = 1 / (1 - overlap): their sum at 0, the longer one at 1. */
static double roofline(double a, double b, double overlap)
{
    double longer = fmax(a, b), ratio = fmin(a, b) / longer;
    return longer * pow(1 + pow(ratio, 1 / (1 - overlap)), 1 - overlap);
}

/* Streams over which a framework spreads GEMMs that it launches apart (Transformer Engine's grouped linear layer): start-up is
 * hidden except one of n, and so is what their last waves leave idle. */
#define GROUP_STREAMS 4

static struct cost launched_apart(const struct gpu *gpu, struct work_gemm gemm)
{
    struct work_gemm together = gemm;
    together.apart = false;
    together.count = gemm.count < GROUP_STREAMS ? gemm.count : GROUP_STREAMS;
    together.largest = 0;
    struct cost cost = gemm_cost(gpu, &together); /* those that run side by side share the SMs */
    double rounds = (double)gemm.count / together.count;
    cost = cost_scale(cost, rounds);
    if (gemm.largest <= 0)
        return cost;
    struct work_gemm alone = together; /* the largest has a stream to itself, and all wait for it */
    alone.count = 1;
    *(gemm.along_k ? &alone.k : &alone.m) = gemm.largest;
    struct cost longest = gemm_cost(gpu, &alone);
    return cost_seconds(longest) > cost_seconds(cost) ? longest : cost;
}

struct cost gemm_cost(const struct gpu *gpu, const struct work_gemm *gemm)
{
    if (gemm->apart && gemm->count > 1)
        return launched_apart(gpu, *gemm);
    enum precision precision = precision_there(gpu, gemm->precision);
    const struct gemm_parameters *p = &gpu->gemm[precision];
    double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k;
    bool on_tensor_cores = is_on_tensor_cores(gpu, gemm, precision);
    double peak = gpu->peak_flops[on_tensor_cores ? precision : PRECISION_FP32];
    double arithmetic =
        arithmetic_seconds(gpu, gemm, gemm->scan && gpu->scan_flops > 0 ? gpu->scan_flops : peak, on_tensor_cores);
    double bytes = gemm->count * ((m * k + k * n) * precision_bytes(precision) + m * n * gemm->output_bytes);
    double memory = bytes / (gpu->hbm_rate * p->memory_fraction);
    double both = roofline(arithmetic, memory, p->overlap);
    return (struct cost){.launch_s = p->fixed_s + gpu->launch_s, .compute_s = arithmetic, .memory_s = both - arithmetic};
}
