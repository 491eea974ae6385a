/*
 * fault_fit_groups.c - groups: failures at one instant with one cause on several nodes are one event of something that the nodes
 * share. The size of the group is the smallest number G of consecutive nodes for which (nearly) every event of that cause stays
 * within one of the blocks [i G, (i + 1) G). An event with fewer than TOGETHER hits looks like single failures. So the fraction
 * p of a group that is hit solves
 *
 *     E[hits | hits >= TOGETHER] = mean of the hits seen,       hits ~ Binomial(G, p),
 *
 * whose left side grows with p (bisection). The rate is that of the events seen, divided by P(hits >= TOGETHER).
 */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"

/* Least hits of an event; least events of a group. */
enum { TOGETHER = 3, LEAST_EVENTS = 4, LARGEST_GROUP = 4096 };

struct event {
    size_t begin, end; /* items of the trace */
    int32_t detail;
    int32_t first, last; /* nodes */
    int hits;
};

/* The event of the items at one time with the cause of item `at`. */
static struct event event_at(const struct fault_trace *trace, size_t at, size_t begin, size_t end)
{
    struct event event = {.begin = begin, .end = end, .detail = trace->items[at].detail, .first = INT32_MAX};
    for (size_t i = begin; i < end; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != FAULT_NODE || fault->detail != event.detail)
            continue;
        event.hits++;
        event.first = fault->node < event.first ? fault->node : event.first;
        event.last = fault->node > event.last ? fault->node : event.last;
    }
    return event;
}

static bool is_first_of_cause(const struct fault_trace *trace, size_t at, size_t begin)
{
    for (size_t i = begin; i < at; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].detail == trace->items[at].detail)
            return false;
    return trace->items[at].kind == FAULT_NODE;
}

static struct event *find_events(const struct fault_trace *trace, nanos horizon, size_t *n)
{
    struct event *events = NULL;
    size_t capacity = 0;
    *n = 0;
    for (size_t begin = 0, end; begin < trace->n_items && trace->items[begin].time < horizon; begin = end) {
        for (end = begin + 1; end < trace->n_items && trace->items[end].time == trace->items[begin].time;)
            end++;
        for (size_t at = begin; end - begin >= TOGETHER && at < end; at++) {
            struct event event = event_at(trace, at, begin, end);
            if (event.hits < TOGETHER || !is_first_of_cause(trace, at, begin))
                continue;
            events = memory_grow(events, &capacity, *n + 1, sizeof *events);
            events[(*n)++] = event;
        }
    }
    return events;
}

/* Size of the blocks that contain the events of a cause; one event in twenty may be a coincidence of two. 0: none does. */
static int group_size(const struct event *events, size_t n, int32_t detail, int32_t nodes)
{
    for (int size = TOGETHER; size <= LARGEST_GROUP && size <= nodes; size++) {
        size_t inside = 0, all = 0;
        for (size_t i = 0; i < n; i++) {
            all += events[i].detail == detail;
            inside += events[i].detail == detail && events[i].first / size == events[i].last / size;
        }
        if (20 * inside >= 19 * all)
            return size;
    }
    return 0;
}

/* P(hits >= TOGETHER), and the mean of such hits. */
static double seen(int size, double share, double *mean)
{
    double missed = 0, hits_missed = 0;
    for (unsigned k = 0; k < TOGETHER; k++) {
        double p = gsl_ran_binomial_pdf(k, share, (unsigned)size);
        missed += p;
        hits_missed += k * p;
    }
    double visible = fmax(1 - missed, 1e-12);
    *mean = (size * share - hits_missed) / visible;
    return visible;
}

static double share_of_hits(int size, double hits)
{
    double low = 1e-6, high = 1, mean;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        seen(size, middle, &mean);
        if (mean < hits)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* Input and result of the search for groups. */
struct grouping {
    const struct fault_trace *trace;
    int32_t nodes;
    nanos horizon;
    const struct event *events;
    size_t n_events;
    bool *grouped; /* [trace->n_items] */
    struct fault_fit *fit;
};

/* Marks and counts the events of one cause that stay within a block, and keeps their repairs. */
struct tally {
    size_t n_events, n_hits, n_repairs;
    double *log_hours;
};

static void tally_event(const struct grouping *g, const struct event *event, struct tally *tally)
{
    const struct fault_trace *trace = g->trace;
    nanos down = 0;
    for (size_t i = event->begin; i < event->end; i++)
        if (trace->items[i].kind == FAULT_NODE && trace->items[i].detail == event->detail) {
            g->grouped[i] = true;
            down = trace->items[i].down;
        }
    tally->n_events++;
    tally->n_hits += (size_t)event->hits;
    if (down > 0)
        tally->log_hours[tally->n_repairs++] = log((double)down / 3600e9);
}

static void keep_group(const struct grouping *g, const struct tally *tally, int32_t detail, int size)
{
    struct fault_fit *fit = g->fit;
    struct fault_group *group = &fit->model.groups.items[fit->model.groups.n];
    struct group_goodness *goodness = &fit->groups[fit->model.groups.n++];
    double n = (double)tally->n_events, mean;
    double days = (double)g->horizon / 86400e9 * ceil((double)g->nodes / size);
    snprintf(group->name, sizeof group->name, "%s", detail >= 0 ? g->trace->details[detail] : "group");
    group->nodes = size;
    group->share = share_of_hits(size, (double)tally->n_hits / n);
    double visible = seen(size, group->share, &mean);
    group->rate = n / visible / days;
    group->repair.mu = fit_moments(tally->log_hours, tally->n_repairs, &group->repair.sigma);
    goodness->n_events = tally->n_events;
    goodness->rate = (struct interval_estimate){group->rate, chi_squared_quantile(0.025, 2 * n) / 2 / visible / days,
                                                chi_squared_quantile(0.975, 2 * n + 2) / 2 / visible / days};
    fit->n_grouped += tally->n_hits;
}

static void fit_cause(const struct grouping *g, int32_t detail)
{
    size_t of_cause = 0;
    for (size_t i = 0; i < g->n_events; i++)
        of_cause += g->events[i].detail == detail;
    int size = of_cause >= LEAST_EVENTS ? group_size(g->events, g->n_events, detail, g->nodes) : 0;
    if (size == 0 || g->fit->model.groups.n == MAX_GROUPS)
        return;
    struct tally tally = {.log_hours = memory_new(of_cause, sizeof(double))};
    for (size_t i = 0; i < g->n_events; i++)
        if (g->events[i].detail == detail && g->events[i].first / size == g->events[i].last / size)
            tally_event(g, &g->events[i], &tally);
    keep_group(g, &tally, detail, size);
    free(tally.log_hours);
}

void fit_groups(const struct fault_trace *trace, int32_t nodes, nanos horizon, bool *grouped, struct fault_fit *fit)
{
    struct grouping g = {.trace = trace, .nodes = nodes, .horizon = horizon, .grouped = grouped, .fit = fit};
    struct event *events = find_events(trace, horizon, &g.n_events);
    g.events = events;
    for (size_t i = 0; i < g.n_events; i++) {
        bool met = false;
        for (size_t j = 0; j < i; j++)
            met |= events[j].detail == events[i].detail;
        if (!met)
            fit_cause(&g, events[i].detail);
    }
    free(events);
}
