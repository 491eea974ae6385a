/* What collects the work of a device: spans, launches by name, steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"
#include "traces/profile/profile_internal.h"

static void index_put(struct profile_builder *b, uint64_t hash, size_t kernel)
{
    size_t at = hash & (b->index_size - 1);
    while (b->index[at].kernel)
        at = (at + 1) & (b->index_size - 1);
    b->index[at] = (struct kernel_index){hash, kernel + 1};
}

static void index_grow(struct profile_builder *b)
{
    struct kernel_index *old = b->index;
    size_t old_size = b->index_size;
    b->index_size = old_size ? 2 * old_size : 1024;
    b->index = memory_new(b->index_size, sizeof *b->index);
    for (size_t i = 0; i < old_size; i++)
        if (old[i].kernel)
            index_put(b, old[i].hash, old[i].kernel - 1);
    free(old);
}

static struct profile_kernel *kernel_named(struct profile_builder *b, const char *name, enum profile_kind kind)
{
    struct profile *p = &b->profile;
    uint64_t hash = hash_bytes(HASH_BEGIN, name, strlen(name)) ^ (uint64_t)kind; /* one name of NCCL serves several groups */
    if (2 * (p->n_kernels + 1) > b->index_size)
        index_grow(b);
    for (size_t at = hash & (b->index_size - 1); b->index[at].kernel; at = (at + 1) & (b->index_size - 1)) {
        struct profile_kernel *kernel = &p->kernels[b->index[at].kernel - 1];
        if (b->index[at].hash == hash && kernel->kind == kind && strcmp(kernel->name, name) == 0)
            return kernel;
    }
    index_put(b, hash, p->n_kernels);
    p->kernels = memory_grow(p->kernels, &b->kernels_capacity, p->n_kernels + 1, sizeof *p->kernels);
    p->kernels[p->n_kernels] =
        (struct profile_kernel){.name = memory_copy_text(name), .kind = kind, .number = (int32_t)p->n_kernels};
    return &p->kernels[p->n_kernels++];
}

bool profile_is_time(double start_s, double length_s)
{
    return start_s > -1e11 && start_s < 1e11 && length_s >= 0 && length_s < 1e6;
}

void profile_add_span(struct profile_builder *b, enum profile_kind kind, const char *name, struct profile_step time)
{
    struct profile *p = &b->profile;
    p->spans = memory_grow(p->spans, &b->spans_capacity, p->n_spans + 1, sizeof *p->spans);
    struct profile_kernel *kernel = kernel_named(b, name, kind);
    p->spans[p->n_spans++] = (struct profile_span){time.start_s, time.end_s, kind, kernel->number};
    kernel->launches++;
    kernel->seconds += time.end_s - time.start_s;
}

void profile_add_mark(struct profile_builder *b, bool on_device, int64_t number, struct profile_step time)
{
    struct profile_marks *marks = &b->marks[on_device];
    marks->items = memory_grow(marks->items, &marks->capacity, marks->n + 1, sizeof *marks->items);
    marks->items[marks->n++] = (struct profile_mark){number, time};
}

/* --- steps --------------------------------------------------------------------------------------------------------- */

static int compare_steps(const void *left, const void *right)
{
    const struct profile_step *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

static int compare_marks(const void *left, const void *right)
{
    const struct profile_mark *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

static int compare_kernels(const void *left, const void *right)
{
    const struct profile_kernel *a = left, *b = right;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds > b->seconds ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order ? order : (int)a->kind - (int)b->kind;
}

/* The longest kernels first; spans go on knowing theirs. */
static void order_kernels(struct profile *p)
{
    int32_t *places = memory_new(p->n_kernels, sizeof *places);
    qsort(p->kernels, p->n_kernels, sizeof *p->kernels, compare_kernels);
    for (size_t k = 0; k < p->n_kernels; k++)
        places[p->kernels[k].number] = (int32_t)k;
    for (size_t i = 0; i < p->n_spans; i++)
        p->spans[i].kernel = places[p->spans[i].kernel];
    free(places);
}

/* The first of the steps that ends after `time_s`; of those that do not begin before it. Both are in order. */
static size_t first_ending_after(const struct profile *p, double time_s)
{
    size_t low = 0, high = p->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->steps[middle].end_s > time_s)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t first_beginning_from(const struct profile *p, double time_s)
{
    size_t low = 0, high = p->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->steps[middle].start_s >= time_s)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* How many spans lie in each step, at least in part: at the first of a span's steps they become one more, behind its last one
 * less. */
static int64_t *spans_of_steps(const struct profile *p)
{
    int64_t *n = memory_new(p->n_steps + 1, sizeof *n);
    for (size_t i = 0; i < p->n_spans; i++) {
        size_t from = first_ending_after(p, p->spans[i].start_s), to = first_beginning_from(p, p->spans[i].end_s);
        if (from >= to)
            continue;
        n[from]++;
        n[to]--;
    }
    for (size_t i = 1; i < p->n_steps; i++)
        n[i] += n[i - 1];
    return n;
}

/* One step of all marks of one number. */
static void join_marks(struct profile_marks *marks, struct profile *p)
{
    if (marks->n == 0)
        return;
    qsort(marks->items, marks->n, sizeof *marks->items, compare_marks);
    p->steps = memory_new(marks->n, sizeof *p->steps);
    for (size_t i = 0; i < marks->n; i++) {
        const struct profile_mark *mark = &marks->items[i];
        if (i == 0 || mark->number != mark[-1].number) {
            p->steps[p->n_steps++] = mark->time;
            continue;
        }
        struct profile_step *step = &p->steps[p->n_steps - 1];
        step->start_s = fmin(step->start_s, mark->time.start_s);
        step->end_s = fmax(step->end_s, mark->time.end_s);
    }
    qsort(p->steps, p->n_steps, sizeof *p->steps, compare_steps);
}

/* A step ends where the next begins; those in which the device did nothing are left out. */
static void settle_steps(struct profile_builder *b)
{
    struct profile *p = &b->profile;
    join_marks(&b->marks[b->marks[true].n > 0], p);
    for (size_t i = 0; i + 1 < p->n_steps; i++)
        p->steps[i].end_s = p->steps[i + 1].start_s;
    int64_t *n_spans = spans_of_steps(p);
    size_t kept = 0;
    for (size_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].end_s > p->steps[i].start_s && n_spans[i] > 0)
            p->steps[kept++] = p->steps[i];
    free(n_spans);
    p->n_steps = kept;
    p->marked = kept > 0;
    if (p->marked)
        return;
    struct profile_step whole = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->n_spans; i++) {
        whole.start_s = fmin(whole.start_s, p->spans[i].start_s);
        whole.end_s = fmax(whole.end_s, p->spans[i].end_s);
    }
    free(p->steps);
    p->steps = memory_new(1, sizeof *p->steps);
    p->steps[p->n_steps++] = whole;
}

enum status profile_finish(struct profile_builder *b, const char *path, struct profile *profile, struct diags *diags)
{
    if (b->profile.n_spans == 0) {
        diag_error(diags, (struct place){.file = path},
                   "no kernel and no copy is in this trace; record the device too (ProfilerActivity.CUDA), and a step that ran");
        profile_give_up(b);
        return STATUS_BAD_INPUT;
    }
    settle_steps(b);
    order_kernels(&b->profile);
    *profile = b->profile;
    b->profile = (struct profile){.rank = -1};
    profile_give_up(b);
    return STATUS_OK;
}

void profile_give_up(struct profile_builder *b)
{
    profile_free(&b->profile);
    free(b->marks[false].items);
    free(b->marks[true].items);
    free(b->index);
}

void profile_free(struct profile *profile)
{
    for (size_t i = 0; i < profile->n_kernels; i++)
        free(profile->kernels[i].name);
    free(profile->kernels);
    free(profile->spans);
    free(profile->steps);
    *profile = (struct profile){.rank = -1};
}
