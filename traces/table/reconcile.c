/* reconcile.c - replaces assumptions of a table that its sources contradict. */
#include "traces/table/reconcile.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "traces/table/reconcile_internal.h"

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
    row->job.features = row->layout.features;
    if (sharded)
        row->layout.sequence_parallel = false;
    return sharded || had != row->layout.features;
}

/*
 * A row that says when its source appeared, by arXiv number or by the round of MLPerf Training that it is a result of (rounds are
 * published at known dates), cannot have used what came later. Taken away from rows of earlier months are the FlashAttentions
 * (numbers 2205.14135, 2307.08691, 2407.08608), of which a later generation gives way to the one before; sequence parallelism
 * (2205.05198); the overlap of tensor parallel exchanges with their products (Wang et al., ASPLOS 2023, January) and of pipeline
 * messages (2211.05953).
 */
static void reconcile_dates(struct measurement_table *table, struct diags *diags)
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

void measurement_reconcile(struct measurement_table *table, struct diags *diags)
{
    reconcile_dates(table, diags);
    reconcile_micro_batches(table, diags);
    reconcile_recomputation(table, diags);
    reconcile_vocabularies(table, diags);
    reconcile_tell_contradictions(table, diags);
}
