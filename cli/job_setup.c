#include "cli/job_setup.h"

#include "cli/experiment_options.h"
#include "model/plan/search.h"

static const struct place NOWHERE;

static enum status layout_best(struct invocation *call, struct job_setup *setup)
{
    struct plan best;
    char text[192];
    enum status status = plan_best(&setup->setting, NULL, 0, &best, &call->diags);

    if (status != STATUS_OK)
        return status;
    setup->layout = best.layout;
    setup->chosen = true;
    talk(call, 0, "layout: auto chose %s", layout_format(&setup->layout, text, sizeof text));
    return STATUS_OK;
}

static enum status layout_requested(struct invocation *call, struct job_setup *setup)
{
    struct layout layout = {0};
    char why[256], text[192];
    enum status status = layout_parse(setup->experiment.layout.text, &layout, &call->diags);

    if (status != STATUS_OK)
        return status;
    layout_complete(&layout, &setup->setting);
    enum layout_reason reason = layout_check(&layout, &setup->setting, why, sizeof why);
    if (reason != LAYOUT_LEGAL) {
        diag_error(&call->diags, NOWHERE, "layout %s: %s", layout_format(&layout, text, sizeof text), why);
        return STATUS_BAD_INPUT;
    }
    setup->layout = layout;
    return STATUS_OK;
}

enum status job_setup_load(struct invocation *call, struct job_setup *setup)
{
    struct experiment_flags flags = experiment_flags_of(call);
    enum status status = experiment_load(&flags, &setup->experiment, &call->diags);

    if (status != STATUS_OK)
        return status;
    setup->setting = (struct setting){.model = &setup->experiment.model,
                                      .cluster = &setup->experiment.cluster,
                                      .job = &setup->experiment.job,
                                      .gpus = setup->experiment.gpus};
    setup->chosen = false;
    return setup->experiment.layout.given ? layout_requested(call, setup) : layout_best(call, setup);
}
