/* run_prediction.c - the predicted step time and memory of one measured run. */
#include "sim/search/run_prediction.h"

#include "model/cost/step/closed_form.h"
#include "model/cost/work/work.h"
#include "sim/step/step.h"

static enum status predict_by_simulation(const struct measurement *run, const struct setting *setting, struct run_prediction *p,
                                         struct diags *diags)
{
    struct step_options options = {.detail = DETAIL_CHUNK};
    struct step_result result;
    enum status status = step_simulate(&run->layout, setting, &options, &result, NULL, NULL, diags);
    if (status != STATUS_OK)
        return status;
    p->step_s = result.step_time_s;
    p->mfu = result.mfu;
    p->breakdown = result.breakdown;
    return STATUS_OK;
}

static void predict_by_formula(const struct measurement *run, const struct setting *setting, struct run_prediction *p)
{
    struct closed_form *form = closed_form_create(setting);
    struct step_estimate estimate;
    closed_form_estimate(form, &run->layout, &estimate);
    closed_form_destroy(form);
    double peak = run->cluster.gpu.peak_flops[run->job.precision];
    double flops = model_flops_per_step(setting, run->layout.features, FLOPS_FULL);
    p->step_s = estimate.step_s;
    p->mfu = peak > 0 ? flops / (estimate.step_s * run->gpus * peak) : 0;
    p->breakdown = estimate.by_class;
}

static enum predict_method method_for(enum predict_method asked, const struct measurement *run, struct diags *diags)
{
    if (asked == PREDICT_BY_FORMULA || !step_is_long(&run->layout, &run->job))
        return asked;
    diag_note(diags, run->at, "%s has %lld micro-batches; it is predicted by the formula", run->name,
              (long long)layout_micro_batches(&run->layout, &run->job));
    return PREDICT_BY_FORMULA;
}

void run_predict(enum predict_method method, const struct measurement *run, struct run_prediction *p, struct diags *diags)
{
    char why[512];
    struct setting setting = measurement_setting(run);
    *p = (struct run_prediction){.legal = layout_check(&run->layout, &setting, why, sizeof why) == LAYOUT_LEGAL};
    if (!p->legal) {
        diag_warning(diags, run->at, "%s is not predicted: %s", run->name, why);
        return;
    }
    int stage;
    footprint_peak(&run->layout, &setting, &p->memory, &stage);
    p->capacity = footprint_capacity(&run->cluster);
    if (run->oom)
        return;
    struct diags problems = {0};
    if (method_for(method, run, diags) == PREDICT_BY_FORMULA)
        predict_by_formula(run, &setting, p);
    else if (predict_by_simulation(run, &setting, p, &problems) != STATUS_OK)
        diag_warning(diags, run->at, "%s is not predicted: %s", run->name,
                     problems.n_items ? problems.items[0].text : "the simulation failed");
    diags_free(&problems);
}
