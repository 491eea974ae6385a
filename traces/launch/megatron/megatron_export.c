/* megatron_export.c - a job as arguments of Megatron-LM, and these as a script. */
#include "traces/launch/megatron/megatron_export_internal.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "traces/launch/megatron/megatron_translate.h"

/* --- arguments that mean one thing --- */

static void write_number(struct export_writer *w, enum argument argument, const void *member)
{
    const struct argument_row *row = &megatron_rows[argument];
    int whole;
    int64_t wide;
    double real;
    if (row->type == ARGUMENT_REAL) {
        memcpy(&real, member, sizeof real);
        if (!row->fallback || real < strtod(row->fallback, NULL) || real > strtod(row->fallback, NULL))
            export_set(w, argument, "%.15g", real);
        return;
    }
    memcpy(&whole, member, sizeof whole);
    wide = whole;
    if (row->size == sizeof wide)
        memcpy(&wide, member, sizeof wide);
    if (wide != (row->fallback ? strtoll(row->fallback, NULL, 10) : 0))
        export_set(w, argument, "%lld", (long long)wide);
}

static void write_row(struct export_writer *w, enum argument argument)
{
    const struct argument_row *row = &megatron_rows[argument];
    const void *member = (const char *)w->job + row->offset;
    bool truth;
    int choice;
    switch (row->map) {
    case MAP_APART: return;
    case MAP_NUMBER: write_number(w, argument, member); return;
    case MAP_CHOICE:
        memcpy(&choice, member, sizeof choice);
        if (strcmp(row->choices[choice], row->fallback) != 0)
            export_set(w, argument, "%s", row->choices[choice]);
        return;
    case MAP_BOOL:
    case MAP_NOT:
        memcpy(&truth, member, sizeof truth);
        if ((truth != (row->map == MAP_NOT)) == (row->type == ARGUMENT_TRUE))
            export_flag(w, argument);
    }
}

static void write_rows(struct export_writer *w)
{
    const bool active[N_WHENS] = {[WHEN_ALWAYS] = true,
                                  [WHEN_MIXTURE] = w->job->model.moe.experts > 0,
                                  [WHEN_LATENT] = w->job->model.attention == ATTENTION_LATENT,
                                  [WHEN_CONTEXT] = w->job->layout.cp > 1,
                                  [WHEN_HYBRID] = exports_pattern(w),
                                  [WHEN_ROTARY] = w->job->model.position == POSITION_ROTARY && w->job->model.rope_theta > 0};
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (active[megatron_rows[i].when])
            write_row(w, (enum argument)i);
}

/* --- the whole export --- */

void megatron_export(const struct launch_job *job, struct megatron_export *export_)
{
    struct export_writer w = {job, export_};
    *export_ = (struct megatron_export){0};
    write_rows(&w);
    export_model(&w);
    export_layout(&w);
    export_precision(&w);
    export_features(&w);
    export_documents(&w);
    export_moments(&w);
    if (job->job.optimizer == OPTIMIZER_LAMB) { /* nor has what takes its arguments from here */
        export_lose(&w, "optimizer lamb: Adam, which has the same number of moments, replaces it");
        export_->arguments.of[ARGUMENT_OPTIMIZER].text = NULL;
    }
}

static bool is_launchers(enum argument argument)
{
    return argument == ARGUMENT_NODES || argument == ARGUMENT_NODE_GPUS;
}

/* What a shell would read otherwise stands in quotes. */
static void write_argument(const struct argument_row *row, const char *text, FILE *out)
{
    bool plain = strpbrk(text, "*|()[]'") == NULL;
    if (row->type == ARGUMENT_TRUE || row->type == ARGUMENT_FALSE)
        fprintf(out, "    --%s\n", row->flag);
    else
        fprintf(out, plain ? "    --%s %s\n" : "    --%s '%s'\n", row->flag, text);
}

/* The youngest of the arguments that are written, and since which release of Megatron-Core it is there. */
static void write_youngest(const struct megatron_export *e, FILE *out)
{
    const struct argument_row *youngest = NULL;
    long newest = 0;
    for (int i = 0; i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        bool released = e->arguments.of[i].text && row->since && strncmp(row->since, "0.", 2) == 0;
        long release = released ? strtol(row->since + 2, NULL, 10) : 0;
        if (release > newest) {
            newest = release;
            youngest = row;
        }
    }
    if (youngest)
        fprintf(out, "# Requires Megatron-Core %s or later (--%s).\n", youngest->since, youngest->flag);
}

void megatron_write_script(const struct launch_job *job, const char *const *heading, int n_heading, FILE *out,
                           struct diags *diags)
{
    struct megatron_export *e = memory_new(1, sizeof *e);
    megatron_export(job, e);
    if (job_adapts(&job->job))
        megatron_export_lose(e, "adapters of rank %lld: Megatron-LM's pretraining trains all weights; NeMo has them",
                             (long long)job->job.adapter.rank);
    fputs("#!/bin/bash\n", out);
    for (int i = 0; i < n_heading; i++)
        fprintf(out, "# %s\n", heading[i]);
    for (int i = 0; i < e->n_lost; i++) {
        fprintf(out, "# Not exported: %s.\n", e->lost[i]);
        diag_warning(diags, PLACE_NONE, "--export: no argument expresses %s", e->lost[i]);
    }
    write_youngest(e, out);
    fputs("ARGUMENTS=(\n", out);
    for (int i = 0; i < N_ARGUMENTS; i++)
        if (e->arguments.of[i].text && !is_launchers((enum argument)i))
            write_argument(&megatron_rows[i], e->arguments.of[i].text, out);
    fputs(")\n", out);
    if (job->layout.zero < 2)
        fputs("export CUDA_DEVICE_MAX_CONNECTIONS=1\n", out);
    fprintf(out, "torchrun --nproc-per-node %s --nnodes %s pretrain_%s.py \"${ARGUMENTS[@]}\" \"$@\"\n",
            e->arguments.of[ARGUMENT_NODE_GPUS].text, e->arguments.of[ARGUMENT_NODES].text,
            e->arguments.of[ARGUMENT_PATTERN].text ? "mamba" : "gpt");
    megatron_export_free(e);
    free(e);
}
