#include "cli/launch_export.h"

#include "traces/launch/megatron_export.h"

const char *const export_choices[] = {"megatron", NULL};

enum status launch_export_write(struct invocation *call, const struct layout *layout, const struct setting *setting,
                                double step_s)
{
    if (call->format != FORMAT_TEXT) {
        diag_error(&call->diags, (struct place){0}, "--export writes a script; leave --format out");
        return STATUS_USAGE;
    }
    struct launch_job job = {.model = *setting->model,
                             .job = *setting->job,
                             .layout = *layout,
                             .gpus = setting->gpus,
                             .gpus_per_node = setting->cluster->gpus_per_node};
    job.job.features = layout->features;
    char first[320], second[LAYOUT_TEXT + 32], third[96], text[LAYOUT_TEXT];
    const char *const heading[] = {first, second, third};
    snprintf(first, sizeof first, "%s on %d x %s (%s) with Megatron-LM, by msim %s. Add data and tokenizer.", job.model.name,
             job.gpus, setting->cluster->gpu.name, setting->cluster->name, MSIM_VERSION);
    snprintf(second, sizeof second, "layout %s", layout_format(layout, text, sizeof text));
    snprintf(third, sizeof third, "predicted: %.4g s a step", step_s);
    megatron_write_script(&job, heading, step_s > 0 ? 3 : 2, call->out, &call->diags);
    return STATUS_OK;
}
