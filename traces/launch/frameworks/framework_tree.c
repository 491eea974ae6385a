/* framework_tree.c - finds keys of a configuration, and words of a table, by their names. */
#include "traces/launch/frameworks/framework_tree.h"

#include <stdio.h>
#include <string.h>

/* Of a list of mappings the first that has such a key: callbacks, converters. */
static const struct yaml_node *find_in(const struct yaml_node *node, const char *key)
{
    if (node->kind != YAML_SEQUENCE)
        return yaml_find(node, key);
    for (const struct yaml_node *item = node->first; item; item = item->next)
        if (yaml_find(item, key))
            return yaml_find(item, key);
    return NULL;
}

const struct yaml_node *framework_find(const struct yaml_node *node, const char *path)
{
    char part[64];
    while (node && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof part || node->kind == YAML_SCALAR)
            return NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        node = find_in(node, part);
        path += n + (path[n] == '.');
    }
    return node;
}

/* A scalar, or scalars between blanks. */
const char *framework_text(struct launch_words *words, const struct yaml_node *node)
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

void framework_add(struct launch_words *words, const struct yaml_node *node, const char *path, const char *name,
                   const char *value)
{
    struct launch_word word = {.name = name, .value = value, .spelling = path, .at = node->at, .by_dest = true};
    if (strstr(value, "${"))
        word.unknown = "it refers to another key";
    else if (strcmp(value, "???") == 0)
        word.unknown = "it is left open there";
    launch_words_add(words, word);
}

bool framework_is_true(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "True") == 0;
}

/* A word that the list of a key does not have, and no plain yes or no (lists name only what they change): it stands among the
 * arguments that are unknown. */
void framework_add_strange(struct launch_words *words, const struct yaml_node *node, const char *path, const char *text)
{
    static const char *const plain[] = {"", "true", "True", "false", "False", "none", "None", "no", "off", "0"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (strcmp(text, plain[i]) == 0)
            return;
    char spelling[160];
    int n = snprintf(spelling, sizeof spelling, "%.60s=%.40s", path, text);
    const char *name = launch_text(words, spelling, (size_t)n);
    launch_words_add(words, (struct launch_word){.name = name, .spelling = path, .at = node->at, .strange = true});
}

const struct framework_word *framework_list(const struct framework *framework, const char *name)
{
    for (int i = 0; i < framework->n_lists; i++)
        if (strcmp(framework->lists[i].name, name) == 0)
            return framework->lists[i].words;
    return NULL;
}
