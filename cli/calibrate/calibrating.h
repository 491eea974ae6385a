/*
 * calibrating.h - what msim calibrate works on: rows of tables, parameters of an entry. Private to cmd_calibrate.c and
 * calibrate_*.c.
 */
#ifndef MSIM_CLI_CALIBRATE_CALIBRATING_H
#define MSIM_CLI_CALIBRATE_CALIBRATING_H

#include <jansson.h>

#include "cli/options/command.h"
#include "cli/output/progress.h"
#include "model/cost/fit/calibrate.h"
#include "model/cost/fit/calibrate_entry.h"
#include "model/spec/catalog.h"
#include "model/spec/catalog_alias.h"
#include "sim/step/prepared_step.h"
#include "traces/table/accuracy.h"
#include "traces/table/kernel_table.h"
#include "traces/table/measurement.h"

enum { CALIBRATED_MAX = 96 }; /* parameters of one call */

/* A table is of kernels or of runs; the other one is empty. */
struct calibrated_table {
    const char *path;
    struct kernel_table kernels;
    struct measurement_table runs;
};

/* Rows whose errors are reported together. */
struct calibrated_group {
    char label[64];      /* "gemm bf16" */
    const char *section; /* of the entry whose parameters they determine: "gemm"; "" the entry itself */
};

struct calibrated_row {
    const struct kernel_measurement *kernel; /* or */
    const struct measurement *run;
    struct prepared_step *prepared; /* of the run (calibrating_prepare); NULL: it is not kept */
    const char *table;
    size_t group;
    size_t stratum; /* rows of one kind, of which the part asked for is held out */
    double draw;    /* uniform, the case's own: the lowest are held out */
    bool held_out;
    double measured, before, after; /* seconds */
};

/* A dynamic cast of A timed with a GEMM in a narrow precision: bytes moved per element of A, launches, and what padding rows
 * that are not aligned adds. Fitted beside, no part of the entry. */
enum cast_part { CAST_BYTES, CAST_FIXED, CAST_PADDING, N_CAST_PARTS };

struct calibrated_parameter {
    struct entry_parameter entry;
    struct entry_parameter twin; /* the same of fp16 beside bf16, which run on the same units; row NULL: none */
    int cast;                    /* the precision whose cast this is; -1: a parameter of the entry */
    enum cast_part part;
    double before, after;
    struct calibrate_estimate estimate;
};

struct calibrating {
    const char *base, *gpu;       /* --base, the tables' name of its GPU */
    struct alias_table spellings; /* of GPUs, which holds the latter */
    enum catalog_kind kind;
    struct cluster cluster; /* of the base, or one usual host of a base that is a GPU */
    const struct schema *schema;
    double holdout;
    bool casts, cache; /* --with-cast, --with-cache */
    struct calibrated_table *tables;
    size_t n_tables;
    struct calibrated_row *rows;
    size_t n_rows, n_other_gpus, n_unusable;
    struct calibrated_group *groups;
    size_t n_groups, groups_capacity;
    struct calibrated_parameter parameters[CALIBRATED_MAX];
    size_t n_parameters;
    bool chosen; /* --parameters was given */
    struct progress progress;
    size_t n_predicted; /* rows, over all values tried */
    int threads;        /* that predict them, at least 1 */
};

/* Parameters of an entry: those below a key, but for `except` and for deeper groups. */
struct calibrated_section {
    char key[ENTRY_PATH_SIZE / 2];
    const char *except; /* NULL: none */
    bool of_cluster;    /* the key is the cluster's, not its GPU's */
};

enum { CALIBRATED_TEXT = 160 };

/* What a kind of kernel is to a calibration: one row of calibrated_kernels per enum measured_op. */
struct calibrated_kernel {
    /* What its rows are reported under; returns the section of struct calibrated_group. */
    const char *(*group)(const struct kernel_measurement *kernel, char label[CALIBRATED_TEXT]);
    bool (*usable)(const struct calibrating *calibrating,
                   const struct kernel_measurement *kernel);                     /* the entry says something of it */
    struct calibrated_section (*about)(const struct kernel_measurement *kernel); /* what it can tell */
    /* Seconds alone, at full clock, with the cast that was timed with it. */
    double (*seconds)(const struct calibrating *calibrating, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                      const struct kernel_measurement *kernel);
    void (*text)(const struct kernel_measurement *kernel, char text[CALIBRATED_TEXT]); /* its shape */
};

extern const struct calibrated_kernel calibrated_kernels[N_MEASURED_OPS];

/* Read all tables, keep the rows of the GPU, group them, choose those held out. */
MUST_CHECK enum status calibrating_read(struct calibrating *calibrating, struct invocation *call);
void calibrating_free(struct calibrating *calibrating);
/* What rows of one condition have in common. */
uint64_t calibrating_case(const struct calibrated_row *row);

/* The parameters asked for, or those that the rows are about. */
MUST_CHECK enum status calibrating_choose(struct calibrating *calibrating, const char *const *names, int n_names,
                                          struct diags *diags);

/* Makes ready what every prediction of a run needs, as far as there is room. */
void calibrating_prepare(struct calibrating *calibrating);
/* Does a row gain by calibrating_predict_near? */
bool calibrating_can_be_near(const struct calibrating *calibrating);
/* The calibrate_predict_functions, whose context is the struct calibrating; rows are its rows. The results are the same with any
 * number of threads. */
calibrate_predict_function calibrating_predict, calibrating_predict_near;

/* Errors of a group before or after, of the rows held out or of the others. */
struct accuracy calibrating_accuracy(const struct calibrating *calibrating, size_t group, bool held_out, bool after);

/* Parameters that were asked for and cannot be fitted are refused; what the defaults offered is held. `any`: something was
 * fitted. */
MUST_CHECK enum status calibrating_check_determined(const struct calibrating *calibrating, bool any, struct diags *diags);
/* Values that runs were fitted to and that no entry of the catalog has, or that are far from what the entry had. */
void calibrating_warn_of_values(const struct calibrating *calibrating, struct diags *diags);
/* A fit can be the best there is and still be none. */
void calibrating_warn_of_misfit(const struct calibrating *calibrating, struct diags *diags);
/* A table's name without its folder. */
const char *calibrating_title(const char *path);
/* Runs that the fit leaves more than 10 % off, the worst first: a table after the report, a list of objects. */
void calibrating_write_worst(const struct calibrating *calibrating, const struct invocation *call);
json_t *calibrating_json_worst(const struct calibrating *calibrating);

void calibrating_write_report(const struct calibrating *calibrating, struct invocation *call);
MUST_CHECK enum status calibrating_write_json(const struct calibrating *calibrating, struct invocation *call);
/* One line a row as CSV: what it was, measured, predicted before and after. */
void calibrating_write_residuals(const struct calibrating *calibrating, FILE *out);
void calibrating_write_entry(const struct calibrating *calibrating, const char *path, FILE *out);

#endif
