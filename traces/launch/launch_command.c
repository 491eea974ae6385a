/* launch_command.c - chooses the command of a script that describes most of a job. */
#include "traces/launch/launch_command.h"

#include <stdlib.h>
#include <string.h>

#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/launch_programs.h"
#include "traces/launch/megatron/megatron_arguments.h"

/* Megatron-LM's parser takes no key=value: beside its flags it is for another program. */
static void drop_settings(struct launch_words *words)
{
    size_t kept = 0;
    if (megatron_count_flags(words) == 0)
        return;
    for (size_t i = 0; i < words->n; i++)
        if (!launch_word_sets(&words->items[i]) || strchr(words->items[i].name, '.'))
            words->items[kept++] = words->items[i];
    words->n = kept;
}

/* Megatron-LM's programs for models that are no decoders. */
static const char *other_program(const struct shell_fields *fields)
{
    static const char *const names[] = {"pretrain_bert.py", "pretrain_t5.py",    "pretrain_ict.py",
                                        "pretrain_vlm.py",  "pretrain_retro.py", "pretrain_vision_classify.py"};
    for (size_t i = 0; i < fields->n; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            const char *slash = strrchr(fields->items[i].text, '/');
            if (strcmp(slash ? slash + 1 : fields->items[i].text, names[k]) == 0)
                return names[k];
        }
    return NULL;
}

/* A program whose flags are keys of the configuration behind it (axolotl train, litgpt finetune_lora), not a folder or a name
 * that is a flag's value; n: none. */
static size_t keyed_program(const struct shell_fields *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        const char *text = fields->items[i].text, *slash = strrchr(text, '/'), *base = slash ? slash + 1 : text;
        const char *before = i ? fields->items[i - 1].text : "", *behind = i + 1 < fields->n ? fields->items[i + 1].text : "";
        bool trains = strcmp(behind, "train") == 0 || strcmp(behind, "pretrain") == 0 || strncmp(behind, "finetune", 8) == 0;
        bool named = strcmp(base, "axolotl") == 0 || strcmp(base, "litgpt") == 0;
        if (strcmp(before, "-m") == 0 ? strcmp(text, "axolotl.cli.train") == 0 || (named && trains)
                                      : *before != '-' && named && trains)
            return i;
    }
    return fields->n;
}

/* --micro-batch-size 4 sets micro_batch_size; --flash-attention and --no-flash-attention (click) are true and false. */
static void set_keys(struct launch_words *words, size_t first)
{
    size_t kept = first;
    for (size_t i = first; i < words->n; i++) {
        struct launch_word word = words->items[i];
        if (strcmp(word.name, "config") == 0 && word.value) /* the file itself */
            continue;
        bool flag = *word.name && !launch_word_sets(&word) && !strchr(word.name, '.');
        bool denied = flag && !word.value && !word.unknown && strncmp(word.name, "no-", 3) == 0;
        char *name = flag ? launch_text(words, word.name + 3 * denied, strlen(word.name + 3 * denied)) : NULL;
        for (char *p = name; p && *p; p++)
            *p = *p == '-' ? '_' : *p;
        if (flag) {
            word.name = word.spelling = name;
            word.value = word.value || word.unknown ? word.value : denied ? "false" : "true";
        }
        words->items[kept++] = word;
    }
    words->n = kept;
}

/* nemo llm pretrain --factory RECIPE: the defaults of its recipe, before the words of the command. */
static void add_recipe(const struct frameworks *fs, struct launch_words *words, const struct shell_fields *fields)
{
    const struct launch_field *factory = NULL;
    bool pretrains = false;
    for (size_t i = 0; i + 2 < fields->n; i++)
        pretrains |= strcmp(launch_base(shell_text_at(fields, i)), "nemo") == 0 &&
                     strcmp(shell_text_at(fields, i + 1), "llm") == 0 && strcmp(shell_text_at(fields, i + 2), "pretrain") == 0;
    for (size_t i = 0; pretrains && i < fields->n && !factory; i++)
        factory = strncmp(shell_text_at(fields, i), "--factory", strlen("--factory")) == 0 ? &fields->items[i] : NULL;
    for (const struct framework_word *w = fs->recipe->fixed; factory && w && w->name; w++)
        launch_words_add(words,
                         (struct launch_word){
                             .name = w->name, .value = w->value, .spelling = "--factory", .at = factory->at, .by_dest = true});
}

/* What stands in front of the shell that a command is given to, in front of it. */
static void add_around(struct shell_fields *fields, const struct shell_fields *given, size_t n_around)
{
    struct shell_fields all = {0};
    for (size_t i = 0; i < n_around; i++)
        shell_fields_add(&all, &given->items[i]);
    for (size_t i = 0; i < fields->n; i++)
        shell_fields_add(&all, &fields->items[i]);
    shell_fields_free(fields);
    *fields = all;
}

void launch_command_try(const struct frameworks *fs, struct shell_state *state, const struct shell_fields *given, size_t n_around,
                        struct place at, struct launch_choice *best)
{
    struct shell_fields fields = {0};
    for (size_t i = n_around; i < given->n; i++)
        shell_split(state, &fields, &given->items[i]);
    struct launch_words trial = {.arena = state->words->arena};
    add_recipe(fs, &trial, &fields);
    launch_words_of_fields(&trial, given->items, n_around);
    size_t keyed = keyed_program(&fields);
    launch_words_of_fields(&trial, fields.items, keyed);
    size_t first = trial.n;
    if (keyed < fields.n)
        launch_words_of_fields(&trial, fields.items + keyed, fields.n - keyed);
    set_keys(&trial, first);
    const char *program = other_program(&fields);
    drop_settings(&trial);
    size_t count = megatron_count(&trial) + framework_count_overrides(fs, &trial);
    size_t named = launch_configuration(state, &fields, &trial);
    count += named;
    add_around(&fields, given, n_around);
    launch_programs_tell(state, &fields, &trial);
    shell_fields_free(&fields);
    state->words->arena = trial.arena;
    best->rivals += count > 2 || named == 2;
    if (count > best->count) {
        free(best->words.items);
        *best = (struct launch_choice){.words = trial, .count = count, .rivals = best->rivals, .at = at, .program = program};
    } else {
        free(trial.items);
    }
}
