#include "model/base/random.h"

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

struct random_stream random_stream_named(uint64_t seed, uint64_t purpose, uint64_t entity)
{
    uint64_t key = mix(seed + GOLDEN);
    key = mix((key ^ purpose) + GOLDEN);
    key = mix((key ^ entity) + GOLDEN);
    return (struct random_stream){.key = key};
}

uint64_t random_bits(struct random_stream *stream)
{
    stream->drawn++;
    return mix(stream->key + stream->drawn * GOLDEN);
}

double random_uniform(struct random_stream *stream)
{
    return ((double)(random_bits(stream) >> 11) + 0.5) * 0x1p-53;
}

/* Numbers above the largest multiple of the limit are drawn again, so every remainder is equally likely. */
uint64_t random_below(struct random_stream *stream, uint64_t limit)
{
    uint64_t unfair = (UINT64_MAX % limit + 1) % limit;
    uint64_t bits;
    do
        bits = random_bits(stream);
    while (bits > UINT64_MAX - unfair);
    return bits % limit;
}
