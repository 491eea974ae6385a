/*
 * profile_internal.h - collects the work of a device from a trace, and lists the readers of formats (private to traces/profile).
 *
 * Example: a reader finds a kernel that ran from 3.0 to 3.2 s, launched under number 17 at 2.5 s, and the host's mark of step 4.
 *
 *     profile_add_span(&builder, kind, "ampere_bf16_gemm", (struct profile_step){3.0, 3.2});
 *     profile_correlate_span(&builder, 17);
 *     profile_add_launch(&builder, 17, 2.5);
 *     profile_add_mark(&builder, false, 4, (struct profile_step){2.4, 2.9});
 *     profile_finish(&builder, path, &profile, &diags);                 the kernel belongs to step 4
 */
#ifndef MSIM_TRACES_PROFILE_PROFILE_INTERNAL_H
#define MSIM_TRACES_PROFILE_PROFILE_INTERNAL_H

#include "traces/profile/profile.h"

/* What is known of an exchange; "" and 0: nothing. */
struct exchange_words {
    const char *kernel, *operation, *group;
    int ranks;
};
enum profile_kind profile_exchange_kind(const struct exchange_words *words, const struct layout *layout);

/* A profile in progress. */
struct profile_builder {
    const struct layout *layout;
    const struct watch *watch; /* progress through the text; may be NULL */
    const char *without_work;  /* the error of a trace in which no device worked; NULL: the usual one */
    struct profile profile;
    size_t spans_capacity, kernels_capacity;
    struct profile_marks {
        struct profile_mark {
            int64_t number;
            struct profile_step time;
        } * items;
        size_t n, capacity;
    } marks[2];            /* on the host's clock, on the device's */
    int64_t *correlations; /* of each span: the number of its launch; -1: unknown */
    size_t correlations_capacity;
    struct profile_launch {
        int64_t correlation;
        double at_s; /* on the host */
    } * launches;
    size_t n_launches, launches_capacity;
    struct kernel_index {
        uint64_t hash;
        size_t kernel; /* its number plus 1; 0: free */
    } * index;         /* of names, by open addressing */
    size_t index_size;
};

/* Is this a possible time? Within about 3,000 years of the epoch, and at most eleven days long. */
bool profile_is_time(double start_s, double length_s);
void profile_add_span(struct profile_builder *b, enum profile_kind kind, const char *name, struct profile_step time);
/* The host launched the span added last under this number. */
void profile_correlate_span(struct profile_builder *b, int64_t correlation);
/* The host launched something under this number at this time. */
void profile_add_launch(struct profile_builder *b, int64_t correlation, double at_s);
/* Adds a mark of step `number`. A device marks it on each of its streams: the step lasts from the first to the last mark of
 * that number. */
void profile_add_mark(struct profile_builder *b, bool on_device, int64_t number, struct profile_step time);
/* Turns the marks into steps in order, without overlaps: the marks of the device if it has any; else those of the host, moved to
 * the device's clock by the launches; else one step of the whole trace. Reports work outside all steps. */
void profile_settle_steps(struct profile_builder *b, const char *path, struct diags *diags);
/* Settles steps and orders kernels; the caller then owns *profile. STATUS_BAD_INPUT if no device did anything. */
MUST_CHECK enum status profile_finish(struct profile_builder *b, const char *path, struct profile *profile, struct diags *diags);
void profile_give_up(struct profile_builder *b);

/* The formats. The caller then finishes or gives up the builder. */
MUST_CHECK enum status profile_from_torch(const char *text, size_t n, const char *path, struct profile_builder *b,
                                          struct diags *diags);
MUST_CHECK enum status profile_from_table(const char *text, size_t n, const char *path, struct profile_builder *b,
                                          struct diags *diags);

#endif
