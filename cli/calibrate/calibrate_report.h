/*
 * calibrate_report.h - the report of a calibration (sim/search/calibration.h), and the warnings about it.
 */
#ifndef MSIM_CLI_CALIBRATE_CALIBRATE_REPORT_H
#define MSIM_CLI_CALIBRATE_CALIBRATE_REPORT_H

#include <jansson.h>
#include <string.h>

#include "cli/options/command.h"
#include "sim/search/calibration.h"

/* Parameters that were asked for and cannot be fitted are refused; what the defaults offered is held. `any`: something was
 * fitted. */
MUST_CHECK enum status calibration_check_determined(const struct calibration *calibration, bool any, struct diags *diags);
/* Values that runs were fitted to and that no entry of the catalog has, or that are far from what the entry had. */
void calibration_warn_of_values(const struct calibration *calibration, struct diags *diags);
/* A fit can be the best there is and still be none. */
void calibration_warn_of_misfit(const struct calibration *calibration, struct diags *diags);
/* A fit that predicts a group of its rows worse than the base: a warning, or the error of an entry that is not written. */
MUST_CHECK enum status calibration_check_better(const struct calibration *calibration, bool writes, struct diags *diags);
/* A table's name without its folder. */
static inline const char *calibration_title(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, "-") == 0 ? "standard input" : slash ? slash + 1 : path;
}
/* Runs that the fit leaves more than 10 % off, the worst first: a table after the report, a list of objects. */
void calibration_write_worst(const struct calibration *calibration, const struct invocation *call);
json_t *calibration_json_worst(const struct calibration *calibration);

void calibration_write_report(const struct calibration *calibration, struct invocation *call);
MUST_CHECK enum status calibration_write_json(const struct calibration *calibration, struct invocation *call);
/* One line a row as CSV: what it was, measured, predicted before and after. */
void calibration_write_residuals(const struct calibration *calibration, FILE *out);
void calibration_write_entry(const struct calibration *calibration, const char *path, FILE *out);

#endif
