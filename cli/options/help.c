#include "cli/options/help.h"

#include <limits.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/options/terminal.h"
#include "model/base/append.h"

/* A page of help, as wide as the terminal up to a readable width. */
struct page {
    FILE *out;
    int width;
    int column; /* where what an option does begins */
};

static struct page page_of(FILE *out)
{
    enum { WIDTH = 96, NARROW = 72, COLUMN = 30, NARROW_COLUMN = 10 };
    int width = terminal_width(out);
    if (width == 0 || width > WIDTH)
        width = WIDTH;
    return (struct page){.out = out, .width = width, .column = width < NARROW ? NARROW_COLUMN : COLUMN};
}

/* Length of the next word. In a command line, a quoted text is one word, and so is an option with its value. */
static size_t word_length(const char *text, bool command_line)
{
    size_t n = 0;
    for (char quote = '\0'; text[n]; n++) {
        bool value_follows = command_line && text[0] == '-' && !memchr(text, ' ', n) && text[n + 1] && text[n + 1] != '-';
        if (!quote && strchr(" \n", text[n]) && !value_follows)
            break;
        if (command_line && (text[n] == '\'' || text[n] == '"') && (!quote || quote == text[n]))
            quote = quote ? '\0' : text[n];
    }
    return n;
}

/* Words of `text` from `indent` on, the first line going on at column `at`; blank lines between paragraphs are kept. A command
 * line goes on behind a backslash, so that it can be copied. */
static void write_words(const struct page *page, const char *text, int at, int indent, bool command_line)
{
    int width = page->width - (command_line ? 2 : 0);
    bool fresh = true;
    while (*text) {
        size_t n = word_length(text, command_line);
        if (n > 0) {
            if (!fresh && at + 1 + (int)n > width) {
                fprintf(page->out, "%s\n%*s", command_line ? " \\" : "", indent, "");
                at = indent;
                fresh = true;
            }
            at += (int)n + !fresh;
            fprintf(page->out, "%s%.*s", fresh ? "" : " ", (int)n, text);
            fresh = false;
        }
        text += n;
        if (strncmp(text, "\n\n", 2) == 0) {
            fprintf(page->out, "\n\n%*s", indent, "");
            at = indent;
            fresh = true;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', page->out);
}

static void write_wrapped(const struct page *page, const char *text, int at, int indent)
{
    write_words(page, text, at, indent, false);
}

void command_line_write(const char *text, int indent, FILE *out)
{
    struct page page = page_of(out);
    write_words(&page, text, indent, indent, true);
}

static const char *group_of(const struct option_row *row)
{
    return row->group ? row->group : "Options";
}

void help_row_note(const struct option_row *row, char *buffer, size_t size)
{
    const char *value = row->fallback ? row->fallback : row->initial;
    bool listed = row->choices && !row->meanings;
    buffer[0] = '\0';
    for (size_t i = 0; listed && row->choices[i]; i++)
        text_append(buffer, size, "%s%s", i ? ", " : " (", row->choices[i]);
    if (value)
        text_append(buffer, size, "%sdefault: %s", listed ? "; " : " (", value);
    if (listed || value)
        text_append(buffer, size, ")");
}

/* "-o, --output FILE"; `indent` stands for the letter that is not there. Returns its width. */
static int row_name(const struct option_row *row, const char *indent, char *buffer, size_t size)
{
    char letter[8];
    snprintf(letter, sizeof letter, "-%c, ", row->letter);
    return snprintf(buffer, size, "%s--%s%s%s", row->letter ? letter : indent, row->name, row->argument ? " " : "",
                    row->argument ? row->argument : "");
}

static void write_row(const struct page *page, const struct option_row *row)
{
    char name[80], note[512], text[1536];
    int width = 2 + row_name(row, "    ", name, sizeof name);
    help_row_note(row, note, sizeof note);
    snprintf(text, sizeof text, "%s%s", row->help, note);
    if (width > page->column - 2)
        fprintf(page->out, "  %s\n%*s", name, page->column, "");
    else
        fprintf(page->out, "  %s%*s", name, page->column - width, "");
    write_wrapped(page, text, page->column, page->column);
    for (size_t i = 0; row->meanings && row->choices[i]; i++) {
        int at = fprintf(page->out, "%*s%s: ", page->column, "", row->choices[i]);
        write_wrapped(page, row->meanings[i], at, page->column + 4);
    }
}

static void write_usage(const struct page *page, const struct command *command)
{
    char line[512];
    const char *operands = command->operands ? command->operands : command->experiment ? "[EXPERIMENT.yaml]" : "";
    int at = fprintf(page->out, "Usage: msim %s ", command->name);
    snprintf(line, sizeof line, "%s%s[OPTION...]", operands, *operands ? " " : "");
    write_wrapped(page, line, at, at);
}

/* Does the group of row i begin at it? */
static bool is_first_of_group(const struct option_row *const *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (strcmp(group_of(rows[k]), group_of(rows[i])) == 0)
            return false;
    return true;
}

/* All rows of a command, those of a group together, groups in the order of their first rows. The table itself keeps the order in
 * which results list options. */
static int grouped_rows(const struct command *command, const struct option_row *rows[MAX_OPTIONS])
{
    const struct option_row *all[MAX_OPTIONS];
    int n = command_rows(command, all), n_rows = 0;
    for (int i = 0; i < n; i++)
        for (int k = i; k < n && is_first_of_group(all, i); k++)
            if (strcmp(group_of(all[k]), group_of(all[i])) == 0)
                rows[n_rows++] = all[k];
    return n_rows;
}

/* The heading of a row's group, where a group begins. */
static bool begins_group(const struct option_row *const *rows, int i)
{
    return i == 0 || strcmp(group_of(rows[i]), group_of(rows[i - 1])) != 0;
}

static void write_examples(const struct page *page, const struct command *command, int most)
{
    fputs("\nExamples:\n", page->out);
    for (const struct example *example = command->examples; example && example->line && most-- > 0; example++) {
        fputs("  ", page->out);
        write_words(page, example->line, 2, 6, true);
        fputs("      ", page->out);
        write_wrapped(page, example->what, 6, 6);
    }
}

static void write_notes(const struct page *page, const struct command *command)
{
    for (const struct command_note *note = command->notes; note && note->title; note++) {
        fprintf(page->out, "\n%s:\n  ", note->title);
        write_wrapped(page, note->text, 2, 2);
    }
}

void help_command(const struct command *command, FILE *out)
{
    const struct option_row *rows[MAX_OPTIONS];
    struct page page = page_of(out);
    int n = grouped_rows(command, rows);
    write_usage(&page, command);
    fputc('\n', out);
    write_wrapped(&page, command->description, 0, 0);
    for (int i = 0; i < n; i++) {
        if (begins_group(rows, i))
            fprintf(out, "\n%s:\n", group_of(rows[i]));
        write_row(&page, rows[i]);
    }
    write_examples(&page, command, INT_MAX);
    write_notes(&page, command);
}

void help_usage(const struct command *command, FILE *out)
{
    const struct option_row *rows[MAX_OPTIONS];
    struct page page = page_of(out);
    int n = grouped_rows(command, rows), at = 0;
    write_usage(&page, command);
    fputc('\n', out);
    write_wrapped(&page, command->summary, 0, 0);
    for (int i = 0; i < n; i++) {
        char name[80];
        int width = 2 + row_name(rows[i], "", name, sizeof name);
        if (begins_group(rows, i))
            fprintf(out, "%s\n%s:", i ? "\n" : "", group_of(rows[i]));
        if (begins_group(rows, i) || at + width > page.width) {
            fputc('\n', out);
            at = 0;
        }
        fprintf(out, "  %s", name);
        at += width;
    }
    fputc('\n', out);
    write_examples(&page, command, 2);
    fprintf(out, "\n'msim %s --help' explains each option.\n", command->name);
}

void help_program(const struct command *const *commands, FILE *out)
{
    struct page page = page_of(out);
    fputs("msim - predict how a large training job runs on a GPU cluster\n\nUsage: msim COMMAND [ARGUMENT...]\n\n", out);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(out, "  %-10s ", (*c)->name);
        write_wrapped(&page, (*c)->summary, 13, 13);
    }
    fputs("\nHelp:\n"
          "  'msim COMMAND -h'       lists the options of a command\n"
          "  'msim COMMAND --help'   explains them, with examples\n"
          "  'msim help --keys'      lists the keys of results: JSON, CSV and text\n"
          "  'man msim'              shows the manual, after installation\n"
          "  'msim --version'        shows the version and what this build supports\n"
          "\n"
          "Exit codes:\n"
          "  0 success, 1 failed while running, 2 wrong usage, 3 bad input, 4 missing capability,\n"
          "  5 a check failed, or no plan fits\n",
          out);
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
