/* calibration_rows.c - read tables of measurements as rows of a fit. */
#include "sim/search/calibration_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "model/base/hash.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/spec/schema.h"
#include "traces/table/nccl_log.h"

enum { PURPOSE_HOLDOUT = 0x686f6c64 }; /* of the random streams */

/* --- groups -------------------------------------------------------------------------------------------------------- */

static size_t group_of(struct calibration *c, const char *label, const char *section)
{
    for (size_t g = 0; g < c->n_groups; g++)
        if (strcmp(c->groups[g].label, label) == 0)
            return g;
    c->groups = memory_grow(c->groups, &c->groups_capacity, c->n_groups + 1, sizeof *c->groups);
    c->groups[c->n_groups] = (struct calibration_group){.section = section};
    snprintf(c->groups[c->n_groups].label, sizeof c->groups->label, "%s", label);
    return c->n_groups++;
}

static size_t kernel_group(struct calibration *c, const struct kernel_measurement *kernel)
{
    char label[CALIBRATION_TEXT];
    const char *section = calibration_kernels[kernel->op].group(kernel, label);
    return group_of(c, label, section);
}

/* --- cases --------------------------------------------------------------------------------------------------------- */

/* A run's configuration, whatever the row is called. */
static uint64_t run_case(const struct measurement *run)
{
    const struct layout *l = &run->layout;
    const struct transformer *m = &run->model;
    const int64_t numbers[] = {m->layers,
                               m->hidden,
                               m->ffn_hidden,
                               m->heads,
                               m->kv_heads,
                               m->moe.experts,
                               run->job.seq_len,
                               run->gpus,
                               l->tp,
                               l->pp,
                               l->vpp,
                               l->cp,
                               l->dp,
                               l->ep,
                               l->zero,
                               l->shard,
                               l->micro_batch,
                               recompute_number(l->recompute),
                               l->schedule,
                               l->sequence_parallel,
                               run->job.global_batch,
                               run->job.precision,
                               (int64_t)l->features};
    uint64_t hash = HASH_BEGIN;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_number(hash, (uint64_t)numbers[i]);
    return hash;
}

uint64_t calibration_case(const struct calibration_row *row)
{
    return row->kernel ? kernel_case(row->kernel) : run_case(row->run);
}

/* --- rows ---------------------------------------------------------------------------------------------------------- */

static void add_row(struct calibration *c, struct calibration_row row, uint64_t seed)
{
    struct random_stream stream = random_stream_named(seed, PURPOSE_HOLDOUT, calibration_case(&row));
    row.draw = random_uniform(&stream);
    c->rows[c->n_rows++] = row;
}

/* Rows of one kind: the group; of collectives also which one and over how many ranks, since few of each are measured. */
static size_t stratum_of(const struct calibration_row *row)
{
    bool collective = row->kernel && row->kernel->op == MEASURED_COLLECTIVE;
    if (!collective)
        return row->group << 32;
    const struct kernel_collective *k = &row->kernel->collective;
    return (row->group << 8 | (size_t)k->collective) << 24 | (size_t)k->ranks;
}

static int compare_draws(const void *a, const void *b)
{
    const struct calibration_row *x = *(struct calibration_row *const *)a, *y = *(struct calibration_row *const *)b;
    int by_stratum = (x->stratum > y->stratum) - (x->stratum < y->stratum);
    return by_stratum ? by_stratum : (x->draw > y->draw) - (x->draw < y->draw);
}

/* Of every kind at least the part asked for, so that a half fits at most a half; rows of one case go together. */
static void hold_out(struct calibration *c)
{
    struct calibration_row **rows = memory_new(c->n_rows, sizeof *rows);
    for (size_t i = 0; i < c->n_rows; i++) {
        rows[i] = &c->rows[i];
        rows[i]->stratum = stratum_of(rows[i]);
    }
    qsort(rows, c->n_rows, sizeof *rows, compare_draws); /* equal draws are of one case and share its part */
    for (size_t first = 0, n; first < c->n_rows; first += n) {
        for (n = 1; first + n < c->n_rows && rows[first + n]->stratum == rows[first]->stratum;)
            n++;
        size_t held = (size_t)ceil(c->holdout * (double)n);
        for (size_t i = 0; i < n && held > 0; i++)
            rows[first + i]->held_out = rows[first + i]->draw <= rows[first + held - 1]->draw;
    }
    free(rows);
}

/* A table's GPU, said as the tables' others are or in another spelling of it. */
static bool is_its_gpu(struct calibration *c, const char *name)
{
    const char *meant = name;
    return strcmp(name, c->gpu) == 0 ||
           (alias_table_find(&c->spellings, CATALOG_GPUS, name, &meant) != ALIAS_NONE && strcmp(meant, c->gpu) == 0);
}

static void add_kernels(struct calibration *c, const struct calibration_table *table, uint64_t seed)
{
    const char *gpu = NULL; /* of the row before */
    bool its = false;
    for (size_t i = 0; i < table->kernels.n_items; i++) {
        const struct kernel_measurement *kernel = &table->kernels.items[i];
        if (!gpu || strcmp(kernel->gpu, gpu) != 0)
            its = is_its_gpu(c, kernel->gpu);
        gpu = kernel->gpu;
        if (!its)
            c->n_other_gpus++;
        else if (!calibration_kernels[kernel->op].usable(c, kernel))
            c->n_unusable++;
        else
            add_row(c,
                    (struct calibration_row){
                        .kernel = kernel, .table = table->path, .group = kernel_group(c, kernel), .measured = kernel->seconds},
                    seed);
    }
}

static void add_runs(struct calibration *c, const struct calibration_table *table, uint64_t seed)
{
    for (size_t i = 0; i < table->runs.n_items; i++) {
        const struct measurement *run = &table->runs.items[i];
        struct setting setting = measurement_setting(run);
        char why[256];
        if (run->oom || !(run->step_s > 0)) /* nothing was timed */
            continue;
        if (strcmp(run->cluster.gpu.name, c->gpu) != 0)
            c->n_other_gpus++;
        else if (layout_check(&run->layout, &setting, why, sizeof why) != LAYOUT_LEGAL)
            c->n_unusable++;
        else
            add_row(c,
                    (struct calibration_row){
                        .run = run, .table = table->path, .group = group_of(c, "runs", ""), .measured = run->step_s},
                    seed);
    }
}

/* A table, or the output of nccl-tests as one. */
static enum status read_csv(const char *path, struct csv_table *csv, struct diags *diags)
{
    char *text;
    size_t n;
    enum status status = file_read(path, FILE_TEXT_MAX, &text, &n, diags);
    if (status != STATUS_OK)
        return status;
    status = nccl_log_is(text, n) ? nccl_log_parse(path, text, n, csv, diags) : csv_table_parse(path, text, n, csv, diags);
    free(text);
    return status;
}

static enum status read_table(const char *path, struct calibration_table *table, struct diags *diags)
{
    struct csv_table csv;
    enum status status = read_csv(path, &csv, diags);
    table->path = path;
    if (status != STATUS_OK)
        return status;
    return kernel_table_is(&csv) ? kernel_table_build(&csv, &table->kernels, diags)
                                 : measurement_table_build(&csv, &table->runs, diags);
}

enum status calibration_read(struct calibration *c, const char *const *paths, size_t n, uint64_t seed, struct diags *diags)
{
    enum status worst = STATUS_OK;
    size_t n_rows = 0;
    c->n_tables = n;
    c->tables = memory_new(n, sizeof *c->tables);
    for (size_t t = 0; t < n; t++) { /* all, so that all mistakes show in one go */
        enum status status = read_table(paths[t], &c->tables[t], diags);
        worst = status == STATUS_OK ? worst : status;
        n_rows += c->tables[t].kernels.n_items + c->tables[t].runs.n_items;
    }
    if (alias_table_load(&c->spellings, diags) != STATUS_OK)
        worst = STATUS_BAD_INPUT;
    if (worst != STATUS_OK)
        return worst;
    if (c->gpu_given)
        alias_table_find(&c->spellings, CATALOG_GPUS, c->gpu, &c->gpu);
    c->rows = memory_new(n_rows, sizeof *c->rows);
    for (size_t t = 0; t < c->n_tables; t++) {
        add_kernels(c, &c->tables[t], seed);
        add_runs(c, &c->tables[t], seed);
    }
    hold_out(c);
    return STATUS_OK;
}

void calibration_free(struct calibration *c)
{
    for (size_t t = 0; t < c->n_tables; t++) {
        kernel_table_free(&c->tables[t].kernels);
        measurement_table_free(&c->tables[t].runs);
    }
    for (size_t i = 0; i < c->n_rows; i++)
        prepared_step_destroy(c->rows[i].prepared);
    alias_table_free(&c->spellings);
    free(c->tables);
    free(c->rows);
    free(c->groups);
}
