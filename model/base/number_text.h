/*
 * number_text.h - numbers as people read them: "12,288", "1.10", the plural's "s".
 */
#ifndef MSIM_MODEL_BASE_NUMBER_TEXT_H
#define MSIM_MODEL_BASE_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* 12288 as "12,288". Returns buffer; 32 bytes always suffice. */
char *grouped(int64_t number, char *buffer, size_t size);
/* Three significant digits, zeros too, or all of those before the point, grouped: "0.0310", "1.10", "20.0", "12,288". Returns
 * buffer; 32 bytes always suffice. */
char *three_digits(double number, char *buffer, size_t size);
/* Up to three significant digits, none of them zeros at the end, and never an exponent: "2", "1.33", "1000" (of 2:1). Returns
 * buffer. */
char *ratio_text(double ratio, char *buffer, size_t size);
/* The end of a noun after this number: "s", and "" after 1. */
const char *plural(int64_t number);

#endif
