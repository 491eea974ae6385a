/*
 * key_words.h - what people write for keys of an experiment: words of learning frameworks, of `msim catalog`'s columns, and keys
 * of another part. Private to the reader of specifications.
 */
#ifndef MSIM_MODEL_SPEC_KEY_WORDS_H
#define MSIM_MODEL_SPEC_KEY_WORDS_H

#include <stddef.h>

enum { KEY_ADVICE = 200 };

/* What to write for a word that is no key of the schema called `what`: "write `global_batch`, sequences a step, ...", or, where
 * the key is another part's, "write `job: {adapter: {rank: ...}}`". Case and dashes do not matter. Returns buffer, NULL where the
 * word says nothing or `what` is no part of an experiment. */
const char *key_words_advice(const char *what, const char *word, char *buffer, size_t size);

/* The key that the index-th word of the table means, by its path; NULL behind the last. For tests. */
const char *key_words_path(size_t index);

/* The target of adapters that a framework's module belongs to: "qkv" for "q_proj"; NULL: none is known. */
const char *key_words_target(const char *module);

#endif
