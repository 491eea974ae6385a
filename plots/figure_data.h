/*
 * figure_data.h - writes the data of each figure as gnuplot's data blocks and variables.
 *
 * Example: the block of a histogram, with a tab between cells.
 *
 *     $bins << EOD
 *     91.5<tab>12
 *     92.0<tab>40
 *     EOD
 *
 * The blocks of each figure, with their columns:
 *
 *   timeline   $bars   lane-low lane-high start end colour         one operation; times in `time_unit`
 *              $labels time lane text                              micro-batch numbers where they fit; n_labels
 *              $strips lane letters                                for text: what each stage does in each column
 *              $lanes  lane stage          $legend colour text
 *              predicted_time, measured_time                       only where the file has both: lanes are then pairs
 *   breakdown  $bars   column colour seconds share class           classes with time, in the order of the classes
 *              $names  column file                                 n_columns; differs: as in 'batch, precision'
 *   run        $shares time goodput mfu uses...                    percent; steps; uses besides training add up from the first
 *              $uses   colour text
 *              $incidents time lost_h
 *   scatter    $points measured predicted group                    $groups group colour point-type text
 *   errors     $errors row mean median p90 bias n text
 *   sweep      $points value goodput low high memoryless           percent
 *   grid       $points value goodput low high curve column         percent; a sweep of two things or more: along the longest axis
 *              $series curve colour text      $columns column text a curve for each combination of the others (is_map: a row)
 *   scaling    $points x tokens-a-second linear MFU series           x: a value, or its number where values are words (is_word);
 *              $series series colour text     $words x text          percent; others: what the series are of
 *   replicas   $bins   goodput count                               a histogram
 *   end        $ends   days share                                   percent of the replicas; NaN where percentiles are not known
 *   faults     $causes row faults mean-repair-hours text
 *   links      $layers row mean most links text                    percent; n_rows
 *              $map1 to $map6  across down utilisation             links up and down, by host or switch and its port;
 *              links1, ports1, mean1, most1, ...                   how many, how many of a host or switch; percent
 *              place1 to place3                                    the column of each pair of maps, of n_columns
 */
#ifndef MSIM_PLOTS_FIGURE_DATA_H
#define MSIM_PLOTS_FIGURE_DATA_H

#include "plots/figure.h"

MUST_CHECK enum status figure_data_timeline(const struct figure_options *options, const struct figure_input *input,
                                            int text_columns, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_breakdown(const struct figure_input *inputs, size_t n_inputs, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_run(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_scatter(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_errors(const struct figure_input *input, FILE *out, struct diags *diags);

MUST_CHECK enum status figure_data_sweep(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_grid(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_replicas(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_faults(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_links(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_scaling(const struct figure_input *input, FILE *out, struct diags *diags);
MUST_CHECK enum status figure_data_end(const struct figure_input *input, FILE *out, struct diags *diags);
/* Is this the table of --link-map? */
bool figure_is_links(const struct figure_input *input);

/* Is this a sweep of several values, which grid.gp draws? */
bool figure_is_grid(const json_t *result);
/* The unit for an axis with values up to `high`, in units of `unit` ("s" or nothing). Sets *name to the text for its label, such
 * as " [min]". */
double figure_axis_unit(const char *unit, double high, const char **name);
/* The label of an axis of a sweep. */
const char *figure_axis_name(const char *key);

/* The number of a key; 0 without one. */
double figure_number(const json_t *object, const char *key);
/* Writes a text as one cell: without tabs, double quotes and line ends. */
void figure_write_text(FILE *out, const char *text);
/* A file's name without folders and extensions. Returns buffer. */
char *figure_short_name(const char *path, char *buffer, size_t size);

/* Do the points of a result belong to several models? */
bool figure_has_models(const json_t *result);

#endif
