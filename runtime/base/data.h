/*
 * data.h - tokens to train on.
 *
 * A source gives sample `number` (0, 1, ... over all steps) as seq_len + 1 tokens; the first seq_len are read, the last seq_len
 * predicted. Modules of multi-token prediction want one more token each behind them. It is a function of its seed and the number
 * alone.
 *
 *   synthetic   a noisy walk: mostly next = 3 previous + 1 mod vocab, one token in eight at random. Can be learnt a little.
 *   text        bytes of a text, from a random position on; needs a vocabulary of at least 256
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
    size_t n_text;             /* at least the tokens of a sample */
};

int64_t data_sample_tokens(const struct data_source *source);
/* tokens[data_sample_tokens] */
void data_sample(const struct data_source *source, int64_t number, int32_t *tokens);

#endif
