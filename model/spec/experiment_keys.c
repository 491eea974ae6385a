/* experiment_keys.c - keys of an experiment by path: their kinds, and the key that a word means or the nearest one. */
#include <stdio.h>
#include <string.h>

#include "model/spec/experiment.h"
#include "model/spec/layout_request.h"
#include "model/spec/schemas.h"

/* The parts whose keys mean something by themselves. */
static const struct {
    const char *name;
    const struct schema *schema;
} parts[] = {{"job", &job_schema}, {"layout", &layout_schema}, {"cluster", &cluster_schema}, {"model", &transformer_schema}};
enum { N_PARTS = sizeof parts / sizeof parts[0], KEY_SIZE = 64 };

static void key_of_word(const char *word, char *key)
{
    snprintf(key, KEY_SIZE, "%s", word);
    for (char *p = key; *p; p++)
        *p = *p == '-' ? '_' : *p;
}

const char *experiment_key_path(const char *word, char *buffer, size_t size)
{
    char key[KEY_SIZE];
    key_of_word(word, key);
    for (size_t i = 0; i < N_PARTS; i++) {
        const char *meant = parts[i].schema == &layout_schema ? layout_request_key(key) : key;
        if (schema_find(parts[i].schema, meant)) {
            snprintf(buffer, size, "%s.%s", parts[i].name, meant);
            return buffer;
        }
    }
    return NULL;
}

/* The row of "gpu.hbm_rate", groups within groups; NULL: there is none. */
static const struct field *row_of_path(const struct schema *schema, const char *path)
{
    char key[KEY_SIZE];
    const struct field *row = NULL;
    for (size_t length = 0; schema && *path; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        row = schema_find(schema, key);
        schema = row && row->type == FIELD_GROUP ? row->group : NULL;
        if (!schema)
            return path[length] == '\0' ? row : NULL;
    }
    return row;
}

bool experiment_key_quantity(const char *path, enum dimension *dimension)
{
    size_t length = strcspn(path, ".");
    const struct field *row = NULL;
    for (size_t i = 0; i < N_PARTS && path[length]; i++)
        if (strlen(parts[i].name) == length && strncmp(parts[i].name, path, length) == 0)
            row = row_of_path(parts[i].schema, path + length + 1);
    if (!row || row->type != FIELD_QUANTITY)
        return false;
    *dimension = row->dimension;
    return true;
}

const char *experiment_key_instead(const char *path, const char **both)
{
    static const struct {
        const char *one, *other, *both;
    } pairs[] = {{"job.global_batch", "job.batch_tokens", "say the same thing"},
                 {"faults.checkpoint_interval", "faults.checkpoint_steps", "say the same thing"},
                 {"faults.trace", "faults.model", "both say what fails"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        bool one = strcmp(path, pairs[i].one) == 0;
        if (!one && strcmp(path, pairs[i].other) != 0)
            continue;
        if (both)
            *both = pairs[i].both;
        return one ? pairs[i].other : pairs[i].one;
    }
    return NULL;
}

bool experiment_key_counts_parts(const char *path)
{
    return strcmp(path, "job") == 0 || strcmp(path, "faults") == 0;
}

char *experiment_key_under(const char *part, const char *key, struct arena *arena)
{
    size_t size = strlen(part) + strlen(key) + sizeof ".";
    char *path = arena_new(arena, size, 1);
    snprintf(path, size, "%s.%s", part, key);
    return path;
}

const char *experiment_key_long(const char *path, struct arena *arena)
{
    bool of_layout = strncmp(path, "layout.", 7) == 0;
    return of_layout ? experiment_key_under("layout", layout_request_key(path + 7), arena) : path;
}

const char *experiment_key_nearest(const char *word)
{
    enum { KEYS_MAX = 256 };
    const char *keys[KEYS_MAX];
    size_t n = 0;
    char key[KEY_SIZE];
    key_of_word(word, key);
    for (size_t i = 0; i < N_PARTS; i++)
        for (size_t r = 0; r < parts[i].schema->n_rows && n < KEYS_MAX; r++)
            keys[n++] = parts[i].schema->rows[r].key;
    return nearest_name(key, keys, n);
}
