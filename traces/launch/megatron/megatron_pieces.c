/* megatron_pieces.c - two small languages in arguments: lists of numbers, and the layers of pipeline stages. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_translate.h"

enum { NUMBER_MAX = 1000000 };

static const char *skip_blanks(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

/* A whole number without sign; NULL where there is none. */
static const char *read_number(const char *p, int *number)
{
    if (!isdigit((unsigned char)*p))
        return NULL;
    long value = 0;
    for (; isdigit((unsigned char)*p); p++)
        value = value * 10 + (*p - '0') > NUMBER_MAX ? NUMBER_MAX : value * 10 + (*p - '0');
    *number = (int)value;
    return p;
}

/* What stands between `start` and *n, `times` times in all. False when that is too much. */
static bool repeat(int *values, int start, int *n, int times)
{
    int length = *n - start;
    if (times < 1) {
        *n = start;
        return true;
    }
    if (length > 0 && times > (PIECES_MAX - start) / length)
        return false;
    for (int i = 1; i < times; i++)
        memcpy(values + start + (size_t)i * (size_t)length, values + start, (size_t)length * sizeof *values);
    *n = start + length * times;
    return true;
}

/* --- lists: [0]*3+[1, 2]*(...) with parentheses --- */

struct list_reader {
    const char *at;
    int *values;
    int n, depth;
};

static bool read_list_sum(struct list_reader *r);

/* [1, 2] or (sum). */
static bool read_list_part(struct list_reader *r)
{
    enum { DEPTH_MAX = 16 };
    r->at = skip_blanks(r->at);
    if (*r->at == '(') {
        if (++r->depth > DEPTH_MAX)
            return false;
        r->at++;
        bool good = read_list_sum(r) && *(r->at = skip_blanks(r->at)) == ')';
        r->at += good;
        r->depth--;
        return good;
    }
    if (*r->at++ != '[')
        return false;
    for (;;) {
        r->at = skip_blanks(r->at);
        if (*r->at == ']')
            break;
        const char *end = r->n < PIECES_MAX ? read_number(r->at, &r->values[r->n]) : NULL;
        if (!end)
            return false;
        r->n++;
        r->at = skip_blanks(end);
        if (*r->at == ',')
            r->at++;
        else if (*r->at != ']')
            return false;
    }
    r->at++;
    return true;
}

static bool read_list_sum(struct list_reader *r)
{
    for (;;) {
        int start = r->n, times;
        if (!read_list_part(r))
            return false;
        while (*(r->at = skip_blanks(r->at)) == '*') {
            const char *end = read_number(skip_blanks(r->at + 1), &times);
            if (!end || !repeat(r->values, start, &r->n, times))
                return false;
            r->at = end;
        }
        if (*r->at != '+')
            return true;
        r->at++;
    }
}

int megatron_list(const char *text, int values[PIECES_MAX])
{
    struct list_reader r = {.at = text, .values = values};
    return read_list_sum(&r) && *skip_blanks(r.at) == '\0' ? r.n : 0;
}

/* --- stages: E embedding, t layer, m multi-token prediction, L loss, | the end of a stage; x*3 and (xy)*3 --- */

/* The letters as they stand once what is repeated has been; "" when that is nothing of the kind or too much. */
static bool expand_letters(const char *text, int letters[PIECES_MAX], int *n)
{
    int opened[16], depth = 0, last = 0, times;
    *n = 0;
    for (const char *p = text; *p; p++) {
        if (strchr(", ", *p))
            continue;
        if (*p == '(') {
            if (depth == 16)
                return false;
            opened[depth++] = *n;
        } else if (*p == ')') {
            if (depth == 0)
                return false;
            last = opened[--depth];
        } else if (*p == '*') {
            const char *end = read_number(p + 1, &times);
            if (!end || !repeat(letters, last, n, times))
                return false;
            p = end - 1;
        } else if (strchr("Etmdl|L", *p) && *n < PIECES_MAX) {
            last = *n;
            letters[(*n)++] = (unsigned char)*p;
        } else {
            return false;
        }
    }
    return depth == 0;
}

int megatron_stage_layout(const char *text, int layers[PIECES_MAX])
{
    int letters[PIECES_MAX], n, stages = 1;
    if (!expand_letters(text, letters, &n) || n == 0)
        return 0;
    layers[0] = 0;
    for (int i = 0; i < n; i++) {
        if (letters[i] == '|' && stages == PIECES_MAX)
            return 0;
        if (letters[i] == '|')
            layers[stages++] = 0;
        else
            layers[stages - 1] += letters[i] == 't' || letters[i] == 'd';
    }
    return stages;
}
