/*
 * hash.h - FNV-1a, 64 bits: fingerprints of bytes and places in tables. Not for secrets.
 */
#ifndef MSIM_MODEL_BASE_HASH_H
#define MSIM_MODEL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(14695981039346656037)

/* `hash` (HASH_BEGIN at first) with these bytes behind what it has taken in. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}

#endif
