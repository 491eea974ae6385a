/*
 * order.h - small helpers for order: minimum, rounded-up quotient, greatest common divisor, comparisons for qsort, quantiles.
 *
 * Example: qsort(times, n, sizeof *times, double_compare); double median = double_quantile(times, n, 0.5);
 */
#ifndef MSIM_MODEL_BASE_ORDER_H
#define MSIM_MODEL_BASE_ORDER_H

#include <stddef.h>
#include <stdint.h>

static inline int int_min(int a, int b)
{
    return a < b ? a : b;
}

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t int64_divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The greatest common divisor of two numbers above 0. */
int int_common_divisor(int a, int b);

/* Comparisons for qsort, ascending, for elements of the named type (text: char *, by bytes). Numbers must not be NaN. */
int int_compare(const void *a, const void *b);
int uint32_compare(const void *a, const void *b);
int double_compare(const void *a, const void *b);
int text_compare(const void *a, const void *b);

/* The quantile q (0 to 1) of n ascending numbers: linear between order statistics, rank q (n - 1) from 0; infinite from the
 * first infinite number on; 0 if n is 0. */
double double_quantile(const double *sorted, size_t n, double q);

#endif
