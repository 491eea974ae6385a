/*
 * watch.h - a progress callback for long work.
 *
 * The work decides how often: now and then, from the thread that was called, with `done` growing up to `total`. A watch may be
 * NULL, or tell nobody.
 */
#ifndef MSIM_MODEL_BASE_WATCH_H
#define MSIM_MODEL_BASE_WATCH_H

#include <stddef.h>

struct watch {
    void (*tell)(void *context, double done, double total); /* total 0: not known */
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
