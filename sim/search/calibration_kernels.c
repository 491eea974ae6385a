/* calibration_kernels.c - each kind of kernel: its group, its parameters, its time. */
#include "sim/search/calibration_internal.h"

#include <stdio.h>

#include "model/cost/kernel/attention.h"
#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/gemm.h"
#include "model/cost/kernel/memory_bound.h"
#include "model/cost/work/precision_bytes.h"

/* --- GEMMs ------------------------------------------------------------------------------------------------------------ */

enum { CAST_ALIGNMENT = 16 }; /* rows of A: others are padded before the cast */

static const char *gemm_group(const struct kernel_measurement *k, char label[CALIBRATION_TEXT])
{
    snprintf(label, CALIBRATION_TEXT, "%sgemm %s", k->gemm.apart ? "grouped " : "", precision_name(k->gemm.precision));
    return "gemm";
}

static bool gemm_usable(const struct calibration *c, const struct kernel_measurement *k)
{
    return c->cluster.gpu.peak_flops[k->gemm.precision] > 0;
}

static struct calibration_section gemm_about(const struct kernel_measurement *k)
{
    struct calibration_section about = {.except = NULL};
    snprintf(about.key, sizeof about.key, "gemm.%s", precision_name(k->gemm.precision));
    return about;
}

static double gemm_seconds(const struct calibration *c, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                           const struct kernel_measurement *k)
{
    (void)c;
    const struct work_gemm *gemm = &k->gemm;
    const double *cast = casts[gemm->precision];
    double elements = gemm->count * (double)gemm->m * (double)gemm->k;
    struct work_memory streamed = {.bytes = cast[CAST_BYTES] * elements, .count = 0};
    double fixed = cast[CAST_FIXED] + (gemm->m % CAST_ALIGNMENT ? cast[CAST_PADDING] : 0);
    return cost_seconds(gemm_cost(&cluster->gpu, gemm)) + fixed + cost_seconds(memory_bound_cost(&cluster->gpu, &streamed));
}

static void gemm_text(const struct kernel_measurement *k, char text[CALIBRATION_TEXT])
{
    snprintf(text, CALIBRATION_TEXT, "m=%lld n=%lld k=%lld count=%d", (long long)k->gemm.m, (long long)k->gemm.n,
             (long long)k->gemm.k, k->gemm.count);
}

/* --- attention --------------------------------------------------------------------------------------------------------- */

static const char *forward_group(const struct kernel_measurement *k, char label[CALIBRATION_TEXT])
{
    snprintf(label, CALIBRATION_TEXT, "attention forward %s", precision_name(k->attention.precision));
    return "attention";
}

static const char *backward_group(const struct kernel_measurement *k, char label[CALIBRATION_TEXT])
{
    snprintf(label, CALIBRATION_TEXT, "attention backward %s", precision_name(k->attention.precision));
    return "attention";
}

static bool attention_usable(const struct calibration *c, const struct kernel_measurement *k)
{
    const struct gpu *gpu = &c->cluster.gpu;
    return gpu->peak_flops[k->attention.precision] > 0 &&
           (k->attention.precision != PRECISION_FP8 || gpu->attention_fp8.forward_fraction > 0);
}

static const char *attention_section(const struct kernel_measurement *k)
{
    return k->attention.precision == PRECISION_FP8 ? "attention.fp8" : "attention";
}

static struct calibration_section forward_about(const struct kernel_measurement *k)
{
    struct calibration_section about = {.except = "backward_fraction"};
    snprintf(about.key, sizeof about.key, "%s", attention_section(k));
    return about;
}

static struct calibration_section backward_about(const struct kernel_measurement *k)
{
    struct calibration_section about = {.except = NULL};
    snprintf(about.key, sizeof about.key, "%s.backward_fraction", attention_section(k));
    return about;
}

/* Attention as inference libraries time it: K and V are copied into a cache first, in the operands' precision, and in fp8 Q is
 * cast too. */
static double cache_seconds(const struct gpu *gpu, const struct work_attention *a)
{
    bool narrow = a->precision == PRECISION_FP8;
    double keys = (double)a->batch * a->kv_heads * (double)a->key_tokens * (a->head_dim + a->value_dim);
    double queries = (double)a->batch * a->heads * (double)a->query_tokens * a->head_dim;
    double read = precision_bytes(PRECISION_BF16), written = precision_bytes(a->precision);
    struct work_memory launches = {.count = narrow ? 2 : 1}; /* apart from the bytes, of which nothing was just written */
    struct work_memory copies = {.bytes = (keys + (narrow ? queries : 0)) * (read + written)};
    return cost_seconds(memory_bound_cost(gpu, &launches)) + cost_seconds(memory_bound_cost(gpu, &copies));
}

static double forward_seconds(const struct calibration *c, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                              const struct kernel_measurement *k)
{
    (void)casts;
    return cost_seconds(attention_cost(&cluster->gpu, &k->attention, false)) +
           (c->cache ? cache_seconds(&cluster->gpu, &k->attention) : 0);
}

static double backward_seconds(const struct calibration *c, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                               const struct kernel_measurement *k)
{
    (void)c, (void)casts;
    return cost_seconds(attention_cost(&cluster->gpu, &k->attention, true));
}

static void attention_text(const struct kernel_measurement *k, char text[CALIBRATION_TEXT])
{
    const struct work_attention *a = &k->attention;
    snprintf(text, CALIBRATION_TEXT, "batch=%lld seq_len=%lld heads=%d kv_heads=%d head_dim=%d pairs=%.0f", (long long)a->batch,
             (long long)a->query_tokens, a->heads, a->kv_heads, a->head_dim, a->pairs);
}

/* --- collectives ------------------------------------------------------------------------------------------------------- */

static const char *collective_group(const struct kernel_measurement *k, char label[CALIBRATION_TEXT])
{
    bool across = k->collective.nodes > 1, large = k->collective.bytes >= 0x1p20;
    snprintf(label, CALIBRATION_TEXT, "collectives %s%s", across ? "between nodes " : "", large ? "from 1 MiB" : "below 1 MiB");
    return across ? "" : "nccl";
}

static bool collective_usable(const struct calibration *c, const struct kernel_measurement *k)
{
    return k->collective.nodes == 1 || c->kind == CATALOG_CLUSTERS;
}

static struct calibration_section collective_about(const struct kernel_measurement *k)
{
    return k->collective.nodes > 1 ? (struct calibration_section){.key = "net_fraction", .of_cluster = true}
                                   : (struct calibration_section){.key = "nccl"};
}

static double collective_seconds(const struct calibration *c, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                                 const struct kernel_measurement *k)
{
    (void)c, (void)casts;
    struct group_span span = collective_span_of_nodes(cluster, k->collective.ranks, k->collective.nodes);
    return cost_seconds(collective_time(cluster, k->collective.collective, span, k->collective.bytes));
}

static void collective_text(const struct kernel_measurement *k, char text[CALIBRATION_TEXT])
{
    snprintf(text, CALIBRATION_TEXT, "%s ranks=%d nodes=%d bytes=%.0f", collective_name(k->collective.collective),
             k->collective.ranks, k->collective.nodes, k->collective.bytes);
}

/* --- all ---------------------------------------------------------------------------------------------------------------- */

const struct calibration_kernel calibration_kernels[N_MEASURED_OPS] = {
    [MEASURED_GEMM] = {gemm_group, gemm_usable, gemm_about, gemm_seconds, gemm_text},
    [MEASURED_ATTENTION] = {forward_group, attention_usable, forward_about, forward_seconds, attention_text},
    [MEASURED_ATTENTION_BACKWARD] = {backward_group, attention_usable, backward_about, backward_seconds, attention_text},
    [MEASURED_COLLECTIVE] = {collective_group, collective_usable, collective_about, collective_seconds, collective_text},
};

char *calibration_kernel_text(const struct kernel_measurement *kernel, char text[CALIBRATION_TEXT])
{
    calibration_kernels[kernel->op].text(kernel, text);
    return text;
}
