#include "cli/step/config_difference.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/spec/transformer.h"

enum { PATH_TEXT = 256 };

static void find(const char *path, const json_t *a, const json_t *b, json_t *found);

/* Names of the same thing, which one of the two may have changed. */
static bool are_alike(const json_t *a, const json_t *b)
{
    const char *name = json_string_value(a), *other = json_string_value(b);
    if (!name || !other)
        return json_equal(a, b);
    size_t n = model_name_length(name);
    return n == model_name_length(other) && strncmp(name, other, n) == 0;
}

/* Are these two of something, by their names? */
static bool are_others(const json_t *a, const json_t *b)
{
    const json_t *name = json_object_get(a, "name"), *other = json_object_get(b, "name");
    return name && other && !are_alike(name, other);
}

static void find_under(const char *path, const char *key, const json_t *a, const json_t *b, bool others, json_t *found)
{
    char under[PATH_TEXT];
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    bool named = json_object_get(x, "name") && json_object_get(y, "name");
    bool name = path[0] && strcmp(key, "name") == 0;
    if (strcmp(key, "source") == 0 || (name && x && y && are_alike(x, y)) || (others && !named && strcmp(key, "name") != 0))
        return;
    snprintf(under, sizeof under, "%s%s%s", path, path[0] ? "." : "", key);
    find(under, x, y, found);
}

/* As deep as experiments are, which a schema bounds. */
static void find(const char *path, const json_t *a, const json_t *b, json_t *found)
{
    const char *key;
    json_t *value;
    if (json_is_object(a) && json_is_object(b)) {
        bool others = path[0] && are_others(a, b);
        json_object_foreach((json_t *)a, key, value) find_under(path, key, a, b, others, found);
        json_object_foreach((json_t *)b, key, value) if (!json_object_get(a, key)) find_under(path, key, a, b, others, found);
    } else if (!json_equal(a, b))
        json_array_append_new(found, json_pack("{s:s, s:O, s:O}", "key", path, "a", a ? (json_t *)a : json_null(), "b",
                                               b ? (json_t *)b : json_null()));
}

json_t *config_differences(const json_t *a, const json_t *b)
{
    json_t *found = json_array();
    find("", a, b, found);
    return found;
}
