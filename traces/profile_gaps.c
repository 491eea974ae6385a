/* When a profile's device did nothing, and between which kernels. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "traces/profile.h"

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

/* Spans in the order of their starts; those of all streams together leave the gaps. */
static void gaps_of_step(const struct profile *p, const struct profile_span *spans, size_t step, struct gaps *gaps)
{
    const double end_s = p->steps[step].end_s;
    double busy_until_s = p->steps[step].start_s;
    int64_t last = -1;
    for (size_t i = 0; i < p->n_spans && spans[i].start_s < end_s; i++) {
        if (!(spans[i].end_s > busy_until_s))
            continue;
        add_gap(gaps, p, step, busy_until_s, spans[i].start_s, last, spans[i].kernel);
        busy_until_s = spans[i].end_s;
        last = spans[i].kernel;
    }
    add_gap(gaps, p, step, busy_until_s, end_s, last, -1);
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
    for (size_t i = 0; i < profile->n_spans; i++)
        spans[i] = profile->spans[i];
    qsort(spans, profile->n_spans, sizeof *spans, compare_starts);
    for (size_t step = 0; step < profile->n_steps; step++)
        gaps_of_step(profile, spans, step, &gaps);
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
