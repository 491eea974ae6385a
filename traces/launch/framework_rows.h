/*
 * framework_rows.h - the short words that tables of frameworks' keys are written in. For these tables alone.
 */
#ifndef MSIM_TRACES_FRAMEWORK_ROWS_H
#define MSIM_TRACES_FRAMEWORK_ROWS_H

#include "traces/launch/framework_tables.h"

/* Rows of struct framework_key: the value as it is, that there is something inside, the opposite truth, both as it is and by
 * words, or by words. */
#define AS(key, argument)                                                                                                        \
    {                                                                                                                            \
        key, argument, false, NULL, false                                                                                        \
    }
#define INSIDE(key, argument)                                                                                                    \
    {                                                                                                                            \
        key, argument, false, NULL, true                                                                                         \
    }
#define OPPOSITE(key, argument)                                                                                                  \
    {                                                                                                                            \
        key, argument, true, NULL, false                                                                                         \
    }
#define BOTH(key, argument, list)                                                                                                \
    {                                                                                                                            \
        key, argument, false, list, false                                                                                        \
    }
#define WORDS(key, list)                                                                                                         \
    {                                                                                                                            \
        key, NULL, false, list, false                                                                                            \
    }

/* Rows of struct framework_word: a truth as YAML, TOML and Python write it. What is exported has the first word of a value. */
#define TRULY(argument, value)                                                                                                   \
    {"true", argument, value},                                                                                                   \
    {                                                                                                                            \
        "True", argument, value                                                                                                  \
    }

#endif
