/* plan_explanation.c - one layout in full: legality, memory, step time. */
#include "sim/search/plan_explanation.h"

#include "model/cost/step/closed_form.h"
#include "model/spec/layout_items.h"

/* Into `buffer` a layout as tables print it, which leaves nothing open; any other text is itself. */
static const char *whole_text(const char *asked, struct place at, const struct setting *setting, char *buffer, size_t size,
                              struct diags *diags)
{
    struct layout layout = layout_defaults;
    struct diags found = {0};
    if (!layout_items_are_brief(asked))
        return asked;
    enum status status = layout_parse(asked, &layout, &found);
    for (size_t i = 0; i < found.n_items; i++)
        diag_error(diags, at, "%s", found.items[i].text);
    diags_free(&found);
    if (status != STATUS_OK)
        return asked;
    layout_complete(&layout, setting);
    return layout_format(&layout, buffer, size);
}

enum status plan_complete(const char *asked, struct place at, const struct setting *setting, int threads, struct plan *found,
                          struct diags *diags)
{
    struct space_limits limits = {0};
    struct space *space;
    struct diags unheard = {0};
    char buffer[LAYOUT_TEXT];
    *found = (struct plan){0};
    asked = whole_text(asked, at, setting, buffer, sizeof buffer, diags);
    if (diags_status(diags) != STATUS_OK)
        return STATUS_USAGE;
    if (space_restrict(&limits, asked, at, diags) != STATUS_OK)
        return STATUS_USAGE;
    if (space_create(setting, &limits, &space, &unheard) == STATUS_OK) {
        struct search_options options = {.keep = 1, .threads = threads};
        struct search_result result;
        search_run(space, &options, &result);
        space_destroy(space);
        if (result.n_plans > 0)
            *found = result.plans[0];
        else if (result.least_bytes > 0)
            found->layout = result.least;
        search_result_free(&result);
    }
    diags_free(&unheard);
    if (found->layout.tp > 0)
        return STATUS_OK;
    found->layout = layout_defaults; /* as `msim step` has it */
    if (layout_parse(asked, &found->layout, diags) != STATUS_OK)
        return STATUS_USAGE;
    layout_complete(&found->layout, setting);
    return STATUS_OK;
}

static void simulate_if_not_yet(struct ranked_plan *ranked, const struct setting *setting, struct diags *diags)
{
    if (ranked->simulated)
        return;
    struct plan plan = ranked->plan;
    struct diags found = {0};
    plan_simulate(&plan, setting, ranked, &found);
    if (!ranked->simulated)
        diag_warning(diags, PLACE_NONE, "the layout to explain could not be simulated: %s",
                     found.n_items > 0 ? found.items[0].text : "no reason given");
    diags_free(&found);
}

void plan_explain(const struct ranked_plan *ranked, const struct setting *setting, struct explanation *explanation,
                  struct diags *diags)
{
    struct explanation made = {.plan = *ranked};
    struct plan *plan = &made.plan.plan;
    made.reason = layout_check(&plan->layout, setting, made.why, sizeof made.why);
    made.capacity_bytes = footprint_capacity(setting->cluster);
    if (made.reason == LAYOUT_LEGAL) {
        footprint_peak(&plan->layout, setting, &made.memory, &made.memory_stage);
        struct closed_form *form = closed_form_create(setting);
        closed_form_estimate(form, &plan->layout, &plan->estimate);
        closed_form_destroy(form);
        simulate_if_not_yet(&made.plan, setting, diags);
    }
    *explanation = made;
}
