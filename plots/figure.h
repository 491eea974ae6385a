/*
 * figure.h - draws figures from result files, through gnuplot.
 *
 * Example: a figure in the terminal, as `msim plot run.json` draws it.
 *
 *     figure_input_read("run.json", &input, &diags);
 *     struct figure_options options = {.kind = figure_kind_of(&input, &diags), .terminal = TERMINAL_TEXT};
 *     figure_draw(&options, &input, 1, &picture, &n, &diags);
 *
 *   kind       shows                                                      from results of
 *   timeline   what each pipeline stage does during one step;             msim step --trace-csv, or a result with its timeline
 *              or two lanes per rank, predicted above measured            msim validate --timeline
 *   breakdown  where the time of a step or run goes; one bar per file     step, plan and run; a step with a profile has two bars
 *   run        MFU and goodput over a run, and the uses of its time       run
 *   scatter    predicted against measured times, with a band of 10 %      compare
 *   errors     mean error of each table, with median, 90th percentile     compare
 *   sweep      goodput against the swept value, with the closed form;     run --sweep
 *              two swept values: several curves, or a map
 *   scaling    tokens per second and MFU of the best plan at each point   plan --sweep
 *   replicas   distribution of goodput                                    run --replicas
 *   end        when training ends, with its uncertainty                   run --tokens --replicas
 *   faults     causes of failures and their repair times                  faults summary
 *   links      the load of every link of a fabric, layer by layer         step and fabric load --link-map
 *
 * A figure is a gnuplot file (NAME.gp in this folder, or share/msim/plots) that draws named blocks of data; figure_data.h
 * describes the blocks. Colour-blind readers can distinguish the colours (palette.h).
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
/* The terminal for a file name, by its extension; "-" is text. STATUS_USAGE for other extensions. */
MUST_CHECK enum status figure_terminal_of(const char *path, enum figure_terminal *terminal, struct diags *diags);

/* The input of a figure: a JSON result, or a CSV with a timeline, a map of links or replicas. */
struct figure_input {
    const char *name; /* of the file */
    json_t *result;   /* NULL for a CSV */
    struct csv_table csv;
};
/* Reads a result (".gz", "-"): JSON if it begins with '{', else CSV. Free it with figure_input_free. */
MUST_CHECK enum status figure_input_read(const char *path, struct figure_input *input, struct diags *diags);
/* The same from a text named `name` in diagnostics; `text` has a NUL after its n bytes. */
MUST_CHECK enum status figure_input_parse(const char *name, const char *text, size_t n, struct figure_input *input,
                                          struct diags *diags);
void figure_input_free(struct figure_input *input);

/* The best kind of figure for an input; N_FIGURE_KINDS with a diagnostic if there is none. */
enum figure_kind figure_kind_of(const struct figure_input *input, struct diags *diags);

struct figure_options {
    enum figure_kind kind;
    enum figure_terminal terminal;
    int width, height;   /* pixels (PDF: points), characters for text; 0: the default of the kind */
    bool colour;         /* in text */
    const char *title;   /* NULL: the model of the first input */
    double from_s, to_s; /* shown part of a timeline; to_s 0: all */
};

/* Writes the script for gnuplot: terminal, data blocks, `load 'NAME.gp'`. */
MUST_CHECK enum status figure_script(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs,
                                     FILE *out, struct diags *diags);
/* The drawn figure; the caller frees *picture. */
MUST_CHECK enum status figure_draw(const struct figure_options *options, const struct figure_input *inputs, size_t n_inputs,
                                   char **picture, size_t *n_picture, struct diags *diags);

#endif
