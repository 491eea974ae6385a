/*
 * append.h - texts put together piece by piece in a buffer.
 */
#ifndef MSIM_MODEL_BASE_APPEND_H
#define MSIM_MODEL_BASE_APPEND_H

#include <stddef.h>

#include "model/base/status.h"

/* Appends to the text in a buffer of `size` bytes; what does not fit is cut, between two characters of UTF-8. Returns text. */
char *text_append(char *text, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
