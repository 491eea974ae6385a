#include "model/base/order.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

int int_common_divisor(int a, int b)
{
    while (b) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int int_compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int uint32_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int double_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

double double_quantile(const double *sorted, size_t n, double q)
{
    if (n == 0)
        return 0;
    double at = q * (double)(n - 1);
    size_t low = (size_t)at;
    double beyond = at - (double)low;
    if (low + 1 >= n || beyond <= 0 || isinf(sorted[low]))
        return sorted[low];
    return sorted[low] + beyond * (sorted[low + 1] - sorted[low]);
}
