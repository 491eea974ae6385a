#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim plot' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim plot --help", "this text"}, {0}};

const struct command command_plot = {
    .name = "plot",
    .summary = "draw a figure from a result file",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
