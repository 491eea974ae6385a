/*
 * fabric_load.h - msim fabric load: a traffic pattern, and the bandwidth that its connections achieve.
 *
 *     msim fabric load --cluster megascale-a100 --pattern shift --stride 8
 */
#ifndef MSIM_CLI_FABRIC_FABRIC_LOAD_H
#define MSIM_CLI_FABRIC_FABRIC_LOAD_H

#include <jansson.h>

#include "cli/options/command.h"
#include "cli/options/shared_options.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/load_summary.h"

extern const char *const load_pattern_choices[];

#define LOAD_GROUP "Load"
#define LOAD_COUNT(NAME, LOW, HIGH, HELP, FALLBACK)                                                                              \
    {                                                                                                                            \
        .name = NAME, COUNT_FIELDS, .low = LOW, .high = HIGH, .group = LOAD_GROUP, .help = HELP, .fallback = FALLBACK            \
    }
#define FABRIC_LOAD_OPTION_ROWS                                                                                                  \
    {.name = "pattern",                                                                                                          \
     CHOICE_FIELDS("PATTERN", load_pattern_choices),                                                                             \
     .initial = "permutation",                                                                                                   \
     .group = LOAD_GROUP,                                                                                                        \
     .help = "load: choose which GPUs send to which"},                                                                           \
        {.name = "bytes",                                                                                                        \
         QUANTITY_FIELDS("SIZE", DIM_BYTES),                                                                                     \
         .low = 1,                                                                                                               \
         .initial = "100MB",                                                                                                     \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: set the bytes that each GPU sends"},                                                                     \
        {.name = "jitter",                                                                                                       \
         QUANTITY_FIELDS("FRACTION", DIM_FRACTION),                                                                              \
         .high = 1,                                                                                                              \
         .initial = "0",                                                                                                         \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: vary the sizes at random by this fraction"},                                                             \
        LOAD_COUNT("gpus", 2, 1 << 20, "load: use the first N GPUs; with --gpu, also the size of the cluster", "all"),           \
        LOAD_COUNT("senders", 1, 1 << 20, "load: let the first N of them send, in a permutation, ring or shift", "all"),         \
        LOAD_COUNT("stride", 1, 1 << 20, "load: send to the Nth GPU further on, in a shift", "half of the GPUs"),                \
        {.name = "repeats",                                                                                                      \
         COUNT_FIELDS,                                                                                                           \
         .low = 1,                                                                                                               \
         .high = 100000,                                                                                                         \
         .initial = "1",                                                                                                         \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: repeat with N seeds and report means"},                                                                  \
        FILE_ROW("link-map", LOAD_GROUP, "load: write the traffic of every link, for the last seed, as CSV; msim plot draws it")

/* A result with the fabric it is of. */
json_t *fabric_result(const struct invocation *call, const struct fabric *fabric);
MUST_CHECK enum status fabric_load(struct invocation *call, const struct fabric *fabric, int queue_pairs);

#endif
