/*
 * number_text.h - numbers as people read them.
 *
 * Example: grouped(12288, ...) "12,288"; three_digits(1.1, ...) "1.10"; ratio_text(1.0 / 0.75, ...) "1.33"; plural(2) "s".
 */
#ifndef MSIM_MODEL_BASE_NUMBER_TEXT_H
#define MSIM_MODEL_BASE_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* 12288 as "12,288". Returns buffer; 32 bytes always suffice. */
char *grouped(int64_t number, char *buffer, size_t size);
/* Three significant digits, with zeros, or all digits before the point, grouped: "0.0310", "1.10", "20.0", "12,288". Returns
 * buffer; 32 bytes are enough. */
char *three_digits(double number, char *buffer, size_t size);
/* Up to three significant digits without final zeros and without an exponent: "2", "1.33", "1000" (of 2:1). Returns buffer. */
char *ratio_text(double ratio, char *buffer, size_t size);
/* The ending of a noun after this number: "s", or "" after 1. */
const char *plural(int64_t number);

#endif
