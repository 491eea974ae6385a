/*
 * utf8.h - texts from outside, which may be no UTF-8: what is of it, and what can be written of the rest.
 */
#ifndef MSIM_MODEL_BASE_UTF8_H
#define MSIM_MODEL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the character at `text`, of which there are n > 0 bytes; 0 where none is: bytes that are no UTF-8, and control
 * characters other than tab and line ends. */
size_t utf8_length(const char *text, size_t n);
/* Whether all of a text is such characters. */
bool utf8_is_text(const char *text);
/* Whether a text begins as those of UTF-16 do that say so, such as what PowerShell writes into files. */
bool utf16_begins(const char *text, size_t n);
/* A copy with U+FFFD in place of each byte that is of no character; release with free(). */
char *utf8_copy(const char *text) __attribute__((returns_nonnull));

#endif
