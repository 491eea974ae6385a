#include "cli/job/launch_export.h"

#include "model/base/append.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

enum { EXPORT_MEGATRON, EXPORT_NEMO, EXPORT_NANOTRON, EXPORT_TORCHTITAN, EXPORT_BRIDGE, EXPORT_NEMO_2 };
const char *const export_choices[] = {"megatron", "nemo", "nanotron", "torchtitan", "megatron-bridge", "nemo2", NULL};
static const char *const names[] = {"Megatron-LM", "NeMo", "nanotron", "torchtitan", "Megatron-Bridge", "NeMo 2"};

void launch_export_limit(struct invocation *call, const struct transformer *model, feature_set features,
                         struct space_limits *limits)
{
    if (!option_given(call, "export"))
        return;
    const char *framework = names[option_choice(call, "export")];
    const struct framework_layouts can = framework_layouts_of(framework, model, features);
    char said[160] = "";
    for (int i = 0; can.restrictions[i]; i++) {
        struct space_limits one = {0};
        if (space_restrict(&one, can.restrictions[i], (struct place){.file = "--export"}, &call->diags) != STATUS_OK)
            return;
        for (int d = 0; d < N_SPACE_DIMENSIONS; d++)
            if (one.dimensions[d].n && !limits->dimensions[d].n) {
                limits->dimensions[d] = one.dimensions[d];
                text_append(said, sizeof said, "%s%s", *said ? ", " : "", can.restrictions[i]);
            }
    }
    limits->modules_kept = (int)can.unsaid;
    if (*said)
        diag_note(&call->diags, PLACE_NONE,
                  "--export: the search is limited to layouts that %s supports (%s); --space overrides this", framework, said);
}

enum status launch_export_write(struct invocation *call, const struct layout *layout, const struct setting *setting,
                                double step_s)
{
    if (call->format != FORMAT_TEXT) {
        diag_error(&call->diags, PLACE_NONE, "--export writes a file for the framework; remove --format");
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
    bool base_open = which != EXPORT_TORCHTITAN && job.model.position == POSITION_ROTARY && !(job.model.rope_theta > 0);
    char first[400], second[LAYOUT_TEXT + 32], third[96], text[LAYOUT_TEXT];
    const char *const heading[] = {first, second, third};
    snprintf(first, sizeof first, "%s on %d x %s (%s) with %s, by msim %s. Add data and tokenizer%s.", job.model.name, job.gpus,
             setting->cluster->gpu.name, setting->cluster->name, names[which], MSIM_VERSION,
             !base_open ? ""
             : which == EXPORT_BRIDGE || which == EXPORT_NEMO_2
                 ? ", and the base of rotary positions if it differs from the recipe"
                 : ", and the base of rotary positions if it is not 10000");
    snprintf(second, sizeof second, "layout %s", layout_format(layout, text, sizeof text));
    struct frameworks frameworks = {0};
    enum status status = which == EXPORT_MEGATRON ? STATUS_OK : frameworks_load(&frameworks, &call->diags);
    if (status != STATUS_OK)
        return status;
    snprintf(third, sizeof third, "predicted: %.4g s per step%s", step_s,
             framework_n_lost(&frameworks, names[which], &job) ? ", assuming the settings below" : "");
    if (which == EXPORT_MEGATRON)
        megatron_write_script(&job, heading, step_s > 0 ? 3 : 2, call->out, &call->diags);
    else
        framework_write_config(&frameworks, names[which], &job, heading, step_s > 0 ? 3 : 2, call->out, &call->diags);
    frameworks_free(&frameworks);
    return STATUS_OK;
}
