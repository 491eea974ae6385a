/*
 * fabric_packets.h - the options of packets (for fabric load and step), the state of links after a run, and its report.
 *
 *     msim fabric load --fabric 'clos hosts:16 tor:16x400G' --pattern incast --network packet --pfc-alpha 0.25
 */
#ifndef MSIM_CLI_FABRIC_FABRIC_PACKETS_H
#define MSIM_CLI_FABRIC_FABRIC_PACKETS_H

#include <jansson.h>

#include "cli/fabric/fabric_load.h"
#include "cli/options/command.h"
#include "sim/fabric/load.h"

enum { LOAD_NETWORK_FLOW, LOAD_NETWORK_PACKET };
extern const char *const load_network_choices[];
extern const char *const congestion_choices[];

/* Of a load: its flows alone, or packets beside them. */
#define LOAD_NETWORK_ROW                                                                                                         \
    {                                                                                                                            \
        .name = "network", CHOICE_FIELDS("MODEL", load_network_choices), .initial = "flow", .group = LOAD_GROUP,                 \
        .help = "load: simulate max-min fair flows, or also each packet with queues, marks and pauses"                           \
    }

#define PACKETS_GROUP "Packets (with --network packet)"
#define PACKETS_QUANTITY(NAME, ARGUMENT, DIMENSION, LOW, HIGH, INITIAL, HELP)                                                    \
    {                                                                                                                            \
        .name = NAME, QUANTITY_FIELDS(ARGUMENT, DIMENSION), .low = LOW, .high = HIGH, .initial = INITIAL,                        \
        .group = PACKETS_GROUP, .help = HELP                                                                                     \
    }
/* Values and bounds are those of sim/fabric/packets.h (high 0: no bound); the help says what is published, where, and what is
 * assumed. */
#define PACKETS_OPTION_ROWS                                                                                                      \
    {.name = "congestion",                                                                                                       \
     CHOICE_FIELDS("CONTROL", congestion_choices),                                                                               \
     .initial = PACKETS_USUAL_CONGESTION,                                                                                        \
     .group = PACKETS_GROUP,                                                                                                     \
     .help = "choose the congestion control of senders: dcqcn (SIGCOMM 2015), or none, where only PFC slows them down"},         \
        PACKETS_QUANTITY("mtu", "SIZE", DIM_BYTES, 64, PACKET_BYTES_MAX, PACKETS_USUAL_BYTES,                                    \
                         "set the packet size (RoCE's largest); headers cost no time"),                                          \
        PACKETS_QUANTITY("link-delay", "TIME", DIM_TIME, 0, PACKET_SECONDS_MAX, NULL,                                            \
                         "set the latency of a cable and its switch; without it, the fabric's latency per switch"),              \
        PACKETS_QUANTITY("switch-buffer", "SIZE", DIM_BYTES, 1, PACKETS_BUFFER_MAX, PACKETS_USUAL_SWITCH_BUFFER,                 \
                         "set the buffer that the ports of a switch share (assumed)"),                                           \
        PACKETS_QUANTITY("nic-buffer", "SIZE", DIM_BYTES, 1, PACKETS_BUFFER_MAX, PACKETS_USUAL_NIC_BUFFER,                       \
                         "set the buffer of each link inside a host (assumed)"),                                                 \
        PACKETS_QUANTITY("pfc-alpha", "FRACTION", DIM_FRACTION, 1 / PACKETS_ALPHA_MAX, PACKETS_ALPHA_MAX,                        \
                         PACKETS_USUAL_PFC_ALPHA,                                                                                \
                         "pause a port above this share of the free buffer (HPCC, SIGCOMM 2019: 11 % of all)"),                  \
        PACKETS_QUANTITY("pfc-xoff", "SIZE", DIM_BYTES, 1, PACKETS_BUFFER_MAX, NULL,                                             \
                         "pause a port above this queue (XOFF), instead of --pfc-alpha"),                                        \
        PACKETS_QUANTITY("pfc-xon-gap", "SIZE", DIM_BYTES, 0, PACKETS_BUFFER_MAX, PACKETS_USUAL_XON_GAP,                         \
                         "resume this far below XOFF (assumed: two packets)"),                                                   \
        PACKETS_QUANTITY("ecn-kmin", "SIZE", DIM_BYTES, 0, PACKETS_BUFFER_MAX, PACKETS_USUAL_KMIN,                               \
                         "start marking above this queue, at 400 Gbps; other rates in proportion (DCQCN: 5 KB at 40 Gbps)"),     \
        PACKETS_QUANTITY("ecn-kmax", "SIZE", DIM_BYTES, 0, PACKETS_BUFFER_MAX, PACKETS_USUAL_KMAX,                               \
                         "mark every packet above this queue, at 400 Gbps (DCQCN: 200 KB at 40 Gbps)"),                          \
        PACKETS_QUANTITY("ecn-pmax", "FRACTION", DIM_FRACTION, 0, 1, PACKETS_USUAL_PMAX,                                         \
                         "set the marking probability just below --ecn-kmax (DCQCN)"),                                           \
        PACKETS_QUANTITY("cnp-interval", "TIME", DIM_TIME, 0, DCQCN_SECONDS_MAX, PACKETS_USUAL_CNP_INTERVAL,                     \
                         "set the time between notifications of a queue pair (DCQCN)"),                                          \
        PACKETS_QUANTITY("dcqcn-g", "FRACTION", DIM_FRACTION, 0, 1, PACKETS_USUAL_GAIN,                                          \
                         "set the weight of a new mark in alpha (DCQCN: 1/256)"),                                                \
        PACKETS_QUANTITY("dcqcn-alpha-timer", "TIME", DIM_TIME, 1e-6, DCQCN_SECONDS_MAX, PACKETS_USUAL_ALPHA_TIMER,              \
                         "lower alpha after this time without a notification (DCQCN)"),                                          \
        PACKETS_QUANTITY("dcqcn-rate-timer", "TIME", DIM_TIME, 1e-6, DCQCN_SECONDS_MAX, PACKETS_USUAL_RATE_TIMER,                \
                         "set the time between rate increases (DCQCN)"),                                                         \
        PACKETS_QUANTITY("dcqcn-byte-counter", "SIZE", DIM_BYTES, 1, DCQCN_NUMBER_MAX, PACKETS_USUAL_BYTE_COUNTER,               \
                         "set the bytes between rate increases (DCQCN)"),                                                        \
        {.name = "dcqcn-rounds",                                                                                                 \
         COUNT_FIELDS,                                                                                                           \
         .high = 1000,                                                                                                           \
         .initial = PACKETS_USUAL_FAST_ROUNDS,                                                                                   \
         .group = PACKETS_GROUP,                                                                                                 \
         .help = "set the rounds of fast recovery (DCQCN)"},                                                                     \
        PACKETS_QUANTITY("dcqcn-ai", "RATE", DIM_RATE, 0, 0, PACKETS_USUAL_ADDITIVE,                                             \
                         "set the additive increase at 400 Gbps; other rates in proportion (DCQCN: 40 Mbps at 40 Gbps)"),        \
        PACKETS_QUANTITY("dcqcn-hai", "RATE", DIM_RATE, 0, 0, PACKETS_USUAL_HYPER,                                               \
                         "set the hyper increase at 400 Gbps (assumed: ten times --dcqcn-ai, as in IEEE 802.1Qau)"),             \
        PACKETS_QUANTITY("dcqcn-min-rate", "RATE", DIM_RATE, 1, DCQCN_NUMBER_MAX, PACKETS_USUAL_LEAST,                           \
                         "set the minimum rate of a queue pair (ConnectX)")

/* A table behind a line of `title`; nothing where nothing waited. */
void worst_links_write(const struct invocation *call, const struct fabric *fabric, const struct worst_links *worst,
                       const char *title);
/* Into most_paused and deepest of `object`. */
void worst_links_json(const struct fabric *fabric, const struct worst_links *worst, json_t *object);

/* Its queue, marks and pauses, with a comma behind each: columns of a table of links. */
void link_seen_write(FILE *out, const struct packets *packets, uint32_t link);

/* For a call without packets: a note for each option of theirs that was given and changes nothing. */
void fabric_packets_note_idle(struct invocation *call);
MUST_CHECK enum status fabric_packets_parameters(struct invocation *call, struct packets_parameters *with);
/* The table of quantiles beside the fair rates, as text or CSV, and in text what links saw. */
void packets_summary_write(struct invocation *call, const struct fabric *fabric, const struct packets_summary *summary,
                           const double *fair_rates);
/* Packets, marks, pauses and the fullest buffer in a line, and what was assumed. */
void packets_totals_write(const struct invocation *call, const struct fabric *fabric, const struct packets_summary *summary);
json_t *packets_parameters_json(const struct packets_parameters *with);
/* The names of the options that were left as they are assumed. */
json_t *packets_assumed_json(const struct invocation *call, const struct fabric *fabric);
json_t *packets_summary_json(const struct invocation *call, const struct fabric *fabric, const struct packets_summary *summary);

#endif
