/*
 * probe_internal.h - one rank of a probe, and the measurement of one case (private to probe.c and probe_measure.c).
 *
 * Example: rank 0 measures case 3.
 *
 *     double times[BATCHES], works[BATCHES];
 *     prober_run_case(prober, &prober->cases.items[3], times, works);        seconds per call in each batch
 *     prober_share(prober, prober->everybody, REDUCTION_SUM, times, BATCHES); sums over all ranks
 */
#ifndef MSIM_RUNTIME_PROBE_PROBE_INTERNAL_H
#define MSIM_RUNTIME_PROBE_PROBE_INTERNAL_H

#include <pthread.h>

#include "runtime/probe/probe_cases.h"

enum { BATCHES = 5, REPEATS_MAX = 2000, MARKED_REPEATS_MAX = 40, EXCHANGE_BATCH_BYTES = 1 << 24, GROUPS_MAX = 4 };

/* Neighbours that exchange with each other while others do. */
struct exchange_group {
    int ranks;
    struct communicator *communicator;
};

/* One rank of a probe. */
struct prober {
    pthread_t thread;
    const struct probe_options *options;
    struct probe_cases cases;
    struct hub *hub; /* of ranks that are threads */
    int rank;
    struct device *device;
    struct world *world;
    struct device_stream *stream, *beside; /* where kernels run, where exchanges do */
    struct communicator *everybody;
    struct exchange_group groups[GROUPS_MAX];
    int n_groups;
    struct device_event *events[2 * MARKED_REPEATS_MAX], *exchanging, *exchanged;
    struct device_event *beside_events[2]; /* around a batch */
    void *buffers[PROBE_BUFFERS], *flush, *host;
    double *shared; /* device memory: numbers that ranks tell one another */
    double *times;  /* [n_cases][BATCHES], own, in the end the mean over ranks */
    double *works;  /* of that, what the exchange had a core for */
    uint64_t turn;  /* of calls */
    enum status status;
    struct diags diags;
};

/* The communicator of the groups that a case exchanges in; if there is none of that size, that of all ranks. */
struct communicator *prober_group(const struct prober *p, const struct probe_case *c);
/* An all-reduce of n numbers of the host over `ranks`. */
void prober_share(struct prober *p, struct communicator *ranks, enum reduction reduction, double *numbers, size_t n);
/* Measures a case: seconds per call, and the processor time in them, of each batch. times, works: [BATCHES]. */
void prober_run_case(struct prober *p, const struct probe_case *c, double *times, double *works);

#endif
