/* profile_gaps.c - finds the times in which a profile's device was idle, and the kernels around them. */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "traces/profile/profile.h"

struct gap {
    int64_t after, before;
    size_t step;
    double start_s, seconds; /* since the step began */
};

struct gaps {
    struct gap *items;
    size_t n, capacity;
};

/* Of those that start together the longest first, then by their kernels: one order, whatever sorts. */
static int compare_starts(const void *left, const void *right)
{
    const struct profile_span *a = left, *b = right;
    if (a->start_s < b->start_s || a->start_s > b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    if (a->end_s < b->end_s || a->end_s > b->end_s)
        return a->end_s > b->end_s ? -1 : 1;
    return (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

/* By their kernels, of those the longest first and of equal ones the earliest. */
static int compare_gaps(const void *left, const void *right)
{
    const struct gap *a = left, *b = right;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

static int compare_idles(const void *left, const void *right)
{
    const struct profile_idle *a = left, *b = right;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    if (a->after != b->after)
        return a->after < b->after ? -1 : 1;
    return (a->before > b->before) - (a->before < b->before);
}

static void add_gap(struct gaps *gaps, const struct profile *p, size_t step, double from_s, double to_s, int64_t after,
                    int64_t before)
{
    if (!(to_s > from_s))
        return;
    gaps->items = memory_grow(gaps->items, &gaps->capacity, gaps->n + 1, sizeof *gaps->items);
    gaps->items[gaps->n++] = (struct gap){after, before, step, from_s - p->steps[step].start_s, to_s - from_s};
}

/* How far all streams together have been busy, and with what last, after the first `next` spans in the order of their starts. */
struct busy {
    size_t next;
    double until_s;
    int64_t last;
};

static void take_span(struct busy *busy, const struct profile_span *span)
{
    if (span->end_s > busy->until_s)
        *busy = (struct busy){busy->next, span->end_s, span->kernel};
    busy->next++;
}

/* What is not covered by any span. Steps are in order and none overlaps another, so every span is taken once. */
static void gaps_of_step(const struct profile *p, const struct profile_span *spans, size_t step, struct busy *busy,
                         struct gaps *gaps)
{
    const double start_s = p->steps[step].start_s, end_s = p->steps[step].end_s;
    while (busy->next < p->n_spans && spans[busy->next].start_s < start_s)
        take_span(busy, &spans[busy->next]);
    if (!(busy->until_s > start_s))
        *busy = (struct busy){busy->next, start_s, -1};
    for (; busy->next < p->n_spans && spans[busy->next].start_s < end_s; take_span(busy, &spans[busy->next])) {
        const struct profile_span *span = &spans[busy->next];
        if (span->end_s > busy->until_s)
            add_gap(gaps, p, step, busy->until_s, span->start_s, busy->last, span->kernel);
    }
    add_gap(gaps, p, step, busy->until_s, end_s, busy->last, -1);
}

/* Gaps between the same two kernels as one. */
static size_t join_gaps(const struct gaps *gaps, struct profile_idle *idles)
{
    size_t n = 0;
    for (size_t i = 0; i < gaps->n; i++) {
        const struct gap *gap = &gaps->items[i];
        struct profile_idle *idle = n ? &idles[n - 1] : NULL;
        if (!idle || idle->after != gap->after || idle->before != gap->before) {
            idle = &idles[n++];
            *idle = (struct profile_idle){.after = gap->after,
                                          .before = gap->before,
                                          .longest_s = gap->seconds,
                                          .longest_at_s = gap->start_s,
                                          .longest_step = gap->step};
        }
        idle->gaps++;
        idle->seconds += gap->seconds;
    }
    return n;
}

size_t profile_idles_of(const struct profile *profile, struct profile_idle *idles, size_t most)
{
    struct profile_span *spans = memory_new(profile->n_spans, sizeof *spans);
    struct gaps gaps = {0};
    struct busy busy = {0, -INFINITY, -1};
    for (size_t i = 0; i < profile->n_spans; i++)
        spans[i] = profile->spans[i];
    qsort(spans, profile->n_spans, sizeof *spans, compare_starts);
    for (size_t step = 0; step < profile->n_steps; step++)
        gaps_of_step(profile, spans, step, &busy, &gaps);
    struct profile_idle *all = memory_new(gaps.n, sizeof *all);
    if (gaps.n)
        qsort(gaps.items, gaps.n, sizeof *gaps.items, compare_gaps);
    size_t n = join_gaps(&gaps, all);
    qsort(all, n, sizeof *all, compare_idles);
    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++)
        idles[i] = all[i];
    free(all);
    free(gaps.items);
    free(spans);
    return n;
}
