/*
 * load_summary.h - statistics over several runs of a load: quantiles of connections, averages over seeds, the worst links.
 *
 * Example: a permutation under three seeds:
 *
 *     struct load_summary summary = {.repeats = 3};
 *     for (int i = 0; i < 3; i++) {
 *         router.seed = load.seed = i;
 *         load_run(&router, &load, &result, &diags);
 *         load_summary_add(&summary, fabric, &result);
 *     }
 *     summary.rates[0], load_spread(&summary, 0)         the worst connection: mean and deviation over the seeds
 */
#ifndef MSIM_SIM_FABRIC_LOAD_SUMMARY_H
#define MSIM_SIM_FABRIC_LOAD_SUMMARY_H

#include "sim/fabric/load.h"

/* The values of connections: those at load_quantiles, and last the mean. */
enum { N_QUANTILES = 6, N_STATISTICS = N_QUANTILES + 1 };
extern const double load_quantiles[N_QUANTILES];
/* Their names in tables, and their keys in JSON. */
extern const char *const load_statistic_names[N_STATISTICS], *const load_statistic_keys[N_STATISTICS];
/* Of values[n], ascending, into statistics[N_STATISTICS]. */
void load_statistics(const double *values, size_t n, double *statistics);

/* The links that paused longest and had the deepest queues, worst first, in a run of `seconds`. */
enum { WORST_LINKS = 5 };
struct worst_link {
    uint32_t link;
    struct packets_link seen;
};
struct worst_links {
    double seconds;
    int n_paused, n_deep;
    struct worst_link paused[WORST_LINKS], deepest[WORST_LINKS];
};
void worst_links_find(const struct fabric *fabric, const struct packets *packets, double seconds, struct worst_links *worst);

/* Packets: means over the seeds; links of the last one. */
struct packets_summary {
    struct packets_parameters with;
    double rates[N_STATISTICS], shares[N_STATISTICS]; /* worst first: least */
    double ends[N_STATISTICS], delays[N_STATISTICS];  /* worst first: last */
    double seconds, marks, cnps, pauses, paused_s, paused_links, fullest, packets, hops, events;
    int repeats;
    struct worst_links worst; /* under the last seed */
};

/* What GPUs send or get over all their connections: the GPU with the least, the average, the GPU with the most. */
enum { WORST_GPU, MEAN_GPU, BEST_GPU, N_OF_GPUS };
struct gpu_sums {
    size_t n; /* GPUs */
    double rates[N_OF_GPUS];
};

/* Means over the seeds, and the sums of squares from which their spread follows. */
struct load_summary {
    int repeats;
    size_t transfers, connections, inside;
    double demand, seconds;
    double rates[N_STATISTICS], squares[N_STATISTICS];
    struct gpu_sums sent, received;
    uint64_t solves; /* of all seeds */
    bool with_packets;
    struct packets_summary packets;
};

/* Adds one of summary->repeats results. `packets` too where with_packets. */
void load_summary_add(struct load_summary *summary, const struct fabric *fabric, const struct load_result *result);
/* Standard deviation of rates[i] over the seeds. */
double load_spread(const struct load_summary *summary, int i);

#endif
