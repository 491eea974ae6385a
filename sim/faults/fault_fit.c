#include "sim/faults/fault_fit.h"

#include <gsl/gsl_cdf.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"
#include "sim/faults/fault_statistics.h"

#define DAY_S 86400.0

/* --- causes, repairs, slow things --- */

/* The kind of repair of a cause: that of the known causes, or the one its name says. A cause that took a node away although its
 * kind takes none was software. */
static enum repair_kind repair_of_cause(const struct fault_causes *known, const char *name)
{
    enum repair_kind repair = repair_of_text(name);
    for (int i = 0; known && i < known->n; i++)
        if (strcmp(known->items[i].name, name) == 0)
            repair = (enum repair_kind)known->items[i].repair;
    return repair == REPAIR_NONE ? REPAIR_SOFTWARE : repair;
}

static enum component component_of_cause(const struct fault_causes *known, const char *name)
{
    for (int i = 0; known && i < known->n; i++)
        if (strcmp(known->items[i].name, name) == 0)
            return (enum component)known->items[i].component;
    return component_of_text(name);
}

static void keep_cause(const struct fault_causes *known, struct fault_causes *causes, const char *name, size_t n, size_t n_empty)
{
    int at = causes->n < MAX_CAUSES ? causes->n++ : MAX_CAUSES - 1; /* all further causes share the last row */
    struct fault_cause *cause = &causes->items[at];
    snprintf(cause->name, sizeof cause->name, "%s", *name ? name : "unknown");
    cause->component = (int)component_of_cause(known, name);
    cause->repair = 2 * n_empty > n ? REPAIR_NONE : (int)repair_of_cause(known, name);
    cause->weight += (double)n;
}

static void fit_causes(const struct fault_trace *trace, const bool *grouped, const struct fault_causes *known,
                       struct fault_model *model)
{
    size_t n = trace->n_details + 1;
    size_t *counts = memory_new(2 * n, sizeof *counts);
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        size_t at = fault->detail < 0 ? n - 1 : (size_t)fault->detail;
        if (fault->kind == FAULT_NODE && !grouped[i]) {
            counts[2 * at]++;
            counts[2 * at + 1] += fault->down == 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (counts[2 * i] > 0)
            keep_cause(known, &model->causes, i + 1 < n ? trace->details[i] : "", counts[2 * i], counts[2 * i + 1]);
    if (model->causes.n == 0) /* groups only; but a model needs a cause */
        keep_cause(known, &model->causes, "", 1, 0);
    free(counts);
}

/* Do all outages have the same length? Then the source does not say how long they were. */
static bool has_one_length(const struct fault_trace *trace)
{
    nanos length = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind == FAULT_NODE && fault->down > 0 && length > 0 && fault->down != length)
            return false;
        if (fault->kind == FAULT_NODE && fault->down > 0)
            length = fault->down;
    }
    return true;
}

/* Repairs of one length. The deviation is above 0, because 0 means that a model does not say its repairs, but too small to show
 * in a draw. */
static bool fit_equal_repairs(double mu, double sigma, bool one_length, struct repair_goodness *goodness,
                              struct repair_time *repair)
{
    static const double EQUAL = 1e-12, UNSEEN = 1e-18;
    if (goodness->n < (one_length ? 1 : LEAST_FAILURES) || sigma > EQUAL)
        return false;
    goodness->mu = (struct interval_estimate){mu, mu, mu};
    goodness->p = 1;
    *repair = (struct repair_time){mu, UNSEEN};
    return true;
}

static void fit_repair(const struct fault_trace *trace, const bool *grouped, const struct fault_causes *known,
                       enum repair_kind kind, struct fault_fit *fit)
{
    double *x = memory_new(trace->n_items, sizeof *x), sigma;
    struct repair_goodness *goodness = &fit->repairs[kind];
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind == FAULT_NODE && fault->down > 0 && !grouped[i] &&
            repair_of_cause(known, fault_trace_detail(trace, fault)) == kind)
            x[goodness->n++] = log((double)fault->down / 3600e9);
    }
    double n = (double)goodness->n, mu = fit_moments(x, goodness->n, &sigma);
    if (fit_equal_repairs(mu, sigma, has_one_length(trace), goodness, &fit->model.repairs[kind])) {
        free(x);
        return;
    }
    if (goodness->n >= LEAST_FAILURES) {
        double t = gsl_cdf_tdist_Pinv(0.975, n - 1) * sigma / sqrt(n);
        goodness->mu = (struct interval_estimate){mu, mu - t, mu + t};
        goodness->sigma = (struct interval_estimate){sigma, sigma * sqrt((n - 1) / chi_squared_quantile(0.975, n - 1)),
                                                     sigma * sqrt((n - 1) / chi_squared_quantile(0.025, n - 1))};
        fit->model.repairs[kind] = (struct repair_time){mu, sigma};
        for (size_t i = 0; i < goodness->n; i++)
            x[i] = gsl_cdf_ugaussian_P((x[i] - mu) / sigma);
        goodness->ks = ks_uniform_distance(x, goodness->n);
        goodness->p = ks_p_value(goodness->ks, goodness->n);
    } else {
        goodness->n_few = goodness->n;
        goodness->n = 0;
    }
    free(x);
}

static void fit_slow(const struct fault_trace *trace, enum fault_kind kind, double node_days, struct fault_model *model)
{
    double *x = memory_new(trace->n_items, sizeof *x), factor = 0, sigma;
    size_t n = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != kind || fault->down <= 0)
            continue;
        x[n++] = log(nanos_to_seconds(fault->down));
        factor += (double)fault->speed / FULL_SPEED;
    }
    if (n > 0 && model->slow.n < MAX_SLOW) {
        struct fault_slow *slow = &model->slow.items[model->slow.n++];
        snprintf(slow->name, sizeof slow->name, "%s", fault_kind_name(kind));
        slow->kind = kind == FAULT_LINK ? SLOW_LINK : SLOW_STRAGGLER;
        slow->rate = (double)n / node_days;
        slow->factor = fmax(factor / (double)n, 1e-6);
        slow->median_s = exp(fit_moments(x, n, &sigma));
        slow->sigma = sigma;
    }
    free(x);
}

/* --- the whole fit --- */

/* Failures at the same second as one of another node. */
static size_t count_together(const struct fault_trace *trace)
{
    size_t together = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *at = &trace->items[i];
        bool before = i > 0 && at[-1].time == at->time && at[-1].node != at->node;
        bool behind = i + 1 < trace->n_items && at[1].time == at->time && at[1].node != at->node;
        together += at->kind == FAULT_NODE && (before || behind);
    }
    return together;
}

/* Variance over mean of the failures per node: 1 if all nodes are alike and their failures independent. */
static double node_dispersion(const struct fault_trace *trace, int32_t nodes, nanos horizon)
{
    double *counts = memory_new((size_t)nodes, sizeof *counts), deviation;
    for (size_t i = 0; i < trace->n_items; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon && trace->items[i].node < nodes)
            counts[trace->items[i].node]++;
    double mean = fit_moments(counts, (size_t)nodes, &deviation);
    free(counts);
    return mean > 0 ? deviation * deviation / mean : 1;
}

static void fit_rate(const struct fault_trace *trace, int32_t nodes, nanos horizon, struct fault_fit *fit)
{
    double down_s = 0, n = (double)fit->n_failures;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != FAULT_NODE)
            continue;
        nanos end = fault->time + fault->down < horizon ? fault->time + fault->down : horizon;
        down_s += end > fault->time ? nanos_to_seconds(end - fault->time) : 0;
    }
    struct fault_statistics statistics;
    fault_statistics(trace, nodes, horizon, &statistics);
    double spread = sqrt(fmax(1, fmax(statistics.variance_to_mean, node_dispersion(trace, nodes, horizon))));
    fault_statistics_free(&statistics);
    double days = fmax(nanos_to_seconds(horizon) * nodes - down_s, 1) / DAY_S;
    double low = chi_squared_quantile(0.025, 2 * n) / 2, high = chi_squared_quantile(0.975, 2 * n + 2) / 2;
    fit->rate = (struct interval_estimate){n / days, fmax(n - (n - low) * spread, 0) / days, (n + (high - n) * spread) / days};
    fit->simultaneous = (double)count_together(trace) / n;
}

/* The rate of the nodes themselves: without hits of groups, early deaths, and the followers in bursts. */
static void keep_model(const char *name, int32_t nodes, nanos horizon, struct fault_fit *f)
{
    struct fault_model *model = &f->model;
    const char *slash = strrchr(name, '/');
    snprintf(model->name, sizeof model->name, "%.40s", slash ? slash + 1 : name);
    snprintf(model->source, sizeof model->source, "fitted to %zu failures of %.200s", f->n_failures, slash ? slash + 1 : name);
    double own = 1 - ((double)f->n_grouped + f->n_early) / (double)f->n_failures;
    model->rate = fmax(f->rate.value * own * (1 - f->burst_probability.value), 1e-9);
    model->shape = f->shape.value;
    model->lemon_share = f->lemon_share.value;
    model->lemon_factor = f->lemon_factor.value;
    model->burst_probability = f->burst_probability.value;
    model->burst_hours = f->burst_hours.value;
    model->early_share = f->early_share.value;
    model->early_days = f->early_days.value;
    model->nodes = nodes;
    model->gpus_per_node = 8;
    model->days = nanos_to_seconds(horizon) / DAY_S;
}

static void warn_of_mistake(const char *name, const struct fault_fit *f, struct diags *diags)
{
    const struct lemon_evidence *e = &f->evidence;
    char node[96];
    snprintf(node, sizeof node, "%s%s%" PRId32 "%s", e->worst_host, *e->worst_host ? " (node " : "node ", e->worst_node,
             *e->worst_host ? ")" : "");
    if (e->all_on_one)
        diag_warning(
            diags, (struct place){.file = name},
            "%s has %zu of %zu failures, as where a table names a node by mistake (sacct's column FailedNode names the one "
            "that failed); the fit spreads them over all nodes, and says nothing of lemons",
            node, e->worst_failures, f->n_failures);
}

enum status fault_fit(const struct fault_trace *trace, const char *name, int32_t nodes, nanos horizon,
                      const struct fault_causes *known, struct fault_fit *fit, struct diags *diags)
{
    struct fault_fit *f = memory_new(1, sizeof *f);
    for (size_t i = 0; i < trace->n_items; i++)
        f->n_failures += trace->items[i].kind == FAULT_NODE && trace->items[i].time < horizon;
    if (f->n_failures < LEAST_FAILURES) {
        diag_error(diags, (struct place){.file = name}, "%zu failures are too few to fit; %d are needed", f->n_failures,
                   LEAST_FAILURES);
        free(f);
        return STATUS_BAD_INPUT;
    }
    bool *grouped = memory_new(trace->n_items, sizeof *grouped);
    fit_groups(trace, nodes, horizon, grouped, f);
    fit_nodes(trace, grouped, nodes, horizon, f);
    warn_of_mistake(name, f, diags);
    fit_early(trace, grouped, nodes, horizon, f);
    fit_rate(trace, nodes, horizon, f);
    keep_model(name, nodes, horizon, f);
    fit_causes(trace, grouped, known, &f->model);
    for (int kind = REPAIR_HARDWARE; kind < N_REPAIR_KINDS; kind++)
        fit_repair(trace, grouped, known, (enum repair_kind)kind, f);
    fit_slow(trace, FAULT_STRAGGLER, nodes * f->model.days, &f->model);
    fit_slow(trace, FAULT_LINK, nodes * f->model.days, &f->model);
    free(grouped);
    *fit = *f;
    free(f);
    return STATUS_OK;
}
