/*
 * load.h - load tests of a fabric: a pattern of simultaneous transfers, and the rates they achieve.
 *
 * Example: all 12,288 GPUs send 100 MB each to a random partner.
 *
 *     const struct load load = {.pattern = LOAD_PERMUTATION, .bytes = 100e6, .queue_pairs = 2, .seed = 1};
 *     status = load_run(&router, &load, &result, &diags);        ... load_quantile(result.rates, result.n_connections, 0.5) ...
 *
 * Transfers run between GPUs, each split over the queue pairs of its connection. All begin at 0. Results: the rate of each
 * transfer while all are under way (max-min rates of the whole pattern), and the time when each ends, while the others speed up
 * as transfers finish.
 *
 *   permutation   a random permutation without fixed points: GPU i to p(i)
 *   ring          GPU i to i + 1
 *   shift         GPU i to i + GPUs / 2, so everything crosses the bisection; or to i + `stride`
 *   incast        all GPUs to GPU 0
 *   all_to_all    each GPU to each other: GPUs (GPUs - 1) transfers of bytes / (GPUs - 1)
 *
 * Connections inside an NVLink domain take part, but the result leaves out their rates, which are not those of the network,
 * unless there are no others.
 *
 * With `packets` the same transfers run again packet by packet (packets.h), over the same paths. "While all are under way" then
 * means from half of the time at which the first ends by fair rates, until the first ends. By then senders have settled as far
 * as they do. A load is refused if it needs more than LOAD_HOPS_MAX packets over links, or takes longer than PACKETS_LONGEST by
 * fair rates.
 *
 * Rates are compared with `demand`, a GPU's share of its NICs: NICs * NIC rate / GPUs of a host.
 */
#ifndef MSIM_SIM_FABRIC_LOAD_H
#define MSIM_SIM_FABRIC_LOAD_H

#include "sim/fabric/flows.h"
#include "sim/fabric/packets.h"
#include "sim/fabric/route.h"

enum load_pattern { LOAD_PERMUTATION, LOAD_RING, LOAD_SHIFT, LOAD_INCAST, LOAD_ALL_TO_ALL, N_LOAD_PATTERNS };
const char *load_pattern_name(enum load_pattern pattern);

enum { LOAD_TRANSFERS_MAX = 1 << 23 };
#define LOAD_BYTES_MAX 1e18 /* of a transfer; counts of bytes have 63 bits */
#define LOAD_HOPS_MAX  1e12 /* of packets over links: a day of a processor, more or less */

struct load {
    enum load_pattern pattern;
    int gpus;                                 /* number that take part, the first of the fabric; 0: all */
    int senders;                              /* number that send, the first of these; not for incast and all_to_all; 0: all */
    int stride;                               /* of a shift; 0: half of the GPUs */
    double bytes;                             /* sent by each GPU */
    double jitter;                            /* sizes are bytes (1 + jitter u), u uniform in (0, 1) */
    int queue_pairs;                          /* per connection and NIC port of a GPU; 0: 1 */
    uint64_t seed;                            /* of the permutation and of the jitter */
    const struct packets_parameters *packets; /* NULL: flows only. Its seed is not used */
    void (*progress)(void *context, double done, double total); /* for packets, in bytes; NULL: none */
    void *context;
};

/* Results of the packets of a load. Values of connections as in load_result, each ascending. */
struct load_packets {
    struct packets *packets; /* state after the run */
    struct packets_totals totals;
    double *rates;          /* [n_connections] B/s while all are under way */
    double *shares;         /* [n_connections] rate / fair rate of the same connection */
    double *ends;           /* [n_connections + n_inside] s */
    double *delays;         /* [n_connections + n_inside] end / end of the same connection by fair rates */
    double from_s, until_s; /* while all are under way */
    double seconds;
};

/* Rates at which GPUs send or receive over their connections in the result, while all are under way. */
struct load_sums {
    size_t n;      /* GPUs with such connections */
    double *rates; /* [n] B/s, ascending */
};

struct load_result {
    size_t n_transfers; /* queue pairs of a connection are transfers of their own */
    double demand;      /* B/s */
    size_t n_inside;    /* connections inside an NVLink domain, if there are others */
    /* Of the other connections (all queue pairs together): */
    size_t n_connections;
    double *rates;                   /* [n_connections] B/s while all are under way, ascending */
    double *ends;                    /* [n_connections + n_inside] s, ascending */
    struct load_sums sent, received; /* of GPUs; measured from packets if there are any */
    double seconds;                  /* until the last transfer ends */
    struct flows *flows;             /* state after the run: the bytes of each link */
    struct flows_counts counts;
    struct load_packets packets; /* if requested */
};

/* Runs a load. Adaptive routing sees the transfers routed before; the loads in `router` are not used. STATUS_BAD_INPUT if the
 * pattern is too large or two GPUs are not connected. Free *result with load_result_free. */
MUST_CHECK enum status load_run(const struct router *router, const struct load *load, struct load_result *result,
                                struct diags *diags);
void load_result_free(struct load_result *result);

/* Quantile q of ascending values[n]. */
double load_quantile(const double *values, size_t n, double q);

#endif
