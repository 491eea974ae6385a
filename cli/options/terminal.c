#include "cli/options/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NARROWEST = 20, WIDEST = 10000 };

bool terminal_is(FILE *stream)
{
    return isatty(fileno(stream)) && !getenv("OMPI_COMM_WORLD_SIZE");
}

int terminal_width(FILE *stream)
{
    const char *text = getenv("COLUMNS");
    struct winsize size = {0};
    long width = text ? strtol(text, NULL, 10) : 0;
    if (width <= 0 && terminal_is(stream) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0)
        width = size.ws_col;
    return width <= 0 ? 0 : width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : (int)width;
}

/* The next code point, by the lead byte's length; a malformed byte counts as one character. */
static uint32_t next_character(const unsigned char **p)
{
    static const unsigned char masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    unsigned char lead = *(*p)++;
    int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    uint32_t code = lead & masks[more];
    for (; more > 0 && (**p & 0xc0) == 0x80; more--)
        code = code << 6 | (*(*p)++ & 0x3fu);
    return code;
}

int text_width(const char *utf8)
{
    const unsigned char *p = (const unsigned char *)utf8;
    int width = 0;
    while (*p) {
        uint32_t c = next_character(&p);
        bool combining = c >= 0x300 && c <= 0x36f;
        bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
                    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xff00 && c <= 0xff60) || (c >= 0x1f300 && c <= 0x1faff);
        width += combining ? 0 : wide ? 2 : 1;
    }
    return width;
}
