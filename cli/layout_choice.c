#include "cli/layout_choice.h"

#include "model/plan/search.h"

struct setting experiment_setting(const struct experiment *experiment)
{
    return (struct setting){
        .model = &experiment->model,
        .cluster = &experiment->cluster,
        .job = &experiment->job,
        .gpus = experiment->gpus,
    };
}

static enum status layout_given(const struct layout_request *request, const struct setting *setting, struct layout *layout,
                                struct diags *diags)
{
    struct layout parsed = {.sequence_parallel = true, .zero = 1}; /* what current stacks do unasked */
    enum status status = layout_parse(request->text, &parsed, diags);
    if (status != STATUS_OK)
        return status;
    layout_complete(&parsed, setting);
    char why[256], text[192];
    if (layout_check(&parsed, setting, why, sizeof why) != LAYOUT_LEGAL) {
        diag_error(diags, (struct place){0}, "layout %s: %s", layout_format(&parsed, text, sizeof text), why);
        return STATUS_BAD_INPUT;
    }
    *layout = parsed;
    return STATUS_OK;
}

/* Overlaps that the job allows are used. */
static char *ordinary_restrictions(feature_set allowed, char *text, size_t size)
{
    bool tp = allowed & (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP));
    bool pp = allowed & FEATURE_BIT(PP_OVERLAP);
    bool dp = allowed & FEATURE_BIT(DP_OVERLAP);
    snprintf(text, size, "zero=1,sp=1,schedule=none,1f1b,interleaved%s%s%s", tp ? ",tp_overlap=1" : "", pp ? ",pp_overlap=1" : "",
             dp ? ",dp_overlap=1" : "");
    return text;
}

static enum status layout_best(const struct setting *setting, struct layout *layout, struct diags *diags)
{
    char ordinary[128];
    struct plan best;
    struct diags unasked = {0};
    enum status status =
        plan_best(setting, ordinary_restrictions(setting->job->features, ordinary, sizeof ordinary), 0, &best, &unasked);
    diags_free(&unasked);
    if (status != STATUS_OK)
        status = plan_best(setting, NULL, 0, &best, diags);
    if (status == STATUS_OK)
        *layout = best.layout;
    return status;
}

enum status layout_choose(const struct experiment *experiment, struct layout *layout, struct diags *diags)
{
    struct setting setting = experiment_setting(experiment);
    if (experiment->layout.given)
        return layout_given(&experiment->layout, &setting, layout, diags);
    return layout_best(&setting, layout, diags);
}
