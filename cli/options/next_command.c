#include "cli/options/next_command.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options/experiment_options.h"
#include "cli/options/help.h"
#include "cli/options/options.h"

static const char NEXT[] = "next: ";

/* As a shell reads it back. */
static void put_quoted(const char *text, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./%@";
    if (*text && !text[strspn(text, plain)]) {
        fputs(text, out);
        return;
    }
    fputc('\'', out);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, out);
    fputc('\'', out);
}

static bool has_row(const struct option_row *rows, const struct option_row *row)
{
    while (rows->name && rows != row)
        rows++;
    return rows->name;
}

static bool has_name(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool is_repeated(const struct invocation *call, const char *command, const struct option_value *value)
{
    const struct option_row *row = value->row;
    bool shared = strcmp(row->name, "seed") == 0 || has_row(experiment_options, row);
    bool same = strcmp(command, call->command->name) == 0 && !row->aside && !has_row(common_options, row);
    return value->given && (shared || same);
}

/* --set layout.tp=4, where the layout is not repeated. */
static bool sets_layout(const char *text, const char *const *without)
{
    return strncmp(text, "layout", 6) == 0 && has_name(without, "layout");
}

/* The value that was taken from the command line at this place, and which of its texts; NULL: none, or a default. */
static const struct option_value *value_at(const struct invocation *call, int place, int *text)
{
    for (int i = 0; i < call->n_values; i++)
        for (*text = 0; call->values[i].given && *text < call->values[i].n_texts; ++*text)
            if (call->values[i].places[*text] == place)
                return &call->values[i];
    return NULL;
}

/* Options in the order in which they were given: the last of two that say the same wins. */
static void put_options(const struct invocation *call, const char *command, const char *const *without, FILE *out)
{
    enum { LIST_WIDTH = 60 }; /* a longer one goes on with its option again, on the next line */
    size_t width = 0;
    for (int place = 0, i; place < call->n_taken; place++) {
        const struct option_value *value = value_at(call, place, &i);
        if (!value || !is_repeated(call, command, value) || has_name(without, value->row->name))
            continue;
        if (strcmp(value->row->name, "set") == 0 && sets_layout(value->texts[i], without))
            continue;
        bool goes_on = value->row->type == OPTION_LIST && i > 0 && value->places[i - 1] == place - 1 &&
                       width + strlen(value->texts[i]) < LIST_WIDTH;
        width = strlen(value->texts[i]) + 1 + (goes_on ? width : 0);
        fprintf(out, goes_on ? "," : " --%s", value->row->name);
        if (value->row->type == OPTION_FLAG)
            continue;
        fputs(goes_on ? "" : " ", out);
        put_quoted(value->texts[i], out);
    }
}

/* Closes the stream that fills *text, and frees it. */
static void write_line(const struct invocation *call, FILE *stream, char **text)
{
    fclose(stream);
    fprintf(call->out, "\n%s", NEXT);
    command_line_write(*text, (int)strlen(NEXT), call->out);
    free(*text);
}

void next_command_write(const struct invocation *call, const char *command, const char *const *without, const char *more)
{
    char *text = NULL;
    size_t size;
    for (int i = 0; i < call->n_operands; i++)
        if (strcmp(call->operands[i], "-") == 0)
            return;
    FILE *out = call->verbosity < 0 ? NULL : open_memstream(&text, &size);
    if (!out)
        return;
    fprintf(out, "msim %s", command);
    for (int i = 0; i < call->n_operands; i++) {
        fputc(' ', out);
        put_quoted(call->operands[i], out);
    }
    put_options(call, command, without, out);
    fprintf(out, "%s%s", *more ? " " : "", more);
    write_line(call, out, &text);
}

void next_plot_write(const struct invocation *call, const char *file)
{
    char *text = NULL;
    size_t size;
    FILE *out = call->verbosity < 0 ? NULL : open_memstream(&text, &size);
    if (!out)
        return;
    fputs("msim plot ", out);
    put_quoted(file, out);
    write_line(call, out, &text);
}
