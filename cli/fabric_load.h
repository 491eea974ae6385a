/*
 * fabric_load.h - msim fabric load: a pattern of transfers, and the rates that it achieves.
 */
#ifndef MSIM_CLI_FABRIC_LOAD_H
#define MSIM_CLI_FABRIC_LOAD_H

#include <jansson.h>

#include "cli/command.h"
#include "cli/shared_options.h"
#include "sim/fabric/fabric.h"

extern const char *const load_pattern_choices[];

#define LOAD_GROUP "Load"
#define FABRIC_LOAD_OPTION_ROWS                                                                                                  \
    {.name = "pattern",                                                                                                          \
     .argument = "PATTERN",                                                                                                      \
     .type = OPTION_CHOICE,                                                                                                      \
     .choices = load_pattern_choices,                                                                                            \
     .initial = "permutation",                                                                                                   \
     .group = LOAD_GROUP,                                                                                                        \
     .help = "load: who sends to whom"},                                                                                         \
        {.name = "bytes",                                                                                                        \
         .argument = "SIZE",                                                                                                     \
         .type = OPTION_QUANTITY,                                                                                                \
         .dimension = DIM_BYTES,                                                                                                 \
         .low = 1,                                                                                                               \
         .initial = "100MB",                                                                                                     \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: what each GPU sends"},                                                                                   \
        {.name = "jitter",                                                                                                       \
         .argument = "FRACTION",                                                                                                 \
         .type = OPTION_QUANTITY,                                                                                                \
         .dimension = DIM_FRACTION,                                                                                              \
         .high = 1,                                                                                                              \
         .initial = "0",                                                                                                         \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: sizes are spread by so much"},                                                                           \
        {.name = "gpus",                                                                                                         \
         .argument = "N",                                                                                                        \
         .type = OPTION_COUNT,                                                                                                   \
         .low = 2,                                                                                                               \
         .high = 1 << 20,                                                                                                        \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: the first N take part, all otherwise; with --gpu the size of the cluster"},                              \
        {.name = "senders",                                                                                                      \
         .argument = "N",                                                                                                        \
         .type = OPTION_COUNT,                                                                                                   \
         .low = 1,                                                                                                               \
         .high = 1 << 20,                                                                                                        \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: the first N of them send, in a permutation, ring or shift; all otherwise"},                              \
        {.name = "stride",                                                                                                       \
         .argument = "N",                                                                                                        \
         .type = OPTION_COUNT,                                                                                                   \
         .low = 1,                                                                                                               \
         .high = 1 << 20,                                                                                                        \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: a shift sends to the Nth GPU on; half of the GPUs otherwise"},                                           \
        {.name = "repeats",                                                                                                      \
         .argument = "N",                                                                                                        \
         .type = OPTION_COUNT,                                                                                                   \
         .low = 1,                                                                                                               \
         .high = 100000,                                                                                                         \
         .initial = "1",                                                                                                         \
         .group = LOAD_GROUP,                                                                                                    \
         .help = "load: so many seeds, one after the other; results are means over them"},                                       \
        FILE_ROW("link-map", LOAD_GROUP, "load: write what every link carried, under the last seed, as CSV; msim plot draws it")

/* What is told of values of connections: quantiles, and the mean last. */
enum { N_QUANTILES = 6, N_TOLD = N_QUANTILES + 1 };
extern const double load_quantiles[N_QUANTILES];
extern const char *const load_told_names[N_TOLD], *const load_told_keys[N_TOLD];
/* Of values[n], ascending, into told[N_TOLD]. */
void load_told(const double *values, size_t n, double *told);

/* A result with the fabric it is of. */
json_t *fabric_result(const struct invocation *call, const struct fabric *fabric);
MUST_CHECK enum status fabric_load(struct invocation *call, const struct fabric *fabric, int queue_pairs);

#endif
