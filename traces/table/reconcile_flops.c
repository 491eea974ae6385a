/* reconcile_flops.c - vocabularies and contradictions that follow from printed FLOPs. */
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "model/base/memory.h"
#include "traces/table/reconcile_internal.h"

static const double AGREEMENT = 0.005;   /* of the FLOPs of a token; MFU is printed with three or four digits */
static const double CONTRADICTION = 1.5; /* beyond any convention: recomputation counted, too, is at most 4/3 */
enum { FEWEST_ROWS = 3, VOCABULARY_STEP = 256 };
static const double VOCABULARY_MIN = 1e3, VOCABULARY_MAX = 1e6;

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
    return row->derived || row->step_s <= 0 ? 0 : row->mfu * row->step_s * row->gpus * peak / tokens;
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
        if (flops <= 0 || !(row->open & OPEN_VOCAB) || !same_shape(&row->model, &shape->model))
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
        if (!(row->open & OPEN_VOCAB) || !same_shape(&row->model, &like))
            continue;
        row->model.vocab = vocabulary;
        n++;
    }
    diag_warning(diags, first,
                 "%zu rows of %d layers of %lld assume a vocabulary of %lld; their MFU counts %lld words, which is taken", n,
                 like.layers, (long long)like.hidden, (long long)like.vocab, (long long)vocabulary);
}

void reconcile_vocabularies(struct measurement_table *table, struct diags *diags)
{
    for (size_t i = 0; i < table->n_items; i++) {
        const struct measurement *row = &table->items[i];
        bool known = !(row->open & OPEN_VOCAB) || row->model.moe.experts > 0;
        for (size_t j = 0; j < i && !known; j++) /* heard with an earlier row */
            known = table->items[j].open & OPEN_VOCAB && same_shape(&table->items[j].model, &row->model);
        if (known)
            continue;
        struct testimony heard = hear(table, row);
        int64_t vocabulary = agreed(&heard);
        free(heard.vocabularies);
        if (vocabulary)
            take(table, row, vocabulary, diags);
    }
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

void reconcile_tell_contradictions(const struct measurement_table *table, struct diags *diags)
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
