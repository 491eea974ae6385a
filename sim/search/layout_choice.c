/* layout_choice.c - the layout of an experiment: the given one, or the best one. */
#include "sim/search/layout_choice.h"

#include <stdio.h>

#include "model/base/number_text.h"
#include "model/plan/batch_fit.h"
#include "sim/search/low_oom_plan.h"

static enum status layout_given(const struct layout_request *request, const struct setting *setting, struct layout *layout,
                                struct diags *diags)
{
    struct layout parsed = layout_defaults;
    enum status status = layout_parse(request->text, &parsed, diags);
    if (status != STATUS_OK)
        return status;
    layout_complete(&parsed, setting);
    char why[256], text[LAYOUT_TEXT];
    if (layout_check(&parsed, setting, why, sizeof why) != LAYOUT_LEGAL) {
        diag_error(diags, PLACE_NONE, "layout %s: %s", layout_format(&parsed, text, sizeof text), why);
        return STATUS_BAD_INPUT;
    }
    *layout = parsed;
    return STATUS_OK;
}

enum status layout_choose(const struct experiment *experiment, int threads, struct layout *layout, struct diags *diags)
{
    struct setting setting = experiment_setting(experiment);
    if (experiment->layout.given)
        return layout_given(&experiment->layout, &setting, layout, diags);
    struct ranked_plan chosen;
    enum status status = plan_choose(&setting, experiment->layout.text, threads, &chosen, diags);
    if (status != STATUS_OK)
        return status;
    struct low_oom_plan low;
    low_oom_plan_choose(&chosen, &setting, experiment->layout.text, threads, &low);
    struct space_limits limits = {0};
    if (!experiment->layout.text[0] || space_restrict(&limits, experiment->layout.text, PLACE_NONE, diags) == STATUS_OK)
        batch_fit_warn(experiment->gpus, &experiment->job, &limits, diags);
    char what[64];
    snprintf(what, sizeof what, "layout: auto on %d GPU%s", setting.gpus, plural(setting.gpus));
    low_oom_plan_warn(&low, what, diags);
    *layout = chosen.plan.layout;
    return STATUS_OK;
}
