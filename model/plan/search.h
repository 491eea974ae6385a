/*
 * search.h - the layouts of a space that are fastest by the closed form.
 *
 * Every layout meets three questions in turn, and is out at the first "no":
 *
 *   legal?   layout_check; the reason is counted
 *   fits?    closed_form_memory against the memory less the job's margin (memory_limit); counted as memory, by how much it is too
 *            large
 *   fast?    closed_form_estimate; the best `keep` are remembered
 *
 * "Best" is a total order: the shorter step, then less of it in the host's memory, then the smaller memory, then the lower index,
 * which is the plainer layout. Layouts of one family (space.h) are near-duplicates, so ordinarily each family sends only its best
 * one. Everything a search returns depends on the space alone, to the last bit, not on the number of threads nor on how the space
 * was divided: counts are sums, the plans and the smallest layout are minima of total orders.
 *
 * A family whose tp divides neither heads nor widths is ruled out as a whole, by one check of its first layout: those layouts are
 * counted under their reason and in `ruled_out`, not in `examined`. Every other layout is examined on its own.
 *
 * A layout that recomputes all layers (full) and fits, where one that recomputes nothing does not, mostly does more than it must.
 * Where no restriction says what is recomputed, the plan at its index is the faster one of it and full:n with the least n that
 * fits (min_recompute_layers.h); it is counted as one layout, and its memory is that of full in all counts.
 *
 * Overlaps are asked about last: they change neither whether a layout is legal nor whether it fits. Of a step that is seen to
 * take longer than what is kept, no more is worked out: most are by what they take at least (closed_form_at_least), which is
 * asked once for layouts that differ in the overlaps of messages and of replicas' exchanges only.
 *
 * Cost: about 0.05 microseconds a layout and thread, with experts up to 0.1; memory in proportion to `keep` and to
 * the cost model's cache.
 */
#ifndef MSIM_MODEL_PLAN_SEARCH_H
#define MSIM_MODEL_PLAN_SEARCH_H

#include "model/cost/step/closed_form.h"
#include "model/plan/space.h"

struct plan {
    struct layout layout;
    uint64_t index; /* in the space; of one that recomputes the first layers only, that of the one which recomputes all */
    struct step_estimate estimate;
};

/* How far the layouts that do not fit are from fitting: need / limit. */
#define OVERFLOW_CLASSES(X)                                                                                                      \
    X(TENTH, "up to 10 % too large", 1.1)                                                                                        \
    X(HALF, "10 to 50 % too large", 1.5)                                                                                         \
    X(TWICE, "50 to 100 % too large", 2.0)                                                                                       \
    X(BEYOND, "more than twice what there is", 1e300)
enum overflow_class {
#define X(id, text, limit) OVERFLOW_##id,
    OVERFLOW_CLASSES(X)
#undef X
        N_OVERFLOW_CLASSES
};
const char *overflow_class_text(enum overflow_class overflow);

struct search_counts {
    uint64_t in_space;                        /* layouts of the families searched: examined + ruled_out */
    uint64_t examined;                        /* one by one */
    uint64_t ruled_out;                       /* by one check of their family */
    uint64_t legal;                           /* passed layout_check */
    uint64_t fit;                             /* and fit the memory */
    uint64_t rejected[N_LAYOUT_REASONS];      /* by layout_check; [LAYOUT_LEGAL] stays 0 */
    uint64_t over_memory[N_OVERFLOW_CLASSES]; /* legal, do not fit; sum: legal - fit */
};

struct search_options {
    int keep;                          /* plans wanted, at least 1 */
    bool variants;                     /* several plans of one family may be kept */
    bool memory_only;                  /* do not estimate times: no plans, only counts and the smallest layout */
    int threads;                       /* 0: one per processor of the process */
    uint32_t first_family, end_family; /* what part of the space; end 0: all of it */
    /* Of that part, share number `share` of `n_shares` alike ones (0: all of it): blocks of families dealt out in turn, as
     * neighbours cost alike. */
    uint32_t share, n_shares;
    /* Called now and then, from the calling thread only. May be NULL. */
    void (*progress)(void *context, double done, double total);
    void *progress_context;
};

struct search_result {
    struct search_counts counts;
    struct plan *plans; /* best first */
    int n_plans;
    double limit_bytes; /* what a rank may take */
    /* The legal layout that needs least memory, fitting or not (ties: the lowest index); 0 bytes: none is legal. When none fits
     * it is the one that comes closest. */
    struct layout least;
    uint64_t least_index;
    double least_bytes;
};

/* What a rank may take: footprint_capacity less the job's margin. */
double memory_limit(const struct setting *setting);

void search_run(const struct space *space, const struct search_options *options, struct search_result *result);
/* Takes over what `part`, found in another part of the same space, has; part is emptied. With the parts of a space in any order
 * this gives what one search of all of it gives. */
void search_merge(struct search_result *result, struct search_result *part, const struct search_options *options);
void search_result_free(struct search_result *result);

/* Negative, 0 or positive as a is better than, the same as, or worse than b. */
int plan_compare(const struct plan *a, const struct plan *b);

/* Model FLOPs (full convention) per second and GPU of peak, for a step of this length. */
double plan_mfu(const struct layout *layout, const struct setting *setting, double step_s);

/*
 * The best layouts of a setting by the closed form, at least one. `restrictions` (may be NULL or "") are as in space_restrict, so
 * a partly given layout is completed in the best way. When nothing fits, STATUS_BAD_INPUT with a diagnostic that says how far off
 * the closest layout is and notes on what would help. *result is written only on success.
 */
MUST_CHECK enum status plans_best(const struct setting *setting, const char *restrictions, const struct search_options *options,
                                  struct search_result *result, struct diags *diags);

#endif
