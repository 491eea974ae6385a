#include "model/cost/gemm.h"

#include <math.h>

#include "model/cost/precision_bytes.h"

enum { MANY_WAVES = 16 }; /* there splitting k has nothing left to gain */
enum { K_STEP = 64 };     /* elements of k a main loop consumes at a time; shorter remainders cost a whole step */

enum { WHOLE_TILE = 256 * 128 };

struct tile {
    int m, n;
};
struct tile_list {
    const struct tile *tiles;
    size_t n;
};

static const struct tile tiles_before_blackwell[] = {{256, 128}, {128, 256}, {256, 64}, {128, 128},
                                                     {64, 256},  {128, 64},  {64, 128}, {64, 64}};

/* An instruction of the fifth generation of tensor cores (tcgen05.mma) has 128 rows an SM and any multiple of 16 columns up to
 * 256 (PTX ISA, section of tcgen05; not checked against its text), and its result waits in a memory of its own instead of the
 * registers of the warps, so that a library can have every width: here in steps of 32. */
static const struct tile tiles_of_blackwell[] = {{128, 256}, {256, 128}, {128, 224}, {224, 128}, {128, 192},
                                                 {192, 128}, {128, 160}, {160, 128}, {128, 128}, {128, 96},
                                                 {96, 128},  {128, 64},  {64, 128},  {128, 32},  {32, 128}};

static struct tile_list tiles_of(const struct gpu *gpu, bool on_tensor_cores)
{
    if (gpu->architecture == ARCHITECTURE_BLACKWELL && on_tensor_cores)
        return (struct tile_list){tiles_of_blackwell, sizeof tiles_of_blackwell / sizeof tiles_of_blackwell[0]};
    return (struct tile_list){tiles_before_blackwell, sizeof tiles_before_blackwell / sizeof tiles_before_blackwell[0]};
}

static const int splits[] = {1, 2, 3, 4, 6, 8, 12, 16};

static double ceil_div(double a, double b)
{
    return ceil(a / b);
}

/* r1 to the power of what a tile is below a whole one in halvings, up to one; r2 to the power of the rest. */
static double tile_fraction(const struct gemm_parameters *p, const struct tile *tile)
{
    double halvings = log2((double)WHOLE_TILE / (tile->m * tile->n));
    double first = halvings < 1 ? halvings : 1, others = halvings - first;
    return pow(p->small_tile_fraction, first) * pow(p->smallest_tile_fraction, others);
}

static double waves_of(double x, double quantisation)
{
    double waves = quantisation * ceil(x) + (1 - quantisation) * x;
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

static double arithmetic_seconds(const struct gpu *gpu, const struct work_gemm *g, double peak, bool on_tensor_cores)
{
    const struct gemm_parameters *p = &gpu->gemm[precision_there(gpu, g->precision)];
    double best = INFINITY, ideal = g->count * 2.0 * (double)g->m * (double)g->n * (double)g->k / (peak * p->peak_fraction);
    if (gpu->sms == 1) /* measured as a whole: no tiles to fill */
        return ideal;
    struct tile_list list = tiles_of(gpu, on_tensor_cores);
    for (size_t t = 0; t < list.n; t++) {
        const struct tile *tile = &list.tiles[t];
        double n_tiles = g->count * ceil_div((double)g->m, tile->m) * ceil_div((double)g->n, tile->n);
        double sm_rate = peak / gpu->sms * p->peak_fraction * tile_fraction(p, tile);
        double overhead = p->tile_overhead_s * tile->m * tile->n / WHOLE_TILE;
        for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++) {
            int split = splits[s];
            double depth = ceil_div((double)g->k, (double)split * K_STEP) * K_STEP;
            double waves = waves_of(n_tiles * split / gpu->sms, p->quantisation);
            double seconds = waves * (2.0 * tile->m * tile->n * depth / sm_rate + overhead);
            if (split > 1) /* fp32 partial sums written and read again, half of it in cache */
                seconds += p->split_s + g->count * (double)g->m * (double)g->n * 4 * split / (gpu->hbm_rate * p->memory_fraction);
            if (seconds < best)
                best = seconds;
            if (g->serial || n_tiles * split > MANY_WAVES * gpu->sms)
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
 * hidden but for one in so many, and so is what their last waves leave idle. */
#define GROUP_STREAMS 4

static struct cost launched_apart(const struct gpu *gpu, struct work_gemm gemm)
{
    struct work_gemm together = gemm;
    together.apart = false;
    together.count = gemm.count < GROUP_STREAMS ? gemm.count : GROUP_STREAMS;
    struct cost cost = gemm_cost(gpu, &together); /* as many as run side by side share the SMs */
    double rounds = (double)gemm.count / together.count;
    return cost_scale(cost, rounds);
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
