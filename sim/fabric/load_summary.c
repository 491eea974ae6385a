/* load_summary.c - statistics over several runs of a load. */
#include "sim/fabric/load_summary.h"

#include <math.h>
#include <string.h>

const double load_quantiles[] = {0, 0.01, 0.1, 0.5, 0.9, 1};
const char *const load_statistic_names[] = {"worst", "1 %", "10 %", "median", "90 %", "best", "mean"};
const char *const load_statistic_keys[] = {"worst", "p1", "p10", "median", "p90", "best", "mean"};

void load_statistics(const double *values, size_t n, double *statistics)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += values[i];
    for (int i = 0; i < N_QUANTILES; i++)
        statistics[i] = load_quantile(values, n, load_quantiles[i]);
    statistics[N_QUANTILES] = n > 0 ? sum / (double)n : 0;
}

static void statistics_add(double *statistics, const double *values, size_t n, bool last_is_worst, int repeats)
{
    double now[N_STATISTICS];

    load_statistics(values, n, now);
    for (int i = 0; i < N_STATISTICS; i++) /* of the mean no other */
        statistics[i] +=
            (last_is_worst && i < N_STATISTICS - 1 ? load_quantile(values, n, 1 - load_quantiles[i]) : now[i]) / repeats;
}

/* Keep the largest few of what `value` says of links, those of 0 left out; equal ones in the order of links. */
static int worst_find(const struct fabric *fabric, const struct packets *packets, double (*value)(const struct packets_link *),
                      struct worst_link *worst)
{
    int n = 0;

    for (uint32_t l = 0; l < fabric_links(fabric); l++) {
        struct packets_link seen = packets_link(packets, l);
        int at = n;
        while (at > 0 && value(&worst[at - 1].seen) < value(&seen))
            at--;
        if (at == WORST_LINKS || value(&seen) <= 0)
            continue;
        n = n < WORST_LINKS ? n + 1 : n;
        memmove(worst + at + 1, worst + at, (size_t)(n - 1 - at) * sizeof *worst);
        worst[at] = (struct worst_link){.link = l, .seen = seen};
    }
    return n;
}

static double paused_of(const struct packets_link *seen)
{
    return (double)seen->paused;
}

static double depth_of(const struct packets_link *seen)
{
    return (double)seen->deepest;
}

void worst_links_find(const struct fabric *fabric, const struct packets *packets, double seconds, struct worst_links *worst)
{
    worst->seconds = seconds;
    worst->n_paused = worst_find(fabric, packets, paused_of, worst->paused);
    worst->n_deep = worst_find(fabric, packets, depth_of, worst->deepest);
}

static void packets_summary_add(struct packets_summary *summary, const struct fabric *fabric, const struct load_result *result,
                                int repeats)
{
    const struct load_packets *p = &result->packets;
    const struct packets_totals *totals = &p->totals;
    size_t n = result->n_connections;

    statistics_add(summary->rates, p->rates, n, false, repeats);
    statistics_add(summary->shares, p->shares, n, false, repeats);
    statistics_add(summary->ends, p->ends, n + result->n_inside, true, repeats);
    statistics_add(summary->delays, p->delays, n + result->n_inside, true, repeats);
    summary->seconds += p->seconds / repeats;
    summary->marks += (double)totals->marks / repeats;
    summary->cnps += (double)totals->cnps / repeats;
    summary->pauses += (double)totals->pauses / repeats;
    summary->paused_s += nanos_to_seconds(totals->paused) / repeats;
    summary->paused_links += (double)totals->paused_links / repeats;
    summary->packets += (double)totals->packets / repeats;
    summary->hops += (double)totals->hops / repeats;
    summary->events += (double)totals->events / repeats;
    summary->fullest = totals->fullest > summary->fullest ? totals->fullest : summary->fullest;
    summary->repeats = repeats;
    worst_links_find(fabric, p->packets, p->seconds, &summary->worst);
}

static void sums_add(struct gpu_sums *sums, const struct load_sums *found, int repeats)
{
    double sum = 0;

    for (size_t i = 0; i < found->n; i++)
        sum += found->rates[i];
    sums->n = found->n;
    if (found->n == 0)
        return;
    sums->rates[WORST_GPU] += found->rates[0] / repeats;
    sums->rates[MEAN_GPU] += sum / (double)found->n / repeats;
    sums->rates[BEST_GPU] += found->rates[found->n - 1] / repeats;
}

void load_summary_add(struct load_summary *summary, const struct fabric *fabric, const struct load_result *result)
{
    double statistics[N_STATISTICS];

    load_statistics(result->rates, result->n_connections, statistics);
    summary->transfers = result->n_transfers;
    summary->connections = result->n_connections;
    summary->inside = result->n_inside;
    summary->demand = result->demand;
    summary->seconds += result->seconds / summary->repeats;
    summary->solves += result->counts.solves;
    for (int i = 0; i < N_STATISTICS; i++) {
        summary->rates[i] += statistics[i] / summary->repeats;
        summary->squares[i] += statistics[i] * statistics[i] / summary->repeats;
    }
    sums_add(&summary->sent, &result->sent, summary->repeats);
    sums_add(&summary->received, &result->received, summary->repeats);
    if (summary->with_packets)
        packets_summary_add(&summary->packets, fabric, result, summary->repeats);
}

double load_spread(const struct load_summary *summary, int i)
{
    double variance = summary->squares[i] - summary->rates[i] * summary->rates[i];
    int n = summary->repeats;

    return n > 1 && variance > 0 ? sqrt(variance * n / (n - 1)) : 0;
}
