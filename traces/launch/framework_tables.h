/*
 * framework_tables.h - how frameworks call what Megatron-LM's arguments say. Private to framework_config.c.
 */
#ifndef MSIM_TRACES_FRAMEWORK_TABLES_H
#define MSIM_TRACES_FRAMEWORK_TABLES_H

#include <stdbool.h>

/* A word of theirs as an argument: `name` is what Megatron-LM's log calls it. */
struct framework_word {
    const char *word, *name, *value;
};

/* A key of theirs, by its path. The value stays, or is the opposite truth, or is one of the words (of which several may be the
 * same: each says something). */
struct framework_key {
    const char *path, *name;
    bool opposite;
    const struct framework_word *words;
};

struct framework {
    const char *name;
    const char *signs[3];               /* keys at the top that tell it, all of them */
    bool companion;                     /* no job by itself */
    const struct framework_word *fixed; /* what its code does without a key; `word` is unused */
    const struct framework_key *keys;
};

enum { N_FRAMEWORKS = 3 };
extern const struct framework frameworks[N_FRAMEWORKS];

#endif
