#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim faults' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim faults --help", "this text"}, {0}};

const struct command command_faults = {
    .name = "faults",
    .summary = "generate, summarise, convert fault traces",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
