/*
 * megatron_arguments.h - Megatron-LM's arguments: one table for both directions.
 *
 * A row says an argument's flag, what follows it, what it is when left out, and, where it means one thing of msim's, which key
 * that is and how values map. From the rows follow the readers of scripts (by flag) and of logs' argument blocks (by the name in
 * the program, "dest"), the warnings about what is not modelled, and the writer of `--export megatron`. Arguments that mean
 * something only together are put together in megatron_translate.c and taken apart in megatron_export.c.
 *
 * Names, defaults and meanings: Megatron-LM's arguments (megatron/training/arguments.py and the configuration classes of
 * megatron/core), Megatron-DeepSpeed's (zero-stage, checkpoint-activations), the zero-bubble fork's schedules. `since` is the
 * release of Megatron-Core, or the year before there was one, from which the argument is there.
 */
#ifndef MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_ARGUMENTS_H
#define MSIM_TRACES_LAUNCH_MEGATRON_MEGATRON_ARGUMENTS_H

#include "traces/launch/job/launch.h"
#include "traces/launch/job/launch_words.h"
#include "traces/launch/megatron/megatron_table.h"

enum argument_type {
    ARGUMENT_INT,   /* a whole number follows */
    ARGUMENT_REAL,  /* a number */
    ARGUMENT_TEXT,  /* a word */
    ARGUMENT_LIST,  /* words */
    ARGUMENT_TRUE,  /* nothing: true when there */
    ARGUMENT_FALSE, /* nothing: what the log calls `dest` is false when there */
};

/* How an argument's value becomes a member of a launch_job. */
enum argument_map {
    MAP_APART,  /* it does not by itself */
    MAP_NUMBER, /* int, int64_t or double, by the member's size and the argument's type */
    MAP_BOOL,   /* the same truth */
    MAP_NOT,    /* the opposite */
    MAP_CHOICE, /* the index of the word among `choices` */
};

/* When an argument means anything. */
enum argument_when { WHEN_ALWAYS, WHEN_MIXTURE, WHEN_LATENT, WHEN_CONTEXT /* cp above 1 */, WHEN_HYBRID, WHEN_ROTARY, N_WHENS };

struct argument_row {
    const char *flag;
    const char *dest; /* in the program; NULL: the flag with underscores */
    enum argument_type type;
    const char *fallback; /* what it is when left out; NULL: nothing, "false" and "true" of flags */
    const char *key;      /* of the experiment: "layout.tp" */
    enum argument_map map;
    size_t offset, size; /* of the member, in struct launch_job */
    const char *const *choices;
    const char *const *accepts; /* the words that its program takes, NULL behind the last; NULL: any */
    bool or_zero;               /* a number that may be 0; others are at least 1 */
    enum argument_when when;
    const char *since;
    const char *told; /* not modelled: what it changes; told when the value is not the fallback */
};

enum argument {
#define X(id, ...) ARGUMENT_##id,
    MEGATRON_ARGUMENTS(X)
#undef X
        N_ARGUMENTS
};

extern const struct argument_row megatron_rows[N_ARGUMENTS];

/* What a job says of one argument. */
struct megatron_value {
    const char *text;    /* NULL: nothing; "true" and "false" of flags */
    const char *unknown; /* why it cannot be told, NULL it can */
    const char *said;    /* how it is called there */
    struct place at;
    bool by_flag, commanded; /* by a flag, or a key that a command line set; neither: by a file */
};

struct megatron_arguments {
    struct megatron_value of[N_ARGUMENTS];
    bool foreign; /* from a configuration in another framework's words */
    bool logged;  /* from an argument block: what is not said does not exist in that version */
};

/* The words for enum position_kind, norm_kind, optimizer; "" where Megatron-LM has none. NULL after the last. */
extern const char *const megatron_positions[], *const megatron_norms[], *const megatron_optimizers[];
/* The words of --data-parallel-sharding-strategy, by ZeRO stage. NULL after the last. */
extern const char *const megatron_shardings[];

/* Words into values; of what is said twice the last counts. A flag that needs a value and has none, and one whose value is none
 * of its choices, cannot be told (`unknown` says why). A flag that nobody knows and that is spelt nearly as one that is modelled
 * is an error, unless a framework's configuration stands beside it, whose program has flags of its own. With `all` the others
 * that nobody knows are listed, in one note otherwise. */
void megatron_read(struct launch_words *words, const char *const *ignored, bool all, struct megatron_arguments *arguments,
                   struct diags *diags);

/* How many of the words are arguments with a meaning for the model or the layout: what tells a launch from another command. */
size_t megatron_count(const struct launch_words *words);
/* And how many of a command line's flags. */
size_t megatron_count_flags(const struct launch_words *words);
/* The row's index by flag (dashes or underscores) or by dest; -1: none. */
int megatron_find(const char *name, bool by_dest);
/* Is this flag among those that change neither time nor memory? A name there that ends in '*' matches all that begin so. NULL
 * behind the last; NULL: none. */
bool megatron_ignores(const char *const *ignored, const char *name);

/* A value as a number in [low, high]; false, with a diagnostic, when it is none. */
bool megatron_number(const struct megatron_value *value, const struct argument_row *row, double low, double high, double *number,
                     struct diags *diags);

/* The value, or what it is when left out; NULL: none. */
const char *megatron_text(const struct megatron_arguments *arguments, enum argument argument);
bool megatron_given(const struct megatron_arguments *arguments, enum argument argument);
bool megatron_true(const struct megatron_arguments *arguments, enum argument argument);

#endif
