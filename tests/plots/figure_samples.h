/* Results to draw: one of each kind of figure, and how they become scripts. */
#ifndef MSIM_TESTS_PLOTS_FIGURE_SAMPLES_H
#define MSIM_TESTS_PLOTS_FIGURE_SAMPLES_H

#include "plots/figure.h"

/* What a command would have written, JSON or CSV. */
extern const char *const figure_samples[N_FIGURE_KINDS];

/* Of a text that must be right; figure_input_free it. */
struct figure_input input_of(const char *name, const char *text);
/* The script, to be freed, and what figure_script returns and says. */
enum status script_written(const struct figure_options *options, const struct figure_input *inputs, size_t n, char **script,
                           struct diags *diags);
/* Of inputs that must be right. */
char *script_of(const struct figure_options *options, const struct figure_input *inputs, size_t n);
/* The script holds each of the parts, whose last is NULL. */
void expect_script(const struct figure_options *options, const char *name, const char *text, const char *const *parts);

#endif
