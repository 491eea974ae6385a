/*
 * figure.h - figures from result files.
 *
 *   timeline   lanes of a pipeline's stages over the time of one step     msim step --trace-csv, or a result with its timeline;
 *              or two lanes a rank, predicted over measured               msim validate --timeline
 *   breakdown  where the time of a step or run goes; one bar a file,      step, plan and run results
 *              two of a step with a profile beside it
 *   run        MFU and goodput over a run, and what its time was spent on run results
 *   scatter    predicted against measured, with a band of 10 %            compare results
 *   errors     mean error of each table, with median, 90th percentile     compare results
 *   sweep      goodput against what was swept, with the closed form;      run --sweep results
 *              of two things or more curves, or a map
 *   scaling    tokens a second and MFU of the best plan at each point     plan --sweep results
 *   replicas   how goodput is distributed                                 run --replicas results
 *   end        when training ends, and how certain that is                run --tokens --replicas results
 *   faults     causes of failures and their repair times                  faults summary results
 *   links      what every link of a fabric carried, layer by layer        step and fabric load --link-map
 *
 * A figure is a gnuplot file (NAME.gp beside this header, or share/msim/plots) that draws named blocks of data; figure_data.h
 * says what the blocks hold. Colour-blind readers distinguish the colours too (after Okabe and Ito).
 */
#ifndef MSIM_PLOTS_FIGURE_H
#define MSIM_PLOTS_FIGURE_H

#include <jansson.h>

#include "model/base/diag.h"
#include "traces/table/csv.h"

enum figure_kind {
    FIGURE_TIMELINE,
    FIGURE_BREAKDOWN,
    FIGURE_RUN,
    FIGURE_SCATTER,
    FIGURE_ERRORS,
    FIGURE_SWEEP,
    FIGURE_REPLICAS,
    FIGURE_FAULTS,
    FIGURE_LINKS,
    FIGURE_SCALING,
    FIGURE_END,
    N_FIGURE_KINDS
};

enum figure_terminal { TERMINAL_TEXT, TERMINAL_PNG, TERMINAL_SVG, TERMINAL_PDF };
/* What a file's ending asks for; text for "-". STATUS_USAGE when it is none of those. */
MUST_CHECK enum status figure_terminal_of(const char *path, enum figure_terminal *terminal, struct diags *diags);

/* What is drawn: a JSON result, or as CSV a timeline or a map of links. */
struct figure_input {
    const char *name; /* of the file */
    json_t *result;   /* NULL for a CSV */
    struct csv_table csv;
};
/* Read a result (".gz", "-"): JSON when it begins with '{', a timeline CSV otherwise. Free with figure_input_free. */
MUST_CHECK enum status figure_input_read(const char *path, struct figure_input *input, struct diags *diags);
/* The same from a text, which is called `name`; `text` ends with a NUL after its n bytes. */
MUST_CHECK enum status figure_input_parse(const char *name, const char *text, size_t n, struct figure_input *input,
                                          struct diags *diags);
void figure_input_free(struct figure_input *input);

/* The figure that suits an input best; N_FIGURE_KINDS with a diagnostic when none does. */
enum figure_kind figure_kind_of(const struct figure_input *input, struct diags *diags);

struct figure_options {
    enum figure_kind kind;
    enum figure_terminal terminal;
    int width, height;   /* pixels (PDF: points), characters for text; 0: what suits the figure */
    bool colour;         /* of text */
    const char *title;   /* NULL: made from the first input */
    double from_s, to_s; /* part of a timeline that is shown; to_s 0: all */
};

/* What is sent to gnuplot: terminal, data blocks, `load 'NAME.gp'`. */
MUST_CHECK enum status figure_script(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs,
                                     FILE *out, struct diags *diags);
/* The drawn figure; the caller frees *picture. */
MUST_CHECK enum status figure_draw(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs,
                                   char **picture, size_t *n_picture, struct diags *diags);

#endif
