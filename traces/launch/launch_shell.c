#include "traces/launch/launch_shell.h"

#include <stdlib.h>
#include <string.h>

#include "traces/launch/launch_command.h"

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

struct search {
    const struct frameworks *frameworks;
    struct launch_choice best;
};

static void try_command(void *context, struct shell_state *state, const struct shell_fields *fields, size_t n_around,
                        struct place at)
{
    struct search *search = context;
    launch_command_try(search->frameworks, state, fields, n_around, at, &search->best);
}

static void report_choice(const struct launch_choice *best, const char *name, bool failed, struct diags *diags)
{
    if (!failed && best->count == 0)
        diag_error(diags, (struct place){.file = name},
                   "no command in this file has arguments of Megatron-LM, such as --num-layers, or sets keys of a configuration");
    else if (best->rivals > 1 && best->count == 2)
        diag_warning(diags, best->at, "%zu commands name configurations; msim takes the first", best->rivals);
    else if (best->rivals > 1)
        diag_warning(diags, best->at, "%zu commands have such arguments; msim takes this one, which has the most", best->rivals);
    if (best->program)
        diag_warning(diags, best->at,
                     "not modelled: %s (no decoder; msim assumes a decoder of this shape, in which each token sees "
                     "those before it)",
                     best->program);
}

enum status launch_shell_parse(const struct frameworks *frameworks, const char *name, const char *bytes, size_t n,
                               const struct launch_environment *environment, struct launch_words *words, struct diags *diags)
{
    struct search search = {.frameworks = frameworks};
    struct launch_choice *best = &search.best;
    size_t before = diags->n_errors;
    shell_read(name, bytes, n, environment, &(struct shell_listener){try_command, &search}, words, diags);
    for (size_t i = 0; i < best->words.n; i++)
        launch_words_add(words, best->words.items[i]);
    if (is_launched(&best->words))
        drop_lone_tasks(words);
    report_choice(best, name, diags->n_errors > before, diags);
    free(best->words.items);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}
