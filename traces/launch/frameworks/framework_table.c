/* framework_table.c - reads one file of a framework's table and reports its mistakes. */
#include <stdlib.h>
#include <string.h>

#include "model/base/units.h"
#include "traces/launch/frameworks/framework_table_internal.h"
#include "traces/launch/megatron/megatron_arguments.h"

struct reader {
    struct arena *arena;
    struct diags *diags;
    const struct framework_shared *shared;
    struct framework_list *lists; /* of the file */
    int n_lists;
};

/* --- pieces --- */

static size_t length_of(const struct yaml_node *node)
{
    size_t n = 0;
    for (const struct yaml_node *item = node ? node->first : NULL; item; item = item->next)
        n++;
    return n;
}

static void wants(struct reader *r, const struct yaml_node *node, const char *what)
{
    diag_error(r->diags, node->at, "%s is wanted here, not %s", what, yaml_kind_name(node->kind));
}

static const char *text_of(struct reader *r, const struct yaml_node *node, const char *what)
{
    if (node->kind == YAML_SCALAR && *node->text)
        return node->text;
    wants(r, node, what);
    return NULL;
}

/* An argument by its name in a log, or the key of a file that belongs to the job (launch_read.h). */
static const char *argument_of(struct reader *r, const struct yaml_node *node)
{
    const char *names[N_ARGUMENTS], *text = text_of(r, node, "an argument of Megatron-LM"), *near;
    char flag[96];
    if (!text || megatron_find(text, true) >= 0 || strcmp(text, "deepspeed_config") == 0)
        return text;
    for (int i = 0; i < N_ARGUMENTS; i++)
        names[i] = megatron_rows[i].dest ? megatron_rows[i].dest : megatron_rows[i].flag;
    snprintf(flag, sizeof flag, "%s", text);
    for (char *p = flag; *p; p++)
        *p = *p == '_' ? '-' : *p;
    near = nearest_name(flag, names, N_ARGUMENTS);
    diag_error(r->diags, node->at, "'%.80s' is no argument of Megatron-LM%s%s%s", text, near ? "; did you mean '" : "",
               near ? near : "", near ? "'?" : "");
    return NULL;
}

/* Texts of a sequence, NULL behind the last. */
static const char *const *texts_of(struct reader *r, const struct yaml_node *node)
{
    const char **texts = arena_new(r->arena, length_of(node) + 1, sizeof *texts);
    size_t n = 0;
    if (node->kind != YAML_SEQUENCE)
        wants(r, node, "a list of texts");
    for (const struct yaml_node *item = node->kind == YAML_SEQUENCE ? node->first : NULL; item; item = item->next)
        if (text_of(r, item, "a text"))
            texts[n++] = item->text;
    texts[n] = NULL;
    return texts;
}

/* --- rows of words --- */

/* [word, argument, value], or [word] alone; of `fixed` [argument, value]. */
static struct framework_word row_of(struct reader *r, const struct yaml_node *node, bool fixed)
{
    struct framework_word row = {0};
    size_t n = length_of(node);
    const struct yaml_node *item = node->first;
    if (node->kind != YAML_SEQUENCE || !(n == (fixed ? 2u : 3u) || (n == 1 && !fixed))) {
        diag_error(r->diags, node->at, "a row is %s", fixed ? "[argument, value]" : "[word, argument, value] or [word]");
        return row;
    }
    if (!fixed) {
        row.word = text_of(r, item, "a word");
        item = item->next;
    }
    if (!item)
        return row;
    row.name = argument_of(r, item);
    row.value = item->next->kind == YAML_SCALAR ? item->next->text : text_of(r, item->next, "a value");
    return row;
}

static const struct framework_list *list_named(const struct framework_list *lists, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(lists[i].name, name) == 0)
            return &lists[i];
    return NULL;
}

/* Rows of a list; of `fixed` also names of sets, whose rows stand in their place. */
static const struct framework_word *rows_of(struct reader *r, const struct yaml_node *node, bool fixed)
{
    struct framework_word *rows = NULL;
    size_t n = 0, capacity = 0;
    if (node->kind != YAML_SEQUENCE)
        wants(r, node, "a list of rows");
    for (const struct yaml_node *item = node->kind == YAML_SEQUENCE ? node->first : NULL; item; item = item->next) {
        bool named = fixed && item->kind == YAML_SCALAR && r->shared;
        const struct framework_list *set = named ? list_named(r->shared->sets, r->shared->n_sets, item->text) : NULL;
        const struct framework_word one[2] = {set || named ? (struct framework_word){0} : row_of(r, item, fixed), {0}};
        if (named && !set)
            diag_error(r->diags, item->at, "shared.yaml has no set '%.80s'", item->text);
        for (const struct framework_word *row = set ? set->words : one; row->word || row->name; row++) {
            rows = memory_grow(rows, &capacity, n + 1, sizeof *rows);
            rows[n++] = *row;
        }
    }
    struct framework_word *kept = arena_new(r->arena, n + 1, sizeof *kept);
    if (n)
        memcpy(kept, rows, n * sizeof *kept);
    kept[n] = (struct framework_word){0};
    free(rows);
    return kept;
}

/* A mapping of lists. */
static struct framework_list *lists_of(struct reader *r, const struct yaml_node *node, bool fixed, int *n)
{
    struct framework_list *lists = arena_new(r->arena, length_of(node) + 1, sizeof *lists);
    *n = 0;
    if (node && node->kind != YAML_MAPPING)
        wants(r, node, "a mapping of lists");
    for (const struct yaml_node *item = node && node->kind == YAML_MAPPING ? node->first : NULL; item; item = item->next)
        lists[(*n)++] = (struct framework_list){item->key, rows_of(r, item, fixed)};
    return lists;
}

/* name: name of the catalog */
static const struct framework_word *models_of(struct reader *r, const struct yaml_node *node)
{
    struct framework_word *models = arena_new(r->arena, length_of(node) + 1, sizeof *models);
    size_t n = 0;
    if (node->kind != YAML_MAPPING)
        wants(r, node, "a mapping of names");
    for (const struct yaml_node *item = node->kind == YAML_MAPPING ? node->first : NULL; item; item = item->next)
        models[n++] = (struct framework_word){.word = item->key, .value = text_of(r, item, "a name of the catalog")};
    models[n] = (struct framework_word){0};
    return models;
}

/* --- keys --- */

static const struct framework_word *words_named(struct reader *r, const struct yaml_node *node)
{
    const char *name = text_of(r, node, "the name of a list of words");
    const struct framework_list *list = name ? list_named(r->lists, r->n_lists, name) : NULL;
    if (name && !list)
        list = list_named(r->shared->lists, r->shared->n_lists, name);
    if (name && !list)
        diag_error(r->diags, node->at, "no list '%.80s' under words, here or in shared.yaml", name);
    return list ? list->words : NULL;
}

/* {key: PATH, is: ARGUMENT}, {key: PATH, not: ARGUMENT}, {key: PATH, inside: ARGUMENT}, {key: PATH, words: LIST}, or with `is`
 * and `words`. */
static struct framework_key key_of(struct reader *r, const struct yaml_node *node)
{
    struct framework_key key = {0};
    int ways = 0;
    for (const struct yaml_node *item = node->kind == YAML_MAPPING ? node->first : NULL; item; item = item->next) {
        if (strcmp(item->key, "key") == 0) {
            key.path = text_of(r, item, "the path of a key");
        } else if (strcmp(item->key, "words") == 0) {
            key.words = words_named(r, item);
        } else if (strcmp(item->key, "is") == 0 || strcmp(item->key, "not") == 0 || strcmp(item->key, "inside") == 0) {
            key.name = argument_of(r, item);
            key.opposite = item->key[0] == 'n';
            key.inside = item->key[1] == 'n';
            ways++;
        } else {
            diag_error(r->diags, item->key_at, "'%.80s' is none of key, is, not, inside, words", item->key);
        }
    }
    if (!key.path || ways > 1 || (!ways && !yaml_find(node, "words")))
        diag_error(r->diags, node->at, "a key is {key: PATH, is: ARGUMENT}, or not, inside or words instead of is");
    return key;
}

static const struct framework_key *keys_of(struct reader *r, const struct yaml_node *node)
{
    struct framework_key *keys = arena_new(r->arena, length_of(node) + 1, sizeof *keys);
    size_t n = 0;
    if (node && node->kind != YAML_SEQUENCE)
        wants(r, node, "a list of keys");
    for (const struct yaml_node *item = node && node->kind == YAML_SEQUENCE ? node->first : NULL; item; item = item->next) {
        keys[n] = key_of(r, item);
        n += keys[n].path != NULL;
    }
    keys[n] = (struct framework_key){0};
    return keys;
}

/* --- a file --- */

static void check_names(struct reader *r, const struct yaml_node *root, const char *const *names, size_t n_names)
{
    for (const struct yaml_node *item = root->first; item; item = item->next) {
        bool known = false;
        for (size_t i = 0; i < n_names; i++)
            known |= strcmp(item->key, names[i]) == 0;
        const char *near = known ? NULL : nearest_name(item->key, names, n_names);
        if (!known)
            diag_error(r->diags, item->key_at, "unknown key '%.80s'%s%s%s", item->key, near ? "; did you mean '" : "",
                       near ? near : "", near ? "'?" : "");
    }
}

static const char *optional(struct reader *r, const struct yaml_node *root, const char *key)
{
    const struct yaml_node *node = yaml_find(root, key);
    return node ? text_of(r, node, "a text") : NULL;
}

static const char *required(struct reader *r, const struct yaml_node *root, const char *key, const char *what)
{
    const char *text = optional(r, root, key);
    if (!yaml_find(root, key))
        diag_error(r->diags, root->at, "no '%s': it says %s", key, what);
    return text;
}

/* name, source, checked, which every file has. */
static void read_head(struct reader *r, const struct yaml_node *root, struct framework *f)
{
    f->name = required(r, root, "name", "how the framework is called");
    f->source = required(r, root, "source", "where the table is from");
    f->checked = required(r, root, "checked", "the version of the program that it was checked against, or no");
    if (f->checked && strcmp(f->checked, "no") == 0)
        f->checked = NULL;
}

static const char *const *optional_texts(struct reader *r, const struct yaml_node *root, const char *key)
{
    const struct yaml_node *node = yaml_find(root, key);
    return node ? texts_of(r, node) : NULL;
}

/* At most two texts. */
static void read_pair(struct reader *r, const struct yaml_node *root, const char *key, const char *pair[3])
{
    const char *const *texts = optional_texts(r, root, key);
    for (int i = 0; texts && texts[i] && i < 3; i++) {
        if (i < 2)
            pair[i] = texts[i];
        else
            diag_error(r->diags, yaml_find(root, key)->at, "%s are at most two keys", key);
    }
}

static void read_form(struct reader *r, const struct yaml_node *root, struct framework *f)
{
    static const char *const forms[] = {[FORM_YAML] = "yaml", [FORM_TOML] = "toml", [FORM_PYTHON] = "python"};
    const char *form = optional(r, root, "form"), *order = optional(r, root, "order"), *more = optional(r, root, "more");
    int found = -1;
    for (int i = FORM_YAML; form && i <= FORM_PYTHON; i++)
        found = strcmp(form, forms[i]) == 0 ? i : found;
    if (form && found < 0)
        diag_error(r->diags, yaml_find(root, "form")->at, "'%.80s' is none of yaml, toml, python", form);
    f->form = found < 0 ? FORM_YAML : (enum framework_form)found;
    f->order = order ? (int)strtol(order, NULL, 10) : 0;
    if (f->signs[0] && (f->order < 1 || f->order > 100000))
        diag_error(r->diags, root->at, "order is a number from 1 to 100000: of frameworks that fit, the lowest is taken");
    f->more = more ? framework_more_named(more) : NULL;
    if (more && !f->more)
        diag_error(r->diags, yaml_find(root, "more")->at, "the program has no function '%.80s'", more);
}

static bool is_mapping(struct reader *r, const struct yaml_node *root)
{
    if (root->kind != YAML_MAPPING)
        wants(r, root, "a table of a framework");
    return root->kind == YAML_MAPPING;
}

void framework_read_table(const struct yaml_node *root, const struct framework_shared *shared, struct framework *f,
                          struct arena *arena, struct diags *diags)
{
    static const char *const names[] = {"name",  "source", "checked", "order", "signs",   "any_sign",  "companion",
                                        "fixed", "keys",   "words",   "model", "groups",  "described", "models",
                                        "unset", "base",   "more",    "form",  "ignored", "written"};
    struct reader r = {.arena = arena, .diags = diags, .shared = shared};
    *f = (struct framework){0};
    if (!is_mapping(&r, root))
        return;
    check_names(&r, root, names, sizeof names / sizeof names[0]);
    read_head(&r, root, f);
    read_pair(&r, root, "signs", f->signs);
    if (f->signs[0] && !f->signs[1])
        f->signs[1] = f->signs[0];
    f->any_sign = optional_texts(&r, root, "any_sign");
    const char *companion = optional(&r, root, "companion");
    f->companion = companion && strcmp(companion, "true") == 0;
    r.lists = lists_of(&r, yaml_find(root, "words"), false, &r.n_lists);
    const struct yaml_node *fixed = yaml_find(root, "fixed"), *models = yaml_find(root, "models");
    f->fixed = fixed ? rows_of(&r, fixed, true) : NULL;
    f->keys = keys_of(&r, yaml_find(root, "keys"));
    f->groups = optional_texts(&r, root, "groups");
    read_pair(&r, root, "model", f->model);
    f->models = models ? models_of(&r, models) : NULL;
    f->described = optional(&r, root, "described");
    f->unset = optional(&r, root, "unset");
    f->base = optional(&r, root, "base");
    f->ignored = optional_texts(&r, root, "ignored");
    f->written = optional_texts(&r, root, "written");
    read_form(&r, root, f);
    f->n_lists = r.n_lists + shared->n_lists;
    f->lists = arena_new(arena, (size_t)f->n_lists + 1, sizeof *f->lists);
    memcpy(f->lists, r.lists, (size_t)r.n_lists * sizeof *f->lists);
    memcpy(f->lists + r.n_lists, shared->lists, (size_t)shared->n_lists * sizeof *f->lists);
}

void framework_read_shared(const struct yaml_node *root, struct framework_shared *shared, struct arena *arena,
                           struct diags *diags)
{
    static const char *const names[] = {"name", "source", "checked", "words", "sets"};
    struct reader r = {.arena = arena, .diags = diags};
    struct framework head;
    *shared = (struct framework_shared){0};
    if (!is_mapping(&r, root))
        return;
    check_names(&r, root, names, sizeof names / sizeof names[0]);
    read_head(&r, root, &head);
    shared->lists = lists_of(&r, yaml_find(root, "words"), false, &shared->n_lists);
    shared->sets = lists_of(&r, yaml_find(root, "sets"), true, &shared->n_sets);
}
