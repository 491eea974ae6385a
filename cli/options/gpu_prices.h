/*
 * gpu_prices.h - the price of a GPU-hour: --gpu-price of plan, step and run.
 *
 *     --gpu-price 2.5                            every GPU
 *     --gpu-price h200=3,b200=5.5,mi300x=2.4     one price for each GPU
 *
 * A GPU has any name that the catalog knows (catalog_alias.h), or the name that the experiment gives it. Prices have no currency:
 * costs are in the same unit as prices.
 */
#ifndef MSIM_CLI_OPTIONS_GPU_PRICES_H
#define MSIM_CLI_OPTIONS_GPU_PRICES_H

#include "cli/options/command.h"

enum { GPU_PRICES_MAX = 32, GPU_NAME_TEXT = 64 };

struct gpu_prices {
    double all; /* money per GPU and hour of every GPU; 0: by name, or not said */
    struct named_price {
        char name[GPU_NAME_TEXT]; /* the catalog's where it knows the name, else as written */
        bool known;               /* to the catalog */
        double price;
    } items[GPU_PRICES_MAX];
    int n_items;
};

/* The check of the option's row: whether the text can be read, whoever the GPUs are. */
enum status check_prices(const char *text, char *why, size_t size);

/* --gpu-price of this call. STATUS_USAGE, with a diagnostic, when a GPU has two prices. */
MUST_CHECK enum status gpu_prices_read(struct invocation *call, struct gpu_prices *prices);
/* STATUS_USAGE, with the nearest name, when a name is neither the catalog's nor one of these GPUs; a note where a price is that
 * of none of them. */
MUST_CHECK enum status gpu_prices_check(struct invocation *call, const struct gpu_prices *prices, const char *const *gpus,
                                        size_t n_gpus);
/* Money per GPU and hour; 0: not said. */
double gpu_prices_of(const struct gpu_prices *prices, const char *gpu);

/* The same for a call that has one kind of GPU: STATUS_USAGE when prices are given and none is its. */
MUST_CHECK enum status gpu_price_option(struct invocation *call, const char *gpu, double *price);

#endif
