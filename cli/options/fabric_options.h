/*
 * fabric_options.h - the options that describe a fabric, its routing and its failed cables, for plan, step, run and fabric.
 *
 *     msim step job.yaml --network flow --routing adaptive --link tor:17=0
 *
 *     static const struct option_row options[] = {..., FABRIC_OPTION_ROWS, {0}};
 *     enum status status = fabric_options_load(call, &cluster, &fabric);
 *     struct router router = fabric_options_router(call, &fabric);
 */
#ifndef MSIM_CLI_OPTIONS_FABRIC_OPTIONS_H
#define MSIM_CLI_OPTIONS_FABRIC_OPTIONS_H

#include "cli/options/command.h"
#include "sim/fabric/route.h"

extern const char *const routing_choices[], *const routing_meanings[];

#define FABRIC_GROUP "Network"
#define FABRIC_OPTION_ROWS                                                                                                       \
    {.name = "fabric",                                                                                                           \
     TEXT_FIELDS("TEXT"),                                                                                                        \
     .group = FABRIC_GROUP,                                                                                                      \
     .fallback = "the cluster's fabric",                                                                                         \
     .help = "describe the fabric in one line: 'clos hosts:... tor:...' or 'dragonfly hosts:... switch:...'"},                   \
        {.name = "routing",                                                                                                      \
         CHOICE_FIELDS("HOW", routing_choices),                                                                                  \
         .meanings = routing_meanings,                                                                                           \
         .group = FABRIC_GROUP,                                                                                                  \
         .initial = "ecmp",                                                                                                      \
         .fallback = "ecmp; adaptive in a dragonfly",                                                                            \
         .help = "choose how connections are routed"},                                                                           \
        {.name = "queue-pairs",                                                                                                  \
         COUNT_FIELDS,                                                                                                           \
         .low = 1,                                                                                                               \
         .high = 64,                                                                                                             \
         .group = FABRIC_GROUP,                                                                                                  \
         .fallback = "the cluster's; NCCL: 2",                                                                                   \
         .help = "set the queue pairs per connection; each has its own hash"},                                                   \
        {.name = "polarised",                                                                                                    \
         .type = OPTION_FLAG,                                                                                                    \
         .group = FABRIC_GROUP,                                                                                                  \
         .help = "use the same hash in all switches (ECMP polarisation)"},                                                       \
        {.name = "rail-aware",                                                                                                   \
         .type = OPTION_FLAG,                                                                                                    \
         .group = FABRIC_GROUP,                                                                                                  \
         .help = "enter the fabric on the destination's rail, over NVLink (PXN)"},                                               \
    {                                                                                                                            \
        .name = "link", .argument = "LINK=SPEED", .type = OPTION_REPEAT, .group = FABRIC_GROUP,                                  \
        .help = "set the speed of a cable: nic:12=0.5 is half, tor:17=0 is down; repeatable. Cables are nvlink, gpu and pcie "   \
                "(PCIe lanes of GPUs and of NICs), root and socket (PCIe switch to CPU, CPU to CPU), nic, tor and agg; in a "    \
                "dragonfly also local and global"                                                                                \
    }

/* The fabric of --fabric, or of `cluster`, with the cables of --link. */
MUST_CHECK enum status fabric_options_load(struct invocation *call, const struct cluster *cluster, struct fabric *fabric);
/* Notes for each cable of --link that is not down, over which nothing went: carried[links] in bytes. */
void fabric_options_note_silent(struct invocation *call, const struct fabric *fabric, const double *carried);
/* For a call without a fabric: a note for each option of FABRIC_GROUP that was given and changes nothing. `option` is the one
 * that puts the fabric to use when it says flow. */
void fabric_options_note_idle(struct invocation *call, const char *option, const char *values);
/* The first link of a cable written LAYER:NUMBER, up to the character `stop`; *back is its other direction. False, with a
 * diagnostic that begins with `option`, when there is none. */
bool fabric_cable_parse(struct invocation *call, const char *option, const char *text, char stop, const struct fabric *fabric,
                        uint32_t *out, uint32_t *back);
/* Queue pairs of a connection: those of --queue-pairs, or of the cluster; NULL: of a fabric without one, 1. */
int fabric_options_queue_pairs(const struct invocation *call, const struct cluster *cluster);
/* The router of the options; a dragonfly's is adaptive unless said. Adaptive routing still needs loads. */
struct router fabric_options_router(const struct invocation *call, const struct fabric *fabric);

#endif
