#include "cli/job/job_setup.h"

#include "cli/options/experiment_options.h"
#include "cli/world/world.h"
#include "sim/search/layout_choice.h"

enum status job_setup_load(struct invocation *call, struct job_setup *setup)
{
    struct experiment_flags flags = experiment_flags_of(call);
    enum status status = experiment_read(call, &flags, &setup->experiment);

    if (status != STATUS_OK)
        return status;
    setup->setting = experiment_setting(&setup->experiment);
    setup->chosen = !setup->experiment.layout.given;
    status = layout_choose(&setup->experiment, world_processors(), &setup->layout, &call->diags);
    char text[LAYOUT_TEXT];
    if (status == STATUS_OK && setup->chosen)
        info(call, 0, "layout: auto chose %s", layout_format(&setup->layout, text, sizeof text));
    return status;
}
