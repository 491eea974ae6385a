/*
 * launch_words.h - words that describe a job: flags of a script, names of a log's argument block, keys of a configuration.
 *
 *     --num-layers 80           (train.sh:31)      name "num-layers", value "80", spelling "--num-layers"
 *     model.num_layers: 80      (run.yaml:4)       name "num_layers", value "80", spelling "model.num_layers", by_dest
 *     num_layers ....... 80     (a log)            name "num_layers", value "80", spelling NULL, by_dest
 *     --num-layers $N           ($N is not set)    unknown "$N is set nowhere in the script"
 */
#ifndef MSIM_TRACES_LAUNCH_JOB_LAUNCH_WORDS_H
#define MSIM_TRACES_LAUNCH_JOB_LAUNCH_WORDS_H

#include <stdbool.h>

#include "model/base/diag.h"
#include "model/base/memory.h"

struct launch_word {
    const char *name;     /* of the flag or key, without leading dashes; "": any words may stand here (`unknown`) */
    const char *value;    /* the text that follows it; several texts are separated by blanks; NULL: nothing */
    size_t first;         /* length of the first of several texts; 0: there is one */
    const char *unknown;  /* why the value is not known ("$TP is not set"); NULL: it is known */
    const char *spelling; /* as it is written: "--num-layers", "model.num_layers"; NULL: as the name, in a log */
    struct place at;
    bool by_dest;   /* the name is that of a log (argparse's dest), not the flag */
    bool commanded; /* `by_dest`, and a command line set it */
    bool strange;   /* a key with a value that the framework's table does not have: "model.norm=x" */
};

struct launch_words {
    struct arena arena; /* owns the texts */
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

/* A piece of a field: where it was written, and why it is not known. */
struct launch_segment {
    size_t from;         /* offset in the field; the piece ends where the next one begins */
    const char *source;  /* in the file's text; NULL: from elsewhere */
    const char *unknown; /* NULL: known */
};

/* A word of a command line. An unknown piece without text is UNKNOWN_TEXT. */
#define UNKNOWN_TEXT "\1"
struct launch_field {
    const char *text;
    const char *unknown; /* of its first unknown piece; NULL: all is known */
    struct place at;
    const struct launch_segment *segments;
    size_t n_segments;
};

/* The n fields of a command line ("--flag", "value", "--flag=value", "key.of.a.configuration=value"; after a program also
 * "key=value") become words. The value of a flag is what follows it, up to the next flag. */
void launch_words_of_fields(struct launch_words *words, const struct launch_field *fields, size_t n);

#endif
