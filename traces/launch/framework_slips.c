#include "traces/launch/framework_slips.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "model/base/units.h"
#include "traces/launch/framework_keys.h"
#include "traces/launch/megatron_arguments.h"

enum { WORDS_MAX = 12, WORD_SIZE = 24, NAME_SIZE_MAX = 96, SLIPS_MAX = 32 };

/* --- two names --- */

struct name_words {
    char of[WORDS_MAX][WORD_SIZE]; /* small letters */
    int n;
};

static struct name_words words_of(const char *name)
{
    struct name_words w = {.n = 0};
    while (*name && w.n < WORDS_MAX) {
        size_t length = strcspn(name, "_-"), kept = length < WORD_SIZE - 1 ? length : WORD_SIZE - 1;
        for (size_t i = 0; i < kept; i++)
            w.of[w.n][i] = (char)tolower((unsigned char)name[i]);
        w.n += length > 0;
        name += length + (name[length] != '\0');
    }
    return w;
}

/* But for underscores and capitals. */
static bool is_same(const char *a, const char *b)
{
    for (;;) {
        a += strspn(a, "_-");
        b += strspn(b, "_-");
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
        a++, b++;
    }
}

/* A word for the other, the longer by its beginning; 0: they are different things. */
static int word_slip(const char *x, const char *y, bool alone)
{
    enum { APART = 2, SHORT = 4, LONG = 6, BEGUN = 3, BEGUN_ALONE = 5 };
    size_t n_x = strlen(x), n_y = strlen(y), least = n_x < n_y ? n_x : n_y;
    if (strpbrk(x, "0123456789") || strpbrk(y, "0123456789"))
        return 0;
    if (least >= (alone ? BEGUN_ALONE : BEGUN) && strncmp(x, y, least) == 0)
        return 1;
    int apart = name_distance(x, y);
    return least >= SHORT && *x == *y && apart <= (least < LONG ? 1 : APART) ? apart : 0;
}

/* The same of as many words. */
static int misspelt(const struct name_words *a, const struct name_words *b)
{
    int sum = 0;
    for (int i = 0; i < a->n; i++) {
        bool same = strcmp(a->of[i], b->of[i]) == 0;
        int slip = same ? 0 : word_slip(a->of[i], b->of[i], a->n == 1);
        if (!same && slip == 0)
            return 0;
        sum += slip;
    }
    return sum;
}

/* Words that the known name has beside these, all of which it has in this order; 0: it does not, or they are too few. */
static int left_out(const struct name_words *name, const struct name_words *known)
{
    int found = 0;
    if (known->n > name->n && (strcmp(known->of[0], "disable") == 0 || strcmp(known->of[0], "no") == 0))
        return 0; /* it would say the opposite */
    for (int i = 0; i < known->n && found < name->n; i++)
        found += strcmp(name->of[found], known->of[i]) == 0;
    return found == name->n && name->n >= 2 && 2 * name->n >= known->n ? known->n - name->n : 0;
}

int framework_slip(const char *name, const char *meant, bool shortened)
{
    const struct name_words a = words_of(name), b = words_of(meant);
    if (strcmp(name, meant) == 0)
        return 0;
    if (is_same(name, meant))
        return 1;
    return a.n == b.n ? misspelt(&a, &b) : shortened ? 2 * left_out(&a, &b) : 0;
}

/* --- a file --- */

struct slip {
    const struct yaml_node *node;
    char meant[NAME_SIZE_MAX];
    int distance;
};

struct slips {
    const struct yaml_node *root;
    const struct framework *framework;
    struct slip items[SLIPS_MAX];
    int n;
};

/* The i-th path that a reader of the framework looks at; NULL behind the last. */
static const char *known_path(const struct framework *f, size_t i)
{
    size_t n_keys = 0, n_model = 0;
    while (f->keys && f->keys[n_keys].path)
        n_keys++;
    if (i < n_keys)
        return f->keys[i].path;
    while (n_model < 3 && f->model[n_model])
        n_model++;
    i -= n_keys;
    return i < n_model ? f->model[i] : i == n_model && f->described ? f->described : NULL;
}

/* A known path, or the beginning of one. */
static bool is_known(const struct framework *f, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; known_path(f, i); i++) {
        const char *known = known_path(f, i);
        if (strncmp(known, path, length) == 0 && (known[length] == '.' || !known[length]))
            return true;
    }
    for (const char *const *group = f->groups; group && *group; group++)
        if (strncmp(*group, path, length) == 0 && ((*group)[length] == '.' || !(*group)[length]))
            return true;
    for (int i = 0; i < 3 && f->signs[i]; i++)
        if (strcmp(f->signs[i], path) == 0)
            return true;
    return framework_looks_at(path);
}

static void note(struct slips *slips, const struct yaml_node *node, const char *meant, size_t length, bool shortened)
{
    char name[NAME_SIZE_MAX];
    snprintf(name, sizeof name, "%.*s", (int)length, meant);
    int distance = framework_slip(node->key, name, shortened), i = 0;
    if (distance == 0)
        return;
    while (i < slips->n && slips->items[i].node != node)
        i++;
    if (i == SLIPS_MAX || (i < slips->n && slips->items[i].distance <= distance))
        return;
    slips->n += i == slips->n;
    slips->items[i] = (struct slip){.node = node, .distance = distance};
    memcpy(slips->items[i].meant, name, sizeof name);
}

/* Keys of a mapping at `path` (of `n` letters), or of those in a list, that nobody knows, for one that is missing there. */
static void compare_with(struct slips *slips, const struct yaml_node *mapping, const char *path, size_t n, const char *missing,
                         size_t length)
{
    const struct yaml_node *item = mapping->kind == YAML_SEQUENCE ? mapping->first : NULL;
    for (; item; item = item->next)
        if (item->kind == YAML_MAPPING)
            compare_with(slips, item, path, n, missing, length);
    for (const struct yaml_node *node = mapping->first; node && mapping->kind == YAML_MAPPING; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        snprintf(whole, sizeof whole, "%.*s%s%.*s", (int)n, path, n ? "." : "", NAME_SIZE_MAX, node->key);
        if (!yaml_is_null(node) && !is_known(slips->framework, whole))
            note(slips, node, missing, length, true);
    }
}

/* Where a path leaves the file. */
static void follow_path(struct slips *slips, const char *path)
{
    const struct yaml_node *node = slips->root;
    const char *at = path;
    while (*at) {
        char part[NAME_SIZE_MAX];
        size_t length = strcspn(at, ".");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        const struct yaml_node *next = node->kind == YAML_SCALAR ? NULL : framework_find(node, part);
        if (!next) {
            compare_with(slips, node, path, at > path ? (size_t)(at - path - 1) : 0, at, length);
            return;
        }
        node = next;
        at += length + (at[length] == '.');
    }
}

static void compare_argument(struct slips *slips, const struct yaml_node *mapping, const char *path, const char *name)
{
    for (const struct yaml_node *node = mapping->first; node; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        snprintf(whole, sizeof whole, "%s.%.*s", path, NAME_SIZE_MAX, node->key);
        if (!yaml_is_null(node) && megatron_find(node->key, true) < 0 && !is_known(slips->framework, whole))
            note(slips, node, name, strlen(name), false);
    }
}

/* Mappings whose keys are Megatron-LM's: of those that describe a job. */
static void follow_group(struct slips *slips, const char *path)
{
    const struct yaml_node *group = framework_find(slips->root, path);
    for (int i = 0; group && i < N_ARGUMENTS; i++) {
        const struct argument_row *row = &megatron_rows[i];
        char name[NAME_SIZE_MAX];
        snprintf(name, sizeof name, "%s", row->dest ? row->dest : row->flag);
        for (char *c = name; *c; c++)
            *c = *c == '-' ? '_' : *c;
        if (!row->key || framework_find(group, name))
            continue;
        if (group->kind == YAML_MAPPING)
            compare_argument(slips, group, path, name);
        for (const struct yaml_node *item = group->kind == YAML_SEQUENCE ? group->first : NULL; item; item = item->next)
            if (item->kind == YAML_MAPPING)
                compare_argument(slips, item, path, name);
    }
}

static bool is_slip(const struct slips *slips, const struct yaml_node *node)
{
    for (int i = 0; i < slips->n; i++)
        if (slips->items[i].node == node)
            return true;
    return false;
}

/* Is a key there that switches nothing on? */
static bool is_off(const struct yaml_node *node)
{
    static const char *const words[] = {"", "false", "False", "none", "None", "0", "0.0", "-1", "-1.0", "default"};
    for (size_t i = 0; node->kind == YAML_SCALAR && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(node->text, words[i]) == 0)
            return true;
    return node->kind != YAML_SCALAR && !node->first;
}

/* What nobody reads of a mapping, down to the mappings that somebody does; in the order of the file. */
static void tell_unknown(const struct slips *slips, const struct yaml_node *mapping, const char *path, const char *file,
                         struct diags *diags)
{
    for (const struct yaml_node *node = mapping->first; node; node = node->next) {
        char whole[2 * NAME_SIZE_MAX];
        int n = snprintf(whole, sizeof whole, "%s%s%s", path, *path ? "." : "", node->key);
        struct place at = {.file = file, .line = node->key_at.line, .column = node->key_at.column};
        if (n >= (int)sizeof whole || yaml_is_null(node) || framework_ignores(slips->framework, whole) || is_slip(slips, node))
            continue;
        if (!is_known(slips->framework, whole) && !is_off(node))
            diag_note(diags, at, "%.120s is unknown to msim and left out", whole);
        else if (is_known(slips->framework, whole) && node->kind == YAML_MAPPING)
            tell_unknown(slips, node, whole, file, diags);
    }
}

void framework_tell_slips(const struct yaml_node *root, const struct framework *framework, const char *file, struct diags *diags)
{
    struct slips slips = {.root = root, .framework = framework};
    for (size_t i = 0; known_path(framework, i); i++)
        follow_path(&slips, known_path(framework, i));
    for (const char *const *group = framework->groups; group && *group; group++)
        follow_group(&slips, *group);
    for (int i = 0; i < slips.n; i++) {
        struct place at = slips.items[i].node->key_at;
        at.file = file;
        diag_warning(diags, at, "%s is unknown to msim and left out; did you mean '%s'?", slips.items[i].node->key,
                     slips.items[i].meant);
    }
    if (framework->ignored)
        tell_unknown(&slips, root, "", file, diags);
}
