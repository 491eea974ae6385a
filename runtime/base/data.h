/*
 * data.h - the tokens that a run trains on.
 *
 * Example: seq_len 4, no prediction modules. Sample 7 has data_sample_tokens() = 5 tokens, t0 to t4. The model reads t0 to t3
 * and learns to predict t1 to t4.
 *
 *     struct data_source source = {.seed = 1, .vocab = 512, .seq_len = 4};
 *     data_sample(&source, 7, tokens);
 *
 * Samples are numbered 0, 1, ... over all steps. A sample depends only on the seed and its number, so every layout trains on the
 * same batch. Each module of multi-token prediction needs one more token per sample.
 *
 *   synthetic   a noisy walk: next = 3 previous + 1 mod vocab, but one token in eight is random. A model can learn it a little.
 *   text        bytes of a text from a random position on; needs a vocabulary of at least 256
 */
#ifndef MSIM_RUNTIME_BASE_DATA_H
#define MSIM_RUNTIME_BASE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct data_source {
    uint64_t seed;
    int64_t vocab, seq_len;
    int64_t predictions;       /* modules of multi-token prediction */
    const unsigned char *text; /* NULL: synthetic */
    size_t n_text;             /* bytes; at least data_sample_tokens */
};

/* Tokens per sample: seq_len + 1 + predictions. */
int64_t data_sample_tokens(const struct data_source *source);
/* Writes the tokens of sample `number` to tokens[data_sample_tokens]. */
void data_sample(const struct data_source *source, int64_t number, int32_t *tokens);

#endif
