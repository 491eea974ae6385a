/*
 * search.h - find the fastest layouts of a space by the closed form.
 *
 * Example: gpt-175b-megascale on 12,288 A100, a batch of 6,144.
 *
 *     struct search_options options = {.keep = 20};
 *     search_run(space, &options, &result);
 *     result.counts      examined 1,116,060; legal 745,200; fit 354,144; ruled_out 470,016 (0.12 s)
 *     result.plans[0]    tp=8 pp=3 vpp=32 mb=2 zero=1: 6.37 s
 *
 * Every layout answers three questions in turn and is out at the first "no":
 *
 *     legal?   layout_check; the reason is counted
 *     fits?    closed_form_memory against the memory less the job's margin (memory_limit); counted by how much it is too large
 *     fast?    closed_form_estimate; the best `keep` are kept
 *
 * Order. The best plan has the shortest step; then the smallest part of it in the host's memory; then the smallest memory; then
 * the lowest index, which is the plainest layout. This is a total order. Layouts of one family (space.h) are near-duplicates,
 * so by default each family sends only its best one. The result depends on the space alone, to the last bit, and not on the
 * number of threads or on how the space was divided: counts are sums, the plans and the smallest layout are minima of total
 * orders.
 *
 * A family whose tp divides neither heads nor widths is ruled out by one check of its first layout. Its layouts are counted
 * under their reason and in `ruled_out`, not in `examined`. Every other layout is examined on its own.
 *
 * Recomputation. A layout that fits with full recomputation and does not fit without usually recomputes more than it must.
 * Where no restriction names recompute, the plan at its index is the faster one of full and full:n, with the smallest n that
 * fits (min_recompute_layers.h). It is counted as one layout, with the memory of full in all counts.
 *
 * Overlaps are decided last: they change neither whether a layout is legal nor whether it fits. A step that is known to take
 * longer than the kept ones is not estimated further. Most are refused by a lower bound (closed_form_at_least), which is
 * computed once for layouts that differ only in the overlaps of messages and of exchanges among replicas.
 *
 * Cost: about 0.05 microseconds per layout and thread, with experts up to 0.1. Memory is in proportion to `keep` and to the
 * cache of the cost model.
 */
#ifndef MSIM_MODEL_PLAN_SEARCH_H
#define MSIM_MODEL_PLAN_SEARCH_H

#include "model/cost/step/closed_form.h"
#include "model/plan/space.h"

struct plan {
    struct layout layout;
    uint64_t
        index; /* in the space; a layout that recomputes only the first layers has the index of the one that recomputes all */
    struct step_estimate estimate;
};

/* Classes of layouts that do not fit, by need / limit. */
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
    uint32_t first_family, end_family; /* the part of the space to search; end 0: all of it */
    /* Of that part, search share number `share` of `n_shares` equal ones (0: all of it). Blocks of families are dealt out in
     * turn, because neighbours have similar costs. */
    uint32_t share, n_shares;
    /* Called from time to time, from the calling thread only. May be NULL. */
    void (*progress)(void *context, double done, double total);
    void *progress_context;
};

struct search_result {
    struct search_counts counts;
    struct plan *plans; /* best first */
    int n_plans;
    double limit_bytes; /* bytes that a rank may use */
    /* The legal layout that needs the least memory, whether it fits or not (ties: the lowest index). 0 bytes: none is legal. If
     * none fits, it is the closest one. */
    struct layout least;
    uint64_t least_index;
    double least_bytes;
};

/* Bytes that a rank may use: footprint_capacity less the job's margin. */
double memory_limit(const struct setting *setting);

/* Searches the space. Free *result with search_result_free. */
void search_run(const struct space *space, const struct search_options *options, struct search_result *result);
/* Moves the contents of `part`, found in another part of the same space, into `result`; part is then empty. Merging all parts
 * of a space, in any order, gives the result of one search of the whole space. */
void search_merge(struct search_result *result, struct search_result *part, const struct search_options *options);
void search_result_free(struct search_result *result);

/* Negative, 0 or positive if a is better than, equal to, or worse than b. */
int plan_compare(const struct plan *a, const struct plan *b);

/* MFU (attention counted in full) of a step of `step_s` seconds: model FLOPs per second and GPU over the peak. */
double plan_mfu(const struct layout *layout, const struct setting *setting, double step_s);

#endif
