/*
 * watch.h - a progress callback for long work.
 *
 * Example:
 *
 *     static void show(void *context, double done, double total) { printf("%.0f %%", 100 * done / total); }
 *     struct watch watch = {show, NULL};
 *     file_read_watched(path, limit, &watch, ...);
 *
 * The work chooses how often to call it, from the thread that was called; `done` grows up to `total`. A watch, or its function,
 * may be NULL.
 */
#ifndef MSIM_MODEL_BASE_WATCH_H
#define MSIM_MODEL_BASE_WATCH_H

#include <stddef.h>

struct watch {
    void (*tell)(void *context, double done, double total); /* total 0: unknown */
    void *context;
};

/* Work through bytes reports after each WATCH_BYTES. */
#define WATCH_BYTES ((size_t)1 << 20)

static inline void watch_tell(const struct watch *watch, double done, double total)
{
    if (watch != NULL && watch->tell != NULL)
        watch->tell(watch->context, done, total);
}

#endif
