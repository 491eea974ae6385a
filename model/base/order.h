/*
 * order.h - the lesser of two whole numbers, what divides both, and orders for qsort.
 */
#ifndef MSIM_MODEL_BASE_ORDER_H
#define MSIM_MODEL_BASE_ORDER_H

static inline int int_min(int a, int b)
{
    return a < b ? a : b;
}

/* The greatest common divisor of two numbers above 0. */
int int_common_divisor(int a, int b);

/* Ascending, as qsort asks: elements of the type named (text: char *, by bytes). Numbers are not NaN. */
int int_compare(const void *a, const void *b);
int uint32_compare(const void *a, const void *b);
int double_compare(const void *a, const void *b);
int text_compare(const void *a, const void *b);

#endif
