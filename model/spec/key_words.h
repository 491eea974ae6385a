/*
 * key_words.h - other names for the keys of an experiment: words of learning frameworks, column titles of `msim catalog`, and
 * keys of another part. Private to the reader of specifications.
 *
 * Example: key_words_advice("job", "train_batch_size", ...) returns "write `global_batch`, sequences a step, ...".
 */
#ifndef MSIM_MODEL_SPEC_KEY_WORDS_H
#define MSIM_MODEL_SPEC_KEY_WORDS_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

enum { KEY_ADVICE = 200 };

/* Advice for a word that is no key of the schema called `what`: "write `global_batch`, sequences a step, ...", or, if another
 * part has the key, "write `job: {adapter: {rank: ...}}`". Case and dashes do not matter. Returns buffer; NULL if the word is
 * unknown or `what` is no part of an experiment. */
const char *key_words_advice(const char *what, const char *word, char *buffer, size_t size);

/* The path of the key for the index-th word of the table; NULL after the last. For tests. */
const char *key_words_path(size_t index);

/* Whether a word is a known one (lower case, with '_'), without regard to case and with '-' for '_'. */
static inline bool key_word_is(const char *word, const char *known)
{
    for (; *word && *known; word++, known++)
        if ((*word == '-' ? '_' : tolower((unsigned char)*word)) != *known)
            return false;
    return *word == *known;
}

#endif
