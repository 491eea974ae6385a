/*
 * shell_internal.h - the state of reading a script, command by command (private to traces/launch/shell).
 *
 * Example: the state within the first branch of
 *
 *     if [ "$N" = 1 ]; then      N is known to be 1: the block's certainty is RUNS, and SKIPPED in the else branch
 *     A=1 train.py --tp 4        chain is RUNS; the variable A is set for this command only
 *     fi
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
    bool taken, perhaps;       /* a branch that runs, or may run, was there */
    struct launch_field value; /* of a case */
    /* in brackets, ( A=1; command ), assignments end at the bracket: the variables before it; NULL: no brackets */
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
    bool in_condition, until; /* in the condition of an if or a loop; the loop is an until */
    int condition;            /* 1 true, 0 false, -1 unknown */
    enum certainty chain;     /* whether this command runs, by the && or || before it */
    int last;                 /* value of the list so far: 1, 0, -1 */
    char joint;               /* the operator before this command */
    const char *piped;        /* the output of the command before the pipe, as far as it is known; NULL: it is not */
    struct shell_raw *command;
    size_t n_command, capacity;
    struct shell_fields loose; /* lines that begin with a flag */
    const struct shell_listener *listener;
    /* Runs a line for another shell. It sees the variables of this shell; its assignments end with it. `around` starts that
     * shell. This is a pointer because lines contain commands and commands contain lines. */
    void (*run_line)(struct runner *r, const struct launch_field *line, const struct shell_fields *around);
    void (*run_here)(struct runner *r, const struct launch_field *line);                /* eval LINE */
    void (*run_file)(struct runner *r, const struct shell_text *text, struct place at); /* source FILE */
    const struct shell_fields *around; /* within a line for another shell (srun bash -c): the fields before it */
    int depth;                         /* of nested shells */
    struct diags *reading;             /* mistakes in the script or line */
};

/* Does the current command run? */
static inline enum certainty shell_certainty(const struct runner *r)
{
    enum certainty now = r->n_blocks ? r->blocks[r->n_blocks - 1].now : RUNS;
    return now < r->chain ? now : r->chain;
}

/* Is a word of the script, as written, this text? */
bool shell_is_word(const struct shell_raw *word, const char *text);

/* A simple command: assignments, then possibly a program. Returns its value as a test; COMMAND_RAN if it is no test. */
int shell_run_command(struct runner *r);

/* The files that a command writes: cat >FILE <<END, tee -a FILE, echo TEXT >>FILE, printf FORMAT >FILE. `body` is its
 * here-document (NULL: none). Adds words "written-file", where configurations are looked for, and "doubted-file" for a file
 * that is later changed in a way that is not followed. */
void shell_write_files(struct runner *r, const struct shell_fields *fields, const struct launch_field *body);

/* All commands of the lexer's text. */
void shell_run_script(struct runner *r);

#endif
