/*
 * calibration_internal.h - what the files of a calibration share: kinds of kernels, predictions under given values.
 */
#ifndef MSIM_SIM_SEARCH_CALIBRATION_INTERNAL_H
#define MSIM_SIM_SEARCH_CALIBRATION_INTERNAL_H

#include "sim/search/calibration.h"

/* Parameters of an entry: those below a key, but for `except` and for deeper groups. */
struct calibration_section {
    char key[ENTRY_PATH_SIZE / 2];
    const char *except; /* NULL: none */
    bool of_cluster;    /* the key is the cluster's, not its GPU's */
};

/* What a kind of kernel is to a calibration: one row of calibration_kernels per enum measured_op. */
struct calibration_kernel {
    /* What its rows are reported under; returns the section of struct calibration_group. */
    const char *(*group)(const struct kernel_measurement *kernel, char label[CALIBRATION_TEXT]);
    bool (*usable)(const struct calibration *calibration,
                   const struct kernel_measurement *kernel);                      /* the entry says something of it */
    struct calibration_section (*about)(const struct kernel_measurement *kernel); /* what it can tell */
    /* Seconds alone, at full clock, with the cast that was timed with it. */
    double (*seconds)(const struct calibration *calibration, const struct cluster *cluster, double casts[][N_CAST_PARTS],
                      const struct kernel_measurement *kernel);
    void (*text)(const struct kernel_measurement *kernel, char text[CALIBRATION_TEXT]); /* its shape */
};

extern const struct calibration_kernel calibration_kernels[N_MEASURED_OPS];

/* Makes ready what every prediction of a run needs, as far as there is room. */
void calibration_prepare(struct calibration *calibration);
/* Does a row gain by calibration_predict_near? */
bool calibration_can_be_near(const struct calibration *calibration);
/* Predictions for calibrate_fit; the context is the struct calibration, rows are its rows. The results are the same with any
 * number of threads. */
calibrate_predict_function calibration_predict, calibration_predict_near;

#endif
