#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim compare' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim compare --help", "this text"}, {0}};

const struct command command_compare = {
    .name = "compare",
    .summary = "predicted against measured, for every row of a table of real runs",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
