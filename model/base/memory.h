/*
 * memory.h - allocation that does not fail, and an arena.
 *
 * Example:
 *
 *     double *seconds = memory_new(n, sizeof *seconds);       never NULL
 *     struct arena arena = {0};
 *     char *name = arena_copy_text(&arena, "h100");
 *     arena_free(&arena);                                     releases all of it
 *
 * msim's sizes are known before they are allocated (a program of n operations, a table of n rows) and are checked against
 * limits if they come from input. The remaining case is a machine out of memory. These functions then call the handler of
 * memory_set_handler, which must not return; without one they call abort().
 */
#ifndef MSIM_MODEL_BASE_MEMORY_H
#define MSIM_MODEL_BASE_MEMORY_H

#include <stddef.h>

/* Calls `handler` with the number of bytes that cannot be allocated; NULL: abort(). For the whole process. */
void memory_set_handler(void (*handler)(size_t bytes));

/* `count` zeroed elements of `size` bytes; never NULL, also for zero elements. Release with free(). */
void *memory_new(size_t count, size_t size) __attribute__((returns_nonnull));

/* Memory of another size; the bytes that both have stay. */
void *memory_resize(void *items, size_t count, size_t size) __attribute__((returns_nonnull));

/* `items` with room for at least `needed` elements (doubling); *capacity in elements. */
void *memory_grow(void *items, size_t *capacity, size_t needed, size_t size) __attribute__((returns_nonnull));

/* A copy of a text; release with free(). */
char *memory_copy_text(const char *text) __attribute__((returns_nonnull));

/* Makes the process keep freed arrays of up to 32 MiB for later allocations. Returning pages and requesting them again, as
 * thousands of simulated steps would, costs more than filling them. Call it at the start of a program; it does nothing if the C
 * library has no such option. */
void memory_keep(void);

/*
 * An arena: many allocations, one release. All zero is an empty arena. Pointers stay valid until arena_free.
 */
struct arena_block;
struct arena {
    struct arena_block *blocks;
    size_t bytes; /* in use, for reports */
};

void *arena_new(struct arena *arena, size_t count, size_t size) __attribute__((returns_nonnull)); /* zeroed */
char *arena_copy_text(struct arena *arena, const char *text) __attribute__((returns_nonnull));
void arena_free(struct arena *arena);

#endif
