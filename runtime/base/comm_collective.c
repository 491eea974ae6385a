/* comm_collective.c - sums and block orders of collectives. */
#include "runtime/base/comm_collective.h"

#include <string.h>

/* --- sums */

static void reduce_fp32(enum reduction reduction, const float *parts, int n, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = parts[i];
        for (int m = 1; m < n; m++) {
            float x = parts[m * count + i];
            sum = reduction == REDUCTION_SUM ? sum + x : sum > x ? sum : x;
        }
        out[i] = sum;
    }
}

static void reduce_fp64(enum reduction reduction, const double *parts, int n, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = parts[i];
        for (int m = 1; m < n; m++) {
            double x = parts[m * count + i];
            sum = reduction == REDUCTION_SUM ? sum + x : sum > x ? sum : x;
        }
        out[i] = sum;
    }
}

void parts_reduce(const struct exchange_call *call, const void *parts, int n, int64_t count, void *out)
{
    if (call->element == ELEMENT_FP64)
        reduce_fp64(call->reduction, parts, n, count, out);
    else
        reduce_fp32(call->reduction, parts, n, count, out);
}

/* --- blocks */

struct exchange_call parts_block(const struct exchange_call *call, int n, int b)
{
    bool gathers = call->exchange == EXCHANGE_ALL_GATHER;
    struct exchange_call block = *call;
    block.count = call->count / exchange_blocks(call);
    block.blocks = 1;
    size_t one = (size_t)block.count * element_bytes(call->element), all = (size_t)n * one;
    block.in = (const char *)call->in + (size_t)b * (gathers ? one : all);
    block.out = (char *)call->out + (size_t)b * (gathers ? all : one);
    return block;
}

/* Block b of member m, in bytes from the beginning of the parts and of the whole. */
struct block {
    size_t in_parts, in_whole, bytes;
};

static struct block block_of(const struct exchange_call *call, int n, int m, int b)
{
    int blocks = exchange_blocks(call);
    size_t bytes = (size_t)(call->count / blocks) * element_bytes(call->element);
    return (struct block){((size_t)m * (size_t)blocks + (size_t)b) * bytes, ((size_t)b * (size_t)n + (size_t)m) * bytes, bytes};
}

void parts_to_whole(const struct exchange_call *call, int n, const void *parts, void *whole)
{
    for (int m = 0; m < n; m++)
        for (int b = 0; b < exchange_blocks(call); b++) {
            struct block block = block_of(call, n, m, b);
            memcpy((char *)whole + block.in_whole, (const char *)parts + block.in_parts, block.bytes);
        }
}

void parts_of_whole(const struct exchange_call *call, int n, const void *whole, void *parts)
{
    for (int m = 0; m < n; m++)
        for (int b = 0; b < exchange_blocks(call); b++) {
            struct block block = block_of(call, n, m, b);
            memcpy((char *)parts + block.in_parts, (const char *)whole + block.in_whole, block.bytes);
        }
}
