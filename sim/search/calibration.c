/* calibration.c - fit parameters of a GPU or cluster entry to measured kernels and training steps. */
#include "sim/search/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/search/calibration_internal.h"

static void predict_all(struct calibration *c, bool after)
{
    double values[CALIBRATION_PARAMETERS_MAX], *seconds = memory_new(c->n_rows, sizeof *seconds);
    size_t *rows = memory_new(c->n_rows, sizeof *rows);
    for (size_t i = 0; i < c->n_rows; i++)
        rows[i] = i;
    for (size_t k = 0; k < c->n_parameters; k++)
        values[k] = after ? c->parameters[k].after : c->parameters[k].before;
    calibration_predict(c, values, rows, c->n_rows, seconds);
    for (size_t i = 0; i < c->n_rows; i++)
        *(after ? &c->rows[i].after : &c->rows[i].before) = seconds[i];
    free(seconds);
    free(rows);
}

/* The fit sees its rows first and those held out never: they are moved behind. */
static size_t training_first(struct calibration *c)
{
    struct calibration_row *sorted = memory_new(c->n_rows, sizeof *sorted);
    size_t n = 0, n_training;
    for (size_t i = 0; i < c->n_rows; i++)
        if (!c->rows[i].held_out)
            sorted[n++] = c->rows[i];
    n_training = n;
    for (size_t i = 0; i < c->n_rows; i++)
        if (c->rows[i].held_out)
            sorted[n++] = c->rows[i];
    free(c->rows);
    c->rows = sorted;
    return n_training;
}

/* A ladder of message sizes has as many rows below 1 MiB as above, while jobs spend their time in large messages: a message of
 * 8 B counts a third of one of 1 GiB. */
static double weight_of(const struct calibration_row *row)
{
    enum { ROOT = 16 };
    const double whole = 0x1p30; /* bytes of a message that counts 1 */
    if (!row->kernel || row->kernel->op != MEASURED_COLLECTIVE)
        return 1;
    return pow(row->kernel->collective.bytes / whole, 1.0 / ROOT);
}

static bool fit(struct calibration *c)
{
    struct calibrate_parameter parameters[CALIBRATION_PARAMETERS_MAX];
    struct calibrate_estimate estimates[CALIBRATION_PARAMETERS_MAX];
    size_t n = training_first(c);
    double *measured = memory_new(n, sizeof *measured), *weights = memory_new(n, sizeof *weights);
    uint64_t *cases = memory_new(n, sizeof *cases);
    for (size_t i = 0; i < n; i++) {
        measured[i] = c->rows[i].measured;
        weights[i] = weight_of(&c->rows[i]);
        cases[i] = calibration_case(&c->rows[i]);
    }
    for (size_t k = 0; k < c->n_parameters; k++) {
        const struct calibration_parameter *p = &c->parameters[k];
        parameters[k] = (struct calibrate_parameter){
            .name = p->entry.path, .start = p->before, .low = p->entry.row->min, .high = p->entry.row->max};
    }
    struct calibrate_problem problem = {.parameters = parameters,
                                        .n_parameters = c->n_parameters,
                                        .measured = measured,
                                        .weights = weights,
                                        .cases = cases,
                                        .n_rows = n,
                                        .predict = calibration_predict,
                                        .predict_near = calibration_can_be_near(c) ? calibration_predict_near : NULL,
                                        .context = c};
    bool any = calibrate_fit(&problem, estimates);
    for (size_t k = 0; k < c->n_parameters; k++) {
        struct calibration_parameter *p = &c->parameters[k];
        p->estimate = estimates[k];
        bool changed = estimates[k].outcome <= CALIBRATE_AT_BOUND;
        p->after = changed ? entry_parameter_round(&p->entry, estimates[k].value) : p->before;
    }
    free(measured);
    free(weights);
    free(cases);
    return any;
}

bool calibration_fit(struct calibration *c)
{
    calibration_prepare(c);
    predict_all(c, false);
    return fit(c);
}

void calibration_predict_after(struct calibration *c)
{
    predict_all(c, true);
}

struct accuracy calibration_accuracy(const struct calibration *c, size_t group, bool held_out, bool after)
{
    struct comparison *items = memory_new(c->n_rows, sizeof *items);
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct calibration_row *row = &c->rows[i];
        if (row->group == group && row->held_out == held_out)
            items[n++] = (struct comparison){.name = "",
                                             .source = "",
                                             .gpu = "",
                                             .measured_s = row->measured,
                                             .predicted_s = after ? row->after : row->before};
    }
    struct accuracy accuracy = accuracy_total(items, n);
    free(items);
    return accuracy;
}
