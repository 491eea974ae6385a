/*
 * gnuplot.h - run gnuplot on a script and take what it draws.
 *
 * The program is found on PATH and started without a shell; script, picture and complaints pass through unnamed temporary files,
 * so nothing is left behind and nothing can block. A picture is what the script's terminal writes to standard output.
 */
#ifndef MSIM_PLOTS_GNUPLOT_H
#define MSIM_PLOTS_GNUPLOT_H

#include <stddef.h>

#include "model/base/diag.h"

/* STATUS_MISSING when there is no gnuplot, STATUS_FAILED with its first complaint when it fails or draws nothing. On success the
 * caller frees *picture. */
MUST_CHECK enum status gnuplot_run(const char *script, size_t n_script, char **picture, size_t *n_picture, struct diags *diags);

#endif
