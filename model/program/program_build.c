/* program_build.c - a program from a layout: one script per stage, then the ranks that run them. */
#include <stdlib.h>

#include "model/cost/kernel/machine.h"
#include "model/program/emit.h"

static enum status check_layout(const struct layout *layout, const struct setting *setting, struct diags *diags)
{
    char why[256];
    if (layout_check(layout, setting, why, sizeof why) != LAYOUT_LEGAL) {
        diag_error(diags, PLACE_NONE, "program: the layout is not legal: %s", why);
        return STATUS_BAD_INPUT;
    }
    return STATUS_OK;
}

/* What a layer keeps is copied when it is done, so passes are cut into layers. */
static enum detail detail_of_passes(const struct layout *layout, enum detail detail)
{
    return detail == DETAIL_CHUNK && layout_offloads(layout, OFFLOAD_ACTIVATIONS) ? DETAIL_LAYER : detail;
}

static enum status refuse_size(struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "program: more than %d operations; ask for less detail or for larger micro-batches",
               PROGRAM_OPS_MAX);
    return STATUS_BAD_INPUT;
}

static enum status build_scripts(struct build *build, struct diags *diags)
{
    struct program *program = build->program;
    int pp = build->layout->pp;
    if (build->micro_batches > PROGRAM_OPS_MAX / (3 * (int64_t)build->layout->vpp * pp))
        return refuse_size(diags);
    program->scripts = memory_new((size_t)pp, sizeof *program->scripts);
    program->n_scripts = pp;
    for (int i = 0; i < pp; i++) {
        struct stage stage = {.build = build, .index = i};
        stage_emit(&stage);
        if (build->too_large)
            return refuse_size(diags);
        if (build->waits_lost) {
            diag_error(diags, PLACE_NONE, "program: stage %d has an operation with more than %d dependencies", i, OP_DEPS);
            return STATUS_FAILED;
        }
        program->scripts[i] = (struct script){stage.first_op, program->n_ops - stage.first_op};
    }
    return STATUS_OK;
}

enum status program_build(const struct layout *layout, const struct setting *setting, enum detail detail, bool folded,
                          struct program *program, struct diags *diags)
{
    enum status status = check_layout(layout, setting, diags);
    if (status != STATUS_OK)
        return status;
    struct program built = {.layout = *layout, .detail = detail};
    built.rolling = schedule_rolls(layout->schedule);
    struct build build = {
        .program = &built,
        .layout = layout,
        .setting = setting,
        .micro_batches = layout_micro_batches(layout, setting->job),
        .message_bytes = layout->pp > 1 ? p2p_bytes(layout, setting) : 0,
        .passes = {.layout = layout, .setting = setting, .detail = detail_of_passes(layout, detail), .works = &built.works},
        .replicas = layout_group_size(layout, GROUP_DP) > 1,
        .expert_replicas = setting->model->moe.experts > 0 && layout_group_size(layout, GROUP_EXPERT_DP) > 1,
        .hybrid = layout_group_size(layout, GROUP_REPLICA) > 1,
        .mirrored = layout_group_size(layout, GROUP_MIRROR) > 1,
    };
    status = build_scripts(&build, diags);
    passes_free(&build.passes);
    free(build.copies);
    if (status != STATUS_OK) {
        program_free(&built);
        return status;
    }
    program_ranks_build(&built, folded);
    *program = built;
    return STATUS_OK;
}
