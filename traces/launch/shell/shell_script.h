/*
 * shell_script.h - a launch script, read command by command and never run.
 *
 *     #!/bin/bash
 *     #SBATCH --nodes=8                            word nodes = 8
 *     TP=${TP:-4}
 *     ARGS=(--num-layers 80 --bf16)
 *     srun bash -c "train.py ${ARGS[@]} $TP"       command train.py --num-layers 80 --bf16 4, behind srun
 *
 * Read are comments, quotes, line continuations, here-documents (files that they become, and commands for another shell),
 * assignments, arrays, $NAME, ${NAME}, ${NAME:-default}, ${ARRAY[@]}, $((whole numbers)), `if` and `case` with tests whose
 * result is known, export and its kind, #SBATCH lines, and lines for another shell (bash -c). A value that cannot be known (the
 * output of a command, a variable that nobody sets, a value set under a condition with an unknown result) makes the words that
 * depend on it unknown, with the reason. Only who needs the word complains.
 *
 * This room knows a shell and nothing about jobs: each command goes to a listener, which decides what it means.
 *
 * Cost: linear in the script, plus what variables expand to (at most SHELL_EXPANSION bytes in all; more is an error).
 */
#ifndef MSIM_TRACES_LAUNCH_SHELL_SHELL_SCRIPT_H
#define MSIM_TRACES_LAUNCH_SHELL_SHELL_SCRIPT_H

#include "traces/launch/shell/shell_state.h"

enum { SHELL_BYTES_MAX = 1 << 18 };

/* Variables that the script expects from outside: "NAME=VALUE". */
struct launch_environment {
    const char *const *settings;
    int n;
    bool follow; /* read files that the script names outside its folder */
};

/* Gets each command that runs or may run, with its words expanded. The first n_around fields start the shell that runs it (srun
 * --nodes 4 bash -c ...). */
struct shell_listener {
    void (*command)(void *context, struct shell_state *state, const struct shell_fields *fields, size_t n_around,
                    struct place at);
    /* The text of a file that the script sources; false if it is not read, with the reason in `why` unless the file sets no
     * variable of a job (conda's activate). The arena of the state's words owns the texts. NULL: no file is read. */
    bool (*source)(void *context, struct shell_state *state, const struct launch_field *file, struct shell_text *text,
                   const char **why);
    void *context;
};

/* Reads a script. `words` gets the words of its #SBATCH lines, "written-file" for each file that it writes and "doubted-file"
 * for one that it changes later; the arena of `words` owns all texts. `name` is the name of the script in diagnostics and must
 * outlive the words. */
void shell_read(const char *name, const char *bytes, size_t n, const struct launch_environment *environment,
                const struct shell_listener *listener, struct launch_words *words, struct diags *diags);

/* The words of a command line, such as the value of an option; quotes as in a script. */
MUST_CHECK enum status shell_words(const char *name, const char *text, struct launch_words *words, struct diags *diags);

/* Adds a field to a list. A field that is a command line itself (the value of xpk --command) is split into its words. */
void shell_split(struct shell_state *state, struct shell_fields *fields, const struct launch_field *field);

#endif
