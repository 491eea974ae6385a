#include "cli/command.h"

static enum status run(struct invocation *call)
{
    diag_error(&call->diags, (struct place){0}, "'msim catalog' is not in this build");
    return STATUS_MISSING;
}

static const struct example examples[] = {{"msim catalog --help", "this text"}, {0}};

const struct command command_catalog = {
    .name = "catalog",
    .summary = "list the known models, GPUs and clusters; show one, or a file",
    .description = "Not in this build.",
    .max_operands = -1,
    .examples = examples,
    .run = run,
};
