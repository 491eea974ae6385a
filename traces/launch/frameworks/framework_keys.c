/* framework_keys.c - the keys of a configuration as words of a job. */
#include "traces/launch/frameworks/framework_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_arguments.h"

/* --- one key --- */

/* What a value that is another key's stands for: ${a.b}, or ${.b} beside the key at `path` and ${..b} above it; NULL where nobody
 * says. */
static const struct yaml_node *follow(const struct yaml_node *root, const struct yaml_node *node, const char *path)
{
    enum { REFERENCES_MAX = 8 };
    char whole[160];
    for (int i = 0; node && i < REFERENCES_MAX; i++) {
        size_t n = node->kind == YAML_SCALAR ? strlen(node->text) : 0;
        if (n < 4 || strncmp(node->text, "${", 2) != 0 || node->text[n - 1] != '}')
            return node;
        const char *name = node->text + 2;
        snprintf(whole, sizeof whole, "%s", *name == '.' ? path : "");
        for (; *name == '.'; name++) {
            char *dot = strrchr(whole, '.');
            *(dot ? dot : whole) = '\0';
        }
        size_t used = strlen(whole);
        snprintf(whole + used, sizeof whole - used, "%s%.*s", used ? "." : "", (int)strcspn(name, "}"), name);
        const struct yaml_node *meant = framework_find(root, whole);
        if (!meant)
            return node;
        node = meant;
        path = whole;
    }
    return node;
}

/* Does a value, or one of a list's, say this word? */
static bool says(const struct yaml_node *node, const char *word)
{
    if (node->kind == YAML_SCALAR)
        return strcmp(node->text, word) == 0;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        if (item->kind == YAML_SCALAR && strcmp(item->text, word) == 0)
            return true;
    return false;
}

static bool is_listed(const struct framework_key *key, const char *text)
{
    for (const struct framework_word *w = key->words; w->word; w++)
        if (strcmp(w->word, text) == 0)
            return true;
    return false;
}

/* Words of a list, each by itself or (full_shard auto_wrap) several in one, that the key does not have. */
static void find_strange(struct launch_words *words, const struct yaml_node *node, const struct framework_key *key)
{
    for (const struct yaml_node *item = node->first; item; item = item->next)
        if (item->kind == YAML_SCALAR && !is_listed(key, item->text))
            framework_add_strange(words, item, key->path, item->text);
}

static void read_key(struct launch_words *words, const struct yaml_node *root, const struct framework *framework,
                     const struct framework_key *key)
{
    const struct yaml_node *node = follow(root, framework_find(root, key->path), key->path);
    if (key->inside) {
        if (node && node->kind != YAML_SCALAR && node->first)
            framework_add(words, node, key->path, key->name, "several");
        return;
    }
    if (!node || node->kind == YAML_MAPPING || yaml_is_null(node) || (node->kind == YAML_SEQUENCE && !node->first))
        return;
    const char *text = framework_text(words, node);
    bool known = !key->words || key->name || node->kind != YAML_SCALAR;
    for (const struct framework_word *w = key->words; w && w->word; w++)
        if (says(node, w->word)) {
            known = true;
            framework_add(words, node, key->path, w->name ? w->name : "", w->name ? w->value : "");
        }
    if (key->words && node->kind == YAML_SEQUENCE)
        find_strange(words, node, key);
    if (strcmp(text, "auto") == 0 || (framework->unset && strcmp(text, framework->unset) == 0)) /* as others say */
        return;
    if (!known)
        framework_add_strange(words, node, key->path, text);
    if (key->name)
        framework_add(words, node, key->path, key->name, !key->opposite ? text : framework_is_true(text) ? "False" : "True");
    if (key->name && strcmp(key->name, "num_query_groups") == 0)
        framework_add(words, node, key->path, "group_query_attention", "True");
}

/* The keys of a mapping that are called as Megatron-LM's program calls its arguments. */
static void read_dests(struct launch_words *words, const struct yaml_node *mapping, const char *path)
{
    for (const struct yaml_node *node = mapping->first; node; node = node->next) {
        char text[160];
        if (node->kind == YAML_MAPPING || yaml_is_null(node) || megatron_find(node->key, true) < 0)
            continue;
        snprintf(text, sizeof text, "%s.%.80s", path, node->key);
        const char *whole = launch_text(words, text, strlen(text));
        framework_add(words, node, whole, strrchr(whole, '.') + 1, framework_text(words, node));
        if (strcmp(node->key, "num_query_groups") == 0)
            framework_add(words, node, whole, "group_query_attention", "True");
    }
}

/* One such mapping, or a list of them. */
static void read_group(struct launch_words *words, const struct yaml_node *root, const char *path)
{
    const struct yaml_node *group = framework_find(root, path);
    if (group && group->kind == YAML_MAPPING)
        read_dests(words, group, path);
    for (const struct yaml_node *item = group && group->kind == YAML_SEQUENCE ? group->first : NULL; item; item = item->next)
        if (item->kind == YAML_MAPPING)
            read_dests(words, item, path);
}

/* --- what is not one key --- */

static int64_t number_of(const struct yaml_node *root, const char *path)
{
    const struct yaml_node *node = framework_find(root, path);
    return node && node->kind == YAML_SCALAR ? strtoll(node->text, NULL, 10) : 0;
}

/* nanotron's batch, OLMo's width and budget, the type beside DeepSpeed's autocast. */
static const char *const factors[] = {"tokens.micro_batch_size", "tokens.batch_accumulation_per_replica", "parallelism.dp"};
static const char *const widths[] = {"model.mlp_hidden_size", "model.mlp_ratio"};
static const char *const autocast[] = {"torch_autocast.enabled", "torch_autocast.dtype"};
static const char *const budget[] = {"max_duration", "trainer.max_duration.value", "trainer.max_duration.unit"};

bool framework_looks_at(const char *path)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(path, factors[i]) == 0 || strcmp(path, budget[i]) == 0 ||
            (i < 2 && (strcmp(path, widths[i]) == 0 || strcmp(path, autocast[i]) == 0)))
            return true;
    return strcmp(path, "model.activation_type") == 0 || strcmp(path, "model.d_model") == 0;
}

/* A name itself, what begins with one ('*' behind it), or is inside a mapping ('.'). */
bool framework_ignores(const struct framework *f, const char *path)
{
    for (const char *const *name = f->ignored; name && *name; name++) {
        size_t n = strlen(*name);
        char last = (*name)[n - 1];
        bool whole = strcmp(*name, path) == 0 || (last == '.' && strncmp(*name, path, n - 1) == 0 && path[n - 1] == '\0');
        if (whole || (last == '*' && strncmp(*name, path, n - 1) == 0))
            return true;
    }
    return false;
}

/* By itself in bf16, as the table of keys has it. */
static void read_autocast(struct launch_words *words, const struct yaml_node *root)
{
    static const char *const halves[] = {"float16", "fp16", "half", "torch.float16", "torch.half"};
    const struct yaml_node *enabled = framework_find(root, autocast[0]), *type = framework_find(root, autocast[1]);
    if (!enabled || enabled->kind != YAML_SCALAR || !framework_is_true(enabled->text) || !type)
        return;
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++)
        if (says(type, halves[i])) {
            framework_add(words, type, autocast[1], "bf16", "False");
            framework_add(words, type, autocast[1], "grad_reduce_in_bf16", "False");
            framework_add(words, type, autocast[1], "fp16", "True");
        }
}

/* Batches that are given by their factors. */
static void read_accumulation(struct launch_words *words, const struct yaml_node *root)
{
    char text[32];
    int64_t product = 1;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(product, number_of(root, factors[i]), &product))
            return;
    const struct yaml_node *node = framework_find(root, factors[1]);
    if (!node || product <= 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)product);
    framework_add(words, node, factors[1], "global_batch_size", launch_text(words, text, strlen(text)));
}

/* OLMo counts what goes into a gated MLP's activation as one width: both halves. */
static void read_halves(struct launch_words *words, const struct yaml_node *root)
{
    const struct yaml_node *activation = framework_find(root, "model.activation_type"), *node = NULL;
    char text[32];
    int i = 0;
    while (i < 2 && !(node = framework_find(root, widths[i])))
        i++;
    bool gated = !activation || (activation->kind == YAML_SCALAR && strcmp(activation->text, "swiglu") == 0);
    int64_t width = i == 2 ? 0 : number_of(root, widths[i]);
    if (width <= 0 || __builtin_mul_overflow(width, i == 0 ? 1 : number_of(root, "model.d_model"), &width))
        return;
    snprintf(text, sizeof text, "%lld", (long long)(gated ? width / 2 : width));
    framework_add(words, node, widths[i], "ffn_hidden_size", launch_text(words, text, strlen(text)));
}

/* OLMo's and Composer's budgets: "2e12T" and "5tok" are tokens, "100ba" and a number batches, "9sp" sequences, "1ep" times all of
 * the data, which nobody here knows. */
static void read_duration(struct launch_words *words, const struct yaml_node *root)
{
    static const struct {
        const char *unit, *name;
    } units[] = {{"T", "train_tokens"},      {"tok", "train_tokens"},
                 {"tokens", "train_tokens"}, {"", "train_iters"},
                 {"ba", "train_iters"},      {"steps", "train_iters"},
                 {"sp", "train_samples"},    {"ep", NULL},
                 {"epochs", NULL},           {"dur", NULL}};
    const struct yaml_node *node = framework_find(root, budget[0]), *unit = NULL;
    const char *path = budget[0], *end;
    if (!node && (node = framework_find(root, budget[1]))) {
        path = budget[1];
        unit = framework_find(root, budget[2]);
    }
    if (!node || node->kind != YAML_SCALAR || yaml_is_null(node) || (unit && unit->kind != YAML_SCALAR))
        return;
    const char *text = node->text, *ending = unit ? unit->text : NULL;
    size_t n = strspn(text, "0123456789.eE+_");
    while (n > 0 && !isdigit((unsigned char)text[n - 1]) && text[n - 1] != '.') /* the e of "1ep" */
        n--;
    end = text + n;
    ending = ending ? ending : end;
    for (size_t i = 0; n && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(ending, units[i].unit) == 0) {
            if (units[i].name)
                framework_add(words, node, path, units[i].name, launch_text(words, text, n));
            return;
        }
    framework_add_strange(words, node, path, text);
}

/* NeMo's classes are called Llama31Config405B: a family, with a point between two digits, and a size. */
static void name_of_class(const char *class, char *name, size_t size)
{
    static const char middle[] = "Config";
    const char *dot = strrchr(class, '.'), *family = dot ? dot + 1 : class, *config = strstr(family, middle);
    size_t n = config ? (size_t)(config - family) : strlen(family);
    bool version = n > 1 && isdigit((unsigned char)family[n - 1]) && isdigit((unsigned char)family[n - 2]);
    if (n > 40)
        n = 40;
    snprintf(name, size, "%.*s%s%.*s%s%.40s", (int)(n - version), family, version ? "." : "", version, family + n - version,
             config ? "-" : "", config ? config + strlen(middle) : "");
}

/* A model by its name, of which parts may stand in different keys: llama3 and 8B. */
static void read_model(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    char name[160] = "";
    const struct yaml_node *first = NULL;
    if (framework->described && framework_find(root, framework->described))
        return;
    for (int i = 0; framework->model[i]; i++) {
        const struct yaml_node *part = framework_find(root, framework->model[i]);
        if (!part || part->kind != YAML_SCALAR || yaml_is_null(part))
            return;
        if (framework->unset && strcmp(part->text, framework->unset) == 0)
            return;
        first = first ? first : part;
        size_t used = strlen(name);
        if (framework->described)
            name_of_class(part->text, name, sizeof name);
        else
            snprintf(name + used, sizeof name - used, "%s%.70s", used ? "-" : "", part->text);
    }
    const struct framework_word *w = framework->models;
    while (w && w->word && strcmp(w->word, name) != 0)
        w++;
    const char *known = w && w->word ? w->value : launch_text(words, name, strlen(name));
    if (first)
        framework_add(words, first, framework->model[0], "catalog_model", known);
}

void framework_read_keys(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    for (const char *const *group = framework->groups; group && *group; group++)
        read_group(words, root, *group);
    for (const struct framework_key *key = framework->keys; key->path; key++)
        read_key(words, root, framework, key);
    read_model(words, root, framework);
    read_autocast(words, root);
    read_accumulation(words, root);
    read_halves(words, root);
    read_duration(words, root);
    if (framework->more)
        framework->more(words, root, framework);
}

void framework_read_fixed(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    for (const struct framework_word *w = framework->fixed; w && w->name; w++)
        framework_add(words, root, framework->name, w->name, w->value);
}

void framework_read(struct launch_words *words, const struct yaml_node *root, const struct framework *framework)
{
    framework_read_fixed(words, root, framework);
    framework_read_keys(words, root, framework);
}

/* --- overrides --- */

static bool has_flag(const struct launch_words *words, const char *name)
{
    for (size_t i = 0; i < words->n; i++)
        if (!words->items[i].by_dest && !launch_word_sets(&words->items[i]) && strcmp(words->items[i].name, name) == 0)
            return true;
    return false;
}

/* A key by its path, or one of those flags. */
static bool is_key(const struct launch_word *word, bool flags)
{
    return !word->by_dest && !word->strange && !word->unknown && *word->name &&
           (flags || (word->value && (strchr(word->name, '.') || launch_word_sets(word))));
}

static struct yaml_node *tree_of(const struct launch_words *words, bool flags, struct arena *arena)
{
    enum { PATH_MAX_LENGTH = 120 };
    struct yaml_node *tree = NULL;
    for (size_t i = 0; i < words->n; i++) {
        const struct launch_word *word = &words->items[i];
        if (!is_key(word, flags) || strlen(word->name) > PATH_MAX_LENGTH)
            continue;
        char *value = arena_copy_text(arena, word->value ? word->value : "true");
        if (word->first && strcmp(word->name, "lora_target_modules") != 0 &&
            strcmp(word->name, "lora_modules_to_save") != 0) /* positional arguments stand behind others */
            value[word->first] = '\0';
        struct yaml_node *scalar = yaml_scalar(word->name, value, arena);
        scalar->at = word->at;
        tree = yaml_with(tree, word->name, scalar, arena);
    }
    return tree;
}

/* Of two that know as many paths the one that knows more of their values is meant. */
static size_t score_of(const struct launch_words *words)
{
    size_t score = 0;
    for (size_t i = 0; i < words->n; i++)
        score += words->items[i].strange ? 1 : 2;
    return score;
}

/* The framework that knows most of the paths; NULL: none knows any. */
static const struct framework *framework_of_paths(const struct frameworks *fs, const struct yaml_node *tree, size_t *known)
{
    const struct framework *best = NULL;
    size_t highest = 0;
    *known = 0;
    for (int i = 0; tree && i < fs->n_signed; i++) {
        struct launch_words trial = {0};
        framework_read_keys(&trial, tree, &fs->items[i]);
        if (score_of(&trial) > highest) {
            highest = score_of(&trial);
            *known = trial.n;
            best = &fs->items[i];
        }
        launch_words_free(&trial);
    }
    return best;
}

/* Was a file of Hugging Face's TrainingArguments read, whose keys are its trainers' flags? */
static bool has_trainer_file(const struct launch_words *words)
{
    for (size_t i = 0; i < words->n; i++)
        if (words->items[i].by_dest && words->items[i].spelling && strcmp(words->items[i].spelling, FRAMEWORK_TRAINER) == 0)
            return true;
    return false;
}

/* Are flags keys of a framework's configuration, too: of Hugging Face's trainers, of Colossal-AI's applications? Of the latter
 * not where Megatron-LM knows more of them: a --plugin may be anybody's. */
static bool has_flags(const struct frameworks *fs, const struct launch_words *words)
{
    struct arena arena = {0};
    size_t known = 0;
    bool plugin = has_flag(words, PLUGIN_SIGN);
    if (has_flag(words, FLAGS_SIGN) || has_trainer_file(words))
        return true;
    if (plugin)
        framework_of_paths(fs, tree_of(words, true, &arena), &known);
    arena_free(&arena);
    return plugin && known >= megatron_count_flags(words);
}

size_t framework_count_overrides(const struct frameworks *fs, const struct launch_words *words)
{
    struct arena arena = {0};
    size_t known;
    framework_of_paths(fs, tree_of(words, has_flags(fs, words), &arena), &known);
    arena_free(&arena);
    return known;
}

bool framework_is_told_by_flags(const struct frameworks *fs, const struct launch_words *words)
{
    return has_flags(fs, words);
}

/* Was this word said by one of the words behind `first`? */
static bool is_taken(const struct launch_words *words, size_t first, const char *name)
{
    for (size_t i = first; i < words->n; i++)
        if (words->items[i].spelling && strcmp(words->items[i].spelling, name) == 0)
            return true;
    return false;
}

/* A key that changes nothing; of a command that sets no other key anybody's. */
static bool is_nothing(const struct frameworks *fs, const struct framework *framework, const char *path)
{
    bool ignored = framework && framework_ignores(framework, path);
    for (int i = 0; !framework && i < fs->n_signed; i++)
        ignored |= framework_ignores(&fs->items[i], path);
    return ignored;
}

void framework_take_overrides(const struct frameworks *fs, struct launch_words *words)
{
    bool flags = has_flags(fs, words);
    struct yaml_node *tree = tree_of(words, flags, &words->arena);
    size_t known, kept = 0, first = words->n;
    const struct framework *framework = framework_of_paths(fs, tree, &known);
    bool file = has_trainer_file(words); /* its defaults are already there */
    framework = file && framework ? fs->trainer : framework;
    if (framework && flags && !file)
        framework_read(words, tree, framework);
    else if (framework)
        framework_read_keys(words, tree, framework);
    for (size_t i = 0; i < words->n; i++) {
        struct launch_word *word = &words->items[i];
        word->commanded |= i >= first && !flags;
        bool taken = is_key(word, flags) && (is_taken(words, first, word->name) || is_nothing(fs, framework, word->name));
        if (i >= first || !taken)
            words->items[kept++] = *word;
    }
    words->n = kept;
}

const struct framework *framework_of_overrides(const struct frameworks *fs, const struct launch_words *words)
{
    struct arena arena = {0};
    size_t known;
    const struct framework *framework = framework_of_paths(fs, tree_of(words, has_flags(fs, words), &arena), &known);
    arena_free(&arena);
    return framework;
}

static bool has_signs(const struct framework *f, const struct yaml_node *root)
{
    bool found = f->signs[0] && framework_find(root, f->signs[0]) && framework_find(root, f->signs[1]);
    for (const char *const *sign = f->any_sign; !found && sign && *sign; sign++)
        found = yaml_find(root, *sign) != NULL;
    return found;
}

const struct framework *framework_of_keys(const struct frameworks *fs, const struct yaml_node *root)
{
    for (int i = 0; i < fs->n_signed; i++)
        if (has_signs(&fs->items[i], root))
            return &fs->items[i];
    return NULL;
}
