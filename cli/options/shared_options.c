#include "cli/options/shared_options.h"

#include "cli/world/world.h"

const char *const network_choices[] = {"analytic", "flow", NULL};

int thread_option(const struct invocation *call)
{
    return option_given(call, "threads") ? (int)option_count(call, "threads") : world_processors();
}
