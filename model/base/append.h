/*
 * append.h - build a text piece by piece in a buffer.
 *
 * Example:
 *
 *     char text[64] = "";
 *     text_append(text, sizeof text, "tp=%d", 8);
 *     text_append(text, sizeof text, ",pp=%d", 4);        "tp=8,pp=4"
 */
#ifndef MSIM_MODEL_BASE_APPEND_H
#define MSIM_MODEL_BASE_APPEND_H

#include <stddef.h>

#include "model/base/status.h"

/* Appends to the text in a buffer of `size` bytes. A text that is too long is cut between two characters of UTF-8. Returns
 * text. */
char *text_append(char *text, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
