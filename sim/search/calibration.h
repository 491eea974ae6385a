/*
 * calibration.h - fits parameters of a GPU or cluster entry to measured kernels and training steps.
 *
 * Example: the GEMM rates of an entry, fitted to half of the rows of a table and judged by the other half:
 *
 *     struct calibration c = {.base = "h100-sxm", .gpu = "h100-sxm", .kind = CATALOG_GPUS, .schema = &gpu_schema,
 *                             .cluster = one_host, .holdout = 0.5, .threads = 4};
 *     calibration_read(&c, paths, n_paths, seed, &diags);       rows of the GPU, half of each kind held out
 *     calibration_choose(&c, NULL, 0, &diags);                  parameters that the rows are about
 *     calibration_fit(&c);                                      c.parameters[k].estimate and .after
 *     calibration_predict_after(&c);
 *     calibration_accuracy(&c, group, true, true);              errors of the rows held out, after the fit
 *     calibration_free(&c);
 *
 * The fit is model/cost/fit/calibrate.h: robust least squares of log(predicted / measured). Rows are kernels, which a cost
 * formula predicts, and runs, whose steps are simulated. What the rows do not determine is held.
 */
#ifndef MSIM_SIM_SEARCH_CALIBRATION_H
#define MSIM_SIM_SEARCH_CALIBRATION_H

#include "model/base/watch.h"
#include "model/cost/fit/calibrate.h"
#include "model/cost/fit/calibrate_entry.h"
#include "model/spec/catalog.h"
#include "model/spec/catalog_alias.h"
#include "sim/step/prepared_step.h"
#include "traces/table/accuracy.h"
#include "traces/table/kernel_table.h"
#include "traces/table/measurement.h"

enum { CALIBRATION_PARAMETERS_MAX = 96 }; /* parameters of one call */

/* A table is of kernels or of runs; the other one is empty. */
struct calibration_table {
    const char *path;
    struct kernel_table kernels;
    struct measurement_table runs;
};

/* Rows whose errors are reported together. */
struct calibration_group {
    char label[64];      /* "gemm bf16" */
    const char *section; /* of the entry whose parameters they determine: "gemm"; "" the entry itself */
};

struct calibration_row {
    const struct kernel_measurement *kernel; /* or */
    const struct measurement *run;
    struct prepared_step *prepared; /* of the run (calibration_prepare); NULL: it is not kept */
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

struct calibration_parameter {
    struct entry_parameter entry;
    struct entry_parameter twin; /* the same of fp16 beside bf16, which run on the same units; row NULL: none */
    int cast;                    /* the precision whose cast this is; -1: a parameter of the entry */
    enum cast_part part;
    double before, after;
    struct calibrate_estimate estimate;
};

struct calibration {
    const char *base, *gpu;       /* --base, the tables' name of its GPU */
    struct alias_table spellings; /* of GPUs, which holds the latter */
    bool gpu_given;               /* the latter may be any spelling */
    enum catalog_kind kind;
    struct cluster cluster; /* of the base, or one usual host of a base that is a GPU */
    const struct schema *schema;
    double holdout;
    bool casts, cache; /* --with-cast, --with-cache */
    struct calibration_table *tables;
    size_t n_tables;
    struct calibration_row *rows;
    size_t n_rows, n_other_gpus, n_unusable;
    struct calibration_group *groups;
    size_t n_groups, groups_capacity;
    struct calibration_parameter parameters[CALIBRATION_PARAMETERS_MAX];
    size_t n_parameters;
    bool chosen;        /* --parameters was given */
    struct watch watch; /* rows predicted; nobody knows how many it will be */
    size_t n_predicted; /* rows, over all values tried */
    int threads;        /* that predict them, at least 1 */
};

enum { CALIBRATION_TEXT = 160 };
/* The shape of a kernel, for people. Returns text. */
char *calibration_kernel_text(const struct kernel_measurement *kernel, char text[CALIBRATION_TEXT]);

/* Reads all tables, keeps the rows of the GPU, groups them, chooses those held out. No row may be left: n_rows is 0. Paths and
 * c->gpu must stay. */
MUST_CHECK enum status calibration_read(struct calibration *calibration, const char *const *paths, size_t n, uint64_t seed,
                                        struct diags *diags);
void calibration_free(struct calibration *calibration);
/* What rows of one condition have in common. */
uint64_t calibration_case(const struct calibration_row *row);

/* The parameters asked for, or those that the rows are about. */
MUST_CHECK enum status calibration_choose(struct calibration *calibration, const char *const *names, int n_names,
                                          struct diags *diags);

/* Predicts all rows with the values of the base, then fits the parameters. False: the rows determine none of them. The results
 * are the same with any number of threads. */
bool calibration_fit(struct calibration *calibration);
/* Predicts all rows with the fitted values. */
void calibration_predict_after(struct calibration *calibration);

/* Errors of a group before or after, of the rows held out or of the others. */
struct accuracy calibration_accuracy(const struct calibration *calibration, size_t group, bool held_out, bool after);

/* --- how plausible a fit is */

/* A group whose rows, fitted and held out, are predicted worse after the fit than before: mean errors in percent. `group` is
 * n_groups if there is none. A fit of parameters that several groups share may trade one group for another. */
struct calibration_loss {
    size_t group;
    double before_pct, after_pct;
};
struct calibration_loss calibration_worst_loss(const struct calibration *calibration);

/* Different cases among all rows, those held out too. */
size_t calibration_cases(const struct calibration *calibration);
/* A fitted value that hardly can be, where runs determine it and no kernel that was timed alone. */
struct value_doubt {
    bool outside; /* of what the entries of the catalog have, which is `low` to `high`, by a margin */
    double low, high;
    bool far; /* from what the base had, by standard errors and in itself */
};
struct value_doubt calibration_doubt(const struct calibration *calibration, size_t parameter);

#endif
