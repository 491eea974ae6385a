#include "model/base/append.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Ends a text of n bytes before a character of UTF-8 that was cut in two. */
static void drop_half_character(char *text, size_t length)
{
    size_t first = length;
    while (first > 0 && length - first < 3 && ((unsigned char)text[first - 1] & 0xc0) == 0x80)
        first--;
    unsigned char lead = first > 0 ? (unsigned char)text[first - 1] : 0;
    size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (whole > length - first + 1)
        text[first - 1] = '\0';
}

char *text_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(text + used, size - used, format, args);
    va_end(args);
    if (wanted > 0 && (size_t)wanted >= size - used)
        drop_half_character(text, size - 1);
    return text;
}
