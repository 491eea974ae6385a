/*
 * accuracy.h - errors of predictions against measurements.
 *
 *     measured 10 s, predicted 11 s: error +10 %
 *     measured 10 s, predicted  8 s: error -20 %          mape_pct 15, bias_pct -5
 *
 * One comparison is one run. Its error is signed, 100 (predicted - measured) / measured: positive is a prediction that is too
 * slow. Over the n comparisons that ran and have both times:
 *
 *     mape_pct        mean of |error|
 *     median_ape_pct  median of |error| (mean of the middle two for even n)
 *     p90_ape_pct     90th percentile of |error|, linear between order statistics: rank 0.9 (n - 1) from 0
 *     bias_pct        mean of the signed error
 *     macro_mape_pct  mean over sources of the source's mape_pct: a table of 700 rows weighs no more than one of 7
 *     ratio           measured over predicted: 10th, 50th and 90th percentile. Each source has the same weight (a run 1 over the
 * number of its source's), linear between the middles of the runs' weights
 *
 * A statistic of nothing (n = 0) is 0. Out of memory is classified separately: `found` runs ended out of memory as predicted,
 * `missed` runs ended so although predicted to fit, `false_alarms` ran although predicted not to fit. A false alarm has a
 * predicted time and counts among the n.
 */
#ifndef MSIM_TRACES_TABLE_ACCURACY_H
#define MSIM_TRACES_TABLE_ACCURACY_H

#include <stdbool.h>
#include <stddef.h>

struct comparison {
    const char *name;   /* the run; unique names make sorting total */
    const char *source; /* its group: the file of the table */
    const char *gpu;
    const char *kind; /* of run (model/cost/step/track_record.h) */
    bool oom, predicted_oom;
    bool outcome_unknown;           /* unknown whether it ran out of memory: it counts in no class */
    double use;                     /* predicted memory over capacity; 0: not predicted */
    double measured_s, predicted_s; /* 0: not measured, not predicted */
};

struct accuracy {
    size_t n;
    double mape_pct, macro_mape_pct, median_ape_pct, p90_ape_pct, bias_pct;
    struct {
        double low, middle, high;
    } ratio;
    size_t n_sources; /* with timed comparisons */
    size_t oom_found, oom_missed, oom_false_alarms;
};

/* Are both times there? The signed error in percent. */
bool comparison_is_timed(const struct comparison *comparison);
double comparison_error_pct(const struct comparison *comparison);

/* A group by source, GPU or kind, in the order of first appearance; or everything as one group. */
struct accuracy_group {
    const char *name;
    struct accuracy accuracy; /* macro_mape_pct equals mape_pct for a source */
};
enum accuracy_key { ACCURACY_BY_SOURCE, ACCURACY_BY_GPU, ACCURACY_BY_KIND, ACCURACY_OF_ALL };

const char *accuracy_key_of(const struct comparison *comparison, enum accuracy_key key);
struct accuracy accuracy_total(const struct comparison *items, size_t n);
/* The comparisons of one group; the caller frees them. */
struct comparison *accuracy_members(const struct comparison *items, size_t n, enum accuracy_key key, const char *name,
                                    size_t *n_mine);
/* The caller frees the groups; their names belong to the comparisons. */
struct accuracy_group *accuracy_groups(const struct comparison *items, size_t n, enum accuracy_key key, size_t *n_groups);

/* Indices of the timed comparisons, largest |error| first, equal ones in their order. The caller frees the list. */
size_t *accuracy_worst_first(const struct comparison *items, size_t n, size_t *n_timed);

#endif
