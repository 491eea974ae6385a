/* accuracy.c - errors of predictions, per table and over all. */
#include "traces/table/accuracy.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

bool comparison_is_timed(const struct comparison *comparison)
{
    return !comparison->oom && comparison->measured_s > 0 && comparison->predicted_s > 0;
}

double comparison_error_pct(const struct comparison *comparison)
{
    return 100 * (comparison->predicted_s - comparison->measured_s) / comparison->measured_s;
}

const char *accuracy_key_of(const struct comparison *comparison, enum accuracy_key key)
{
    switch (key) {
    case ACCURACY_BY_GPU: return comparison->gpu;
    case ACCURACY_BY_KIND: return comparison->kind;
    case ACCURACY_OF_ALL: return "all";
    default: return comparison->source;
    }
}

static void count_memory(const struct comparison *comparison, struct accuracy *accuracy)
{
    if (comparison->outcome_unknown)
        return;
    accuracy->oom_found += comparison->oom && comparison->predicted_oom;
    accuracy->oom_missed += comparison->oom && !comparison->predicted_oom;
    accuracy->oom_false_alarms += !comparison->oom && comparison->predicted_oom;
}

/* All but what sources weigh in. */
static struct accuracy accuracy_of(const struct comparison *items, size_t n)
{
    struct accuracy accuracy = {0};
    double *errors = memory_new(n, sizeof *errors);
    double signed_sum = 0;
    for (size_t i = 0; i < n; i++) {
        count_memory(&items[i], &accuracy);
        if (!comparison_is_timed(&items[i]))
            continue;
        double error = comparison_error_pct(&items[i]);
        signed_sum += error;
        errors[accuracy.n++] = fabs(error);
    }
    if (accuracy.n > 0) {
        gsl_sort(errors, 1, accuracy.n);
        accuracy.mape_pct = gsl_stats_mean(errors, 1, accuracy.n);
        accuracy.median_ape_pct = gsl_stats_median_from_sorted_data(errors, 1, accuracy.n);
        accuracy.p90_ape_pct = gsl_stats_quantile_from_sorted_data(errors, 1, accuracy.n, 0.9);
        accuracy.bias_pct = signed_sum / (double)accuracy.n;
    }
    free(errors);
    return accuracy;
}

/* Names of the groups in the order of first appearance; there are few. */
static const char **group_names(const struct comparison *items, size_t n, enum accuracy_key key, size_t *n_names)
{
    const char **names = NULL;
    size_t capacity = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < found && strcmp(names[at], accuracy_key_of(&items[i], key)) != 0)
            at++;
        if (at < found)
            continue;
        names = memory_grow(names, &capacity, found + 1, sizeof *names);
        names[found++] = accuracy_key_of(&items[i], key);
    }
    *n_names = found;
    return names;
}

struct weighed {
    double ratio, weight;
};

static int compare_weighed(const void *left, const void *right)
{
    const struct weighed *a = left, *b = right;
    return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

/* Of sorted runs; beyond the middle of the first and the last one's weight, theirs. */
static double weighed_quantile(const struct weighed *runs, size_t n, double share)
{
    double all = 0, middle = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        all += runs[i].weight;
    for (size_t i = 0; i < n; i++) {
        double last = middle;
        middle = (before + runs[i].weight / 2) / all;
        before += runs[i].weight;
        if (middle >= share)
            return i == 0 ? runs[0].ratio
                          : runs[i - 1].ratio + (runs[i].ratio - runs[i - 1].ratio) * (share - last) / (middle - last);
    }
    return runs[n - 1].ratio;
}

static size_t index_of(const char *const *names, const char *name)
{
    size_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* What sources weigh in: the mean over them and the quantiles of the ratio. */
static void weigh_sources(const struct comparison *items, size_t n, struct accuracy *accuracy)
{
    size_t n_sources, n_runs = 0;
    const char **sources = group_names(items, n, ACCURACY_BY_SOURCE, &n_sources);
    double *errors = memory_new(n_sources, sizeof *errors), *counts = memory_new(n_sources, sizeof *counts);
    struct weighed *runs = memory_new(n, sizeof *runs);
    for (size_t i = 0; i < n; i++)
        if (comparison_is_timed(&items[i])) {
            size_t source = index_of(sources, items[i].source);
            errors[source] += fabs(comparison_error_pct(&items[i]));
            counts[source]++;
        }
    for (size_t i = 0; i < n; i++)
        if (comparison_is_timed(&items[i]))
            runs[n_runs++] = (struct weighed){.ratio = items[i].measured_s / items[i].predicted_s,
                                              .weight = 1 / counts[index_of(sources, items[i].source)]};
    for (size_t i = 0; i < n_sources; i++) {
        accuracy->macro_mape_pct += counts[i] > 0 ? errors[i] / counts[i] : 0;
        accuracy->n_sources += counts[i] > 0;
    }
    if (n_runs > 0) {
        accuracy->macro_mape_pct /= (double)accuracy->n_sources;
        qsort(runs, n_runs, sizeof *runs, compare_weighed);
        accuracy->ratio.low = weighed_quantile(runs, n_runs, 0.1);
        accuracy->ratio.middle = weighed_quantile(runs, n_runs, 0.5);
        accuracy->ratio.high = weighed_quantile(runs, n_runs, 0.9);
    }
    free(runs);
    free(counts);
    free(errors);
    free(sources);
}

struct accuracy accuracy_total(const struct comparison *items, size_t n)
{
    struct accuracy total = accuracy_of(items, n);
    weigh_sources(items, n, &total);
    return total;
}

struct comparison *accuracy_members(const struct comparison *items, size_t n, enum accuracy_key key, const char *name,
                                    size_t *n_mine)
{
    struct comparison *mine = memory_new(n, sizeof *mine);
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(accuracy_key_of(&items[i], key), name) == 0)
            mine[found++] = items[i];
    *n_mine = found;
    return mine;
}

struct accuracy_group *accuracy_groups(const struct comparison *items, size_t n, enum accuracy_key key, size_t *n_groups)
{
    const char **names = group_names(items, n, key, n_groups);
    struct accuracy_group *groups = memory_new(*n_groups, sizeof *groups);
    for (size_t g = 0; g < *n_groups; g++) {
        size_t n_mine;
        struct comparison *mine = accuracy_members(items, n, key, names[g], &n_mine);
        groups[g] = (struct accuracy_group){.name = names[g], .accuracy = accuracy_total(mine, n_mine)};
        free(mine);
    }
    free(names);
    return groups;
}

struct ranked {
    double size;
    size_t index;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->size < b->size || a->size > b->size)
        return a->size > b->size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

size_t *accuracy_worst_first(const struct comparison *items, size_t n, size_t *n_timed)
{
    struct ranked *ranked = memory_new(n, sizeof *ranked);
    size_t *order = memory_new(n, sizeof *order), found = 0;
    for (size_t i = 0; i < n; i++)
        if (comparison_is_timed(&items[i]))
            ranked[found++] = (struct ranked){.size = fabs(comparison_error_pct(&items[i])), .index = i};
    qsort(ranked, found, sizeof *ranked, compare_ranked);
    for (size_t i = 0; i < found; i++)
        order[i] = ranked[i].index;
    free(ranked);
    *n_timed = found;
    return order;
}
