#include "traces/reconcile.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "model/base/memory.h"
#include "model/cost/closed_form.h"
#include "model/cost/footprint.h"

static const double AGREEMENT = 0.005;   /* of the FLOPs of a token; MFU is printed with three or four digits */
static const double CONTRADICTION = 1.5; /* beyond any convention: recomputation counted, too, is at most 4/3 */
enum { FEWEST_ROWS = 3, VOCABULARY_STEP = 256 };
static const double VOCABULARY_MIN = 1e3, VOCABULARY_MAX = 1e6;

static bool assumes(const struct measurement *row, const char *column)
{
    size_t length = strlen(column);
    for (const char *at = row->assumed; (at = strstr(at, column)) != NULL; at += length) {
        bool begins = at == row->assumed || at[-1] == ';', ends = at[length] == '\0' || at[length] == ';';
        if (begins && ends)
            return true;
    }
    return false;
}

static bool same_shape(const struct transformer *a, const struct transformer *b)
{
    return a->layers == b->layers && a->hidden == b->hidden && a->ffn_hidden == b->ffn_hidden && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->vocab == b->vocab && a->moe.experts == b->moe.experts;
}

/* FLOPs of a token of the layers' matrices, of all attention, and of one vocabulary table of one row. */
struct token_flops {
    double layers, attention, word;
};

static struct token_flops token_flops_of(const struct measurement *row)
{
    const struct transformer *m = &row->model;
    return (struct token_flops){
        .layers = 6 * m->layers * transformer_layer_parameters(m, 0, false),
        .attention = 12.0 * m->layers * m->heads * m->head_dim * (double)row->job.seq_len,
        .word = 6 * (double)m->hidden,
    };
}

/* FLOPs that the source counts for a token; 0: it does not say. */
static double counted(const struct measurement *row)
{
    double peak = row->cluster.gpu.peak_flops[row->job.precision];
    double tokens = (double)row->job.global_batch * (double)row->job.seq_len;
    return row->oom || row->derived || row->step_s <= 0 ? 0 : row->mfu * row->step_s * row->gpus * peak / tokens;
}

/* Does the assumed vocabulary give what the source counts, in any of the usual ways? */
static bool assumption_holds(const struct measurement *row, double flops)
{
    struct token_flops t = token_flops_of(row);
    for (int tables = 0; tables <= 2; tables++)
        for (int halves = 1; halves <= 2; halves++) {
            double expected = t.layers + t.attention * halves / 2 + tables * t.word * (double)row->model.vocab;
            if (fabs(expected / flops - 1) < AGREEMENT)
                return true;
        }
    return false;
}

/* What rows of one shape say. */
struct testimony {
    double *vocabularies;
    size_t n, n_holding;
    double spread; /* of one row's FLOPs: what a vocabulary word is of them, for the agreement of rows */
};

static struct testimony hear(const struct measurement_table *table, const struct measurement *shape)
{
    struct testimony heard = {.vocabularies = memory_new(table->n_items, sizeof(double))};
    for (size_t i = 0; i < table->n_items; i++) {
        const struct measurement *row = &table->items[i];
        double flops = counted(row);
        if (flops <= 0 || !assumes(row, "vocab") || !same_shape(&row->model, &shape->model))
            continue;
        struct token_flops t = token_flops_of(row);
        heard.vocabularies[heard.n++] = (flops - t.layers - t.attention) / (2 * t.word);
        heard.n_holding += assumption_holds(row, flops);
        heard.spread = 2 * t.word / flops;
    }
    gsl_sort(heard.vocabularies, 1, heard.n);
    return heard;
}

/* The vocabulary that they agree upon; 0: none. */
static int64_t agreed(const struct testimony *heard)
{
    if (heard->n < FEWEST_ROWS || 2 * heard->n_holding >= heard->n)
        return 0;
    double median = gsl_stats_median_from_sorted_data(heard->vocabularies, 1, heard->n);
    double low = gsl_stats_quantile_from_sorted_data(heard->vocabularies, 1, heard->n, 0.25);
    double high = gsl_stats_quantile_from_sorted_data(heard->vocabularies, 1, heard->n, 0.75);
    if (median < VOCABULARY_MIN || median > VOCABULARY_MAX || (high - low) * heard->spread > 2 * AGREEMENT)
        return 0;
    return (int64_t)(round(median / VOCABULARY_STEP) * VOCABULARY_STEP);
}

static void take(struct measurement_table *table, const struct measurement *shape, int64_t vocabulary, struct diags *diags)
{
    const struct transformer like = shape->model;
    struct place first = shape->at;
    size_t n = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        struct measurement *row = &table->items[i];
        if (!assumes(row, "vocab") || !same_shape(&row->model, &like))
            continue;
        row->model.vocab = vocabulary;
        n++;
    }
    diag_warning(diags, first,
                 "%zu rows of %d layers of %lld assume a vocabulary of %lld; their MFU counts %lld words, which is taken", n,
                 like.layers, (long long)like.hidden, (long long)like.vocab, (long long)vocabulary);
}

/* --- before their time */

/* Year and month of the arXiv number in a text, as 2201; 0: none. */
static int arxiv_month(const char *text)
{
    const char *at = strstr(text, "arXiv:");
    if (!at || strspn(at + 6, "0123456789") != 4)
        return 0;
    return (int)strtol(at + 6, NULL, 10);
}

/* When the results of the round of MLPerf Training that a text names were published (mlcommons.org), likewise. */
static int mlperf_month(const char *text)
{
    static const struct {
        const char *round;
        int month;
    } rounds[] = {{"0.5", 1812}, {"0.6", 1907}, {"0.7", 2007}, {"1.0", 2106}, {"1.1", 2112}, {"2.0", 2206}, {"2.1", 2211},
                  {"3.0", 2306}, {"3.1", 2311}, {"4.0", 2406}, {"4.1", 2411}, {"5.0", 2506}, {"5.1", 2511}};
    static const char name[] = "MLPerf Training v";
    const char *at = strstr(text, name);
    if (!at)
        return 0;
    at += strlen(name);
    for (size_t k = 0; k < sizeof rounds / sizeof rounds[0]; k++)
        if (strncmp(at, rounds[k].round, strlen(rounds[k].round)) == 0 && !isdigit((unsigned char)at[strlen(rounds[k].round)]))
            return rounds[k].month;
    return 0;
}

/* When a source appeared, where it says so. */
static int source_month(const char *text)
{
    int month = arxiv_month(text);
    return month ? month : mlperf_month(text);
}

/* What came later than a row of that month is taken back; whether there was any. */
static bool take_back(struct measurement *row, int month)
{
    static const struct {
        feature_set feature, before; /* what a stack had before it */
        int month;
    } published[] = {
        {FEATURE_BIT(FLASH_ATTENTION3), FEATURE_BIT(FLASH_ATTENTION2), 2407},
        {FEATURE_BIT(FLASH_ATTENTION2), FEATURE_BIT(FLASH_ATTENTION), 2307},
        {FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP), 0, 2301},
        {FEATURE_BIT(PP_OVERLAP), 0, 2211},
        {FEATURE_BIT(FLASH_ATTENTION), FEATURE_BIT(FUSED_SOFTMAX), 2205},
    };
    enum { SEQUENCE_PARALLELISM = 2205 };
    feature_set had = row->layout.features;
    bool sharded = row->layout.sequence_parallel && month < SEQUENCE_PARALLELISM;

    for (size_t k = 0; k < sizeof published / sizeof published[0]; k++)
        if (month < published[k].month && row->layout.features & published[k].feature)
            row->layout.features = (row->layout.features & ~published[k].feature) | published[k].before;
    if (row->loss_assumed && !(row->layout.features & (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP))))
        row->layout.features &= ~FEATURE_BIT(FUSED_LOSS);
    row->job.features = (row->job.features & ~(had & ~row->layout.features)) | row->layout.features;
    if (sharded)
        row->layout.sequence_parallel = false;
    return sharded || had != row->layout.features;
}

static void take_back_later(struct measurement_table *table, struct diags *diags)
{
    size_t n = 0, first = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        int month = source_month(table->items[i].source);
        if (month && take_back(&table->items[i], month) && n++ == 0)
            first = i;
    }
    if (n)
        diag_warning(diags, table->items[first].at,
                     "%zu rows name what was published after their source (attention kernels, sequence parallelism, overlap); "
                     "what was there before is taken",
                     n);
}

/* --- micro-batches */

/* The least multiple of the assumed micro-batch, by doubling, that the fused softmax takes; itself when none does. */
static int fusing_micro_batch(const struct measurement *row)
{
    struct layout l = row->layout;
    int64_t replica = row->job.global_batch / l.dp;
    bool fuses = l.features & (FEATURE_BIT(FUSED_SOFTMAX) | FEATURE_BIT(FUSED_OPS)) && !(l.features & FEATURES_FLASH);
    while (fuses && replica % l.micro_batch == 0) {
        if (layout_fuses_softmax(&l, row->model.heads))
            return l.micro_batch;
        l.micro_batch *= 2;
    }
    return row->layout.micro_batch;
}

/* What the planner would take in the place of an assumed one; that itself when none fits. */
static int tuned_micro_batch(const struct measurement *row)
{
    enum { LARGEST = 8 };
    struct layout l = row->layout;
    struct setting setting = measurement_setting(row);
    struct closed_form *form = closed_form_create(&setting);
    double best = HUGE_VAL, capacity = footprint_capacity(&row->cluster);
    int taken = l.micro_batch;
    for (l.micro_batch = 1; l.micro_batch <= LARGEST; l.micro_batch *= 2) {
        struct estimate estimate;
        if (layout_check(&l, &setting, NULL, 0) != LAYOUT_LEGAL || closed_form_memory(form, &l) > capacity)
            continue;
        closed_form_estimate(form, &l, &estimate);
        if (estimate.step_s < best) {
            best = estimate.step_s;
            taken = l.micro_batch;
        }
    }
    closed_form_destroy(form);
    return taken;
}

static int likely_micro_batch(const struct measurement *row)
{
    if (row->oom || row->layout.dp < 1 || !assumes(row, "micro_batch"))
        return row->layout.micro_batch;
    return row->layout.pp > 1 ? tuned_micro_batch(row) : fusing_micro_batch(row);
}

static void take_likely_micro_batches(struct measurement_table *table, struct diags *diags)
{
    size_t n = 0, first = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        struct measurement *row = &table->items[i];
        int micro_batch = likely_micro_batch(row);
        if (micro_batch != row->layout.micro_batch && n++ == 0)
            first = i;
        row->layout.micro_batch = micro_batch;
    }
    if (n)
        diag_warning(
            diags, table->items[first].at,
            "%zu rows assume a micro-batch that a fused softmax cannot take or that is not the best of the pipeline; what "
            "its authors are likely to have run is taken",
            n);
}

/* --- recomputation */

static bool fits(const struct measurement *row, enum recompute_what recompute)
{
    struct layout l = row->layout;
    struct setting setting = measurement_setting(row);
    struct footprint peak;
    l.recompute = (struct recompute){.what = recompute};
    if (layout_check(&l, &setting, NULL, 0) != LAYOUT_LEGAL)
        return false;
    footprint_peak(&l, &setting, &peak, NULL);
    return peak.total <= footprint_capacity(&row->cluster);
}

/* A row that ran cannot have kept everything where that does not fit: the least with which it fits; RECOMPUTE_NONE where it is
 * not asked, or nothing makes it fit. */
static enum recompute_what fitting_recompute(const struct measurement *row)
{
    enum recompute_what light = layout_light_modules(&row->model);
    bool ran = !row->oom && row->layout.dp >= 1;
    if (!ran || row->layout.recompute.what != RECOMPUTE_NONE || !assumes(row, "recompute") || fits(row, RECOMPUTE_NONE))
        return RECOMPUTE_NONE;
    if (fits(row, light))
        return light;
    return row->cluster.gpu.host_rate == 0 && fits(row, RECOMPUTE_FULL) ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

static void take_fitting_recomputation(struct measurement_table *table, struct diags *diags)
{
    size_t n = 0, n_full = 0, first = 0;
    for (size_t i = 0; i < table->n_items; i++) {
        struct measurement *row = &table->items[i];
        enum recompute_what recompute = fitting_recompute(row);
        if (recompute == RECOMPUTE_NONE)
            continue;
        if (n++ == 0)
            first = i;
        n_full += recompute == RECOMPUTE_FULL;
        row->layout.recompute = (struct recompute){.what = recompute};
    }
    if (n)
        diag_warning(
            diags, table->items[first].at,
            "%zu row%s assume%s that nothing was recomputed, with which %s not fit, and ran; the least that fits is taken: "
            "norms and activations (and latent attention's up-projections) in %zu, whole layers in %zu",
            n, n == 1 ? "" : "s", n == 1 ? "s" : "", n == 1 ? "it does" : "they do", n - n_full, n_full);
}

/* --- step time and MFU of one row */

/* FLOPs of a token that some convention counts: from the layers with the causal half of attention to all of it with both
 * vocabulary tables. */
static void conventions(const struct measurement *row, double *least, double *most)
{
    struct token_flops t = token_flops_of(row);
    *least = t.layers + t.attention / 2;
    *most = t.layers + t.attention + 2 * t.word * (double)row->model.vocab;
}

static bool contradicts_itself(const struct measurement *row)
{
    double flops = counted(row), least, most;
    if (flops <= 0 || row->model.moe.experts > 0)
        return false;
    conventions(row, &least, &most);
    return flops < least / CONTRADICTION || flops > most * CONTRADICTION;
}

static void note_contradictions(const struct measurement_table *table, struct diags *diags)
{
    const struct measurement *first = NULL;
    double least, most;
    size_t n = 0;
    for (size_t i = 0; i < table->n_items; i++)
        if (contradicts_itself(&table->items[i]) && n++ == 0)
            first = &table->items[i];
    if (!first)
        return;
    conventions(first, &least, &most);
    double scale = 100 * first->mfu / counted(first);
    diag_warning(diags, first->at,
                 "step_time_s and mfu_pct contradict each other in %zu row%s: %.4g s would be an MFU of %.3g to %.3g %%, not "
                 "%.3g %%; the time is taken",
                 n, n == 1 ? "" : "s", first->step_s, least * scale, most * scale, 100 * first->mfu);
}

void measurement_reconcile(struct measurement_table *table, struct diags *diags)
{
    take_back_later(table, diags);
    take_likely_micro_batches(table, diags);
    take_fitting_recomputation(table, diags);
    for (size_t i = 0; i < table->n_items; i++) {
        const struct measurement *row = &table->items[i];
        bool known = !assumes(row, "vocab") || row->model.moe.experts > 0;
        for (size_t j = 0; j < i && !known; j++) /* heard with an earlier row */
            known = assumes(&table->items[j], "vocab") && same_shape(&table->items[j].model, &row->model);
        if (known)
            continue;
        struct testimony heard = hear(table, row);
        int64_t vocabulary = agreed(&heard);
        free(heard.vocabularies);
        if (vocabulary)
            take(table, row, vocabulary, diags);
    }
    note_contradictions(table, diags);
}
