/* Tables with columns of fixed width, as sacct, sacctmgr, sinfo and kubectl print them. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/record_table.h"

enum { COLUMNS_MAX = 64 };

struct layout {
    int n;
    size_t begins[COLUMNS_MAX], ends[COLUMNS_MAX]; /* ends of the last column: of its line */
};

struct line {
    const char *text;
    size_t n; /* without its end */
};

static struct line line_at(const char *bytes, const char *end)
{
    struct line line = {bytes, 0};
    while (bytes + line.n < end && bytes[line.n] != '\n')
        line.n++;
    return line;
}

static struct line without_return(struct line line)
{
    line.n -= line.n > 0 && line.text[line.n - 1] == '\r';
    return line;
}

/* Groups of dashes: each is as wide as its column. */
static bool read_dashes(struct line line, struct layout *layout)
{
    *layout = (struct layout){.n = 0};
    for (size_t i = 0; i < line.n; i++) {
        bool dash = line.text[i] == '-', before = i > 0 && line.text[i - 1] == '-';
        if (!dash && line.text[i] != ' ')
            return false;
        if (dash && !before && layout->n == COLUMNS_MAX)
            return false;
        if (dash && !before)
            layout->begins[layout->n++] = i;
        if (dash)
            layout->ends[layout->n - 1] = i + 1;
    }
    return layout->n >= 2;
}

/* Names in capitals, two blanks or more between them: each column begins where its name does. */
static bool read_capitals(struct line line, struct layout *layout)
{
    *layout = (struct layout){.n = 0};
    if (line.n == 0 || !isupper((unsigned char)line.text[0]))
        return false;
    for (size_t i = 0; i < line.n; i++) {
        char c = line.text[i];
        bool begins = c != ' ' && (i == 0 || (i > 1 && line.text[i - 1] == ' ' && line.text[i - 2] == ' '));
        if (!isupper((unsigned char)c) && !strchr(" _-()%.", c))
            return false;
        if (begins && layout->n == COLUMNS_MAX)
            return false;
        if (begins && layout->n > 0)
            layout->ends[layout->n - 1] = i;
        if (begins)
            layout->begins[layout->n++] = i;
    }
    return layout->n >= 3;
}

/* Into the middle of no character. */
static size_t whole(struct line line, size_t at)
{
    at = at < line.n ? at : line.n;
    while (at < line.n && ((unsigned char)line.text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

static char *write_line(char *out, struct line line, const struct layout *layout)
{
    for (int i = 0; i < layout->n; i++) {
        size_t begin = whole(line, layout->begins[i]), end = i + 1 < layout->n ? whole(line, layout->ends[i]) : line.n;
        while (begin < end && line.text[begin] == ' ')
            begin++;
        while (end > begin && line.text[end - 1] == ' ')
            end--;
        if (i > 0)
            *out++ = ',';
        *out++ = '"';
        for (size_t j = begin; j < end; j++) {
            if (line.text[j] == '"')
                *out++ = '"';
            *out++ = line.text[j];
        }
        *out++ = '"';
    }
    return out;
}

/* The line of names is the first that is neither blank nor a comment; dashes may stand below it. */
static bool find_layout(const char *bytes, const char *end, const char **header, const char **dashes, struct layout *layout)
{
    const char *at = bytes;
    struct line first = {0};
    for (; at < end; at += first.n + 1) {
        first = line_at(at, end);
        if (without_return(first).n > 0 && *at != '#')
            break;
    }
    if (at >= end)
        return false;
    *header = at;
    *dashes = NULL;
    const char *below = at + first.n + 1;
    if (below < end && read_dashes(without_return(line_at(below, end)), layout)) {
        *dashes = below;
        return true;
    }
    return read_capitals(without_return(first), layout);
}

char *fixed_table_as_csv(const char *bytes, size_t n, size_t *n_csv)
{
    const char *end = bytes + n, *header, *dashes;
    struct layout layout;
    if (!find_layout(bytes, end, &header, &dashes, &layout))
        return NULL;
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    char *csv = memory_new(2 * n + lines * (3 * (size_t)layout.n + 1) + 1, 1), *out = csv;
    for (const char *at = bytes; at < end;) {
        struct line line = line_at(at, end), text = without_return(line);
        if (at >= header && at != dashes && text.n > 0)
            out = write_line(out, text, &layout);
        *out++ = '\n';
        at += line.n + 1;
    }
    *n_csv = (size_t)(out - csv);
    return csv;
}
