/*
 * sweep_values.h - ranges of numbers, which --sweep of plan and run accepts between commas.
 *
 *   256..4096        256 and its doubles up to 4096
 *   256:1024:4       4 values from 256 to 1024, evenly: 256, 512, 768, 1024
 *   1min:1h:4:log    4 values in even ratios
 */
#ifndef MSIM_CLI_OPTIONS_SWEEP_VALUES_H
#define MSIM_CLI_OPTIONS_SWEEP_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/diag.h"
#include "model/base/units.h"

/* What help says of them. */
#define SWEEP_FORMS "A..B: A and its doubles up to B; A:B:N: N values from A to B, A:B:N:log in even ratios"

struct sweep_range {
    double low, high;
    int n;                      /* values */
    bool logarithmic, doubling; /* doubling is logarithmic, too */
    char unit[16];              /* of the first number as it is written: "Gbps", "%"; "" where it has none */
};

/* Does a text have one of these forms? Numbers in the dimension's units, or not, decide nothing. */
bool sweep_is_range(const char *text, size_t length);
/* The range, of at most `most` values. *why says what is wrong. */
MUST_CHECK enum status sweep_range_parse(const char *text, size_t length, enum dimension dimension, int most,
                                         struct sweep_range *range, char *why, size_t size);
/* Value i of 0 to n - 1. */
double sweep_range_value(const struct sweep_range *range, int i);

#endif
