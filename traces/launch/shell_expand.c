#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell_state.h"

/* --- variables --- */

struct shell_variable *shell_find(struct shell_state *state, const char *name, size_t n)
{
    for (size_t i = 0; i < state->n; i++)
        if (strlen(state->variables[i].name) == n && memcmp(state->variables[i].name, name, n) == 0)
            return &state->variables[i];
    return NULL;
}

void shell_set(struct shell_state *state, const char *name, size_t n, struct launch_field *items, size_t n_items, bool is_array)
{
    struct shell_variable *v = shell_find(state, name, n);
    if (!v) {
        state->variables = memory_grow(state->variables, &state->capacity, state->n + 1, sizeof *state->variables);
        v = &state->variables[state->n++];
        v->name = launch_text(state->words, name, n);
    }
    v->items = items;
    v->n = n_items;
    v->is_array = is_array;
}

void shell_restore(struct shell_state *state, const char *name, size_t n, const struct shell_variable *old)
{
    struct shell_variable *v = shell_find(state, name, n);
    if (old->items)
        shell_set(state, name, n, old->items, old->n, old->is_array);
    else if (v)
        *v = state->variables[--state->n];
}

const char *shell_variable_text(struct shell_state *state, const char *name)
{
    const struct shell_variable *v = name ? shell_find(state, name, strlen(name)) : NULL;
    return v && v->n && !v->items[0].unknown && *v->items[0].text ? v->items[0].text : NULL;
}

/* --- places --- */

static void find_lines(struct shell_state *state)
{
    size_t capacity = 0;
    for (const char *p = state->script; p && p < state->script_end; p++) {
        state->lines = memory_grow(state->lines, &capacity, state->n_lines + 1, sizeof *state->lines);
        state->lines[state->n_lines++] = p;
        p = memchr(p, '\n', (size_t)(state->script_end - p));
        if (!p)
            return;
    }
}

static struct place place_of(struct shell_state *state, const char *source)
{
    if (!source || source < state->script || source > state->script_end)
        return (struct place){.file = state->name};
    if (!state->lines)
        find_lines(state);
    size_t low = 0, high = state->n_lines;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (state->lines[middle] <= source)
            low = middle;
        else
            high = middle;
    }
    if (!state->n_lines)
        return (struct place){.file = state->name};
    return (struct place){state->name, (int)low + 1, (int)(source - state->lines[low]) + 1};
}

/* --- one word --- */

/* A word as it grows: the field in work, and those before it. */
struct growing {
    struct shell_state *state;
    struct shell_fields *fields;
    char *text;
    size_t n, capacity;
    struct launch_segment *segments;
    size_t n_segments, segments_capacity;
    bool open;  /* there is a field, if an empty one */
    bool split; /* unquoted blanks of what variables hold end fields */
    int depth;  /* of expansions within expansions */
};

bool shell_is_full(struct shell_state *state, size_t bytes)
{
    bool before = state->expanded > SHELL_EXPANSION;
    state->expanded += bytes;
    if (!before && state->expanded > SHELL_EXPANSION)
        diag_error(state->diags, (struct place){.file = state->name},
                   "variables that grow out of themselves: the script expands to more than %d MiB", SHELL_EXPANSION >> 20);
    return state->expanded > SHELL_EXPANSION;
}

/* Text from `source`, which goes on the segment before where it was written behind it. */
static void add_from(struct growing *g, const char *bytes, size_t n, const char *source, const char *unknown)
{
    if (n == 0 || shell_is_full(g->state, n))
        return;
    const struct launch_segment *last = g->n_segments ? &g->segments[g->n_segments - 1] : NULL;
    bool goes_on = last && !last->unknown && !unknown && last->source && last->source + (g->n - last->from) == source;
    if (!goes_on && shell_is_full(g->state, sizeof *g->segments))
        return;
    if (!goes_on) {
        g->segments = memory_grow(g->segments, &g->segments_capacity, g->n_segments + 1, sizeof *g->segments);
        g->segments[g->n_segments++] = (struct launch_segment){g->n, source, unknown};
    }
    g->text = memory_grow(g->text, &g->capacity, g->n + n + 1, 1);
    memcpy(g->text + g->n, bytes, n);
    g->n += n;
    g->open = true;
}

static struct launch_field field_of(struct growing *g)
{
    struct shell_state *state = g->state;
    struct launch_field field = {.text = "", .at = place_of(state, g->n_segments ? g->segments[0].source : NULL)};
    if (!g->n)
        return field;
    struct launch_segment *segments = arena_new(&state->words->arena, g->n_segments, sizeof *segments);
    memcpy(segments, g->segments, g->n_segments * sizeof *segments);
    for (size_t i = 0; i < g->n_segments && !field.unknown; i++)
        field.unknown = segments[i].unknown;
    field.text = launch_text(state->words, g->text, g->n);
    field.segments = segments;
    field.n_segments = g->n_segments;
    return field;
}

static void growing_free(struct growing *g)
{
    free(g->text);
    free(g->segments);
}

static void finish(struct growing *g)
{
    if (!g->open)
        return;
    struct launch_field field = field_of(g);
    shell_fields_add(g->fields, &field);
    g->n = g->n_segments = 0;
    g->open = false;
}

/* The segment of a field in which a letter stands. */
static size_t segment_at(const struct launch_field *field, size_t offset)
{
    size_t low = 0, high = field->n_segments;
    while (high > low + 1) {
        size_t middle = low + (high - low) / 2;
        if (field->segments[middle].from <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A part of a field, with where it is from. */
static void add_slice(struct growing *g, const struct launch_field *field, size_t from, size_t n)
{
    for (size_t i = segment_at(field, from); i < field->n_segments && field->segments[i].from < from + n; i++) {
        const struct launch_segment *s = &field->segments[i];
        size_t end = i + 1 < field->n_segments ? field->segments[i + 1].from : strlen(field->text);
        size_t low = s->from > from ? s->from : from, high = end < from + n ? end : from + n;
        if (low < high)
            add_from(g, field->text + low, high - low, s->source ? s->source + (s->unknown ? 0 : low - s->from) : NULL,
                     s->unknown);
    }
}

/* Offset of a letter in the line that another shell is given; false: it is not of that. */
static bool is_of_line(const struct shell_state *state, const char *p, size_t *offset)
{
    const char *text = state->line ? state->line->text : NULL;
    if (!p || !text || p < text || p > state->line_end)
        return false;
    *offset = (size_t)(p - text);
    return true;
}

/* What stands so in the script, or in the line that is read, whose letters keep where they are from. */
static void add(struct growing *g, const char *bytes, size_t n)
{
    size_t offset;
    if (is_of_line(g->state, bytes, &offset))
        add_slice(g, g->state->line, offset, n);
    else
        add_from(g, bytes, n, bytes, NULL);
}

/* Where a letter is from in the script; NULL: not from there. */
static const char *source_of(const struct shell_state *state, const char *p)
{
    size_t offset;
    if (!is_of_line(state, p, &offset))
        return p;
    const struct launch_field *line = state->line;
    size_t i = segment_at(line, offset);
    const struct launch_segment *s = i < line->n_segments ? &line->segments[i] : NULL;
    return s && s->source ? s->source + (s->unknown ? 0 : offset - s->from) : NULL;
}

struct place shell_place(struct shell_state *state, const char *source)
{
    return place_of(state, source_of(state, source));
}

static void cannot_tell(struct growing *g, const char *source, const char *format, const char *what, size_t n)
{
    char why[160];
    snprintf(why, sizeof why, format, (int)(n > 60 ? 60 : n), what);
    add_from(g, UNKNOWN_TEXT, 1, source_of(g->state, source), launch_text(g->state->words, why, strlen(why)));
}

struct launch_field shell_slice(struct shell_state *state, const struct launch_field *field, size_t from, size_t n)
{
    struct growing g = {.state = state};
    add_slice(&g, field, from, n);
    struct launch_field slice = field_of(&g);
    growing_free(&g);
    return slice;
}

struct launch_field shell_join(struct shell_state *state, const struct launch_field *a, const struct launch_field *b)
{
    struct growing g = {.state = state};
    add_slice(&g, a, 0, strlen(a->text));
    add_slice(&g, b, 0, strlen(b->text));
    struct launch_field joined = field_of(&g);
    growing_free(&g);
    return joined;
}

struct launch_field shell_join_all(struct shell_state *state, const struct launch_field *items, size_t n)
{
    struct growing g = {.state = state};
    for (size_t i = 0; i < n; i++) {
        if (i)
            add_from(&g, " ", 1, NULL, NULL);
        add_slice(&g, &items[i], 0, strlen(items[i].text));
    }
    struct launch_field joined = field_of(&g);
    growing_free(&g);
    return joined;
}

struct launch_field shell_doubt(struct shell_state *state, const struct launch_field *field, const char *why)
{
    struct launch_field doubted = *field;
    struct launch_segment *segments = arena_new(&state->words->arena, field->n_segments + 1, sizeof *segments);
    for (size_t i = 0; i < field->n_segments; i++) {
        segments[i] = field->segments[i];
        segments[i].unknown = segments[i].unknown ? segments[i].unknown : why;
    }
    if (!field->n_segments)
        segments[doubted.n_segments++] = (struct launch_segment){.unknown = why};
    doubted.text = *field->text ? field->text : UNKNOWN_TEXT;
    doubted.segments = segments;
    doubted.unknown = segments[0].unknown;
    return doubted;
}

struct launch_field shell_field_of(struct shell_state *state, const char *text, const char *unknown)
{
    struct growing g = {.state = state};
    add_from(&g, text, strlen(text), NULL, unknown);
    struct launch_field field = field_of(&g);
    growing_free(&g);
    return field;
}

void shell_set_text(struct shell_state *state, const char *name, size_t n, const char *value)
{
    struct launch_field *item = arena_new(&state->words->arena, 1, sizeof *item);
    *item = shell_field_of(state, value, NULL);
    shell_set(state, name, n, item, 1, false);
}

/* What a variable holds. Unquoted, its blanks divide fields. */
static void add_value(struct growing *g, const struct launch_field *item, bool quoted)
{
    g->open |= quoted;
    if (quoted || !g->split) {
        add_slice(g, item, 0, strlen(item->text));
        return;
    }
    for (const char *p = item->text; *p;) {
        size_t blank = strspn(p, " \t\r\n"), word = strcspn(p + blank, " \t\r\n");
        if (blank)
            finish(g);
        add_slice(g, item, (size_t)(p + blank - item->text), word);
        p += blank + word;
    }
}

/* All items: as fields, or within quotes ("${A[*]}") as one, between blanks. */
static void add_items(struct growing *g, const struct shell_variable *v, bool quoted, bool star)
{
    for (size_t i = 0; i < v->n; i++) {
        if (shell_is_full(g->state, sizeof *v->items))
            return;
        if (i && g->split && !(quoted && star))
            finish(g);
        else if (i)
            add_from(g, " ", 1, NULL, NULL);
        add_value(g, &v->items[i], quoted);
    }
}

static void expand_part(struct growing *g, const char *p, const char *end, bool quoted);

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
static void expand_braces(struct growing *g, const char *p, const char *end, bool quoted)
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
        if (absent == (kind != '+')) {
            expand_part(g, p + colon + 1, end, quoted);
            return;
        }
        if (kind == '+')
            return;
    } else if (kind == '?') { /* without a value a shell stops */
        v = colon && is_empty(v) ? NULL : v;
    } else if (p < end) {
        cannot_tell(g, whole, "${%.*s} is more than this reader expands", whole, (size_t)(end - whole));
        return;
    }
    if (!v)
        cannot_tell(g, whole, "$%.*s is set nowhere in the script; --env gives it a value", whole, n);
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
static const char *expand_dollar(struct growing *g, const char *p, const char *end, bool quoted)
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
            shell_arithmetic(g->state, p + 3, (size_t)(stop - 1 - (p + 3)), &value)) {
            snprintf(text, sizeof text, "%lld", (long long)value);
            add_from(g, text, strlen(text), source_of(g->state, p), NULL);
        } else {
            cannot_tell(g, p, p[2] == '(' ? "%.*s) cannot be worked out" : "it is what a command says: %.*s)", p,
                        (size_t)(stop - p));
        }
        return stop < end ? stop + 1 : end;
    }
    size_t n = name_length(p + 1, end, false);
    if (n == 0) {
        add(g, p, 1);
        return p + 1;
    }
    const struct shell_variable *v = shell_find(g->state, p + 1, n);
    if (v && (p[1] == '@' || p[1] == '*'))
        add_items(g, v, quoted, p[1] == '*');
    else if (v && v->n)
        add_value(g, &v->items[0], quoted);
    else if (!v)
        cannot_tell(g, p, "$%.*s is set nowhere in the script; --env gives it a value", p + 1, n);
    return p + 1 + n;
}

/* "$@" and "${ARRAY[@]}" are as many fields as there are items, none for none. */
static bool is_whole_array(const char *text, size_t n)
{
    bool braces = n > 6 && text[0] == '$' && text[1] == '{' && memcmp(text + n - 4, "[@]}", 4) == 0;
    return braces || (n == 2 && memcmp(text, "$@", 2) == 0);
}

static const char *expand_double(struct growing *g, const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p != '"') {
        if (*p == '\\' && p + 1 < end) {
            if (p[1] != '\n')
                add(g, strchr("\"\\$`", p[1]) ? p + 1 : p, strchr("\"\\$`", p[1]) ? 1 : 2);
            p += 2;
        } else if (*p == '$') {
            p = expand_dollar(g, p, end, true);
        } else if (*p == '`') {
            cannot_tell(g, p, "it is what a command says%.*s", "", 0);
            for (p++; p < end && *p != '`'; p++)
                ;
            p += p < end;
        } else {
            size_t n = 1;
            while (p + n < end && !strchr("\"\\$`", p[n]))
                n++;
            add(g, p, n);
            p += n;
        }
    }
    g->open |= !is_whole_array(start, (size_t)(p - start));
    return p < end ? p + 1 : end;
}

static const char *expand_single(struct growing *g, const char *p, const char *end)
{
    const char *stop = memchr(p, '\'', (size_t)(end - p));
    stop = stop ? stop : end;
    g->open = true;
    add(g, p, (size_t)(stop - p));
    return stop < end ? stop + 1 : end;
}

static void expand_part(struct growing *g, const char *p, const char *end, bool quoted)
{
    enum { DEPTH_MAX = 16 };
    if (++g->depth > DEPTH_MAX) {
        cannot_tell(g, p, "it expands too deep%.*s", "", 0);
        p = end;
    }
    while (p < end) {
        if (*p == '\\' && p + 1 < end) {
            if (p[1] != '\n')
                add(g, p + 1, 1);
            p += 2;
        } else if (*p == '\'' && !quoted) {
            p = expand_single(g, p + 1, end);
        } else if (*p == '"') {
            p = expand_double(g, p + 1, end);
        } else if (*p == '$') {
            p = expand_dollar(g, p, end, quoted);
        } else if (*p == '`') {
            cannot_tell(g, p, "it is what a command says%.*s", "", 0);
            for (p++; p < end && *p != '`'; p++)
                ;
            p += p < end;
        } else {
            add(g, p, 1);
            p++;
        }
    }
    g->depth--;
}

struct launch_field shell_expand_kept(struct shell_state *state, const char *p, const char *end)
{
    struct growing g = {.state = state};
    add(&g, p, (size_t)(end - p));
    struct launch_field field = field_of(&g);
    growing_free(&g);
    return field;
}

struct launch_field shell_expand_body(struct shell_state *state, const char *p, const char *end)
{
    struct growing g = {.state = state};
    while (p < end) {
        size_t n = 1;
        if (*p == '\\' && p + 1 < end && strchr("\\$`\n", p[1])) {
            if (p[1] != '\n')
                add(&g, p + 1, 1);
            p += 2;
            continue;
        }
        if (*p == '$') {
            p = expand_dollar(&g, p, end, true);
            continue;
        }
        while (p + n < end && p[n] != '\\' && p[n] != '$')
            n++;
        add(&g, p, n);
        p += n;
    }
    struct launch_field field = field_of(&g);
    growing_free(&g);
    return field;
}

void shell_expand(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields)
{
    struct growing g = {.state = state, .fields = fields, .split = true};
    expand_part(&g, raw, raw + n, false);
    finish(&g);
    growing_free(&g);
}

struct launch_field shell_expand_one(struct shell_state *state, const char *raw, size_t n)
{
    struct growing g = {.state = state};
    expand_part(&g, raw, raw + n, false);
    struct launch_field field = field_of(&g);
    growing_free(&g);
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

void shell_fields_add(struct shell_fields *fields, const struct launch_field *field)
{
    fields->items = memory_grow(fields->items, &fields->capacity, fields->n + 1, sizeof *fields->items);
    fields->items[fields->n++] = *field;
}

void shell_fields_free(struct shell_fields *fields)
{
    free(fields->items);
    *fields = (struct shell_fields){0};
}

const char *shell_text_at(const struct shell_fields *fields, size_t i)
{
    return i < fields->n ? fields->items[i].text : "";
}
