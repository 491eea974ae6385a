/*
 * utf8.h - external texts that may not be UTF-8: recognise characters, replace the rest.
 *
 * Example: utf8_copy("caf\xe9") is "caf" and U+FFFD.
 */
#ifndef MSIM_MODEL_BASE_UTF8_H
#define MSIM_MODEL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length of the character at `text`, which has n > 0 bytes. 0: no character, because the bytes are not UTF-8 or a control
 * character other than tab and line ends. */
size_t utf8_length(const char *text, size_t n);
/* Whether a text consists of such characters. */
bool utf8_is_text(const char *text);
/* Whether a text begins with a byte order mark of UTF-16, as files written by PowerShell do. */
bool utf16_begins(const char *text, size_t n);
/* A copy with U+FFFD for each byte that is part of no character; release with free(). */
char *utf8_copy(const char *text) __attribute__((returns_nonnull));

#endif
