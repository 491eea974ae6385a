/* Fields of a command line, whose letters keep where they were written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_fields_internal.h"

/* --- places --- */

static void find_lines(struct shell_text *text)
{
    size_t capacity = 0;
    for (const char *p = text->begin; p && p < text->end; p++) {
        text->lines = memory_grow(text->lines, &capacity, text->n_lines + 1, sizeof *text->lines);
        text->lines[text->n_lines++] = p;
        p = memchr(p, '\n', (size_t)(text->end - p));
        if (!p)
            return;
    }
}

const struct shell_text *shell_text_around(const struct shell_state *state, const char *source)
{
    for (int i = 0; source && i < state->n_texts; i++)
        if (source >= state->texts[i].begin && source <= state->texts[i].end)
            return &state->texts[i];
    return NULL;
}

static struct place place_of(struct shell_state *state, const char *source)
{
    const struct shell_text *around = shell_text_around(state, source);
    if (!around)
        return (struct place){.file = state->name};
    struct shell_text *text = &state->texts[around - state->texts];
    if (!text->lines)
        find_lines(text);
    size_t low = 0, high = text->n_lines;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (text->lines[middle] <= source)
            low = middle;
        else
            high = middle;
    }
    if (!text->n_lines)
        return (struct place){.file = text->name};
    return (struct place){text->name, (int)low + 1, (int)(source - text->lines[low]) + 1};
}

/* --- one word --- */

/* Text from `source`, which goes on the segment before where it was written behind it. */
void shell_builder_text(struct shell_builder *g, const char *bytes, size_t n, const char *source, const char *unknown)
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

struct launch_field shell_builder_field(struct shell_builder *g)
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

void shell_builder_free(struct shell_builder *g)
{
    free(g->text);
    free(g->segments);
}

void shell_builder_finish(struct shell_builder *g)
{
    if (!g->open)
        return;
    struct launch_field field = shell_builder_field(g);
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
void shell_builder_slice(struct shell_builder *g, const struct launch_field *field, size_t from, size_t n)
{
    for (size_t i = segment_at(field, from); i < field->n_segments && field->segments[i].from < from + n; i++) {
        const struct launch_segment *s = &field->segments[i];
        size_t end = i + 1 < field->n_segments ? field->segments[i + 1].from : strlen(field->text);
        size_t low = s->from > from ? s->from : from, high = end < from + n ? end : from + n;
        if (low < high)
            shell_builder_text(g, field->text + low, high - low, s->source ? s->source + (s->unknown ? 0 : low - s->from) : NULL,
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
void shell_builder_add(struct shell_builder *g, const char *bytes, size_t n)
{
    size_t offset;
    if (is_of_line(g->state, bytes, &offset))
        shell_builder_slice(g, g->state->line, offset, n);
    else
        shell_builder_text(g, bytes, n, bytes, NULL);
}

/* Where a letter is from in the script; NULL: not from there. */
const char *shell_source_of(const struct shell_state *state, const char *p)
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
    return place_of(state, shell_source_of(state, source));
}

void shell_builder_unknown(struct shell_builder *g, const char *source, const char *format, const char *what, size_t n)
{
    char why[160];
    snprintf(why, sizeof why, format, (int)(n > 60 ? 60 : n), what);
    shell_builder_text(g, UNKNOWN_TEXT, 1, shell_source_of(g->state, source), launch_text(g->state->words, why, strlen(why)));
}

struct launch_field shell_slice(struct shell_state *state, const struct launch_field *field, size_t from, size_t n)
{
    struct shell_builder g = {.state = state};
    shell_builder_slice(&g, field, from, n);
    struct launch_field slice = shell_builder_field(&g);
    shell_builder_free(&g);
    return slice;
}

struct launch_field shell_join(struct shell_state *state, const struct launch_field *a, const struct launch_field *b)
{
    struct shell_builder g = {.state = state};
    shell_builder_slice(&g, a, 0, strlen(a->text));
    shell_builder_slice(&g, b, 0, strlen(b->text));
    struct launch_field joined = shell_builder_field(&g);
    shell_builder_free(&g);
    return joined;
}

struct launch_field shell_join_all(struct shell_state *state, const struct launch_field *items, size_t n)
{
    struct shell_builder g = {.state = state};
    for (size_t i = 0; i < n; i++) {
        if (i)
            shell_builder_text(&g, " ", 1, NULL, NULL);
        shell_builder_slice(&g, &items[i], 0, strlen(items[i].text));
    }
    struct launch_field joined = shell_builder_field(&g);
    shell_builder_free(&g);
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
    struct shell_builder g = {.state = state};
    shell_builder_text(&g, text, strlen(text), NULL, unknown);
    struct launch_field field = shell_builder_field(&g);
    shell_builder_free(&g);
    return field;
}

void shell_set_text(struct shell_state *state, const char *name, size_t n, const char *value)
{
    struct launch_field *item = arena_new(&state->words->arena, 1, sizeof *item);
    *item = shell_field_of(state, value, NULL);
    shell_set(state, name, n, item, 1, false);
}
