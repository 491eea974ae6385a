/* processes.c - the trivial exchanges of a single process. */
#include "sim/base/processes.h"

#include <string.h>

static void sum_of_one(void *context, int64_t *words, size_t n)
{
    (void)context, (void)words, (void)n;
}

static void gather_of_one(void *context, const void *own, size_t bytes, void *all)
{
    (void)context;
    memcpy(all, own, bytes);
}

static void broadcast_of_one(void *context, void *bytes, size_t n)
{
    (void)context, (void)bytes, (void)n;
}

const struct processes one_process = {.size = 1, .sum = sum_of_one, .gather = gather_of_one, .broadcast = broadcast_of_one};
