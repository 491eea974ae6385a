/* Expansion of a word: quotes, variables, sums. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "traces/launch/shell/shell_fields_internal.h"

/* What a variable holds. Unquoted, its blanks divide fields. */
static void add_value(struct shell_builder *g, const struct launch_field *item, bool quoted)
{
    g->open |= quoted;
    if (quoted || !g->split) {
        shell_builder_slice(g, item, 0, strlen(item->text));
        return;
    }
    for (const char *p = item->text; *p;) {
        size_t blank = strspn(p, " \t\r\n"), word = strcspn(p + blank, " \t\r\n");
        if (blank)
            shell_builder_finish(g);
        shell_builder_slice(g, item, (size_t)(p + blank - item->text), word);
        p += blank + word;
    }
}

/* All items: as fields, or within quotes ("${A[*]}") as one, between blanks. */
static void add_items(struct shell_builder *g, const struct shell_variable *v, bool quoted, bool star)
{
    for (size_t i = 0; i < v->n; i++) {
        if (shell_is_full(g->state, sizeof *v->items))
            return;
        if (i && g->split && !(quoted && star))
            shell_builder_finish(g);
        else if (i)
            shell_builder_text(g, " ", 1, NULL, NULL);
        add_value(g, &v->items[i], quoted);
    }
}

static void expand_part(struct shell_builder *g, const char *p, const char *end, bool quoted);

/* The name in front of what a ${...} says more; within braces the tenth argument has two digits. */
static size_t name_length(const char *p, const char *end, bool braces)
{
    size_t n = 0;
    while (braces && p + n < end && isdigit((unsigned char)p[n]))
        n++;
    if (n)
        return n;
    if (p < end && (isdigit((unsigned char)*p) || strchr("@*#?$!-", *p)))
        return 1;
    while (p + n < end && (isalnum((unsigned char)p[n]) || p[n] == '_'))
        n++;
    return n;
}

static bool is_empty(const struct shell_variable *v)
{
    return !v || v->n == 0 || (v->n == 1 && !v->items[0].unknown && v->items[0].text[0] == '\0');
}

/* ${NAME}, ${NAME[@]}, ${NAME:-default}, ${NAME-default}, ${NAME:=default}, ${NAME:+text}, ${NAME:?message}; of anything else the
 * value is unknown. */
static void expand_braces(struct shell_builder *g, const char *p, const char *end, bool quoted)
{
    const char *whole = p;
    size_t n = name_length(p, end, true);
    const struct shell_variable *v = shell_find(g->state, p, n);
    bool all = false, star = false;
    p += n;
    if (end - p >= 3 && p[0] == '[' && (p[1] == '@' || p[1] == '*') && p[2] == ']') {
        all = true;
        star = p[1] == '*';
        p += 3;
    }
    bool colon = p < end && *p == ':';
    char kind = p + colon < end ? p[colon] : '\0';
    if (kind && strchr("-=+", kind)) {
        bool absent = colon ? is_empty(v) : !v;
        if (absent && kind == '=') {
            struct launch_field *item = arena_new(&g->state->words->arena, 1, sizeof *item);
            *item = shell_expand_one(g->state, p + colon + 1, (size_t)(end - (p + colon + 1)));
            shell_set(g->state, whole, n, item, 1, false);
        }
        if (absent && !v && kind != '+' && g->state->unread) {
            shell_builder_unknown(g, whole, "%.*s", g->state->unread, strlen(g->state->unread));
            return;
        }
        if (absent == (kind != '+')) {
            expand_part(g, p + colon + 1, end, quoted);
            return;
        }
        if (kind == '+')
            return;
    } else if (kind == '?') { /* without a value a shell stops */
        v = colon && is_empty(v) ? NULL : v;
    } else if (p < end) {
        shell_builder_unknown(g, whole, "msim does not expand ${%.*s}", whole, (size_t)(end - whole));
        return;
    }
    if (!v)
        shell_builder_unknown(g, whole, "$%.*s is set nowhere in the script; --env gives it a value", whole, n);
    else if (all)
        add_items(g, v, quoted, star);
    else if (v->n)
        add_value(g, &v->items[0], quoted);
}

static const char *closing(const char *p, const char *end, char open, char close)
{
    int depth = 0;
    for (; p < end; p++) {
        depth += *p == open;
        if (*p == close && --depth == 0)
            return p;
    }
    return end;
}

/* Behind a $...: a variable, an expression, a command. */
static const char *expand_dollar(struct shell_builder *g, const char *p, const char *end, bool quoted)
{
    if (p + 1 < end && p[1] == '{') {
        const char *stop = closing(p + 1, end, '{', '}');
        expand_braces(g, p + 2, stop, quoted);
        return stop < end ? stop + 1 : end;
    }
    if (p + 1 < end && p[1] == '(') {
        const char *stop = closing(p + 1, end, '(', ')');
        int64_t value;
        char text[32];
        if (stop - p > 4 && p[2] == '(' && stop[-1] == ')' &&
            shell_arithmetic(g->state, p + 3, (size_t)(stop - 1 - (p + 3)), shell_expand_one, &value)) {
            snprintf(text, sizeof text, "%lld", (long long)value);
            shell_builder_text(g, text, strlen(text), shell_source_of(g->state, p), NULL);
        } else {
            shell_builder_unknown(g, p, p[2] == '(' ? "%.*s) cannot be worked out" : "it is what a command says: %.*s)", p,
                                  (size_t)(stop - p));
        }
        return stop < end ? stop + 1 : end;
    }
    size_t n = name_length(p + 1, end, false);
    if (n == 0) {
        shell_builder_add(g, p, 1);
        return p + 1;
    }
    const struct shell_variable *v = shell_find(g->state, p + 1, n);
    if (v && (p[1] == '@' || p[1] == '*'))
        add_items(g, v, quoted, p[1] == '*');
    else if (v && v->n)
        add_value(g, &v->items[0], quoted);
    else if (!v)
        shell_builder_unknown(g, p, "$%.*s is set nowhere in the script; --env gives it a value", p + 1, n);
    return p + 1 + n;
}

/* "$@" and "${ARRAY[@]}" are as many fields as there are items, none for none. */
static bool is_whole_array(const char *text, size_t n)
{
    bool braces = n > 6 && text[0] == '$' && text[1] == '{' && memcmp(text + n - 4, "[@]}", 4) == 0;
    return braces || (n == 2 && memcmp(text, "$@", 2) == 0);
}

static const char *expand_double(struct shell_builder *g, const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p != '"') {
        if (*p == '\\' && p + 1 < end) {
            if (p[1] != '\n')
                shell_builder_add(g, strchr("\"\\$`", p[1]) ? p + 1 : p, strchr("\"\\$`", p[1]) ? 1 : 2);
            p += 2;
        } else if (*p == '$') {
            p = expand_dollar(g, p, end, true);
        } else if (*p == '`') {
            shell_builder_unknown(g, p, "it is what a command says%.*s", "", 0);
            for (p++; p < end && *p != '`'; p++)
                ;
            p += p < end;
        } else {
            size_t n = 1;
            while (p + n < end && !strchr("\"\\$`", p[n]))
                n++;
            shell_builder_add(g, p, n);
            p += n;
        }
    }
    g->open |= !is_whole_array(start, (size_t)(p - start));
    return p < end ? p + 1 : end;
}

static const char *expand_single(struct shell_builder *g, const char *p, const char *end)
{
    const char *stop = memchr(p, '\'', (size_t)(end - p));
    stop = stop ? stop : end;
    g->open = true;
    shell_builder_add(g, p, (size_t)(stop - p));
    return stop < end ? stop + 1 : end;
}

static void expand_part(struct shell_builder *g, const char *p, const char *end, bool quoted)
{
    enum { DEPTH_MAX = 16 };
    if (++g->depth > DEPTH_MAX) {
        shell_builder_unknown(g, p, "it expands too deep%.*s", "", 0);
        p = end;
    }
    while (p < end) {
        if (*p == '\\' && p + 1 < end) {
            if (p[1] != '\n')
                shell_builder_add(g, p + 1, 1);
            p += 2;
        } else if (*p == '\'' && !quoted) {
            p = expand_single(g, p + 1, end);
        } else if (*p == '"') {
            p = expand_double(g, p + 1, end);
        } else if (*p == '$') {
            p = expand_dollar(g, p, end, quoted);
        } else if (*p == '`') {
            shell_builder_unknown(g, p, "it is what a command says%.*s", "", 0);
            for (p++; p < end && *p != '`'; p++)
                ;
            p += p < end;
        } else {
            shell_builder_add(g, p, 1);
            p++;
        }
    }
    g->depth--;
}

struct launch_field shell_expand_kept(struct shell_state *state, const char *p, const char *end)
{
    struct shell_builder g = {.state = state};
    shell_builder_add(&g, p, (size_t)(end - p));
    struct launch_field field = shell_builder_field(&g);
    shell_builder_free(&g);
    return field;
}

struct launch_field shell_expand_body(struct shell_state *state, const char *p, const char *end)
{
    struct shell_builder g = {.state = state};
    while (p < end) {
        size_t n = 1;
        if (*p == '\\' && p + 1 < end && strchr("\\$`\n", p[1])) {
            if (p[1] != '\n')
                shell_builder_add(&g, p + 1, 1);
            p += 2;
            continue;
        }
        if (*p == '$') {
            p = expand_dollar(&g, p, end, true);
            continue;
        }
        while (p + n < end && p[n] != '\\' && p[n] != '$')
            n++;
        shell_builder_add(&g, p, n);
        p += n;
    }
    struct launch_field field = shell_builder_field(&g);
    shell_builder_free(&g);
    return field;
}

void shell_expand(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields)
{
    struct shell_builder g = {.state = state, .fields = fields, .split = true};
    expand_part(&g, raw, raw + n, false);
    shell_builder_finish(&g);
    shell_builder_free(&g);
}

struct launch_field shell_expand_one(struct shell_state *state, const char *raw, size_t n)
{
    struct shell_builder g = {.state = state};
    expand_part(&g, raw, raw + n, false);
    struct launch_field field = shell_builder_field(&g);
    shell_builder_free(&g);
    return field;
}

void shell_expand_all(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields)
{
    struct shell_lexer l = {.name = state->name, .text = raw, .at = raw, .end = raw + n, .line = 1, .line_start = raw};
    struct diags quiet = {0};
    for (shell_next(&l, &quiet); l.kind != SHELL_END; shell_next(&l, &quiet))
        if (l.kind == SHELL_WORD)
            shell_expand(state, l.start, l.length, fields);
    diags_free(&quiet);
}
