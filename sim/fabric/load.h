/*
 * load.h - load tests of a fabric: a pattern of transfers, all at once, and the rates they achieve.
 *
 * Transfers run between GPUs, each split over the queue pairs of its connection. All begin at 0. Two questions are answered: what
 * each transfer gets while all are under way (the max-min rates of the whole pattern), and when each has ended, with everybody
 * speeding up as others finish.
 *
 *   permutation   a random permutation without fixed points: GPU i to p(i)
 *   ring          GPU i to i + 1
 *   shift         GPU i to i + GPUs / 2: everything crosses the bisection; or to i + `stride`
 *   incast        everybody to GPU 0
 *   all_to_all    everybody to everybody else: GPUs (GPUs - 1) transfers of bytes / (GPUs - 1)
 *
 * Connections that stay inside an NVLink domain take part, but their rates are not those of the network and are left out of the
 * result, unless all do.
 *
 * With `packets` the same transfers run again packet by packet (packets.h), over the same paths. While all are under way is then
 * from half of the time until the first is to end by the fair rates, to when the first ends: senders have settled by then, as far
 * as they do. Refused before they begin: more than LOAD_HOPS_MAX packets over links, and what takes longer than PACKETS_LONGEST
 * by the fair rates.
 *
 * Rates are compared with `demand`, what a GPU's share of its NICs could carry: NICs * NIC rate / GPUs of a host.
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
    int gpus;                                 /* the first so many of the fabric take part; 0: all */
    int senders;                              /* the first so many of them send, except to one and all to all; 0: all */
    int stride;                               /* of a shift; 0: half of the GPUs */
    double bytes;                             /* each GPU sends */
    double jitter;                            /* sizes are bytes (1 + jitter u), u uniform in (0, 1) */
    int queue_pairs;                          /* per connection and NIC port of a GPU; 0: 1 */
    uint64_t seed;                            /* of the permutation and of the jitter */
    const struct packets_parameters *packets; /* NULL: flows alone. The seed in it is not used */
    void (*progress)(void *context, double done, double total); /* of packets, in bytes; NULL: nobody asks */
    void *context;
};

/* What the packets of a load did. Values of connections as in load_result, each ascending. */
struct load_packets {
    struct packets *packets; /* as the run left them */
    struct packets_totals totals;
    double *rates;          /* [n_connections] B/s while all are under way */
    double *shares;         /* [n_connections] that over the fair rate of the same connection */
    double *ends;           /* [n_connections + n_inside] s */
    double *delays;         /* [n_connections + n_inside] the end over that of the same connection by fair rates */
    double from_s, until_s; /* while all are under way */
    double seconds;
};

/* What GPUs send, or get, over all their connections that are told of, while all are under way. */
struct load_sums {
    size_t n;      /* GPUs that have any */
    double *rates; /* [n] B/s, ascending */
};

struct load_result {
    size_t n_transfers; /* queue pairs of a connection are transfers of their own */
    double demand;      /* B/s */
    size_t n_inside;    /* connections that stay inside an NVLink domain, where there are others */
    /* Of the other connections (all queue pairs together): */
    size_t n_connections;
    double *rates;                   /* [n_connections] B/s while all are under way, ascending */
    double *ends;                    /* [n_connections + n_inside] s, ascending */
    struct load_sums sent, received; /* of GPUs; with packets what these made of it */
    double seconds;                  /* until the last has ended */
    struct flows *flows;             /* as the run left it: what each link carried */
    struct flows_counts counts;
    struct load_packets packets; /* where asked for */
};

/* Adaptive routing sees the transfers routed before; `router`'s own loads are not used. STATUS_BAD_INPUT where the pattern is too
 * large or two GPUs cannot reach one another. *result is released with load_result_free. */
MUST_CHECK enum status load_run(const struct router *router, const struct load *load, struct load_result *result,
                                struct diags *diags);
void load_result_free(struct load_result *result);

/* The value that a fraction `q` of ascending values[n] does not exceed. */
double load_quantile(const double *values, size_t n, double q);

#endif
