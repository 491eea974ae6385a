#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim step' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim step --help", "this text"}, {0}};

const struct command command_step = {
    .name = "step",
    .summary = "one training step of one layout: time, MFU, where every second went, memory",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
