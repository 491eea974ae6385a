/* shell_arithmetic.c - evaluates $((...)) with whole numbers. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_state.h"

enum { DEPTH_MAX = 16 };

struct sum_reader {
    struct shell_state *state;
    shell_expander *expand;
    const char *at, *end;
    int depth;
    bool bad;
};

static int64_t read_sum(struct sum_reader *r);
static int64_t combine(struct sum_reader *r, char sign, int64_t a, int64_t b);

static void skip(struct sum_reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

/* A variable's whole number; nothing counts as 0, as in a shell. */
static int64_t value_of(struct sum_reader *r, const char *name, size_t n)
{
    const struct shell_variable *v = shell_find(r->state, name, n);
    char *end;
    if (!v || v->n == 0 || v->items[0].unknown) {
        r->bad = true;
        return 0;
    }
    long long value = strtoll(v->items[0].text, &end, 10);
    r->bad |= *end != '\0' || end == v->items[0].text;
    return value;
}

/* NAME, $NAME, ${NAME}, ${NAME:-default}: expanded like any word. */
static int64_t read_variable(struct sum_reader *r)
{
    const char *start = r->at;
    if (*r->at != '$') {
        while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'))
            r->at++;
        return value_of(r, start, (size_t)(r->at - start));
    }
    r->at++;
    if (r->at < r->end && *r->at == '{') {
        while (r->at < r->end && *r->at != '}')
            r->at++;
        r->at += r->at < r->end;
    } else {
        while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'))
            r->at++;
    }
    struct launch_field field = r->expand(r->state, start, (size_t)(r->at - start));
    char *end;
    long long value = strtoll(field.text, &end, 10);
    r->bad |= field.unknown || *end != '\0' || end == field.text;
    return value;
}

static int64_t read_operand(struct sum_reader *r)
{
    skip(r);
    if (r->at >= r->end || ++r->depth > DEPTH_MAX) {
        r->bad = true;
        return 0;
    }
    int64_t value = 0;
    char *end;
    if (*r->at == '(') {
        r->at++;
        value = read_sum(r);
        skip(r);
        r->bad |= r->at >= r->end || *r->at != ')';
        r->at += !r->bad;
    } else if (*r->at == '-') {
        r->at++;
        value = combine(r, '-', 0, read_operand(r));
    } else if (isdigit((unsigned char)*r->at)) {
        value = strtoll(r->at, &end, 10);
        r->at = end;
    } else if (*r->at == '$' || isalpha((unsigned char)*r->at) || *r->at == '_') {
        value = read_variable(r);
    } else {
        r->bad = true;
    }
    r->depth--;
    return value;
}

static int64_t combine(struct sum_reader *r, char sign, int64_t a, int64_t b)
{
    int64_t result = 0;
    switch (sign) {
    case '*': r->bad |= __builtin_mul_overflow(a, b, &result); break;
    case '+': r->bad |= __builtin_add_overflow(a, b, &result); break;
    case '-': r->bad |= __builtin_sub_overflow(a, b, &result); break;
    default: r->bad |= b == 0 || (a == INT64_MIN && b == -1); result = r->bad ? 0 : sign == '/' ? a / b : a % b;
    }
    return result;
}

static int64_t read_product(struct sum_reader *r)
{
    int64_t value = read_operand(r);
    for (skip(r); !r->bad && r->at < r->end && strchr("*/%", *r->at); skip(r)) {
        char sign = *r->at++;
        value = combine(r, sign, value, read_operand(r));
    }
    return value;
}

static int64_t read_sum(struct sum_reader *r)
{
    int64_t value = read_product(r);
    for (skip(r); !r->bad && r->at < r->end && strchr("+-", *r->at); skip(r)) {
        char sign = *r->at++;
        value = combine(r, sign, value, read_product(r));
    }
    return value;
}

bool shell_arithmetic(struct shell_state *state, const char *text, size_t n, shell_expander *expand, int64_t *value)
{
    struct sum_reader r = {.state = state, .expand = expand, .at = text, .end = text + n};
    int64_t result = read_sum(&r);
    skip(&r);
    if (r.bad || r.at < r.end)
        return false;
    *value = result;
    return true;
}
