/* profile_builder.c - collects the work of a device: spans, kernels by name, marks, launches. */
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
    b->correlations = memory_grow(b->correlations, &b->correlations_capacity, p->n_spans + 1, sizeof *b->correlations);
    b->correlations[p->n_spans] = -1;
    struct profile_kernel *kernel = kernel_named(b, name, kind);
    p->spans[p->n_spans++] = (struct profile_span){time.start_s, time.end_s, kind, kernel->number};
    kernel->launches++;
    kernel->seconds += time.end_s - time.start_s;
}

void profile_correlate_span(struct profile_builder *b, int64_t correlation)
{
    b->correlations[b->profile.n_spans - 1] = correlation;
}

void profile_add_launch(struct profile_builder *b, int64_t correlation, double at_s)
{
    b->launches = memory_grow(b->launches, &b->launches_capacity, b->n_launches + 1, sizeof *b->launches);
    b->launches[b->n_launches++] = (struct profile_launch){correlation, at_s};
}

void profile_add_mark(struct profile_builder *b, bool on_device, int64_t number, struct profile_step time)
{
    struct profile_marks *marks = &b->marks[on_device];
    marks->items = memory_grow(marks->items, &marks->capacity, marks->n + 1, sizeof *marks->items);
    marks->items[marks->n++] = (struct profile_mark){number, time};
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

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

enum status profile_finish(struct profile_builder *b, const char *path, struct profile *profile, struct diags *diags)
{
    if (b->profile.n_spans == 0) {
        diag_error(diags, (struct place){.file = path}, "%s",
                   b->without_work ? b->without_work
                                   : "this trace has no kernel and no copy; record the device too (ProfilerActivity.CUDA), and "
                                     "a step that ran");
        profile_give_up(b);
        return STATUS_BAD_INPUT;
    }
    profile_settle_steps(b, path, diags);
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
    free(b->correlations);
    free(b->launches);
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
