#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim plan' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim plan --help", "this text"}, {0}};

const struct command command_plan = {
    .name = "plan",
    .summary = "search parallel layouts for a model on a cluster; rank them",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
