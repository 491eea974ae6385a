#include "traces/launch/framework_config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/yaml.h"
#include "traces/launch/framework_tables.h"

bool framework_is_config(const char *path, const char *bytes, size_t n)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    size_t length = strlen(path), blank = 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t end = strlen(endings[i]);
        if (length > end && strcmp(path + length - end, endings[i]) == 0)
            return true;
    }
    while (blank < n && strchr(" \t\r\n#", bytes[blank])) {
        const char *stop = bytes[blank] == '#' ? memchr(bytes + blank, '\n', n - blank) : bytes + blank;
        blank = stop ? (size_t)(stop - bytes) + 1 : n;
    }
    size_t key = blank;
    while (key < n && (isalnum((unsigned char)bytes[key]) || bytes[key] == '_'))
        key++;
    bool names = key > blank && key < n && bytes[key] == ':' && (key + 1 == n || strchr(" \r\n", bytes[key + 1]));
    return names || (blank < n && bytes[blank] == '{');
}

/* --- one key --- */

static const struct yaml_node *find_path(const struct yaml_node *node, const char *path)
{
    char part[64];
    while (node && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof part || node->kind != YAML_MAPPING)
            return NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        node = yaml_find(node, part);
        path += n + (path[n] == '.');
    }
    return node;
}

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
        const struct yaml_node *meant = find_path(root, whole);
        if (!meant)
            return node;
        node = meant;
        path = whole;
    }
    return node;
}

/* A scalar, or scalars between blanks. */
static const char *text_of(struct launch_words *words, const struct yaml_node *node)
{
    if (node->kind == YAML_SCALAR)
        return launch_text(words, node->text, strlen(node->text));
    size_t length = 1;
    for (const struct yaml_node *item = node->first; item; item = item->next)
        length += item->kind == YAML_SCALAR ? strlen(item->text) + 1 : 0;
    char *text = arena_new(&words->arena, length + 1, 1);
    size_t used = 0;
    for (const struct yaml_node *item = node->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR)
            continue;
        if (used)
            text[used++] = ' ';
        memcpy(text + used, item->text, strlen(item->text));
        used += strlen(item->text);
    }
    return text;
}

static void add_word(struct launch_words *words, const struct yaml_node *node, const char *path, const char *name,
                     const char *value)
{
    struct launch_word word = {.name = name, .value = value, .said = path, .at = node->at, .by_dest = true};
    if (strstr(value, "${"))
        word.unknown = "it refers to another key";
    else if (strcmp(value, "???") == 0)
        word.unknown = "it is left open there";
    launch_words_add(words, word);
}

static bool is_true(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "True") == 0;
}

static void read_key(struct launch_words *words, const struct yaml_node *root, const struct framework_key *key)
{
    const struct yaml_node *node = follow(root, find_path(root, key->path), key->path);
    if (!node || node->kind == YAML_MAPPING || yaml_is_null(node))
        return;
    const char *text = text_of(words, node);
    if (strcmp(text, "auto") == 0) /* DeepSpeed: as the arguments say */
        return;
    for (const struct framework_word *w = key->words; w && w->word; w++)
        if (strcmp(w->word, text) == 0)
            add_word(words, node, key->path, w->name, w->value);
    if (key->name)
        add_word(words, node, key->path, key->name, !key->opposite ? text : is_true(text) ? "False" : "True");
    if (key->name && strcmp(key->name, "num_query_groups") == 0)
        add_word(words, node, key->path, "group_query_attention", "True");
}

/* --- what is not one key --- */

static int64_t number_of(const struct yaml_node *root, const char *path)
{
    const struct yaml_node *node = find_path(root, path);
    return node && node->kind == YAML_SCALAR ? strtoll(node->text, NULL, 10) : 0;
}

/* Batches that are given by their factors. */
static void read_accumulation(struct launch_words *words, const struct yaml_node *root)
{
    static const char *const factors[] = {"tokens.micro_batch_size", "tokens.batch_accumulation_per_replica", "parallelism.dp"};
    char text[32];
    int64_t product = 1;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(product, number_of(root, factors[i]), &product))
            return;
    const struct yaml_node *node = find_path(root, factors[1]);
    if (!node || product <= 0)
        return;
    snprintf(text, sizeof text, "%lld", (long long)product);
    add_word(words, node, factors[1], "global_batch_size", launch_text(words, text, strlen(text)));
}

/* --name: value, as Megatron-LM's test recipes have them. */
static void read_arguments(struct launch_words *words, const struct yaml_node *arguments)
{
    for (const struct yaml_node *node = arguments->first; node; node = node->next) {
        if (strncmp(node->key, "--", 2) != 0 || node->kind == YAML_MAPPING)
            continue;
        const char *text = text_of(words, node), *name = launch_text(words, node->key + 2, strlen(node->key + 2));
        bool is_flag = node->kind == YAML_SCALAR && !node->quoted && (is_true(text) || strcmp(text, "false") == 0);
        if (!is_flag || is_true(text))
            launch_words_add(words, (struct launch_word){.name = name, .value = is_flag ? NULL : text, .at = node->at});
    }
}

/* --- files --- */

static const struct framework *find_framework(const struct yaml_node *root)
{
    static const char *const deepspeed[] = {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size",
                                            "gradient_accumulation_steps"};
    for (int i = 0; i < N_FRAMEWORKS; i++) {
        const struct framework *f = &frameworks[i];
        if (f->signs[0] && yaml_find(root, f->signs[0]) && yaml_find(root, f->signs[1]))
            return f;
        for (size_t k = 0; f->companion && k < sizeof deepspeed / sizeof deepspeed[0]; k++)
            if (yaml_find(root, deepspeed[k]))
                return f;
    }
    return NULL;
}

static enum status read_root(const struct yaml_node *root, const char *path, struct launch_words *words, bool *companion,
                             struct diags *diags)
{
    const struct yaml_node *arguments = root->kind == YAML_MAPPING ? yaml_find(root, "MODEL_ARGS") : NULL;
    *companion = false;
    if (arguments && arguments->kind == YAML_MAPPING) {
        read_arguments(words, arguments);
        return STATUS_OK;
    }
    const struct framework *framework = root->kind == YAML_MAPPING ? find_framework(root) : NULL;
    if (!framework) {
        bool ours = root->kind == YAML_MAPPING && yaml_find(root, "cluster");
        diag_error(
            diags, (struct place){.file = path},
            ours ? "this is an experiment of msim already"
                 : "no configuration that msim knows: NeMo has trainer and model, nanotron parallelism and tokens, DeepSpeed "
                   "zero_optimization or batch sizes");
        return STATUS_BAD_INPUT;
    }
    for (const struct framework_word *w = framework->fixed; w && w->name; w++)
        add_word(words, root, framework->name, w->name, w->value);
    for (const struct framework_key *key = framework->keys; key->path; key++)
        read_key(words, root, key);
    if (yaml_find(root, "parallelism"))
        read_accumulation(words, root);
    *companion = framework->companion;
    return STATUS_OK;
}

enum status framework_config_parse(const char *path, const char *bytes, size_t n, struct launch_words *words, bool *companion,
                                   struct diags *diags)
{
    struct arena arena = {0};
    size_t first = words->n;
    const struct yaml_node *root = yaml_parse(path, bytes, n, &arena, diags);
    enum status status = root ? read_root(root, path, words, companion, diags) : STATUS_BAD_INPUT;
    for (size_t i = first; i < words->n; i++)
        words->items[i].at.file = path;
    arena_free(&arena);
    return status;
}
