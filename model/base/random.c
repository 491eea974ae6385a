#include "model/base/random.h"

#include "model/base/hash.h"

struct random_stream random_stream_named(uint64_t seed, uint64_t purpose, uint64_t entity)
{
    uint64_t key = hash_mix(seed + HASH_GOLDEN);
    key = hash_mix((key ^ purpose) + HASH_GOLDEN);
    key = hash_mix((key ^ entity) + HASH_GOLDEN);
    return (struct random_stream){.key = key};
}

uint64_t random_bits(struct random_stream *stream)
{
    stream->drawn++;
    return hash_mix(stream->key + stream->drawn * HASH_GOLDEN);
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
