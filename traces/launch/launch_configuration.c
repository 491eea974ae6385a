/* The configuration that a command names, from which it reads its job. */
#include <stdio.h>
#include <string.h>

#include "traces/launch/launch_programs.h"

static void add(struct launch_words *words, const char *name, const char *value, const char *spelling, struct place at)
{
    launch_words_add(words, (struct launch_word){.name = name, .value = value, .spelling = spelling, .at = at});
}

static bool is_configuration(const char *text)
{
    static const char *const endings[] = {".yaml", ".yml", ".toml", ".json"};
    const char *dot = strrchr(text, '.');
    for (size_t i = 0; dot && dot > text && *text != '-' && !strchr(text, '=') && i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

/* Programs that are called by their names, and the word before their configuration. */
static size_t behind_installed(const struct shell_fields *fields, size_t i)
{
    static const char *const names[] = {"axolotl", "litgpt", "llamafactory-cli", "trl", "olmo"};
    static const char *const verbs[] = {"train", "pretrain", "finetune", "finetune_full", "finetune_lora", "finetune_adapter",
                                        "sft",   "dpo",      "grpo",     "kto",           "reward"};
    for (size_t k = 0; k < sizeof names / sizeof names[0] && !launch_may_be_value(fields, i); k++)
        if (strcmp(launch_base(shell_text_at(fields, i)), names[k]) == 0)
            for (size_t v = 0; v < sizeof verbs / sizeof verbs[0]; v++)
                if (strcmp(shell_text_at(fields, i + 1), verbs[v]) == 0)
                    return i + 2;
    return 0;
}

/* Behind the program that trains: a file or module of Python, or an installed one (*sure); 0: none stands there. */
static size_t behind_program(const struct shell_fields *fields, bool *sure)
{
    size_t at = 0;
    bool launched = launch_programs_find(fields, &at) != NULL;
    for (size_t i = launched ? at : 0; i < fields->n; i++) {
        const char *text = shell_text_at(fields, i), *dot = strrchr(text, '.');
        size_t installed = behind_installed(fields, i);
        bool module = i && strcmp(shell_text_at(fields, i - 1), "-m") == 0 && !(launched && i == at);
        *sure = installed || launched || (module && strcmp(text, "axolotl.cli.train") == 0);
        if (installed)
            return installed;
        if (module || (dot && strcmp(dot, ".py") == 0 && !launch_may_be_value(fields, i)))
            return i + 1;
    }
    return 0;
}

/* Is a name known, or else that of a file that the script writes ($USER/x.yaml)? */
static bool is_told(const struct launch_words *script, const struct launch_field *field, const char *name)
{
    bool told = !field->unknown;
    for (size_t i = 0; script && i < script->n && !told; i++) {
        const struct launch_word *word = &script->items[i];
        told = strcmp(word->name, "written-file") == 0 && word->unknown && strcmp(word->unknown, field->unknown) == 0 &&
               strcmp(word->spelling, name) == 0;
    }
    return told;
}

/* What stands behind one of these flags, --config FILE or --config=FILE, from `first` on; NULL: nothing that is known, or that
 * the script (NULL: none) writes. */
static const char *value_behind(const struct launch_words *script, const struct shell_fields *fields, size_t first,
                                const char *const *flags, size_t *at)
{
    for (size_t i = first; i < fields->n; i++)
        for (const char *const *flag = flags; *flag; flag++) {
            const char *text = shell_text_at(fields, i);
            size_t n = strlen(*flag);
            bool whole = strncmp(text, *flag, n) == 0 && (text[n] == '\0' || text[n] == '=');
            const struct launch_field *value = !whole              ? NULL
                                               : text[n] == '='    ? &fields->items[i]
                                               : i + 1 < fields->n ? &fields->items[i + 1]
                                                                   : NULL;
            const char *name = !value ? "" : text[n] == '=' ? text + n + 1 : value->text;
            if (value && *value->text && is_told(script, value, name)) {
                *at = i;
                return name;
            }
        }
    return NULL;
}

/* Hydra's --config-path FOLDER --config-name NAME; NeMo's programs have theirs in conf, beside themselves. */
static const char *hydra_file(const struct shell_fields *fields, size_t first, size_t *at, struct launch_words *words)
{
    static const char *const names[] = {"--config-name", "-cn", NULL};
    static const char *const folders[] = {"--config-path", "-cp", "--config-dir", NULL};
    size_t ignored;
    const char *name = value_behind(NULL, fields, first, names, at),
               *folder = value_behind(NULL, fields, first, folders, &ignored);
    char path[4096];
    if (!name)
        return NULL;
    folder = folder ? folder : "conf";
    int n = snprintf(path, sizeof path, "%s%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name,
                     is_configuration(name) ? "" : ".yaml");
    const char *program = shell_text_at(fields, first - 1), *base = launch_base(program);
    if (base > program)
        add(words, "configuration-folder", launch_text(words, program, (size_t)(base - program)), "the program",
            fields->items[*at].at);
    return n > 0 && (size_t)n < sizeof path ? launch_text(words, path, (size_t)n) : NULL;
}

size_t launch_configuration(struct shell_state *state, const struct shell_fields *fields, struct launch_words *words)
{
    static const char *const flags[] = {"--config",
                                        "--config-file",
                                        "--config_file",
                                        "--config_path",
                                        "--config-path",
                                        "--job.config_file",
                                        "--job.config-file",
                                        "--cfg",
                                        "--yaml-cfg",
                                        "--yaml",
                                        NULL};
    size_t at = 0;
    bool sure = false;
    const struct launcher *launcher = launch_programs_find(fields, &at);
    size_t first = behind_program(fields, &sure);
    const char *path = NULL;
    if (launcher && strcmp(launcher->name, "run_train.sh") == 0)
        path = shell_variable_text(state, "CONFIG_FILE");
    else if (first == 0)
        return 0;
    else if (first < fields->n && is_configuration(shell_text_at(fields, first)) &&
             is_told(state->words, &fields->items[first], shell_text_at(fields, first)))
        path = shell_text_at(fields, at = first);
    else if (!(path = value_behind(state->words, fields, first, flags, &at)) || !is_configuration(path))
        path = hydra_file(fields, first, &at, words);
    if (!path || !is_configuration(path))
        return 0;
    bool behind = *shell_text_at(fields, at) == '-' && !strchr(shell_text_at(fields, at), '=') && at + 1 < fields->n;
    launch_words_add(words,
                     (struct launch_word){.name = "configuration-file",
                                          .value = launch_text(words, path, strlen(path)),
                                          .spelling = "configuration",
                                          .unknown = strpbrk(path, UNKNOWN_TEXT) ? fields->items[at + behind].unknown : NULL,
                                          .at = fields->items[at].at});
    return sure || launcher ? 2 : 1;
}
