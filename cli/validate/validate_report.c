/*
 * validate_report.c - predicted and measured times, numbers and memory, as text, CSV and JSON.
 */
#include <math.h>
#include <stdlib.h>

#include "cli/output/layout_json.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/validate/validate_internal.h"
#include "model/base/units.h"
#include "model/cost/work/precision_bytes.h"

#define WAITING_NOTED 0.01 /* of the step */

static double error_of(double predicted, double measured)
{
    return measured > 0 ? 100 * (predicted - measured) / measured : 0;
}

/* --- tables */

static void comparison_cells(struct table *table, double predicted, double measured)
{
    table_cell(table, "%.3f", predicted * 1e3);
    table_cell(table, "%.3f", measured * 1e3);
    table_tint(table, fabs(error_of(predicted, measured)) > 15 ? TINT_WARN : TINT_NONE);
    table_cell(table, "%+.1f", error_of(predicted, measured));
}

static void comparison_columns(struct table *table, const char *first)
{
    table_column(table, first, NULL, ALIGN_LEFT);
    table_column(table, "predicted", "ms", ALIGN_RIGHT);
    table_column(table, "measured", "ms", ALIGN_RIGHT);
    table_column(table, "error", "%", ALIGN_RIGHT);
}

static void classes_table(const struct validation *v, struct table *table)
{
    comparison_columns(table, "operations");
    table_column(table, "share", "%", ALIGN_RIGHT);
    double total = 0;
    for (int c = 0; c < N_WORK_CLASSES; c++)
        total += v->classes[c].measured_s;
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        const struct class_comparison *class = &v->classes[c];
        if (!class->operations)
            continue;
        table_cell(table, "%s", work_class_name((enum work_class)c));
        comparison_cells(table, class->predicted_s, class->measured_s);
        table_cell(table, "%.1f", total > 0 ? 100 * class->measured_s / total : 0);
    }
    table_cell(table, "step");
    comparison_cells(table, v->predicted_s, v->measured_s);
    table_cell(table, "%s", "");
}

static void ranks_table(const struct validation *v, struct table *table)
{
    comparison_columns(table, "rank");
    table_column(table, "computing: predicted", "ms", ALIGN_RIGHT);
    table_column(table, "measured", "ms", ALIGN_RIGHT);
    for (int r = 0; r < v->program.n_ranks; r++) {
        if (v->devices.alone >= 0 && r != v->devices.alone)
            continue;
        table_cell(table, "%d", r);
        comparison_cells(table, v->ranks[r].predicted_s, v->ranks[r].measured_s);
        table_cell(table, "%.3f", v->ranks[r].predicted_busy_s * 1e3);
        table_cell(table, "%.3f", v->ranks[r].measured_busy_s * 1e3);
    }
}

/* --- text */

static void write_losses(const struct validation *v, FILE *out)
{
    fprintf(out, "loss       ");
    for (int s = 0; s < v->run.n_steps; s++)
        fprintf(out, "%s%.4f", s ? "  " : "", v->run.steps[s].loss);
    fprintf(out, "\n");
}

/* What is not in the table of classes, mean over ranks. */
static void write_waiting(const struct validation *v, FILE *out)
{
    const struct core_waiting *predicted = &v->predicted_waiting, *measured = &v->measured_waiting;
    double each = 1e3 / validation_ranks(v);
    if (v->devices.kind != DEVICE_CPU || measured->computations * each < WAITING_NOTED * v->measured_s * 1e3)
        return;
    fprintf(out, "waiting    %.3f ms predicted, %.3f ms measured: computations waiting for a core; not in the table\n",
            predicted->computations * each, measured->computations * each);
    if (predicted->exchanges > 0)
        fprintf(out, "           %.3f ms predicted, %.3f ms measured: exchanges waiting for a core or a thread\n",
                predicted->exchanges * each, measured->exchanges * each);
}

static void text_report(const struct invocation *call, const struct validation *v)
{
    char layout[LAYOUT_TEXT], devices[384];
    FILE *out = call->out;
    struct table classes = {0}, ranks = {0};
    fprintf(out, "%s, %s\n", v->setup->experiment.model.name, layout_format(&v->setup->layout, layout, sizeof layout));
    fprintf(out, "%s; %s\n\n", devices_text(&v->devices, v->program.n_ranks, devices, sizeof devices),
            v->setup->experiment.cluster.gpu.source);
    fprintf(out, "step       %.3f ms predicted, %.3f ms measured (median of %d), error %+.1f %%\n", v->predicted_s * 1e3,
            v->measured_s * 1e3, v->run.n_steps > 1 ? v->run.n_steps - 1 : 1, v->error_pct);
    if (v->numerics.compared)
        fprintf(out, "numerics   %s: loss within %.1e, gradients within %.1e (%s) of one rank%s\n",
                v->numerics.held ? "equal" : "WRONG", v->numerics.loss_error, v->numerics.gradient_error, v->numerics.worst,
                precision_is_narrow(v->setup->setting.job->precision) ? " in fp32" : "");
    write_waiting(v, out);
    if (v->slices > 1)
        fprintf(out, "pieces     up to %d per product that overlaps with its exchange\n", v->slices);
    fprintf(out, "memory     %.4f GiB predicted, %.4f GiB measured, fullest rank\n", v->memory_predicted / GIB,
            v->memory_measured / GIB);
    if (!offload_is_none(&v->setup->layout.offload))
        fprintf(out, "host       %.4f GiB predicted, %.4f GiB measured, rank with the most host memory\n",
                v->host_predicted / GIB, v->host_measured / GIB);
    if (v->devices.alone < 0)
        write_losses(v, out);
    fprintf(out, "\n");
    classes_table(v, &classes);
    table_write_text(&classes, call);
    table_free(&classes);
    fputs(v->predicted_waiting.exchanges > 0
              ? "(mean over ranks, of the time on a core; waiting for a core is excluded, so classes do not add up to the step)\n"
              : "(mean over ranks; streams overlap and ranks wait for each other, so classes do not add up to the step)\n",
          out);
    if (call->verbosity < 1)
        return;
    fprintf(out, "\n");
    ranks_table(v, &ranks);
    table_write_text(&ranks, call);
    table_free(&ranks);
}

/* --- JSON */

static json_t *classes_json(const struct validation *v)
{
    json_t *classes = json_array();
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        const struct class_comparison *class = &v->classes[c];
        if (class->operations)
            json_array_append_new(classes, json_pack("{s:s, s:f, s:f, s:f, s:I}", "name", work_class_name((enum work_class)c),
                                                     "predicted_s", class->predicted_s, "measured_s", class->measured_s,
                                                     "error_pct", error_of(class->predicted_s, class->measured_s), "operations",
                                                     (json_int_t) class->operations));
    }
    return classes;
}

static json_t *ranks_json(const struct validation *v)
{
    json_t *ranks = json_array();
    for (int r = 0; r < v->program.n_ranks; r++) {
        const struct rank_comparison *rank = &v->ranks[r];
        if (v->devices.alone >= 0 && r != v->devices.alone)
            continue;
        json_array_append_new(ranks, json_pack("{s:i, s:f, s:f, s:f, s:f, s:I}", "rank", r, "predicted_s", rank->predicted_s,
                                               "measured_s", rank->measured_s, "predicted_busy_s", rank->predicted_busy_s,
                                               "measured_busy_s", rank->measured_busy_s, "memory_bytes",
                                               (json_int_t)v->run.memory_peak[r]));
    }
    return ranks;
}

/* null for what is not known; JSON has no infinity either. */
static json_t *number_json(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *steps_json(const struct validation *v)
{
    json_t *steps = json_array();
    for (int s = 0; s < v->run.n_steps; s++) {
        const struct thread_run_step *step = &v->run.steps[s];
        json_array_append_new(steps, json_pack("{s:o, s:o, s:f}", "loss", number_json(step->loss), "gradient_norm",
                                               number_json(step->gradient_norm), "seconds", (double)step->duration * 1e-9));
    }
    return steps;
}

/* What is not in the classes, mean over ranks. */
static json_t *waiting_json(double predicted, double measured, int ranks)
{
    return json_pack("{s:f, s:f}", "predicted_s", predicted / ranks, "measured_s", measured / ranks);
}

static json_t *numerics_json(const struct numerics *n)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:b}", "max_rel_error", number_json(n->max_rel_error), "loss",
                     number_json(n->loss_error), "gradients", number_json(n->gradient_error), "allowed", number_json(n->allowed),
                     "worst", n->worst, "held", (int)n->held);
}

static enum status json_report(struct invocation *call, const struct validation *v)
{
    char *config = experiment_to_json(&v->setup->experiment);
    json_t *result = result_create(call, config);
    free(config);
    json_object_set_new(result, "layout", layout_json(&v->setup->layout));
    json_object_set_new(result, "backend", json_string(devices_kind_name(&v->devices)));
    json_object_set_new(result, "exchanges", json_string(devices_comm_name(&v->devices)));
    if (v->devices.alone >= 0)
        json_object_set_new(result, "alone", json_integer(v->devices.alone));
    json_object_set_new(result, "ranks_total", json_integer(v->program.n_ranks));
    json_object_set_new(result, "predicted_s", json_real(v->predicted_s));
    json_object_set_new(result, "measured_s", json_real(v->measured_s));
    json_object_set_new(result, "error_pct", json_real(v->error_pct));
    json_object_set_new(result, "classes", classes_json(v));
    if (v->predicted_waiting.exchanges > 0) {
        const struct core_waiting *predicted = &v->predicted_waiting, *measured = &v->measured_waiting;
        int n = validation_ranks(v);
        json_object_set_new(result, "waiting",
                            json_pack("{s:o, s:o}", "computations",
                                      waiting_json(predicted->computations, measured->computations, n), "exchanges",
                                      waiting_json(predicted->exchanges, measured->exchanges, n)));
    }
    json_object_set_new(result, "ranks", ranks_json(v));
    json_object_set_new(result, "steps", steps_json(v));
    json_object_set_new(result, "pieces", json_integer(v->slices));
    if (v->numerics.compared)
        json_object_set_new(result, "numerics", numerics_json(&v->numerics));
    json_object_set_new(result, "memory",
                        json_pack("{s:f, s:f, s:f, s:f}", "predicted_gib", v->memory_predicted / GIB, "measured_gib",
                                  v->memory_measured / GIB, "host_predicted_gib", v->host_predicted / GIB, "host_measured_gib",
                                  v->host_measured / GIB));
    json_object_set_new(result, "seconds", json_real(v->seconds));
    return result_write(call, result);
}

enum status validate_report(struct invocation *call, const struct validation *v)
{
    if (call->format == FORMAT_JSON)
        return json_report(call, v);
    if (call->format == FORMAT_TEXT) {
        text_report(call, v);
        return STATUS_OK;
    }
    struct table classes = {0};
    classes_table(v, &classes);
    table_write(&classes, call);
    table_free(&classes);
    return STATUS_OK;
}
