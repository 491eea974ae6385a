/*
 * shell_internal.h - a script while it is read, command by command.
 */
#ifndef MSIM_TRACES_LAUNCH_SHELL_SHELL_INTERNAL_H
#define MSIM_TRACES_LAUNCH_SHELL_SHELL_INTERNAL_H

#include "traces/launch/shell/shell_script.h"

/* Whether commands are run. */
enum certainty { SKIPPED, UNSURE, RUNS };

enum block_kind { BLOCK_IF, BLOCK_CASE, BLOCK_LOOP, BLOCK_SHELL, BLOCK_BRACKETS };
enum { BLOCKS_MAX = 64, COMMAND_WORDS_MAX = 4096, COMMAND_RAN = 2, SHELLS_MAX = 4 };

struct block {
    enum block_kind kind;
    enum certainty now, around;
    bool taken, perhaps;       /* a branch that runs, or may run, was met */
    struct launch_field value; /* of a case */
    /* in brackets, ( A=1; command ), what is set is gone behind them: the variables before; NULL: they are none of a shell */
    struct shell_variable *kept;
    size_t n_kept;
};

struct shell_raw {
    const char *start;
    size_t n;
    struct place at;
};

struct runner {
    struct shell_lexer lexer;
    struct shell_state state;
    struct block blocks[BLOCKS_MAX];
    int n_blocks;
    bool in_condition, until; /* of an if or a loop; of a loop that goes on while it is false */
    int condition;            /* 1 true, 0 false, -1 cannot be told */
    enum certainty chain;     /* what a && or || before this command leaves */
    int last;                 /* value of the list so far: 1, 0, -1 */
    char joint;               /* the operator before this command */
    const char *piped;        /* what the command before it hands on, as files have it; NULL: it cannot be told */
    struct shell_raw *command;
    size_t n_command, capacity;
    struct shell_fields loose; /* lines that begin with a flag */
    const struct shell_listener *listener;
    /* Runs a line that another shell is given: it has this one's variables, and what it sets is gone behind it. `around` is what
     * starts that shell. A pointer, because lines have commands and commands lines. */
    void (*run_line)(struct runner *r, const struct launch_field *line, const struct shell_fields *around);
    const struct shell_fields *around; /* of a command line that another shell is given (srun bash -c): what is in front of it */
    int depth;                         /* of shells within shells */
    struct diags *reading;             /* what cannot be read of the script or line */
};

/* Whether the command that is read is run. */
static inline enum certainty shell_certainty(const struct runner *r)
{
    enum certainty now = r->n_blocks ? r->blocks[r->n_blocks - 1].now : RUNS;
    return now < r->chain ? now : r->chain;
}

/* Is a word, as it stands in the script, this text? */
bool shell_is_word(const struct shell_raw *word, const char *text);

/* A simple command: assignments, then perhaps something to run. What it gives as a test; COMMAND_RAN where it is none. */
int shell_run_command(struct runner *r);

/* What a command writes into files, or `body`, which it is given to read (NULL: nothing): cat >FILE <<END, tee -a FILE, echo TEXT
 * >>FILE, printf FORMAT >FILE. Words "written-file" of the script, where a configuration of that name is looked for, and
 * "doubted-file" of one that was written and is changed in a way that is not followed. */
void shell_write_files(struct runner *r, const struct shell_fields *fields, const struct launch_field *body);

/* All commands of the lexer's text. */
void shell_run_script(struct runner *r);

#endif
