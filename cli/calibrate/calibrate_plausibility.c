/*
 * calibrate_plausibility.c - errors and warnings about implausible fits: too few rows for the parameters, values that no entry of
 * the catalog has, values far from the old one, and large remaining errors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/calibrate/calibrate_report.h"
#include "model/base/append.h"
#include "model/base/memory.h"

/* --- too few rows -------------------------------------------------------------------------------------------------- */

static void note_remedy(const struct calibration *c, struct diags *diags)
{
    size_t held = 0, cases = calibration_cases(c);
    for (size_t i = 0; i < c->n_rows; i++)
        held += c->rows[i].held_out;
    if (held && cases > c->n_parameters)
        diag_note(diags, PLACE_NONE,
                  "a fit needs more different cases than parameters; --holdout 0 uses all %zu rows, of which --holdout now keeps "
                  "%zu out of the fit",
                  c->n_rows, held);
    else if (held)
        diag_note(diags, PLACE_NONE,
                  "a fit needs more different cases than parameters; measure more, specify fewer --parameters, or use all %zu "
                  "rows with --holdout 0 (%zu are held out now)",
                  c->n_rows, held);
    else
        diag_note(diags, PLACE_NONE,
                  "a fit needs more different cases than parameters; measure more, or specify fewer --parameters");
}

/* "a, b and c": the parameters with too few rows, and the same number of them as `like`. */
static size_t too_few_like(const struct calibration *c, const struct calibrate_estimate *like, char *names, size_t size)
{
    size_t n = 0, left = 0;
    for (size_t k = 0; k < c->n_parameters; k++) {
        const struct calibrate_estimate *e = &c->parameters[k].estimate;
        left += e->outcome == CALIBRATE_TOO_FEW && e->n_rows == like->n_rows && e->n_cases == like->n_cases;
    }
    for (size_t k = 0; k < c->n_parameters; k++) {
        const struct calibrate_estimate *e = &c->parameters[k].estimate;
        if (e->outcome != CALIBRATE_TOO_FEW || e->n_rows != like->n_rows || e->n_cases != like->n_cases)
            continue;
        text_append(names, size, "%s%s", n == 0 ? "" : n + 1 == left ? " and " : ", ", c->parameters[k].entry.path);
        n++;
    }
    return n;
}

/* Is an earlier parameter in the same straits, and has spoken for this one? */
static bool is_told(const struct calibration *c, size_t k)
{
    const struct calibrate_estimate *e = &c->parameters[k].estimate;
    for (size_t j = 0; j < k; j++) {
        const struct calibrate_estimate *other = &c->parameters[j].estimate;
        if (other->outcome == CALIBRATE_TOO_FEW && other->n_rows == e->n_rows && other->n_cases == e->n_cases)
            return true;
    }
    return false;
}

enum status calibration_check_determined(const struct calibration *c, bool any, struct diags *diags)
{
    size_t before = diags->n_errors;
    for (size_t k = 0; k < c->n_parameters; k++) {
        const struct calibrate_estimate *e = &c->parameters[k].estimate;
        if (e->outcome != CALIBRATE_TOO_FEW || !(c->chosen || !any) || is_told(c, k))
            continue;
        char names[768] = "";
        size_t n = too_few_like(c, e, names, sizeof names);
        diag_error(diags, PLACE_NONE, "%s cannot be fitted: %zu row%s with %zu different case%s for %s", names, e->n_rows,
                   e->n_rows == 1 ? "" : "s", e->n_cases, e->n_cases == 1 ? "" : "s",
                   n > 1 ? "these parameters and those fitted together with them"
                         : "this parameter and those fitted together with it");
    }
    if (diags->n_errors > before) {
        note_remedy(c, diags);
    } else if (!any) {
        diag_error(diags, PLACE_NONE, "the rows determine none of the parameters");
        diag_note(diags, PLACE_NONE,
                  "a fit needs rows that depend on each parameter in a different way; measure other cases, or specify other "
                  "--parameters");
    }
    return diags->n_errors == before ? STATUS_OK : STATUS_BAD_INPUT;
}

/* --- values that hardly can be ------------------------------------------------------------------------------------- */

/* Where the entry has the value from. */
static const char *source_of(const struct calibration *c, const char *path)
{
    bool of_gpu = strncmp(path, "gpu.", 4) == 0 || c->kind == CATALOG_GPUS;
    const struct gpu *gpu = &c->cluster.gpu;
    if (strstr(path, "memory."))
        return gpu->memory_source;
    return of_gpu ? gpu->source : c->cluster.source;
}

/* "12.3 standard errors from the 0.85 of dgx-h100 (assumption: ...)". */
static void far_text(const struct calibration *c, const struct calibration_parameter *p, char *text, size_t size)
{
    char before[64];
    const char *source = source_of(c, p->entry.path);
    text[0] = '\0';
    text_append(text, size, "%.3g standard errors from the %s of %.60s", p->estimate.moved,
                entry_parameter_text(&p->entry, p->before, before, sizeof before), c->base);
    if (*source)
        text_append(text, size, " (%.100s)", source);
}

/* Steps load on a few parameters whatever else the model misses of them: a value that no entry has, or far from what the entry
 * had, is more likely a sign of that (another layout, features or network than the rows say) than of the hardware. */
void calibration_warn_of_values(const struct calibration *c, struct diags *diags)
{
    for (size_t k = 0; k < c->n_parameters; k++) {
        const struct calibration_parameter *p = &c->parameters[k];
        const struct value_doubt doubt = calibration_doubt(c, k);
        char value[64], low[64], high[64], far[320] = "";
        if (doubt.far)
            far_text(c, p, far, sizeof far);
        entry_parameter_text(&p->entry, p->after, value, sizeof value);
        if (doubt.outside)
            diag_warning(diags, PLACE_NONE,
                         "%s: %s is not plausible: entries of the catalog have %s to %s%s%s; the rows probably have another "
                         "layout, features or network than their columns say",
                         p->entry.path, value, entry_parameter_text(&p->entry, doubt.low, low, sizeof low),
                         entry_parameter_text(&p->entry, doubt.high, high, sizeof high), doubt.far ? ", and it is " : "", far);
        else if (doubt.far)
            diag_warning(diags, PLACE_NONE, "%s: %s is %s", p->entry.path, value, far);
    }
}

/* --- what the fit leaves ------------------------------------------------------------------------------------------- */

#define POOR_PCT 25.0 /* median error that no model here leaves on what it describes */

void calibration_warn_of_misfit(const struct calibration *c, struct diags *diags)
{
    for (size_t g = 0; g < c->n_groups; g++) {
        struct accuracy a = calibration_accuracy(c, g, false, true);
        if (a.n > 0 && a.median_ape_pct > POOR_PCT)
            diag_warning(diags, PLACE_NONE,
                         "%s: the best fit leaves a median error of %.0f %%; the model does not describe these rows, or they are "
                         "not from a %s",
                         c->groups[g].label, a.median_ape_pct, c->cluster.gpu.name);
    }
}

enum status calibration_check_better(const struct calibration *c, bool writes, struct diags *diags)
{
    const struct calibration_loss loss = calibration_worst_loss(c);
    if (loss.group == c->n_groups)
        return STATUS_OK;
    const char *label = c->groups[loss.group].label;
    if (!writes) {
        diag_warning(diags, PLACE_NONE, "%s: the fit is worse than %.60s: mean error %.1f %%, before %.1f %%", label, c->base,
                     loss.after_pct, loss.before_pct);
        return STATUS_OK;
    }
    diag_error(diags, PLACE_NONE,
               "%s: the fit is worse than %.60s: mean error %.1f %%, before %.1f %%; msim does not write this entry", label,
               c->base, loss.after_pct, loss.before_pct);
    diag_note(diags, PLACE_NONE,
              "run without -o to see the report; fit these rows alone, or choose other --parameters that they determine");
    return STATUS_BAD_INPUT;
}
