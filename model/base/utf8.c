#include "model/base/utf8.h"

#include <string.h>

#include "model/base/memory.h"

size_t utf8_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return s[0] >= 0x20 ? s[0] != 0x7f : s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
    size_t length = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (s[0] >= 0xf5 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool beyond = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return overlong || beyond ? 0 : length;
}

bool utf8_is_text(const char *text)
{
    size_t n = strlen(text), step;
    for (size_t i = 0; i < n; i += step) {
        step = utf8_length(text + i, n - i);
        if (step == 0)
            return false;
    }
    return true;
}

bool utf16_begins(const char *text, size_t n)
{
    return n >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0);
}

char *utf8_copy(const char *text)
{
    static const char unknown[] = "\xef\xbf\xbd";
    enum { UNKNOWN_BYTES = sizeof unknown - 1 };
    size_t n = strlen(text), used = 0;
    char *copy = memory_new(n + 1, UNKNOWN_BYTES);
    for (size_t i = 0; i < n;) {
        size_t step = utf8_length(text + i, n - i);
        memcpy(copy + used, step > 0 ? text + i : unknown, step > 0 ? step : UNKNOWN_BYTES);
        used += step > 0 ? step : UNKNOWN_BYTES;
        i += step > 0 ? step : 1;
    }
    return copy;
}
