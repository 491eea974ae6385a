/*
 * step_record.h - the results of one step: what is asked of them, and their rows in JSON and CSV.
 *
 *     struct step_record record = {.setup = &setup, .result = &result, .capacity_bytes = footprint_capacity(cluster)};
 *     if (!step_fits(&record))
 *         status = STATUS_CHECK;
 *     rows_json(step_size_rows, &record, json);     tokens_per_s, days, memory_gib, fits ...
 *
 * The mean of many steps and each of two experiments have such a record too, from setup, result and capacity alone.
 */
#ifndef MSIM_CLI_STEP_STEP_RECORD_H
#define MSIM_CLI_STEP_STEP_RECORD_H

#include "cli/job/job_setup.h"
#include "cli/output/notes.h"
#include "cli/step/step_flow.h"
#include "cli/step/step_profile.h"
#include "sim/step/step.h"

struct step_record {
    const struct job_setup *setup;
    const struct step_result *result;
    double capacity_bytes; /* of one GPU */
    double gpu_price;      /* money per GPU-hour; 0: not given */
    /* Of a single step alone: */
    const struct breakdown *stages;
    const struct step_flow *flow;       /* NULL: the analytic network */
    const struct program *program;      /* explained when given */
    const struct step_profile *profile; /* NULL: none */
    enum detail detail;
    bool folded;
    bool timing;                               /* write the wall time */
    double documents_wait_s;                   /* of the replica with the longest documents, in addition to the step */
    char assumptions[18][OVERSUBSCRIBED_TEXT]; /* the longest of them */
    int n_assumptions;
};

struct step_record step_record_of(const struct job_setup *setup, const struct step_result *result);
/* Fills the assumptions from the rest (step_assumptions.c). */
void step_assume(struct step_record *record);

/* Do the GPUs hold the layout, and the host what is offloaded, as far as its size is known? */
bool step_fits(const struct step_record *record);
bool step_fits_gpu(const struct step_record *record);
bool step_fits_host(const struct step_record *record);
/* STATUS_OK, or STATUS_CHECK where it does not fit. Text reports begin with that; other formats get a warning here, with the file
 * (NULL: none) that the layout is from. */
MUST_CHECK enum status step_check_fit(const struct step_record *record, const char *file, struct invocation *call);
/* "this layout does not fit: stage 0 needs 202.4 GiB, but a GPU has 76.8 GiB; the times assume that it fits". Returns buffer. */
enum { MISFIT_TEXT = 160 };
char *step_misfit_text(const struct step_record *record, char *buffer, size_t size);

/* Bytes of the host's memory that are a rank's; 0: unknown. */
double step_host_capacity(const struct step_record *record);
/* For the job's budget of tokens; 0: it has none. */
double step_days(const struct step_record *record);
double step_gpu_hours(const struct step_record *record);

/* A row of the table of stages. */
struct stage {
    int number;
    double memory_bytes;
    struct cost_by_class mean;
    const struct cost_by_class *all; /* of the step */
};
struct stage step_stage(const struct step_record *record, int number);

extern const struct result_row step_rows[], step_size_rows[], step_detail_rows[], step_end_rows[], stage_rows[];

MUST_CHECK enum status step_record_write_json(const struct step_record *record, struct invocation *call);
/* A heading and a row, so that results of several calls can be put under one another. */
void step_record_write_csv(const struct step_record *record, FILE *out);

#endif
