/* exchange_values.c - see exchange_values.h. */
#include "tests/gpu/exchange_values.h"

/* Whole numbers: sums are exact. */
float exchange_value(int rank, int64_t i)
{
    return (float)((rank * 3 + i) % 17);
}

/* Element i of what a member has is this one of the whole (comm.h, blocks). */
static int64_t in_whole(int member, int n, int64_t count, int blocks, int64_t i)
{
    int64_t block = count / blocks;
    return (i / block * n + member) * block + i % block;
}

static float gathered(int n, int64_t count, int blocks, int64_t i)
{
    int64_t block = count / blocks, turn = i / block;
    return exchange_value((int)(turn % n), turn / n * block + i % block);
}

static float expected(enum exchange exchange, int rank, int n, int64_t count, int blocks, int64_t i)
{
    float sum = 0;
    switch (exchange) {
    case EXCHANGE_ALL_REDUCE:
    case EXCHANGE_REDUCE_SCATTER:
        for (int r = 0; r < n; r++)
            sum += exchange_value(r, exchange == EXCHANGE_ALL_REDUCE ? i : in_whole(rank, n, count, blocks, i));
        return sum;
    case EXCHANGE_ALL_GATHER: return gathered(n, count, blocks, i);
    case EXCHANGE_ALL_TO_ALL: return exchange_value((int)(i / count), rank * count + i % count);
    case EXCHANGE_BROADCAST: return exchange_value(n - 1, i);
    case EXCHANGE_RECV: return exchange_value((rank + n - 1) % n, i);
    default: return exchange_value(rank, i);
    }
}

int exchange_wrong_values(const struct exchanged *e, const float *values)
{
    int wrong = 0;
    for (int64_t i = 0; i < e->n_values; i++)
        wrong += values[i] != expected(e->exchange, e->rank, e->n_ranks, e->count, e->blocks, i);
    return wrong;
}
