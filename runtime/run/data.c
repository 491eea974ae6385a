/* data.c - draws the tokens of a sample. */
#include "runtime/base/data.h"

#include "model/base/random.h"

int64_t data_sample_tokens(const struct data_source *source)
{
    return source->seq_len + 1 + source->predictions;
}

static void synthetic(const struct data_source *source, struct random_stream *stream, int32_t *tokens)
{
    uint64_t vocab = (uint64_t)source->vocab, token = random_below(stream, vocab);
    for (int64_t i = 0; i < data_sample_tokens(source); i++) {
        tokens[i] = (int32_t)token;
        bool jump = random_below(stream, 8) == 0;
        token = jump ? random_below(stream, vocab) : (3 * token + 1) % vocab;
    }
}

void data_sample(const struct data_source *source, int64_t number, int32_t *tokens)
{
    struct random_stream stream = random_stream_named(source->seed, UINT64_C(0x73616d706c6573), (uint64_t)number);
    if (!source->text) {
        synthetic(source, &stream, tokens);
        return;
    }
    size_t from = (size_t)random_below(&stream, source->n_text + 1 - (uint64_t)data_sample_tokens(source));
    for (int64_t i = 0; i < data_sample_tokens(source); i++)
        tokens[i] = source->text[from + (size_t)i];
}
