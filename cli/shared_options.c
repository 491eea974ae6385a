#include "cli/shared_options.h"

#include <stdlib.h>

#include "cli/world.h"

const char *const network_choices[] = {"analytic", "flow", NULL};

int thread_option(const struct invocation *call)
{
    return option_given(call, "threads") ? (int)option_count(call, "threads") : world_processors();
}

enum status check_price(const char *text, char *why, size_t size)
{
    char *end;
    double price = strtod(text, &end);
    if (end != text && !*end && price > 0 && price < 1e6)
        return STATUS_OK;
    snprintf(why, size, "'%.40s' is not a price; write money per GPU and hour, such as 2.5", text);
    return STATUS_BAD_INPUT;
}

double price_option(const struct invocation *call)
{
    const char *text = option_text(call, "gpu-price");
    return text ? strtod(text, NULL) : 0;
}
