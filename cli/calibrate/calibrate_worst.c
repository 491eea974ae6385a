/*
 * calibrate_worst.c - the runs with the largest errors after a fit, by name. The cause is usually a wrong word in their row.
 */
#include <math.h>
#include <string.h>

#include "cli/calibrate/calibrate_report.h"
#include "cli/output/table.h"
#include "model/spec/json_text.h"

enum { CALIBRATION_WORST = 3 };
#define WORTH_NAMING 0.1 /* error of a run that is named among those left worst */

static double error_of(const struct calibration_row *row)
{
    return row->run && row->measured > 0 ? fabs(row->after / row->measured - 1) : 0;
}

/* The worst first; how many. */
static size_t find_worst(const struct calibration *c, const struct calibration_row *worst[CALIBRATION_WORST])
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct calibration_row *row = &c->rows[i];
        size_t at = n;
        if (!(error_of(row) > WORTH_NAMING))
            continue;
        while (at > 0 && error_of(worst[at - 1]) < error_of(row))
            at--;
        if (at == CALIBRATION_WORST)
            continue;
        n += n < CALIBRATION_WORST;
        memmove(worst + at + 1, worst + at, (n - at - 1) * sizeof *worst);
        worst[at] = row;
    }
    return n;
}

static double percent_off(const struct calibration_row *row, double predicted)
{
    return 100 * (predicted / row->measured - 1);
}

void calibration_write_worst(const struct calibration *c, const struct invocation *call)
{
    struct table table = {0};
    const struct calibration_row *worst[CALIBRATION_WORST];
    size_t n = find_worst(c, worst);
    if (n == 0)
        return;
    fprintf(call->out, "\n%sWorst rows after the fit%s\n", tint_start(TINT_STRONG, call->colour),
            tint_end(TINT_STRONG, call->colour));
    table_column(&table, "run", NULL, ALIGN_LEFT);
    table_column(&table, "table", NULL, ALIGN_LEFT);
    table_column(&table, "part", NULL, ALIGN_LEFT);
    table_column(&table, "measured", "s", ALIGN_RIGHT);
    table_column(&table, "error", "%", ALIGN_RIGHT);
    table_column(&table, "now", "%", ALIGN_RIGHT);
    for (size_t i = 0; i < n; i++) {
        table_cell(&table, "%s", worst[i]->run->name);
        table_cell(&table, "%s:%d", calibration_title(worst[i]->table), worst[i]->run->at.line);
        table_cell(&table, worst[i]->held_out ? "held out" : "fitted");
        table_cell(&table, "%.3f", worst[i]->measured);
        table_cell(&table, "%+.1f", percent_off(worst[i], worst[i]->before));
        table_cell(&table, "%+.1f", percent_off(worst[i], worst[i]->after));
    }
    table_write_text(&table, call);
    table_free(&table);
}

json_t *calibration_json_worst(const struct calibration *c)
{
    const struct calibration_row *worst[CALIBRATION_WORST];
    size_t n = find_worst(c, worst);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:i, s:s, s:f, s:f, s:f}", "case", worst[i]->run->name, "table",
                                              json_text(worst[i]->table), "line", worst[i]->run->at.line, "part",
                                              worst[i]->held_out ? "held_out" : "fitted", "measured_s", worst[i]->measured,
                                              "error_before_pct", percent_off(worst[i], worst[i]->before), "error_after_pct",
                                              percent_off(worst[i], worst[i]->after)));
    return list;
}
