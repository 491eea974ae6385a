/*
 * The steps of a profile, from the marks and launches that a builder collected.
 *
 * A host that enqueues work ahead of the device ends its mark of a step before the device has begun that step:
 *
 *     host     |step 1|step 2|step 3|
 *     device     |--- 1 ---|--- 2 ---|--- 3 ---|
 *
 * So a kernel belongs to the step whose mark contains its launch; the correlation number names the launch. Where the device does
 * not keep within the host's marks, a step lasts from the first of its kernels to the first kernel of the next step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/profile/profile_internal.h"

/* The device keeps within the host's marks if at most this share of its work does not. */
#define LATE_SHARE 0.005

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

static int compare_launches(const void *left, const void *right)
{
    const struct profile_launch *a = left, *b = right;
    if (a->correlation != b->correlation)
        return a->correlation < b->correlation ? -1 : 1;
    return (a->at_s > b->at_s) - (a->at_s < b->at_s);
}

/* The first of the steps that ends after `time_s`; the first that does not begin before it. Both are in order. */
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

/* The number of spans in each step, at least in part: the first step of a span gains one, the step after its last loses one. */
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
    for (size_t i = 0; i + 1 < p->n_steps; i++)
        p->steps[i].end_s = p->steps[i + 1].start_s;
}

/* From the first to the last work of the device that ends after `start_s`. */
static struct profile_step all_work_after(const struct profile *p, double start_s)
{
    struct profile_step whole = {INFINITY, -INFINITY};
    for (size_t i = 0; i < p->n_spans; i++) {
        if (p->spans[i].end_s <= start_s)
            continue;
        whole.start_s = fmin(whole.start_s, p->spans[i].start_s);
        whole.end_s = fmax(whole.end_s, p->spans[i].end_s);
    }
    return whole;
}

/* --- a host that runs ahead ---------------------------------------------------------------------------------------- */

enum { NO_LAUNCH = -1, NO_STEP = -2 }; /* the trace has no launch of a kernel; its launch is in no step */

/* The step whose mark contains the launch of span i. */
static int64_t step_of_launch(const struct profile_builder *b, size_t i)
{
    struct profile_launch key = {.correlation = b->correlations[i], .at_s = -INFINITY};
    size_t low = 0, high = b->n_launches;
    if (key.correlation < 0)
        return NO_LAUNCH;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_launches(&b->launches[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == b->n_launches || b->launches[low].correlation != key.correlation)
        return NO_LAUNCH;
    double at_s = b->launches[low].at_s;
    size_t step = first_ending_after(&b->profile, at_s);
    return step < b->profile.n_steps && b->profile.steps[step].start_s <= at_s ? (int64_t)step : NO_STEP;
}

/* Seconds of the device's work. */
struct device_work {
    double all_s;
    double known_s;  /* with a launch in the trace */
    double late_s;   /* outside the mark of the step that launched it */
    double behind_s; /* after the end of the last mark */
};

static double overlap_s(struct profile_span span, struct profile_step step)
{
    return fmax(fmin(span.end_s, step.end_s) - fmax(span.start_s, step.start_s), 0);
}

/* Compares the work with the host's marks; `steps[i]` becomes the step of span i. */
static struct device_work work_by_launch(const struct profile_builder *b, int64_t *steps)
{
    const struct profile *p = &b->profile;
    struct device_work work = {0};
    for (size_t i = 0; i < p->n_spans; i++) {
        double seconds = p->spans[i].end_s - p->spans[i].start_s;
        steps[i] = step_of_launch(b, i);
        work.all_s += seconds;
        work.behind_s += overlap_s(p->spans[i], (struct profile_step){p->steps[p->n_steps - 1].end_s, INFINITY});
        if (steps[i] == NO_LAUNCH)
            continue;
        work.known_s += seconds;
        if (steps[i] >= 0)
            work.late_s += seconds - overlap_s(p->spans[i], p->steps[steps[i]]);
    }
    return work;
}

/* From the first kernel of each step to the first kernel of the next; the last step ends with its last kernel. Steps that
 * launched nothing disappear. */
static void steps_by_launch(struct profile *p, const int64_t *steps)
{
    for (size_t s = 0; s < p->n_steps; s++)
        p->steps[s] = (struct profile_step){INFINITY, -INFINITY};
    for (size_t i = 0; i < p->n_spans; i++) {
        if (steps[i] < 0)
            continue;
        struct profile_step *step = &p->steps[steps[i]];
        step->start_s = fmin(step->start_s, p->spans[i].start_s);
        step->end_s = fmax(step->end_s, p->spans[i].end_s);
    }
    size_t kept = 0;
    for (size_t s = 0; s < p->n_steps; s++)
        if (p->steps[s].start_s < p->steps[s].end_s)
            p->steps[kept++] = p->steps[s];
    p->n_steps = kept;
    qsort(p->steps, p->n_steps, sizeof *p->steps, compare_steps);
    for (size_t s = 0; s + 1 < p->n_steps; s++)
        p->steps[s].end_s = p->steps[s + 1].start_s;
}

/* All the work after the first mark is one interval, which holds as many steps as there are marks. */
static void steps_in_one(struct profile *p)
{
    p->steps_each = (int)p->n_steps;
    p->steps[0] = all_work_after(p, p->steps[0].start_s);
    p->n_steps = 1;
}

/* Marks of the host alone: moves the steps to the device's clock where the device does not keep within them. */
static void follow_device(struct profile_builder *b, const char *path, struct diags *diags)
{
    struct profile *p = &b->profile;
    struct place at = {.file = path};
    int64_t *steps = memory_new(p->n_spans, sizeof *steps);
    if (b->n_launches)
        qsort(b->launches, b->n_launches, sizeof *b->launches, compare_launches);
    struct device_work work = work_by_launch(b, steps);
    if (work.known_s > work.all_s / 2) {
        if (work.late_s > LATE_SHARE * work.all_s) {
            steps_by_launch(p, steps);
            diag_note(diags, at,
                      "the host runs ahead of the device: %.1f %% of the device's work lies outside the mark of the step "
                      "that launched it; a step lasts from its first kernel to the first kernel of the next",
                      100 * work.late_s / work.all_s);
        }
    } else if (work.behind_s > LATE_SHARE * work.all_s) {
        diag_warning(diags, at,
                     "%.1f %% of the device's work follows the last mark of the host, and the trace has no launches that "
                     "tell its step: msim divides the work evenly among the %zu steps",
                     100 * work.behind_s / work.all_s, p->n_steps);
        steps_in_one(p);
    }
    free(steps);
}

/* --- steps --------------------------------------------------------------------------------------------------------- */

/* Steps in which the device did nothing are left out. */
static void drop_empty_steps(struct profile *p)
{
    int64_t *n_spans = spans_of_steps(p);
    size_t kept = 0;
    for (size_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].end_s > p->steps[i].start_s && n_spans[i] > 0)
            p->steps[kept++] = p->steps[i];
    free(n_spans);
    p->n_steps = kept;
}

/* Reports the work outside all steps. */
static void report_outside(const struct profile *p, const char *path, struct diags *diags)
{
    double all_s = 0, outside_s = 0;
    for (size_t i = 0; i < p->n_spans; i++) {
        const struct profile_span *span = &p->spans[i];
        double seconds = span->end_s - span->start_s;
        all_s += seconds;
        outside_s += seconds;
        for (size_t s = first_ending_after(p, span->start_s); s < p->n_steps && p->steps[s].start_s < span->end_s; s++)
            outside_s -= overlap_s(*span, p->steps[s]);
    }
    if (outside_s > LATE_SHARE * all_s)
        diag_warning(diags, (struct place){.file = path},
                     "%.4g ms of the device's work (%.1f %%) is outside all marked steps; msim leaves it out", 1e3 * outside_s,
                     100 * outside_s / all_s);
}

static void take_all_as_one(struct profile *p)
{
    free(p->steps);
    p->steps = memory_new(1, sizeof *p->steps);
    p->steps[p->n_steps++] = all_work_after(p, -INFINITY);
}

void profile_settle_steps(struct profile_builder *b, const char *path, struct diags *diags)
{
    struct profile *p = &b->profile;
    bool on_device = b->marks[true].n > 0;
    join_marks(&b->marks[on_device], p);
    if (p->n_steps > 0 && !on_device)
        follow_device(b, path, diags);
    drop_empty_steps(p);
    p->marked = p->n_steps > 0;
    if (p->marked)
        report_outside(p, path, diags);
    else
        take_all_as_one(p);
}
