#include "cli/help.h"

#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/table.h"

enum { HELP_WIDTH = 96, HELP_COLUMN = 30 };

/* Words of `text` from `indent` on, the first line going on at column `at`; blank lines between paragraphs are kept. */
static void write_wrapped(FILE *out, const char *text, int at, int indent)
{
    bool fresh = true;
    while (*text) {
        size_t n = strcspn(text, " \n");
        if (n > 0) {
            if (!fresh && at + 1 + (int)n > HELP_WIDTH) {
                fprintf(out, "\n%*s", indent, "");
                at = indent;
                fresh = true;
            }
            at += (int)n + !fresh;
            fprintf(out, "%s%.*s", fresh ? "" : " ", (int)n, text);
            fresh = false;
        }
        text += n;
        if (strncmp(text, "\n\n", 2) == 0) {
            fprintf(out, "\n\n%*s", indent, "");
            at = indent;
            fresh = true;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

static const char *group_of(const struct option_row *row)
{
    return row->group ? row->group : "Options";
}

/* What stands after the help phrase: choices and default. */
static void row_text(const struct option_row *row, char *buffer, size_t size)
{
    int n = snprintf(buffer, size, "%s", row->help);
    for (size_t i = 0; row->choices && row->choices[i] && n >= 0 && (size_t)n < size; i++)
        n += snprintf(buffer + n, size - (size_t)n, "%s%s", i ? ", " : " (", row->choices[i]);
    if (row->choices && n >= 0 && (size_t)n < size)
        n += snprintf(buffer + n, size - (size_t)n, ")");
    if (row->initial && n >= 0 && (size_t)n < size)
        snprintf(buffer + n, size - (size_t)n, " [%s]", row->initial);
}

static void write_row(FILE *out, const struct option_row *row)
{
    char left[80], text[1024];
    char letter[8] = "    ";
    if (row->letter)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    row_text(row, text, sizeof text);
    int width = text_width(left);
    if (width > HELP_COLUMN - 2)
        fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
    else
        fprintf(out, "%s%*s", left, HELP_COLUMN - width, "");
    write_wrapped(out, text, HELP_COLUMN, HELP_COLUMN);
}

static void write_usage(const struct command *command, FILE *out)
{
    fprintf(out, "Usage: msim %s", command->name);
    if (command->operands)
        fprintf(out, " %s", command->operands);
    else if (command->experiment)
        fputs(" [EXPERIMENT.yaml]", out);
    fputs(" [OPTION...]\n", out);
}

void help_command(const struct command *command, FILE *out)
{
    const struct option_row *rows[MAX_OPTIONS];
    int n = command_rows(command, rows);
    write_usage(command, out);
    fputc('\n', out);
    write_wrapped(out, command->description, 0, 0);
    for (int i = 0; i < n; i++) {
        if (i == 0 || strcmp(group_of(rows[i]), group_of(rows[i - 1])) != 0)
            fprintf(out, "\n%s:\n", group_of(rows[i]));
        write_row(out, rows[i]);
    }
    fputs("\nExamples:\n", out);
    for (const struct example *example = command->examples; example && example->line; example++)
        fprintf(out, "  %s\n      %s\n", example->line, example->what);
}

void help_program(FILE *out)
{
    fputs("msim - predict what a GPU cluster does with a training job\n\nUsage: msim COMMAND [ARGUMENT...]\n\n", out);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    fputs("\n'msim COMMAND --help' explains one, with examples; 'msim --version' says what this build has.\n", out);
}

static const char *or_none(const char *text)
{
    return *text ? text : "not found";
}

void help_version(FILE *out)
{
    fprintf(out, "msim %s (%s, %s)\n", MSIM_VERSION, MSIM_BUILD_TYPE, MSIM_COMPILER);
    fprintf(out, "CUDA: %s\nNCCL: %s\nMPI:  %s\n", or_none(MSIM_FOUND_CUDA), or_none(MSIM_FOUND_NCCL), or_none(MSIM_FOUND_MPI));
    fputs("Licence GPL-3.0-or-later, with permission to link NVIDIA's libraries. No warranty.\n", out);
}
