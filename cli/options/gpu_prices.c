#include "cli/options/gpu_prices.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/spec/catalog_alias.h"

static const double PRICE_MAX = 1e6; /* money per GPU and hour: more is a slip */

/* A price that ends at a comma or with the text; the end, NULL when it is none. */
static const char *read_price(const char *text, double *price)
{
    char *end;
    *price = strtod(text, &end);
    return end != text && (!*end || *end == ',') && *price > 0 && *price < PRICE_MAX ? end : NULL;
}

/* "h200=3" and what follows it; the end, NULL with *why when it cannot be read. */
static const char *read_item(const char *text, struct named_price *item, char *why, size_t size)
{
    size_t length = strcspn(text, "=,");
    const char *end = text[length] == '=' ? read_price(text + length + 1, &item->price) : NULL;
    if (length == 0 || length >= sizeof item->name || text[length] != '=')
        snprintf(why, size, "'%.40s' is not GPU=PRICE; write for example h200=3,b200=5.5, or one price for all, such as 2.5",
                 text);
    else if (!end)
        snprintf(why, size, "'%.40s' is not a price; write a price per GPU-hour, such as %.*s=2.5", text + length + 1,
                 length < 40 ? (int)length : 40, text);
    else
        snprintf(item->name, sizeof item->name, "%.*s", (int)length, text);
    return end && length > 0 && length < sizeof item->name ? end : NULL;
}

static enum status read_items(const char *text, struct gpu_prices *prices, char *why, size_t size)
{
    for (const char *p = text;; p++) {
        if (prices->n_items == GPU_PRICES_MAX) {
            snprintf(why, size, "too many prices; at most %d GPUs can have one", GPU_PRICES_MAX);
            return STATUS_BAD_INPUT;
        }
        p = read_item(p, &prices->items[prices->n_items++], why, size);
        if (!p)
            return STATUS_BAD_INPUT;
        if (!*p)
            return STATUS_OK;
    }
}

static enum status parse(const char *text, struct gpu_prices *prices, char *why, size_t size)
{
    *prices = (struct gpu_prices){0};
    if (strchr(text, '='))
        return read_items(text, prices, why, size);
    const char *end = read_price(text, &prices->all);
    if (end && !*end)
        return STATUS_OK;
    snprintf(why, size, "'%.40s' is not a price; write a price per GPU-hour, such as 2.5", text);
    return STATUS_BAD_INPUT;
}

enum status check_prices(const char *text, char *why, size_t size)
{
    struct gpu_prices prices;
    return parse(text, &prices, why, size);
}

/* Names as the catalog has them, so that h200 is the h200-sxm of a cluster. */
static void fold_names(struct gpu_prices *prices)
{
    struct alias_table table = {0};
    struct diags quiet = {0};
    bool loaded = prices->n_items > 0 && alias_table_load(&table, &quiet) == STATUS_OK;
    for (int i = 0; i < prices->n_items && loaded; i++) {
        struct named_price *item = &prices->items[i];
        const char *entry;
        item->known = alias_table_find(&table, CATALOG_GPUS, item->name, &entry) != ALIAS_NONE;
        if (item->known)
            snprintf(item->name, sizeof item->name, "%s", entry);
    }
    alias_table_free(&table);
    diags_free(&quiet);
}

enum status gpu_prices_read(struct invocation *call, struct gpu_prices *prices)
{
    const char *text = option_text(call, "gpu-price");
    char why[256];
    *prices = (struct gpu_prices){0};
    if (!text)
        return STATUS_OK;
    if (parse(text, prices, why, sizeof why) != STATUS_OK) {
        diag_error(&call->diags, PLACE_NONE, "--gpu-price: %s", why);
        return STATUS_USAGE;
    }
    fold_names(prices);
    for (int i = 0; i < prices->n_items; i++)
        for (int other = 0; other < i; other++)
            if (strcmp(prices->items[i].name, prices->items[other].name) == 0) {
                diag_error(&call->diags, PLACE_NONE, "--gpu-price: %s has two prices, %g and %g", prices->items[i].name,
                           prices->items[other].price, prices->items[i].price);
                return STATUS_USAGE;
            }
    return STATUS_OK;
}

/* No GPU is called so; one of these, or of the catalog, that nearly is. */
static void explain_name(struct invocation *call, const char *name, const char *const *gpus, size_t n_gpus)
{
    struct alias_table table = {0};
    struct diags quiet = {0};
    const char *entry, *near = nearest_name(name, gpus, n_gpus);
    if (!near && alias_table_load(&table, &quiet) == STATUS_OK)
        near = alias_table_nearest(&table, CATALOG_GPUS, name, &entry);
    if (near)
        diag_error(&call->diags, PLACE_NONE, "--gpu-price: unknown GPU '%s'; did you mean '%s'?", name, near);
    else
        diag_error(&call->diags, PLACE_NONE, "--gpu-price: unknown GPU '%s'; msim catalog gpus lists them", name);
    alias_table_free(&table);
    diags_free(&quiet);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

enum status gpu_prices_check(struct invocation *call, const struct gpu_prices *prices, const char *const *gpus, size_t n_gpus)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < prices->n_items; i++) {
        const struct named_price *item = &prices->items[i];
        if (is_among(item->name, gpus, n_gpus))
            continue;
        if (item->known) {
            diag_note(&call->diags, PLACE_NONE, "--gpu-price: the price of %s has no effect; this job does not use it",
                      item->name);
            continue;
        }
        explain_name(call, item->name, gpus, n_gpus);
        status = STATUS_USAGE;
    }
    return status;
}

double gpu_prices_of(const struct gpu_prices *prices, const char *gpu)
{
    for (int i = 0; i < prices->n_items; i++)
        if (strcmp(prices->items[i].name, gpu) == 0)
            return prices->items[i].price;
    return prices->all;
}

enum status gpu_price_option(struct invocation *call, const char *gpu, double *price)
{
    struct gpu_prices prices;
    enum status status = gpu_prices_read(call, &prices);
    if (status == STATUS_OK)
        status = gpu_prices_check(call, &prices, &gpu, 1);
    if (status != STATUS_OK)
        return status;
    *price = gpu_prices_of(&prices, gpu); /* 0 without the option */
    if (prices.n_items == 0 || *price > 0)
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "--gpu-price: the price of %s is missing; add %s=PRICE", gpu, gpu);
    return STATUS_USAGE;
}
