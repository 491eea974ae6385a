/*
 * random.h - random streams that depend on nothing but their names.
 *
 * Every entity that needs chance (a node, a replica, a cause) has a stream of its own, named by (seed, purpose, entity). What one
 * entity draws never depends on how much another drew, nor on the order in which threads or processes reach them, so results
 * are the same however the work is divided.
 *
 * A stream is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) started at a hash of
 * its name: the n-th number is a bijective mix of key + n * G, G the odd constant nearest 2^64 / golden ratio. Streams are
 * stretches of one sequence of 2^64 numbers; S streams of length n overlap with a chance of about S^2 n / 2^64 (5e-5 for a
 * million streams of a thousand). Good for simulation, not for secrets.
 */
#ifndef MSIM_MODEL_BASE_RANDOM_H
#define MSIM_MODEL_BASE_RANDOM_H

#include <stdint.h>

struct random_stream {
    uint64_t key;
    uint64_t drawn; /* numbers so far; may be set to jump */
};

struct random_stream random_stream_named(uint64_t seed, uint64_t purpose, uint64_t entity);

uint64_t random_bits(struct random_stream *stream);                  /* 64 random bits */
double random_uniform(struct random_stream *stream);                 /* in (0, 1), multiples of 2^-53 plus 2^-54 */
uint64_t random_below(struct random_stream *stream, uint64_t limit); /* in [0, limit), without bias; limit above 0 */

#endif
