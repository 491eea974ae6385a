#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options/help.h"
#include "cli/options/options.h"
#include "cli/output/result.h"
#include "cli/output/result_row.h"
#include "cli/world/world.h"
#include "model/base/memory.h"
#include "model/spec/catalog.h"

static _Noreturn void end_without_memory(size_t bytes)
{
    fprintf(stderr, "msim: out of memory (%zu bytes)\n", bytes);
    exit(STATUS_FAILED);
}

static int usage_error(const char *what, const char *name, const char *near)
{
    if (near)
        fprintf(stderr, "msim: unknown %s '%s'; did you mean '%s'?\n", what, name, near);
    else
        fprintf(stderr, "msim: unknown %s '%s'; 'msim --help' lists them\n", what, name);
    return STATUS_USAGE;
}

/* What help and version wrote has arrived, or not. */
static int flushed(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return STATUS_OK;
    perror("msim: standard output");
    return STATUS_FAILED;
}

/* What --quiet leaves. */
static void keep_errors(struct diags *diags)
{
    size_t kept = 0;
    for (size_t i = 0; i < diags->n_items; i++) {
        struct diag *item = &diags->items[i];
        if (item->severity == SEVERITY_ERROR) {
            diags->items[kept++] = *item;
        } else {
            free(item->file);
            free(item->text);
        }
    }
    diags->n_items = kept;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct invocation call;
    enum status status = invocation_parse(commands, command, argc, argv, &call);
    if (call.help || call.usage) {
        (call.help ? help_command : help_usage)(command, stdout);
        invocation_free(&call);
        return flushed();
    }
    if (status == STATUS_OK)
        status = data_path_check(&call.diags);
    if (status == STATUS_OK) {
        status = outputs_open(&call, option_text(&call, "output"));
        if (status == STATUS_OK)
            status = command->run(&call);
        enum status closed = outputs_close(&call, world_writes() && (status == STATUS_OK || status == STATUS_CHECK));
        status = closed != STATUS_OK ? closed : status;
    }
    if (call.verbosity < 0)
        keep_errors(&call.diags);
    diags_sort(&call.diags);
    diags_print(&call.diags, stderr, call.message_colour);
    if (status == STATUS_USAGE)
        fprintf(stderr, "'msim %s --help' explains the options\n", command->name);
    invocation_free(&call);
    return status;
}

/* The keys of results, of one command where it is named. */
static int run_keys(const char *name)
{
    const char *near = NULL;
    const struct command *command = name ? command_find(name, &near) : NULL;
    if (name && !command)
        return usage_error("command", name, near);
    result_keys_write(commands, command, stdout);
    return flushed();
}

static int run_help(int argc, char **argv)
{
    const char *topic = argc > 1 ? argv[1] : NULL;
    const char *near = NULL;
    const struct command *command = topic ? command_find(topic, &near) : NULL;
    if (!topic)
        help_program(commands, stdout);
    else if (command)
        help_command(command, stdout);
    else if (strcmp(topic, "--man") == 0)
        help_manual(commands, stdout);
    else if (strcmp(topic, "--completion") == 0)
        help_completion(commands, stdout);
    else if (strcmp(topic, "--dictionary") == 0)
        help_dictionary(commands, stdout);
    else if (strcmp(topic, "--keys") == 0)
        return run_keys(argc > 2 ? argv[2] : NULL);
    else
        return usage_error("command", topic, near);
    return flushed();
}

static int run_global_option(const char *option)
{
    static const char *const names[] = {"--help", "--version"};
    size_t length = strlen(option);
    if (strcmp(option, "-h") == 0 || (length > 2 && strncmp(option, "--help", length) == 0))
        help_program(commands, stdout);
    else if (strcmp(option, "-V") == 0 || (length > 2 && strncmp(option, "--version", length) == 0))
        help_version(stdout);
    else
        return usage_error("option", option, nearest_name(option, names, 2));
    return flushed();
}

int main(int argc, char **argv)
{
    memory_set_handler(end_without_memory);
    memory_keep();
    outputs_guard();
    if (argc < 2)
        return run_help(0, NULL);
    if (argv[1][0] == '-')
        return run_global_option(argv[1]);
    if (strcmp(argv[1], "help") == 0)
        return run_help(argc - 1, argv + 1);
    const char *near = NULL;
    const struct command *command = command_find(argv[1], &near);
    if (!command)
        return usage_error("command", argv[1], near);
    world_open();
    int status = run_command(command, argc - 1, argv + 1);
    world_close((enum status)status);
    return status;
}
