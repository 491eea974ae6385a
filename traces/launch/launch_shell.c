#include "traces/launch/launch_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "traces/launch/launch_command.h"
#include "traces/launch/launch_files.h"
#include "traces/launch/megatron/megatron_log.h"

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
    const char *script; /* its path */
    bool follow;
    struct launch_choice best;
};

/* --- files that the script sources --- */

/* Files that prepare a machine (compilers, modules, Python environments) and set no variable of a job. */
static bool prepares_machine(const char *base)
{
    static const char *const names[] = {"activate",     ".bashrc", "bashrc",       ".bash_profile", ".profile",
                                        "profile",      "bash",    "conda.sh",     "mamba.sh",      "micromamba.sh",
                                        "modules.sh",   "lmod.sh", "z00_lmod.sh",  "setvars.sh",    "set_env.sh",
                                        "hpcx-init.sh", "enable",  "spack-env.sh", "setup-env.sh",  "environment-modules.sh"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(base, names[i]) == 0)
            return true;
    return false;
}

/* The name of the file as far as it is known: of $FOLDER/env.sh only env.sh, which is looked for beside the script. "" if not
 * even that is known. */
static const char *known_name(const struct launch_field *file)
{
    const char *last = strrchr(file->text, *UNKNOWN_TEXT), *slash = last ? strchr(last, '/') : NULL;
    return !last ? file->text : slash ? launch_base(slash) : "";
}

static const char *unread_because(struct launch_words *words, const struct launch_field *file, const char *name,
                                  const char *because)
{
    char why[256];
    int n = snprintf(why, sizeof why, "line %d sources %.80s, which %s", file->at.line, name, because);
    return launch_text(words, why, (size_t)n < sizeof why ? (size_t)n : sizeof why - 1);
}

static bool source_file(void *context, struct shell_state *state, const struct launch_field *file, struct shell_text *text,
                        const char **why)
{
    const struct search *search = context;
    const char *name = known_name(file);
    char path[PATH_MAX], *bytes;
    size_t n;
    if (prepares_machine(launch_base(name)))
        return false;
    enum named_file kind = *name ? launch_file_find(search->script, name, search->follow, path) : NAMED_ABSENT;
    if (kind == NAMED_SPECIAL)
        diag_error(state->diags, file->at, "%.80s %s", name, launch_file_refusal(kind));
    if (kind != NAMED_HERE) {
        *why = unread_because(state->words, file, *name ? name : "a file whose name is unknown", launch_file_refusal(kind));
        if (kind == NAMED_OUTSIDE)
            diag_warning(state->diags, file->at, "%.80s %s", name, launch_file_refusal(kind));
        return false;
    }
    if (file_read(path, SHELL_BYTES_MAX, &bytes, &n, state->diags) != STATUS_OK) {
        *why = unread_because(state->words, file, name, "cannot be read");
        return false;
    }
    diag_note(state->diags, file->at, "%.80s is read, too", path);
    n = launch_plain(bytes, n);
    const char *kept = launch_text(state->words, bytes, n);
    *text = (struct shell_text){.name = launch_text(state->words, path, strlen(path)), .begin = kept, .end = kept + n};
    free(bytes);
    return true;
}

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
    struct search search = {.frameworks = frameworks, .script = name, .follow = environment && environment->follow};
    struct launch_choice *best = &search.best;
    size_t before = diags->n_errors;
    shell_read(name, bytes, n, environment, &(struct shell_listener){try_command, source_file, &search}, words, diags);
    for (size_t i = 0; i < best->words.n; i++)
        launch_words_add(words, best->words.items[i]);
    if (is_launched(&best->words))
        drop_lone_tasks(words);
    report_choice(best, name, diags->n_errors > before, diags);
    free(best->words.items);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}
