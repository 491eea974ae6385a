#include "traces/launch/launch_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/shell_runner.h"

/* Lines that begin with a flag, as one command. */
static void run_loose(struct runner *r)
{
    if (r->loose.n)
        launch_command_try(&r->state, &r->loose, 0, r->loose.items[0].at, &r->best);
    shell_fields_free(&r->loose);
}

void shell_run_line(struct runner *r, const struct launch_field *line, const struct shell_fields *around)
{
    struct runner *inner = memory_new(1, sizeof *inner);
    enum certainty now = shell_certainty(r);
    size_t n = r->state.n;
    struct shell_variable *kept = memory_new(n + 1, sizeof *kept);
    if (n)
        memcpy(kept, r->state.variables, n * sizeof *kept);
    *inner = (struct runner){
        .lexer = {.name = r->state.name,
                  .text = line->text,
                  .at = line->text,
                  .end = line->text + strlen(line->text),
                  .line = 1,
                  .line_start = line->text},
        .state = r->state,
        .blocks = {{.kind = BLOCK_SHELL, .now = now, .around = now}},
        .n_blocks = 1,
        .chain = RUNS,
        .best = r->best,
        .around = around,
        .depth = r->depth + 1,
    };
    struct diags quiet = {0};
    inner->state.line = line;
    inner->state.line_end = inner->lexer.end;
    inner->reading = &quiet;
    shell_run_script(inner);
    if (quiet.n_errors)
        diag_warning(r->state.diags, line->at, "not all of this line for another shell can be read: %s", quiet.items[0].text);
    diags_free(&quiet);
    run_loose(inner);
    inner->state.line = r->state.line;
    inner->state.line_end = r->state.line_end;
    r->best = inner->best;
    r->state = inner->state;
    if (n)
        memcpy(r->state.variables, kept, n * sizeof *kept);
    r->state.n = n;
    free(kept);
    free(inner->command);
    free(inner);
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

/* One task on a node is what starts the processes there, no process. */
static void drop_lone_tasks(struct launch_words *words)
{
    size_t kept = 0;
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *word = &words->items[i];
        size_t n = !word->value ? 0 : word->first ? word->first : strlen(word->value);
        if (strcmp(word->name, "ntasks-per-node") != 0 || n != 1 || *word->value != '1')
            words->items[kept++] = *word;
    }
    words->n = kept;
}

static bool is_launched(const struct launch_words *words)
{
    bool launched = false;
    for (size_t i = 0; i < words->n; i++)
        launched |= strcmp(words->items[i].name, "launched-by") == 0;
    return launched;
}

static void run(struct runner *r, const struct launch_environment *environment, struct launch_words *words)
{
    set_environment(r, environment);
    set_positional(r);
    shell_slurm(&r->state);
    shell_run_script(r);
    run_loose(r);
    for (size_t i = 0; i < r->best.words.n; i++)
        launch_words_add(words, r->best.words.items[i]);
    if (is_launched(&r->best.words))
        drop_lone_tasks(words);
}

enum status launch_shell_parse(const char *name, const char *bytes, size_t n, const struct launch_environment *environment,
                               struct launch_words *words, struct diags *diags)
{
    struct runner *r = memory_new(1, sizeof *r);
    size_t before = diags->n_errors;
    *r = (struct runner){
        .lexer = {.name = name, .text = bytes, .at = bytes, .end = bytes + n, .line = 1, .line_start = bytes},
        .state = {.words = words, .name = name, .script = bytes, .script_end = bytes + n, .diags = diags},
        .chain = RUNS,
        .reading = diags,
    };
    run(r, environment, words);
    if (diags->n_errors == before && r->best.count == 0)
        diag_error(diags, (struct place){.file = name},
                   "no command here has Megatron-LM's arguments, such as --num-layers, or sets keys of a configuration");
    else if (r->best.rivals > 1 && r->best.count == 2)
        diag_warning(diags, r->best.at, "of %zu commands that name configurations the first is taken", r->best.rivals);
    else if (r->best.rivals > 1)
        diag_warning(diags, r->best.at, "of %zu commands with such arguments this one is taken, which has the most",
                     r->best.rivals);
    if (r->best.program)
        diag_warning(diags, r->best.at,
                     "not modelled: %s (no decoder; a decoder of this shape is taken, each token of which sees "
                     "those before it)",
                     r->best.program);
    free(r->state.variables);
    free(r->state.lines);
    free(r->command);
    free(r->best.words.items);
    free(r);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

enum status launch_shell_words(const char *name, const char *text, struct launch_words *words, struct diags *diags)
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
