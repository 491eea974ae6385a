/*
 * command.h - a command, its options, and one call of it.
 *
 *     static const struct option_row options[] = {
 *         {.name = "top", COUNT_FIELDS, .low = 1, .high = 1000, .initial = "10", .help = "show the N best plans"},
 *         {0}};
 *     static enum status run(struct invocation *call)
 *     {
 *         int top = (int)option_count(call, "top");
 *         ...
 *         fprintf(call->out, ...);    or a table (table.h), or result_write (result.h)
 *         return STATUS_OK;
 *     }
 *     const struct command command_plan = {.name = "plan", ..., .options = options, .run = run};
 *
 * A command is a constant in cmd_<name>.c: its texts, its option rows and a function. Only the rows describe options. The parser,
 * --help, the manual page, the tests of bounds and defaults and the fuzz dictionary all read them. A default is a text that goes
 * through the same parser as the user's.
 *
 * A run function writes its data to call->out and its messages to stderr (info(), progress.h). It adds errors, warnings and notes
 * to call->diags, which main prints after it returns. call->out and files of output_open appear only if the function returns
 * STATUS_OK or STATUS_CHECK.
 */
#ifndef MSIM_CLI_OPTIONS_COMMAND_H
#define MSIM_CLI_OPTIONS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/units.h"

enum option_type {
    OPTION_FLAG,     /* there or not */
    OPTION_TEXT,     /* a name, a file */
    OPTION_COUNT,    /* a whole number: 6144, 12_288, 300B */
    OPTION_QUANTITY, /* a number with a unit of `dimension`: 30min */
    OPTION_CHOICE,   /* one of `choices` */
    OPTION_LIST,     /* texts between commas, and repeatable; each one of `choices` when there are any */
    OPTION_REPEAT,   /* a text; each use adds one */
};

/* One option. A table of rows ends with a row without name. */
struct option_row {
    const char *name;     /* long name, without dashes */
    char letter;          /* short name, 0 none */
    const char *argument; /* as help shows it: "FILE", "TIME"; NULL for a flag */
    enum option_type type;
    enum dimension dimension;    /* of a quantity */
    double low, high;            /* bounds of a count or quantity, in canonical units, of a text's bytes; high 0: none above */
    const char *const *choices;  /* NULL-terminated */
    const char *const *meanings; /* of each choice, one line of help; NULL: help lists the choices in one line */
    bool changes;                /* of a list: a choice may have a sign, + or - */
    const char *initial;         /* the default, as a user would write it; NULL: none */
    const char *fallback;        /* the default as help describes it, where it is no value to parse; NULL: `initial` */
    const char *help;            /* one imperative sentence, without the default */
    const char *group;           /* heading in help; NULL: "Options" */
    bool late;                   /* an experiment option that help lists after the command's own ones */
    const char *key;             /* becomes the override "key=value" of the experiment when given, NULL no */
    bool verbatim;               /* of a text with a key: it is a name as it stands, not YAML */
    bool written;                /* the value names a file that the command writes */
    bool aside;                  /* the result is the same with any value: threads, where files go, how much is said */
    /* A further look at a value (after its type's); on failure *why says what is wrong and what would be right. */
    enum status (*check)(const char *text, char *why, size_t size);
};

/* The fields that say what a value is, by its kind: {.name = "top", COUNT_FIELDS, .low = 1, ...}. */
#define TEXT_FIELDS(ARGUMENT)                .argument = ARGUMENT, .type = OPTION_TEXT
#define COUNT_FIELDS                         .argument = "N", .type = OPTION_COUNT
#define QUANTITY_FIELDS(ARGUMENT, DIMENSION) .argument = ARGUMENT, .type = OPTION_QUANTITY, .dimension = DIMENSION
#define TIME_FIELDS                          QUANTITY_FIELDS("TIME", DIM_TIME)
#define CHOICE_FIELDS(ARGUMENT, CHOICES)     .argument = ARGUMENT, .type = OPTION_CHOICE, .choices = CHOICES

struct example {
    const char *line; /* a full command line */
    const char *what; /* its purpose; one imperative phrase */
};

/* A paragraph of details, which --help prints below the options. A table of notes ends with a note without title. */
struct command_note {
    const char *title, *text;
};

struct invocation;
struct result_table;

struct command {
    const char *name;
    const char *summary;     /* one imperative phrase, for the list of commands */
    const char *description; /* one or two paragraphs above the options, with a blank line between; wrapped when printed */
    const struct command_note *notes; /* details below the options; NULL none */
    const char *operands;             /* "TABLE.csv..." in the usage line; NULL none */
    int min_operands, max_operands;   /* max -1: any number */
    bool experiment; /* takes the experiment options (experiment_options.h) and, as its one operand, an experiment file */
    const struct option_row *options; /* own rows, may be NULL */
    const struct example *examples;   /* ends with a NULL line */
    const struct result_table *keys;  /* of its results (cli/output/result_row.h); NULL: not described */
    enum status (*run)(struct invocation *call);
};

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };

enum { MAX_OPTIONS = 96, MAX_OUTPUTS = 8 };

/* What the command line said about one row. */
struct option_value {
    const struct option_row *row;
    bool given;         /* by the user; false: the default */
    const char **texts; /* n_texts values, NULL-terminated */
    int *places;        /* of each text: how many had been taken from the command line before it */
    int n_texts;
    double number; /* of a count or quantity, canonical unit; of a choice its index */
};

/* One call of a command. */
struct invocation {
    const struct command *const *commands; /* all of the program, for messages; ends with NULL */
    const struct command *command;
    struct option_value values[MAX_OPTIONS];
    int n_values;
    const char **operands;
    int n_operands;

    /* From the options that every command has. */
    enum format format;
    int verbosity; /* -1 quiet, 0, 1 and more: -v */
    bool colour;   /* of call->out */
    int width;     /* columns of the terminal that call->out is; 0 unknown (terminal.h) */
    bool message_colour;
    bool progress; /* stderr is a terminal and nobody said no */
    uint64_t seed; /* --seed, or the experiment's, or 1 */

    FILE *out; /* data goes here: standard output, or aside of -o FILE */
    struct diags diags;
    bool help, usage;        /* --help or -h was there: nothing else counts */
    struct outputs *outputs; /* see result.h */
    const char **overrides;  /* of the experiment, from rows with a key and from --set, in the order of the command line */
    int n_overrides;
    int n_taken;         /* texts of options, from the command line and as defaults */
    struct arena *texts; /* what values and overrides point into */
};

/* Values by long name. Asking for a name that no row has is a programmer's mistake and ends the process. */
bool option_given(const struct invocation *call, const char *name); /* by the user */
bool option_flag(const struct invocation *call, const char *name);
const char *option_text(const struct invocation *call, const char *name); /* NULL: neither given nor default */
int64_t option_count(const struct invocation *call, const char *name);    /* 0 without default */
double option_quantity(const struct invocation *call, const char *name);  /* canonical unit */
int option_choice(const struct invocation *call, const char *name);       /* index in row.choices, -1 none */
const char *const *option_list(const struct invocation *call, const char *name, int *n);

/* Warns of a file that stands twice among the operands, where all rows of all files count. */
void operands_repeated(struct invocation *call);

/* A sentence on stderr, when the verbosity is at least `level` (0 normal, 1 with -v). A newline is added. */
void info(const struct invocation *call, int level, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
