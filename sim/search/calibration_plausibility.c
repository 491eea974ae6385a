/*
 * calibration_plausibility.c - find fitted values that no entry of the catalog has, or that are far from those of the base
 * entry.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/search/calibration.h"

static int compare_cases(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

size_t calibration_cases(const struct calibration *c)
{
    uint64_t *cases = memory_new(c->n_rows, sizeof *cases);
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++)
        cases[i] = calibration_case(&c->rows[i]);
    qsort(cases, c->n_rows, sizeof *cases, compare_cases);
    for (size_t i = 0; i < c->n_rows; i++)
        n += i == 0 || cases[i] != cases[i - 1];
    free(cases);
    return n;
}

#define LOSS_SHARE  0.1 /* more error by this share and by this many points is worse, less is noise (assumption) */
#define LOSS_POINTS 1.0

static double mean_error_pct(const struct calibration *c, size_t group, bool after)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        const struct calibration_row *row = &c->rows[i];
        if (row->group != group)
            continue;
        sum += fabs((after ? row->after : row->before) / row->measured - 1);
        n++;
    }
    return n ? 100 * sum / (double)n : 0;
}

struct calibration_loss calibration_worst_loss(const struct calibration *c)
{
    struct calibration_loss worst = {.group = c->n_groups};
    for (size_t g = 0; g < c->n_groups; g++) {
        struct calibration_loss loss = {g, mean_error_pct(c, g, false), mean_error_pct(c, g, true)};
        double more = loss.after_pct - loss.before_pct;
        if (more > LOSS_POINTS && more > LOSS_SHARE * loss.before_pct && more > worst.after_pct - worst.before_pct)
            worst = loss;
    }
    return worst;
}

#define BAND_MARGIN 1.25 /* beyond the least and the most of the catalog a value may be before it is doubted (assumption) */
#define FAR_ERRORS  3.0  /* standard errors from what the entry had: one in 400 fits by chance */
#define FAR_SHARE   0.1  /* of what the entry had: less is no contradiction, however sure it is (assumption) */

struct band {
    double low, high;
    size_t n; /* entries that have one */
};

static void widen(struct band *band, double value)
{
    if (!(value > 0)) /* left out */
        return;
    band->low = band->n ? fmin(band->low, value) : value;
    band->high = band->n ? fmax(band->high, value) : value;
    band->n++;
}

/* What the catalog's entries of one kind have of a quantity that lies `offset` into them. */
static struct band band_of(enum catalog_kind kind, const struct entry_parameter *parameter)
{
    struct band band = {0};
    struct diags unheard = {0}; /* the catalog's mistakes are not this command's */
    char **names;
    size_t n;
    if (catalog_names(kind, &names, &n, &unheard) == STATUS_OK) {
        for (size_t i = 0; i < n; i++) {
            struct gpu gpu;
            struct cluster cluster;
            if (kind == CATALOG_GPUS && catalog_gpu(names[i], &gpu, &unheard) == STATUS_OK)
                widen(&band, entry_parameter_get(parameter, &gpu));
            if (kind == CATALOG_CLUSTERS && catalog_cluster(names[i], &cluster, &unheard) == STATUS_OK)
                widen(&band, entry_parameter_get(parameter, &cluster));
        }
        names_free(names);
    }
    diags_free(&unheard);
    return band;
}

/* The parameter as one of its GPU where it is. */
static struct band catalog_band(const struct calibration *c, const struct entry_parameter *parameter)
{
    struct entry_parameter own = *parameter;
    bool of_gpu = strncmp(parameter->path, "gpu.", 4) == 0;
    if (of_gpu)
        own.offset -= offsetof(struct cluster, gpu);
    return band_of(of_gpu ? CATALOG_GPUS : c->kind, &own);
}

/* Do runs tell of a parameter, and no kernel that was timed alone? */
static bool is_by_runs(const struct calibration *c, const char *path)
{
    bool runs = false;
    for (size_t i = 0; i < c->n_rows && !runs; i++)
        runs = c->rows[i].run != NULL;
    for (size_t g = 0; g < c->n_groups && runs; g++)
        runs = !*c->groups[g].section || !strstr(path, c->groups[g].section);
    return runs;
}

/* By standard errors, and by more than a small part of the value. */
static bool is_far(const struct calibration_parameter *p)
{
    bool little = fabs(p->after - p->before) <= FAR_SHARE * fabs(p->before);
    return p->estimate.outcome == CALIBRATE_FITTED && p->estimate.moved >= FAR_ERRORS && !little;
}

struct value_doubt calibration_doubt(const struct calibration *c, size_t parameter)
{
    const struct calibration_parameter *p = &c->parameters[parameter];
    if (p->cast >= 0 || p->estimate.outcome > CALIBRATE_AT_BOUND || !is_by_runs(c, p->entry.path))
        return (struct value_doubt){0};
    struct band band = catalog_band(c, &p->entry);
    return (struct value_doubt){.outside =
                                    band.n > 1 && (p->after < band.low / BAND_MARGIN || p->after > band.high * BAND_MARGIN),
                                .low = band.low,
                                .high = band.high,
                                .far = is_far(p)};
}
