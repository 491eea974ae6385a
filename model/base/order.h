/*
 * order.h - the lesser of two whole numbers, how often one goes into the other, what divides both, orders for qsort, and what
 * lies where in an order.
 */
#ifndef MSIM_MODEL_BASE_ORDER_H
#define MSIM_MODEL_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>

static inline int int_min(int a, int b)
{
    return a < b ? a : b;
}

/* a / b, of a from 0 and b above it, up to the next whole number. */
static inline int64_t int64_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The greatest common divisor of two numbers above 0. */
int int_common_divisor(int a, int b);

/* Ascending, as qsort asks: elements of the type named (text: char *, by bytes). Numbers are not NaN. */
int int_compare(const void *a, const void *b);
int uint32_compare(const void *a, const void *b);
int double_compare(const void *a, const void *b);
int text_compare(const void *a, const void *b);

/* The number below which a share q (0 to 1) of n ascending ones lies: linear between order statistics, rank q (n - 1) from 0;
 * infinite from the first infinite one on. 0 of none. */
double double_quantile(const double *sorted, size_t n, double q);

#endif
