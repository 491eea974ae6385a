#include "model/base/memory.h"

#include <stdint.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ARENA_BLOCK = 64 * 1024, ARENA_ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

/* The one variable of the libraries that changes: a process has one way to end when it has no memory. */
static _Atomic(void (*)(size_t bytes)) exhausted;

void memory_set_handler(void (*handler)(size_t bytes))
{
    exhausted = handler;
}

static void *memory_checked(void *p, size_t count, size_t size)
{
    if (p)
        return p;
    void (*handler)(size_t bytes) = exhausted;
    if (handler)
        handler(size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
    abort();
}

/* Large arrays are asked for in large pages: to touch one for the first time in pages of 4 KiB takes longer than to work on it.
 * It is advice; where it is not taken nothing else changes. */
static void *memory_advised(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { LARGE = 4 << 20 };
    if (bytes >= LARGE) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)p, end = begin + bytes;
        begin = (begin + page - 1) / page * page;
        (void)madvise((void *)begin, end / page * page - begin, MADV_HUGEPAGE);
    }
#else
    (void)bytes;
#endif
    return p;
}

void *memory_new(size_t count, size_t size)
{
    count = count ? count : 1;
    size = size ? size : 1;
    void *p = count > SIZE_MAX / size ? NULL : calloc(count, size); /* a sanitizer's calloc would end the process */
    return memory_advised(memory_checked(p, count, size), count * size);
}

void *memory_resize(void *items, size_t count, size_t size)
{
    count = count ? count : 1;
    return memory_checked(count > SIZE_MAX / size ? NULL : realloc(items, count * size), count, size);
}

void *memory_grow(void *items, size_t *capacity, size_t needed, size_t size)
{
    if (items && needed <= *capacity)
        return items;
    size_t wanted = *capacity ? *capacity : 8;
    while (wanted < needed)
        wanted *= 2;
    if (wanted > SIZE_MAX / size)
        return memory_checked(NULL, wanted, size);
    items = memory_checked(realloc(items, wanted * size), wanted, size);
    *capacity = wanted;
    return memory_advised(items, wanted * size);
}

void memory_keep(void)
{
#ifdef __GLIBC__
    enum { MAPPED = 32 << 20, KEPT = 1 << 30 }; /* larger arrays are mapped apart and go back at once; so much stays */
    mallopt(M_MMAP_THRESHOLD, MAPPED);
    mallopt(M_TRIM_THRESHOLD, KEPT);
#endif
}

char *memory_copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(memory_new(n, 1), text, n);
}

void *arena_new(struct arena *arena, size_t count, size_t size)
{
    if (size && count > (SIZE_MAX - ARENA_BLOCK) / size)
        return memory_checked(NULL, count, size);
    size_t bytes = (count * size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < bytes) {
        size_t room = bytes > ARENA_BLOCK ? bytes : ARENA_BLOCK;
        block = memory_new(1, sizeof *block + room);
        block->size = room;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *p = block->bytes + block->used;
    block->used += bytes;
    arena->bytes += bytes;
    return p;
}

char *arena_copy_text(struct arena *arena, const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(arena_new(arena, n, 1), text, n);
}

void arena_free(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->bytes = 0;
}
