#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim run' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim run --help", "this text"}, {0}};

const struct command command_run = {
    .name = "run",
    .summary = "weeks of training with failures: goodput, lost work, MFU over time",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
