#include "cli/options/options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/experiment_options.h"
#include "cli/options/overrides.h"
#include "cli/options/terminal.h"
#include "model/base/append.h"
#include "model/base/file.h"
#include "model/base/memory.h"

static const char *const formats[] = {"text", "json", "csv", NULL};
static const char *const colour_modes[] = {"auto", "always", "never", NULL};

const struct option_row common_options[] = {
    {.name = "format",
     CHOICE_FIELDS("FORMAT", formats),
     .initial = "text",
     .help = "choose the output format; csv writes one table with units in its column names",
     .group = "Output"},
    {.name = "output",
     .letter = 'o',
     TEXT_FIELDS("FILE"),
     .written = true,
     .initial = "-",
     .help = "write the result to FILE, complete or not at all; - is standard output",
     .group = "Output"},
    {.name = "seed",
     COUNT_FIELDS,
     .high = 0x1p53,
     .fallback = "the experiment's, or 1",
     .help = "set the random seed; the same seed gives identical output",
     .group = "Output",
     .key = "seed"},
    {.name = "quiet", .letter = 'q', .type = OPTION_FLAG, .help = "print errors only", .group = "Output"},
    {.name = "verbose",
     .letter = 'v',
     .type = OPTION_FLAG,
     .help = "print more details; repeat for even more",
     .group = "Output"},
    {.name = "timing",
     .type = OPTION_FLAG,
     .help = "with --format json: also write how long the command took; without it, the same input gives the same bytes",
     .group = "Output"},
    {.name = "no-progress", .type = OPTION_FLAG, .help = "do not show progress on a terminal", .group = "Output"},
    {.name = "colour",
     CHOICE_FIELDS("WHEN", colour_modes),
     .initial = "auto",
     .help = "choose when to use colour; auto: on a terminal, unless NO_COLOR is set",
     .group = "Output"},
    {.name = "usage", .letter = 'h', .type = OPTION_FLAG, .help = "list the options briefly", .group = "Output"},
    {.name = "help", .type = OPTION_FLAG, .help = "explain every option", .group = "Output"},
    {0},
};

static int append_rows(const struct option_row **rows, int n, const struct option_row *more, bool late)
{
    for (; more && more->name && n < MAX_OPTIONS; more++)
        if (more->late == late)
            rows[n++] = more;
    return n;
}

int command_rows(const struct command *command, const struct option_row *rows[MAX_OPTIONS])
{
    int n = command->experiment ? append_rows(rows, 0, experiment_options, false) : 0;
    n = append_rows(rows, n, command->options, false);
    if (command->experiment)
        n = append_rows(rows, n, experiment_options, true);
    return append_rows(rows, n, common_options, false);
}

/* --- argv ---------------------------------------------------------------------------------------------------------------- */

static void value_add(struct invocation *call, struct option_value *value, const char *text)
{
    const char **texts = arena_new(call->texts, (size_t)value->n_texts + 2, sizeof *texts);
    int *places = arena_new(call->texts, (size_t)value->n_texts + 1, sizeof *places);
    for (int i = 0; i < value->n_texts; i++) {
        texts[i] = value->texts[i];
        places[i] = value->places[i];
    }
    places[value->n_texts] = call->n_taken++;
    texts[value->n_texts++] = arena_copy_text(call->texts, text);
    value->texts = texts;
    value->places = places;
}

static void complain(struct invocation *call, const struct option_row *row, const char *why)
{
    diag_error(&call->diags, PLACE_NONE, "--%s: %s", row->name, why);
}

static void accept_one(struct invocation *call, struct option_value *value, const char *text)
{
    char why[512];
    double number = 0;
    if (option_check(value->row, text, &number, why, sizeof why) != STATUS_OK) {
        complain(call, value->row, why);
        return;
    }
    value_add(call, value, text);
    value->number = number;
}

static void accept_list(struct invocation *call, struct option_value *value, const char *text)
{
    char *copy = arena_copy_text(call->texts, text);
    while (copy) {
        char *comma = strchr(copy, ',');
        if (comma)
            *comma++ = '\0';
        accept_one(call, value, copy);
        copy = comma;
    }
}

/* Who says two different things may have meant both. */
static void tell_of_earlier(struct invocation *call, const struct option_value *value, const char *text)
{
    if (value->given && value->n_texts > 0 && strcmp(value->texts[0], text) != 0)
        diag_note(&call->diags, PLACE_NONE, "--%s is given twice; msim uses the last value, %.60s, not %.60s", value->row->name,
                  text, value->texts[0]);
}

/* A text for a row; a later one replaces an earlier one unless the row repeats. */
static void accept(struct invocation *call, struct option_value *value, const char *text, bool given)
{
    enum option_type type = value->row->type;
    if (type != OPTION_LIST && type != OPTION_REPEAT && type != OPTION_FLAG) {
        tell_of_earlier(call, value, text);
        value->n_texts = 0;
    }
    value->given = given;
    if (type == OPTION_LIST)
        accept_list(call, value, text);
    else if (type == OPTION_FLAG)
        value_add(call, value, "");
    else
        accept_one(call, value, text);
}

enum { KEY_BASE = 0x1000 };

/* What argp hands to take(). */
struct parsing {
    struct invocation *call;
    int stopped; /* where argp gave up, in its argv */
};

static error_t take(int key, char *text, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct invocation *call = parsing->call;
    if (key == ARGP_KEY_ERROR)
        parsing->stopped = state->next;
    if (key == ARGP_KEY_ARG) {
        call->operands[call->n_operands++] = text;
        return 0;
    }
    for (int i = 0; i < call->n_values; i++) {
        const struct option_row *row = call->values[i].row;
        if (key == KEY_BASE + i || (row->letter && key == row->letter)) {
            accept(call, &call->values[i], text ? text : "", true);
            return 0;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

static size_t row_names(const struct invocation *call, const char *names[MAX_OPTIONS])
{
    for (int i = 0; i < call->n_values; i++)
        names[i] = call->values[i].row->name;
    return (size_t)call->n_values;
}

/* "--checkpoint-block, --checkpoint-steps": the options that begin with a name. */
static int list_begun(const struct invocation *call, const char *name, char *list, size_t size)
{
    int n = 0;
    list[0] = '\0';
    for (int i = 0; i < call->n_values; i++) {
        const char *other = call->values[i].row->name;
        if (strncmp(other, name, strlen(name)) == 0)
            text_append(list, size, "%s--%s", n++ ? ", " : "", other);
    }
    return n;
}

/* The experiment's key that an unknown option of this name means and no option sets; NULL: none. */
static const char *key_without_option(const struct invocation *call, const char *name, char *buffer, size_t size)
{
    const char *path = call->command->experiment ? experiment_key_path(name, buffer, size) : NULL;
    for (int i = 0; path && i < call->n_values; i++)
        if (call->values[i].row->key && strcmp(call->values[i].row->key, path) == 0)
            return NULL;
    return path;
}

/* The same of the key whose name is nearest. */
static const char *key_near_option(const struct invocation *call, const char *name, char *buffer, size_t size)
{
    const char *near = call->command->experiment ? experiment_key_nearest(name) : NULL;
    return near ? experiment_key_path(near, buffer, size) : NULL;
}

static bool has_row(const struct option_row *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return true;
    return false;
}

/* "msim plan, msim run": the commands that have an option of exactly this name. */
static bool list_commands_with(const struct command *const *commands, const char *name, char *list, size_t size)
{
    list[0] = '\0';
    for (int i = 0; commands[i]; i++)
        if (has_row(commands[i]->options, name) || (commands[i]->experiment && has_row(experiment_options, name)))
            text_append(list, size, "%smsim %s", *list ? ", " : "", commands[i]->name);
    return *list;
}

/* Why getopt refused this long option: its name without value. */
static void explain_long(struct invocation *call, const char *name, bool has_value)
{
    const char *names[MAX_OPTIONS] = {0};
    size_t n = row_names(call, names);
    const struct option_row *row = NULL;
    char begun[512];
    int n_begun = list_begun(call, name, begun, sizeof begun);
    for (int i = 0; i < call->n_values; i++) {
        if (strcmp(names[i], name) == 0 || (n_begun == 1 && strncmp(names[i], name, strlen(name)) == 0))
            row = call->values[i].row;
    }
    char path[96], others[160];
    const char *near = nearest_name(name, names, n), *key = key_without_option(call, name, path, sizeof path);
    if (row && row->argument && !has_value)
        diag_error(&call->diags, PLACE_NONE, "--%s needs a value: --%s %s", row->name, row->name, row->argument);
    else if (row && has_value)
        diag_error(&call->diags, PLACE_NONE, "--%s takes no value", row->name);
    else if (n_begun > 1)
        diag_error(&call->diags, PLACE_NONE, "'--%s' is ambiguous: %s; write the full name", name, begun);
    else if (key)
        diag_error(&call->diags, PLACE_NONE, "unknown option '--%s'; write --set %s=VALUE", name, key);
    else if (list_commands_with(call->commands, name, others, sizeof others))
        diag_error(&call->diags, PLACE_NONE, "'--%s' is an option of %s, not of msim %s", name, others, call->command->name);
    else if (near)
        diag_error(&call->diags, PLACE_NONE, "unknown option '--%s'; did you mean '--%s'?", name, near);
    else if (key_near_option(call, name, path, sizeof path))
        diag_error(&call->diags, PLACE_NONE, "unknown option '--%s'; did you mean --set %s=VALUE?", name, path);
    else
        diag_error(&call->diags, PLACE_NONE, "unknown option '--%s'%s", name,
                   call->command->experiment ? "; keys of an experiment are set with --set, such as --set job.global_batch=6144"
                                             : "");
}

/* In a token such as -qx the first letter that is unknown, or the last one that lacks its value. */
static void explain_letters(struct invocation *call, const char *token)
{
    for (const char *p = token + 1; *p; p++) {
        bool known = false;
        for (int i = 0; i < call->n_values; i++) {
            const struct option_row *row = call->values[i].row;
            if (row->letter != *p)
                continue;
            known = true;
            if (row->argument) {
                diag_error(&call->diags, PLACE_NONE, "-%c needs a value: -%c %s", *p, *p, row->argument);
                return;
            }
        }
        if (!known) {
            diag_error(&call->diags, PLACE_NONE, "unknown option '-%c'", *p);
            return;
        }
    }
}

/* Say what is wrong with a token; false when nothing is. */
static bool explain_refusal(struct invocation *call, const char *token)
{
    size_t before = call->diags.n_errors;
    if (token[0] == '-' && token[1] == '-') {
        char *name = arena_copy_text(call->texts, token + 2);
        char *value = strchr(name, '=');
        if (value)
            *value = '\0';
        explain_long(call, name, value != NULL);
    } else if (token[0] == '-') {
        explain_letters(call, token);
    }
    return call->diags.n_errors > before;
}

/*
 * argp stops at the first option it refuses; what follows is parsed all the same, to find every mistake in one go. The refused
 * token is the one before `stopped`, or, inside a cluster of letters, the one at it.
 */
static void parse_arguments(struct invocation *call, int argc, char **argv)
{
    struct argp_option options[MAX_OPTIONS + 1] = {0};
    for (int i = 0; i < call->n_values; i++) {
        const struct option_row *row = call->values[i].row;
        options[i].name = row->name;
        options[i].key = row->letter ? row->letter : KEY_BASE + i;
        options[i].arg = row->argument;
    }
    const struct argp parser = {.options = options, .parser = take};
    struct parsing parsing = {.call = call};
    for (int at = 0; at < argc;) {
        parsing.stopped = 1;
        if (argp_parse(&parser, argc - at, argv + at, ARGP_SILENT | ARGP_IN_ORDER, NULL, &parsing) == 0)
            return;
        at += parsing.stopped > 1 ? parsing.stopped - 1 : 1;
        if (at < argc && explain_refusal(call, argv[at]))
            continue;
        if (++at >= argc || !explain_refusal(call, argv[at]))
            diag_error(&call->diags, PLACE_NONE, "cannot understand '%s'", argv[at < argc ? at : argc - 1]);
    }
}

/* --- the call ------------------------------------------------------------------------------------------------------------- */

static bool wants_colour(const struct invocation *call, FILE *stream)
{
    int mode = option_choice(call, "colour");
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (mode != 0)
        return mode == 1;
    return terminal_is(stream) && !(no_colour && *no_colour) && !(terminal && strcmp(terminal, "dumb") == 0);
}

static void settle(struct invocation *call)
{
    const char *output = option_text(call, "output");
    call->format = (enum format)option_choice(call, "format");
    call->verbosity = option_flag(call, "quiet") ? -1 : 0;
    for (int i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].row->name, "verbose") == 0 && call->verbosity >= 0)
            call->verbosity = call->values[i].n_texts;
    }
    call->colour = wants_colour(call, stdout) && (option_choice(call, "colour") == 1 || strcmp(output, "-") == 0);
    call->width = strcmp(output, "-") == 0 ? terminal_width(stdout) : 0;
    call->message_colour = wants_colour(call, stderr);
    call->progress = terminal_is(stderr) && !option_flag(call, "no-progress") && call->verbosity >= 0;
    call->seed = option_given(call, "seed") ? (uint64_t)option_count(call, "seed") : 1;
}

static void check_operands(struct invocation *call)
{
    const struct command *command = call->command;
    int low = command->min_operands, high = command->experiment && !command->max_operands ? 1 : command->max_operands;
    if (call->n_operands < low)
        diag_error(&call->diags, PLACE_NONE, "%s is missing", command->operands ? command->operands : "an operand");
    if (high >= 0 && call->n_operands > high)
        diag_error(&call->diags, PLACE_NONE, "unexpected operand '%s'", call->operands[high]);
}

enum status invocation_parse(const struct command *const *commands, const struct command *command, int argc, char **argv,
                             struct invocation *call)
{
    *call = (struct invocation){.commands = commands, .command = command, .texts = memory_new(1, sizeof *call->texts)};
    const struct option_row *rows[MAX_OPTIONS];
    call->n_values = command_rows(command, rows);
    call->operands = memory_new((size_t)argc + 1, sizeof *call->operands);
    for (int i = 0; i < call->n_values; i++)
        call->values[i] = (struct option_value){.row = rows[i], .number = rows[i]->type == OPTION_CHOICE ? -1 : 0};
    parse_arguments(call, argc, argv);
    for (int i = 0; i < call->n_values; i++) {
        if (!call->values[i].given && rows[i]->initial)
            accept(call, &call->values[i], rows[i]->initial, false);
    }
    call->help = option_flag(call, "help");
    call->usage = option_flag(call, "usage");
    if (!call->help && !call->usage)
        check_operands(call);
    if (call->diags.n_errors)
        return STATUS_USAGE;
    overrides_collect(call);
    settle(call);
    return call->diags.n_errors ? STATUS_USAGE : STATUS_OK;
}

void invocation_free(struct invocation *call)
{
    diags_free(&call->diags);
    free(call->operands);
    if (call->texts)
        arena_free(call->texts);
    free(call->texts);
    *call = (struct invocation){0};
}

void operands_repeated(struct invocation *call)
{
    for (int i = 1; i < call->n_operands; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(call->operands[i], "-") != 0 && file_is_same(call->operands[i], call->operands[k])) {
                diag_warning(&call->diags, (struct place){.file = call->operands[i]},
                             "this table is given twice; its rows count twice");
                break;
            }
}
