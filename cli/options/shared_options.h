/*
 * shared_options.h - option rows that several commands share.
 *
 *     static const struct option_row options[] = {{.name = "top", ...}, THREADS_ROW("Search"), {0}};
 *
 * Whole subjects have headers of their own: experiment_options.h, fabric_options.h, devices.h.
 */
#ifndef MSIM_CLI_OPTIONS_SHARED_OPTIONS_H
#define MSIM_CLI_OPTIONS_SHARED_OPTIONS_H

#include "cli/options/command.h"
#include "cli/options/gpu_prices.h"

/* How many threads; thread_option() below. */
#define THREADS_ROW(GROUP)                                                                                                       \
    {                                                                                                                            \
        .name = "threads", COUNT_FIELDS, .low = 1, .high = 256, .group = GROUP, .aside = true, .fallback = "one per CPU",        \
        .help = "set the number of threads; it does not affect results"                                                          \
    }

/* Transfers by rates, or by flows on a fabric. */
enum { NETWORK_ANALYTIC, NETWORK_FLOW, NETWORK_PACKET /* of a step alone */ };
extern const char *const network_choices[];
#define NETWORK_ROW(NAME, GROUP, HELP)                                                                                           \
    {                                                                                                                            \
        .name = NAME, CHOICE_FIELDS("MODEL", network_choices), .initial = "analytic", .group = GROUP, .help = HELP               \
    }

/* Another file to write; output_option of result.h opens it. */
#define FILE_ROW(NAME, GROUP, HELP)                                                                                              \
    {                                                                                                                            \
        .name = NAME, TEXT_FIELDS("FILE"), .group = GROUP, .help = HELP, .written = true, .aside = true                          \
    }

/* What a GPU costs (gpu_prices.h). */
#define PRICE_ROW(GROUP, HELP)                                                                                                   \
    {                                                                                                                            \
        .name = "gpu-price", TEXT_FIELDS("X|GPU=X,..."), .check = check_prices, .group = GROUP, .help = HELP                     \
    }

/* --threads as given, or one per processor that this process may use (world.h). At least 1. */
int thread_option(const struct invocation *call);

#endif
