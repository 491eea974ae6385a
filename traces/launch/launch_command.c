#include "traces/launch/launch_command.h"

#include <stdlib.h>
#include <string.h>

#include "traces/launch/framework_keys.h"
#include "traces/launch/launch_programs.h"
#include "traces/launch/megatron_arguments.h"

/* What the quotes around a command line kept from one shell is expanded by the other: n bytes that stand so in the script. */
static bool is_kept(const struct shell_state *state, const char *text, size_t n, const char *source)
{
    bool inside = source && source >= state->script && source <= state->script_end;
    return inside && (size_t)(state->script_end - source) >= n && memchr(text, '$', n) && memcmp(source, text, n) == 0;
}

/* A word of a command line within quotes; what is left of backslashes (--nnodes=\$N) is several segments. */
static void add_inner(struct shell_state *state, struct shell_fields *fields, const struct launch_field *word)
{
    size_t n = strlen(word->text);
    if (word->n_segments == 1 && !word->unknown && is_kept(state, word->text, n, word->segments[0].source)) {
        shell_expand(state, word->segments[0].source, n, fields);
        return;
    }
    struct launch_field whole = shell_slice(state, word, 0, 0);
    for (size_t i = 0; i < word->n_segments; i++) {
        const struct launch_segment *s = &word->segments[i];
        size_t length = (i + 1 < word->n_segments ? s[1].from : n) - s->from;
        struct launch_field part = !s->unknown && is_kept(state, word->text + s->from, length, s->source)
                                       ? shell_expand_one(state, s->source, length)
                                       : shell_slice(state, word, s->from, length);
        whole = shell_join(state, &whole, &part);
    }
    shell_fields_add(fields, word->n_segments > 1 ? &whole : word);
}

void launch_command_split(struct shell_state *state, struct shell_fields *fields, const struct launch_field *field)
{
    static const char blanks[] = " \t\r\n";
    bool sets = strstr(field->text, ".yml ") || strstr(field->text, ".yaml "); /* what xpk --command is given */
    bool is_line = sets || strstr(field->text, " --") || (strncmp(field->text, "--", 2) == 0 && strpbrk(field->text, blanks));
    if (!is_line) {
        shell_fields_add(fields, field);
        return;
    }
    for (const char *p = field->text; *(p += strspn(p, blanks));) {
        size_t n = strcspn(p, blanks);
        bool quoted = n > 2 && (*p == '\'' || *p == '"') && p[n - 1] == *p;
        struct launch_field part = shell_slice(state, field, (size_t)(p - field->text) + quoted, n - 2 * quoted);
        if (strcmp(part.text, "\\") != 0) /* at the end of a line */
            add_inner(state, fields, &part);
        p += n;
    }
}

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
            word.name = word.said = name;
            word.value = word.value || word.unknown ? word.value : denied ? "false" : "true";
        }
        words->items[kept++] = word;
    }
    words->n = kept;
}

/* nemo llm pretrain --factory RECIPE: what its recipe does unasked, in front of what is said. */
static void add_recipe(struct launch_words *words, const struct shell_fields *fields)
{
    const struct launch_field *factory = NULL;
    bool pretrains = false;
    for (size_t i = 0; i + 2 < fields->n; i++)
        pretrains |= strcmp(launch_base(shell_text_at(fields, i)), "nemo") == 0 &&
                     strcmp(shell_text_at(fields, i + 1), "llm") == 0 && strcmp(shell_text_at(fields, i + 2), "pretrain") == 0;
    for (size_t i = 0; pretrains && i < fields->n && !factory; i++)
        factory = strncmp(shell_text_at(fields, i), "--factory", strlen("--factory")) == 0 ? &fields->items[i] : NULL;
    for (const struct framework_word *w = framework_nemo_recipe; factory && w->name; w++)
        launch_words_add(words, (struct launch_word){
                                    .name = w->name, .value = w->value, .said = "--factory", .at = factory->at, .by_dest = true});
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

void launch_command_try(struct shell_state *state, const struct shell_fields *given, size_t n_around, struct place at,
                        struct launch_choice *best)
{
    struct shell_fields fields = {0};
    for (size_t i = n_around; i < given->n; i++)
        launch_command_split(state, &fields, &given->items[i]);
    struct launch_words trial = {.arena = state->words->arena};
    add_recipe(&trial, &fields);
    launch_words_of_fields(&trial, given->items, n_around);
    size_t keyed = keyed_program(&fields);
    launch_words_of_fields(&trial, fields.items, keyed);
    size_t first = trial.n;
    if (keyed < fields.n)
        launch_words_of_fields(&trial, fields.items + keyed, fields.n - keyed);
    set_keys(&trial, first);
    const char *program = other_program(&fields);
    drop_settings(&trial);
    size_t count = megatron_count(&trial) + framework_count_overrides(&trial);
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
