/*
 * megatron_arguments.h - Megatron-LM's arguments: one table for import and export.
 *
 *     X(TP, "tensor-model-parallel-size", INT, "1", NUMBER(layout.tp), .since = "2020")
 *
 * A row has the flag of an argument, what follows it, and its default. Where an argument is one value of msim, it has the key of
 * that value and how to map it. The rows drive the readers of scripts (by flag) and of logs (by the name in the program, "dest"),
 * the warnings about what is not modelled, and `--export megatron`. Arguments that mean something only together are combined in
 * megatron_translate.c and taken apart in megatron_export.c.
 *
 * Sources of names, defaults and meanings: Megatron-LM (megatron/training/arguments.py and the configuration classes of
 * megatron/core), Megatron-DeepSpeed (zero-stage, checkpoint-activations), the zero-bubble fork (schedules). `since` is the first
 * release of Megatron-Core with the argument, or the year where there was no release yet.
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
    ARGUMENT_TRUE,  /* nothing follows: true when present */
    ARGUMENT_FALSE, /* nothing follows: `dest` is false when present */
};

/* How an argument's value becomes a member of a launch_job. */
enum argument_map {
    MAP_APART,  /* not by itself */
    MAP_NUMBER, /* int, int64_t or double, by the member's size and the argument's type */
    MAP_BOOL,   /* the same boolean */
    MAP_NOT,    /* the opposite boolean */
    MAP_CHOICE, /* the index of the word among `choices` */
};

/* When an argument has a meaning. */
enum argument_when { WHEN_ALWAYS, WHEN_MIXTURE, WHEN_LATENT, WHEN_CONTEXT /* cp above 1 */, WHEN_HYBRID, WHEN_ROTARY, N_WHENS };

struct argument_row {
    const char *flag;
    const char *dest; /* its name in the program; NULL: the flag with underscores */
    enum argument_type type;
    const char *fallback; /* the default; NULL: none; of flags "false" or "true" */
    const char *key;      /* of the experiment: "layout.tp" */
    enum argument_map map;
    size_t offset, size; /* of the member, in struct launch_job */
    const char *const *choices;
    const char *const *accepts; /* the words that the program accepts, NULL after the last; NULL: any */
    bool or_zero;               /* the number may be 0; others are at least 1 */
    enum argument_when when;
    const char *since;
    const char *unmodelled; /* not modelled: what it changes, for a warning if the value is not the default */
};

enum argument {
#define X(id, ...) ARGUMENT_##id,
    MEGATRON_ARGUMENTS(X)
#undef X
        N_ARGUMENTS
};

extern const struct argument_row megatron_rows[N_ARGUMENTS];

/* The value of one argument in a job. */
struct megatron_value {
    const char *text;     /* NULL: none; "true" or "false" of flags */
    const char *unknown;  /* why it is not known; NULL: it is */
    const char *spelling; /* the name by which the input calls it */
    struct place at;
    bool by_flag, commanded; /* set by a flag; by a key on a command line; neither: by a file */
};

struct megatron_arguments {
    struct megatron_value of[N_ARGUMENTS];
    bool foreign; /* some are from another framework's configuration */
    bool logged;  /* some are from an argument block: that version has no other arguments */
};

/* The words for enum position_kind, norm_kind and optimizer; "" where Megatron-LM has none. NULL after the last. */
extern const char *const megatron_positions[], *const megatron_norms[], *const megatron_optimizers[];
/* The words of --data-parallel-sharding-strategy, by ZeRO stage. NULL after the last. */
extern const char *const megatron_shardings[];

/* Words into values; the last word for an argument counts. A flag without its value, or with a value that is none of its
 * choices, is unknown (`unknown` says why). An unknown flag that is spelt like a modelled one is an error, except together with
 * a framework's configuration, whose program has flags of its own. Other unknown flags are listed with `all`; otherwise one
 * note counts them. */
void megatron_read(struct launch_words *words, const char *const *ignored, bool all, struct megatron_arguments *arguments,
                   struct diags *diags);

/* The number of words that describe the model or the layout. A training command has some. */
size_t megatron_count(const struct launch_words *words);
/* The same for the flags of a command line only. */
size_t megatron_count_flags(const struct launch_words *words);
/* The index of a row by flag (dashes or underscores) or by dest; -1: none. */
int megatron_find(const char *name, bool by_dest);
/* Is this flag among those that change neither time nor memory? A name that ends in '*' matches all names that begin so.
 * `ignored` ends with NULL; NULL: none. */
bool megatron_ignores(const char *const *ignored, const char *name);

/* A value as a number in [low, high]; false, with a diagnostic, if it is none. */
bool megatron_number(const struct megatron_value *value, const struct argument_row *row, double low, double high, double *number,
                     struct diags *diags);

/* The value or the default; NULL: none. */
const char *megatron_text(const struct megatron_arguments *arguments, enum argument argument);
bool megatron_given(const struct megatron_arguments *arguments, enum argument argument);
bool megatron_true(const struct megatron_arguments *arguments, enum argument argument);

#endif
