/*
 * launch_words.h - what a job says of itself, word by word: --flags of a script, names of a log's argument block, keys of a
 * configuration file. Readers of files fill it; megatron_arguments.h knows what the words mean.
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_WORDS_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_WORDS_H

#include <stdbool.h>

#include "model/base/diag.h"
#include "model/base/memory.h"

struct launch_word {
    const char *name;    /* of the flag or key, without dashes in front; "" where any number of them may stand (`unknown`) */
    const char *value;   /* what follows it; several between blanks; NULL nothing */
    size_t first;        /* length of the first of several; 0: it is one */
    const char *unknown; /* why the value cannot be told ("$TP is not set"); NULL: it can */
    const char *said;    /* as people wrote it: "--num-layers", "model.num_layers"; NULL: the name, in a log */
    struct place at;
    bool by_dest;   /* the name is that of a log: the argument's value in the program, not its flag */
    bool commanded; /* `by_dest`, and a command line set it */
    bool strange;   /* the name is a key with a value that a framework's reader does not know: "model.norm=x" */
};

struct launch_words {
    struct arena arena; /* owns texts */
    struct launch_word *items;
    size_t n, capacity;
};

/* Is it key=value, without dashes? */
bool launch_word_sets(const struct launch_word *word);

/* Adds a word; its texts must live as long as the words (arena). */
void launch_words_add(struct launch_words *words, struct launch_word word);
void launch_words_free(struct launch_words *words);

/* The last part of a path. */
const char *launch_base(const char *path);

/* A copy of n bytes in the arena. */
char *launch_text(struct launch_words *words, const char *bytes, size_t n);

/* A piece of a field: where its text was written, and why it is not known. */
struct launch_segment {
    size_t from;         /* offset in the field; it goes on to the next segment's */
    const char *source;  /* in the file's text; NULL: not from there */
    const char *unknown; /* NULL: known */
};

/* A word of a command line. What is unknown and has no text is UNKNOWN_TEXT. */
#define UNKNOWN_TEXT "\1"
struct launch_field {
    const char *text;
    const char *unknown; /* of its first unknown segment; NULL: all is known */
    struct place at;
    const struct launch_segment *segments;
    size_t n_segments;
};

/* n fields of a command line ("--flag", "value", "--flag=value", "key.of.a.configuration=value", behind a program "key=value")
 * become words: a flag has what follows it up to the next flag. */
void launch_words_of_fields(struct launch_words *words, const struct launch_field *fields, size_t n);

#endif
