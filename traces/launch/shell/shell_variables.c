/* A script's variables, and lists of fields. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_state.h"

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

bool shell_is_full(struct shell_state *state, size_t bytes)
{
    bool before = state->expanded > SHELL_EXPANSION;
    state->expanded += bytes;
    if (!before && state->expanded > SHELL_EXPANSION)
        diag_error(state->diags, (struct place){.file = state->name},
                   "variables that grow out of themselves: the script expands to more than %d MiB", SHELL_EXPANSION >> 20);
    return state->expanded > SHELL_EXPANSION;
}

/* --- lists of fields --- */

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
