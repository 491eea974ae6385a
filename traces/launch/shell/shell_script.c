#include "traces/launch/shell/shell_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell/shell_internal.h"

/* Lines that begin with a flag, as one command. */
static void run_loose(struct runner *r)
{
    if (r->loose.n)
        r->listener->command(r->listener->context, &r->state, &r->loose, 0, r->loose.items[0].at);
    shell_fields_free(&r->loose);
}

/* Runs a text within this shell: a line, whose letters keep where they are from, or (line NULL) a sourced file. What goes wrong
 * in it is a warning at `at`. */
static void run_inner(struct runner *r, const char *name, const char *text, const char *end, const struct launch_field *line,
                      const struct shell_fields *around, struct place at)
{
    struct runner *inner = memory_new(1, sizeof *inner);
    enum certainty now = shell_certainty(r);
    *inner = (struct runner){
        .lexer = {.name = name, .text = text, .at = text, .end = end, .line = 1, .line_start = text},
        .state = r->state,
        .blocks = {{.kind = BLOCK_SHELL, .now = now, .around = now}},
        .n_blocks = 1,
        .chain = RUNS,
        .listener = r->listener,
        .run_line = r->run_line,
        .run_here = r->run_here,
        .run_file = r->run_file,
        .around = around,
        .depth = r->depth + 1,
    };
    struct diags quiet = {0};
    inner->state.line = line;
    inner->state.line_end = line ? end : NULL;
    inner->reading = &quiet;
    shell_run_script(inner);
    if (quiet.n_errors)
        diag_warning(r->state.diags, at, "not all of this %s can be read: %s", line ? "line for another shell" : "sourced file",
                     quiet.items[0].text);
    diags_free(&quiet);
    run_loose(inner);
    inner->state.line = r->state.line;
    inner->state.line_end = r->state.line_end;
    r->state = inner->state;
    free(inner->command);
    free(inner);
}

/* eval: the line sets variables of this shell. */
static void run_here(struct runner *r, const struct launch_field *line)
{
    run_inner(r, r->state.name, line->text, line->text + strlen(line->text), line, r->around, line->at);
}

static void run_line(struct runner *r, const struct launch_field *line, const struct shell_fields *around)
{
    size_t n = r->state.n;
    struct shell_variable *kept = memory_new(n + 1, sizeof *kept);
    if (n)
        memcpy(kept, r->state.variables, n * sizeof *kept);
    run_inner(r, r->state.name, line->text, line->text + strlen(line->text), line, around, line->at);
    if (n)
        memcpy(r->state.variables, kept, n * sizeof *kept);
    r->state.n = n;
    free(kept);
}

/* source: the file sets variables of this shell. */
static void run_file(struct runner *r, const struct shell_text *text, struct place at)
{
    r->state.texts[r->state.n_texts++] = *text;
    run_inner(r, text->name, text->begin, text->end, NULL, r->around, at);
}

/* --- what surrounds the commands --- */

static void set_environment(struct runner *r, const struct launch_environment *environment)
{
    for (int i = 0; environment && i < environment->n; i++) {
        const char *setting = environment->settings[i], *equals = strchr(setting, '=');
        if (equals)
            shell_set_text(&r->state, setting, (size_t)(equals - setting), equals + 1);
    }
}

/* $#, $@ and $*: the arguments 1, 2, ... as far as they are given. */
static void set_positional(struct runner *r)
{
    enum { POSITIONAL_MAX = 99 };
    struct launch_field *items = arena_new(&r->state.words->arena, POSITIONAL_MAX, sizeof *items);
    size_t n = 0;
    char text[8];
    for (const struct shell_variable *v; n < POSITIONAL_MAX; items[n++] = v->items[0]) {
        snprintf(text, sizeof text, "%zu", n + 1);
        v = shell_find(&r->state, text, strlen(text));
        if (!v)
            break;
    }
    snprintf(text, sizeof text, "%zu", n);
    shell_set_text(&r->state, "#", 1, text);
    shell_set(&r->state, "@", 1, items, n, true);
    shell_set(&r->state, "*", 1, items, n, true);
}

void shell_read(const char *name, const char *bytes, size_t n, const struct launch_environment *environment,
                const struct shell_listener *listener, struct launch_words *words, struct diags *diags)
{
    struct runner *r = memory_new(1, sizeof *r);
    *r = (struct runner){
        .lexer = {.name = name, .text = bytes, .at = bytes, .end = bytes + n, .line = 1, .line_start = bytes},
        .state = {.words = words,
                  .name = name,
                  .texts = {{.name = name, .begin = bytes, .end = bytes + n}},
                  .n_texts = 1,
                  .diags = diags},
        .chain = RUNS,
        .listener = listener,
        .run_line = run_line,
        .run_here = run_here,
        .run_file = run_file,
        .reading = diags,
    };
    set_environment(r, environment);
    set_positional(r);
    shell_slurm(&r->state);
    shell_run_script(r);
    run_loose(r);
    free(r->state.variables);
    for (int i = 0; i < r->state.n_texts; i++)
        free(r->state.texts[i].lines);
    free(r->command);
    free(r);
}

enum status shell_words(const char *name, const char *text, struct launch_words *words, struct diags *diags)
{
    struct shell_state state = {.words = words, .name = name, .diags = diags};
    struct shell_fields fields = {0};
    struct shell_lexer l = {.name = name, .text = text, .at = text, .end = text + strlen(text), .line = 0, .line_start = text};
    size_t before = diags->n_errors;
    for (shell_next(&l, diags); l.kind != SHELL_END; shell_next(&l, diags))
        if (l.kind == SHELL_WORD)
            shell_expand(&state, l.start, l.length, &fields);
    launch_words_of_fields(words, fields.items, fields.n);
    shell_fields_free(&fields);
    free(state.variables);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}
