/*
 * gnuplot.h - runs gnuplot on a script and returns the picture that it draws.
 *
 * Example: gnuplot_run("set terminal dumb\nplot sin(x)\n", 31, &picture, &n, &diags) returns a plot as text.
 *
 * The program is found on PATH and started without a shell. Script, picture and error messages go through unnamed temporary
 * files, so no files remain and nothing can block. The picture is the standard output of gnuplot.
 */
#ifndef MSIM_PLOTS_GNUPLOT_H
#define MSIM_PLOTS_GNUPLOT_H

#include <stddef.h>

#include "model/base/diag.h"

/* STATUS_MISSING without gnuplot; STATUS_FAILED, with its first error message, if it fails or draws nothing. On success the
 * caller frees *picture. */
MUST_CHECK enum status gnuplot_run(const char *script, size_t n_script, char **picture, size_t *n_picture, struct diags *diags);

#endif
