#include "cli/commands.h"

#include <string.h>

extern const struct command command_plan, command_step, command_run, command_validate, command_probe, command_compare,
    command_faults, command_catalog, command_plot, command_calibrate, command_fabric, command_import;

const struct command *const commands[] = {
    &command_plan,
    &command_step,
    &command_run,
    &command_validate,
    &command_probe,
    &command_compare,
    &command_calibrate,
    &command_import,
    &command_faults,
    &command_fabric,
    &command_catalog,
    &command_plot,
    NULL,
};

const struct command *command_find(const char *name, const char **near)
{
    const char *names[sizeof commands / sizeof commands[0]];
    size_t n = 0;
    for (; commands[n]; n++) {
        if (strcmp(commands[n]->name, name) == 0)
            return commands[n];
        names[n] = commands[n]->name;
    }
    if (near)
        *near = nearest_name(name, names, n);
    return NULL;
}
