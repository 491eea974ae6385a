#include "cli/job/launch_export.h"

#include "model/base/append.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

enum { EXPORT_MEGATRON, EXPORT_NEMO, EXPORT_NANOTRON, EXPORT_TORCHTITAN, EXPORT_BRIDGE, EXPORT_NEMO_2 };
const char *const export_choices[] = {"megatron", "nemo", "nanotron", "torchtitan", "megatron-bridge", "nemo2", NULL};
static const char *const names[] = {"Megatron-LM", "NeMo", "nanotron", "torchtitan", "Megatron-Bridge", "NeMo 2"};

enum { FRAMEWORK_ANY, FRAMEWORK_MEGATRON, FRAMEWORK_TORCHTITAN };
const char *const framework_choices[] = {"any", "megatron", "torchtitan", NULL};

/* Restricts the dimensions that no restriction names yet. */
static void limit_to(const char *option, const char *framework, const struct experiment *experiment, struct space_limits *limits,
                     struct diags *diags)
{
    const struct framework_layouts can = framework_layouts_of(framework, &experiment->model, experiment->job.features);
    char said[160] = "";
    for (int i = 0; can.restrictions[i]; i++) {
        struct space_limits one = {0};
        if (space_restrict(&one, can.restrictions[i], (struct place){.file = option}, diags) != STATUS_OK)
            return;
        for (int d = 0; d < N_SPACE_DIMENSIONS; d++)
            if (one.dimensions[d].n && !limits->dimensions[d].n) {
                limits->dimensions[d] = one.dimensions[d];
                text_append(said, sizeof said, "%s%s", *said ? ", " : "", can.restrictions[i]);
            }
    }
    limits->modules_kept = (int)can.unsaid;
    limits->whole_rounds |= can.whole_rounds;
    if (*said)
        diag_note(diags, PLACE_NONE, "%s: the search is limited to layouts that %s supports (%s); --space overrides this", option,
                  framework, said);
}

enum status framework_limit(const struct invocation *call, const struct experiment *experiment, struct space_limits *limits,
                            struct diags *diags)
{
    int wanted = option_choice(call, "framework");
    if (!option_given(call, "export")) {
        if (wanted != FRAMEWORK_ANY)
            limit_to("--framework", names[wanted == FRAMEWORK_MEGATRON ? EXPORT_MEGATRON : EXPORT_TORCHTITAN], experiment, limits,
                     diags);
        return STATUS_OK;
    }
    int which = option_choice(call, "export");
    bool titan = which == EXPORT_TORCHTITAN, nanotron = which == EXPORT_NANOTRON;
    if ((wanted == FRAMEWORK_MEGATRON && (titan || nanotron)) || (wanted == FRAMEWORK_TORCHTITAN && !titan)) {
        diag_error(diags, PLACE_NONE, "--framework %s: --export writes a file of %s; remove one of the two",
                   framework_choices[wanted], names[which]);
        return STATUS_USAGE;
    }
    limit_to("--export", names[which], experiment, limits, diags);
    return STATUS_OK;
}

static enum status check_accepted(const struct launch_job *job, const char *framework, struct diags *diags)
{
    char why[256];
    if (!framework_refuses(framework, job, why, sizeof why))
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "--export: %s does not run this layout: %s; change mb, dp, pp or the batch, or use vpp=1",
               framework, why);
    return STATUS_BAD_INPUT;
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
    if (check_accepted(&job, names[which], &call->diags) != STATUS_OK)
        return STATUS_BAD_INPUT;
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
