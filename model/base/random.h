/*
 * random.h - random streams that depend only on their names.
 *
 * Example: the faults of node 17 in replica 3.
 *
 *     struct random_stream stream = random_stream_named(seed, PURPOSE_FAULTS, node);
 *     double u = random_uniform(&stream);
 *
 * Every entity that needs random numbers (a node, a replica, a cause) has its own stream, named by (seed, purpose, entity). Its
 * numbers do not depend on how many numbers another entity drew, nor on the order of threads or processes. So results are the
 * same however the work is divided.
 *
 * A stream is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) started at a hash of
 * its name: the n-th number is a bijective mix of key + n * G, G the odd constant nearest 2^64 / golden ratio. Streams are
 * parts of one sequence of 2^64 numbers; S streams of length n overlap with a probability of about S^2 n / 2^64 (5e-5 for a
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
