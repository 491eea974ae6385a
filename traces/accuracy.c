#include "traces/accuracy.h"

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

static const char *key_of(const struct comparison *comparison, enum accuracy_key key)
{
    return key == ACCURACY_BY_SOURCE ? comparison->source : comparison->gpu;
}

static void count_memory(const struct comparison *comparison, struct accuracy *accuracy)
{
    accuracy->oom_found += comparison->oom && comparison->predicted_oom;
    accuracy->oom_missed += comparison->oom && !comparison->predicted_oom;
    accuracy->oom_false_alarms += !comparison->oom && comparison->predicted_oom;
}

/* Of the comparisons whose `key` is `name`; of all when it is NULL. Everything but the macro mean. */
static struct accuracy accuracy_of(const struct comparison *items, size_t n, enum accuracy_key key, const char *name)
{
    struct accuracy accuracy = {0};
    double *errors = memory_new(n, sizeof *errors);
    double signed_sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (name && strcmp(key_of(&items[i], key), name) != 0)
            continue;
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
        while (at < found && strcmp(names[at], key_of(&items[i], key)) != 0)
            at++;
        if (at < found)
            continue;
        names = memory_grow(names, &capacity, found + 1, sizeof *names);
        names[found++] = key_of(&items[i], key);
    }
    *n_names = found;
    return names;
}

static double macro_mean(const struct accuracy_group *groups, size_t n_groups)
{
    double sum = 0;
    size_t n_timed = 0;
    for (size_t i = 0; i < n_groups; i++) {
        sum += groups[i].accuracy.mape_pct;
        n_timed += groups[i].accuracy.n > 0;
    }
    return n_timed ? sum / (double)n_timed : 0;
}

static void fill_macro_mean(const struct comparison *items, size_t n, enum accuracy_key key, struct accuracy_group *group)
{
    struct comparison *mine = memory_new(n, sizeof *mine);
    size_t n_mine = 0, n_sources;
    for (size_t i = 0; i < n; i++)
        if (strcmp(key_of(&items[i], key), group->name) == 0)
            mine[n_mine++] = items[i];
    struct accuracy_group *sources = accuracy_groups(mine, n_mine, ACCURACY_BY_SOURCE, &n_sources);
    group->accuracy.macro_mape_pct = macro_mean(sources, n_sources);
    free(sources);
    free(mine);
}

struct accuracy_group *accuracy_groups(const struct comparison *items, size_t n, enum accuracy_key key, size_t *n_groups)
{
    const char **names = group_names(items, n, key, n_groups);
    struct accuracy_group *groups = memory_new(*n_groups, sizeof *groups);
    for (size_t i = 0; i < *n_groups; i++) {
        groups[i] = (struct accuracy_group){.name = names[i], .accuracy = accuracy_of(items, n, key, names[i])};
        if (key == ACCURACY_BY_SOURCE)
            groups[i].accuracy.macro_mape_pct = groups[i].accuracy.mape_pct;
        else
            fill_macro_mean(items, n, key, &groups[i]);
    }
    free(names);
    return groups;
}

struct accuracy accuracy_total(const struct comparison *items, size_t n)
{
    size_t n_sources;
    struct accuracy total = accuracy_of(items, n, ACCURACY_BY_SOURCE, NULL);
    struct accuracy_group *sources = accuracy_groups(items, n, ACCURACY_BY_SOURCE, &n_sources);
    total.macro_mape_pct = macro_mean(sources, n_sources);
    free(sources);
    return total;
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
