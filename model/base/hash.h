/*
 * hash.h - 64-bit hashes: FNV-1a of bytes and numbers in their order, and the finaliser of splitmix64.
 *
 * Example: uint64_t hash = hash_number(hash_bytes(HASH_BEGIN, name, n), index);
 *
 * The finaliser spreads the few differing bits of a word over all bits of the result. The same on every machine. Not for
 * secrets.
 */
#ifndef MSIM_MODEL_BASE_HASH_H
#define MSIM_MODEL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BEGIN UINT64_C(14695981039346656037)

/* Continues `hash` (HASH_BEGIN at first) with these bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The same with a number, its eight bytes from the lowest up. */
static inline uint64_t hash_number(uint64_t hash, uint64_t number)
{
    for (int bit = 0; bit < 64; bit += 8)
        hash = (hash ^ (number >> bit & 0xff)) * UINT64_C(1099511628211);
    return hash;
}

/* The increment of splitmix64: 2^64 over the golden ratio, which is odd and spreads multiples evenly. */
#define HASH_GOLDEN UINT64_C(0x9E3779B97F4A7C15)

/* Its finaliser (Steele, Lea and Flood, OOPSLA 2014, with Stafford's 13th constants): a bijection. */
static inline uint64_t hash_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint64_t hash_word(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;
    memcpy(&word, bytes, n);
    return word;
}

/*
 * A hash of a key of n bytes (a constant), for places in tables. The key must have no padding, whose content is undefined:
 *
 *     static_assert(sizeof(struct shape) == 3 * sizeof(int64_t), "no padding: shapes are hashed and compared by their bytes");
 *
 * Two hashes take words of eight bytes in turn, because each product waits for the one before.
 */
static inline uint64_t hash_key(const void *key, size_t n)
{
    const uint64_t odd = UINT64_C(0xff51afd7ed558ccd);
    const unsigned char *p = (const unsigned char *)key;
    uint64_t a = HASH_GOLDEN, b = HASH_BEGIN;
    for (size_t i = 0; i + 16 <= n; i += 16) {
        a = (a ^ hash_word(p + i, 8)) * odd;
        b = (b ^ hash_word(p + i + 8, 8)) * odd;
    }
    if (n % 16 >= 8)
        a = (a ^ hash_word(p + n / 16 * 16, 8)) * odd;
    if (n % 8 > 0)
        b = (b ^ hash_word(p + n / 8 * 8, n % 8)) * odd;
    a ^= b >> 32 | b << 32;
    return a ^ a >> 32;
}

#endif
