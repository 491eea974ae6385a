#include "cli/launch_export.h"

#include "traces/launch/framework_export.h"
#include "traces/launch/megatron_export.h"

enum { EXPORT_MEGATRON, EXPORT_NEMO, EXPORT_NANOTRON };
const char *const export_choices[] = {"megatron", "nemo", "nanotron", NULL};
static const char *const names[] = {"Megatron-LM", "NeMo", "nanotron"};

enum status launch_export_write(struct invocation *call, const struct layout *layout, const struct setting *setting,
                                double step_s)
{
    if (call->format != FORMAT_TEXT) {
        diag_error(&call->diags, (struct place){0}, "--export writes what a framework reads; leave --format out");
        return STATUS_USAGE;
    }
    int which = option_choice(call, "export");
    struct launch_job job = {.model = *setting->model,
                             .job = *setting->job,
                             .layout = *layout,
                             .gpus = setting->gpus,
                             .gpus_per_node = setting->cluster->gpus_per_node};
    job.job.features = layout->features;
    job.model.max_seq_len += job.model.position_offset; /* a table of as many rows, all for tokens */
    job.model.position_offset = 0;
    char first[320], second[LAYOUT_TEXT + 32], third[96], text[LAYOUT_TEXT];
    const char *const heading[] = {first, second, third};
    snprintf(first, sizeof first, "%s on %d x %s (%s) with %s, by msim %s. Add data and tokenizer.", job.model.name, job.gpus,
             setting->cluster->gpu.name, setting->cluster->name, names[which], MSIM_VERSION);
    snprintf(second, sizeof second, "layout %s", layout_format(layout, text, sizeof text));
    snprintf(third, sizeof third, "predicted: %.4g s a step", step_s);
    if (which == EXPORT_MEGATRON)
        megatron_write_script(&job, heading, step_s > 0 ? 3 : 2, call->out, &call->diags);
    else
        framework_write_config(names[which], &job, heading, step_s > 0 ? 3 : 2, call->out, &call->diags);
    return STATUS_OK;
}
