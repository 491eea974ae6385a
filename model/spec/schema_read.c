/* schema_read.c - read a mapping into a struct by the rows of a schema, and report all mistakes. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/key_words.h"
#include "model/spec/schema.h"

/* The key as the user knows it. */
static const char *key_of(const struct field *row, const struct yaml_node *value)
{
    return value->alias ? value->alias : row->key;
}

/* "a, b or c", cut with "..." when the buffer is full. */
static void list_choices(const char *const *choices, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; choices[i]; i++) {
        const char *between = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
        int n = snprintf(buffer + used, size - used, "%s%s", between, choices[i]);
        if (n < 0 || (size_t)n >= size - used)
            return;
        used += (size_t)n;
    }
}

static void read_text(const struct field *row, const struct yaml_node *value, char *at, struct diags *diags)
{
    if (strlen(value->text) >= row->size)
        diag_error(diags, value->at, "%s is longer than %zu characters", key_of(row, value), row->size - 1);
    else
        memcpy(at, value->text, strlen(value->text) + 1);
}

/* A port's rate, as "400G" of 400 Gbps; the text itself where it is not that. Returns buffer or text. */
static const char *port_rate(const char *text, char *buffer, size_t size)
{
    size_t n = strlen(text);
    bool bare = n > 1 && (text[n - 1] == 'G' || text[n - 1] == 'T') && n + 4 < size;
    if (!bare)
        return text;
    snprintf(buffer, size, "%sbps", text);
    return buffer;
}

/* The number in its dimension and within its bounds; false after reporting. */
static bool read_number(const struct field *row, const struct yaml_node *value, double *number, struct diags *diags)
{
    char why[160], bound[48];
    char rate[64];
    double parsed;
    if (quantity_parse(row->port ? port_rate(value->text, rate, sizeof rate) : value->text, row->dimension, &parsed, why,
                       sizeof why) != STATUS_OK) {
        diag_error(diags, value->at, "%s: %s", key_of(row, value), why);
        return false;
    }
    if (parsed >= row->min && parsed <= row->max) {
        *number = parsed;
        return true;
    }
    bool low = parsed < row->min;
    quantity_write(low ? row->min : row->max, row->dimension, bound, sizeof bound);
    diag_error(diags, value->at, "%s: %s is too %s; it must be %s %s", key_of(row, value), value->text, low ? "small" : "large",
               low ? "at least" : "at most", bound);
    return false;
}

/* "8k" is 8,000 wherever a number stands; of sequences many mean 8,192 by it. */
static void note_thousands(const struct field *row, const struct yaml_node *value, double number, struct diags *diags)
{
    size_t length = strlen(value->text);
    char last = length ? value->text[length - 1] : '\0';
    double other = last == 'k' ? number / 1e3 * 1024 : last == 'M' ? number / 1e6 * 1048576 : number;
    if (row->binary && other > number)
        diag_note(diags, value->at, "%s: %.20s means %.0f here; write %.0f if that is meant", key_of(row, value), value->text,
                  number, other);
}

static void read_integer(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    double number;
    if (!read_number(row, value, &number, diags))
        return;
    if (number != floor(number))
        diag_error(diags, value->at, "%s: %s is not a whole number", key_of(row, value), value->text);
    else if (row->type == FIELD_INT64)
        *(int64_t *)at = (int64_t)number;
    else
        *(int *)at = (int)number;
    note_thousands(row, value, number, diags);
}

/* YAML 1.1's words for true and false, which many still write; -1: none of them. */
static int truth_of(const char *text)
{
    static const char *const no[] = {"false", "no", "off"}, *const yes[] = {"true", "yes", "on"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, no[i]) == 0)
            return 0;
        if (strcmp(text, yes[i]) == 0)
            return 1;
    }
    return -1;
}

static void read_boolean(const struct field *row, const struct yaml_node *value, bool *at, struct diags *diags)
{
    int truth = truth_of(value->text);
    if (truth >= 0)
        *at = truth;
    else
        diag_error(diags, value->at, "%s: '%.40s' is neither true nor false", key_of(row, value), value->text);
}

/* The choice that a word means: itself, a synonym's, or yes and no by any of their words where these are choices. */
static const char *choice_meant(const struct field *row, const char *text)
{
    int truth = truth_of(text);
    for (size_t i = 0; row->choices[i]; i++)
        if (strcmp(text, row->choices[i]) == 0)
            return text;
    for (size_t i = 0; row->synonyms && row->synonyms[i]; i += 2)
        if (strcmp(text, row->synonyms[i]) == 0)
            return row->synonyms[i + 1];
    for (size_t i = 0; truth >= 0 && row->choices[i]; i++)
        if (strcmp(row->choices[i], truth ? "yes" : "no") == 0)
            return row->choices[i];
    return text;
}

static void read_choice(const struct field *row, const struct yaml_node *value, int *at, struct diags *diags)
{
    size_t n = 0;
    const char *meant = choice_meant(row, value->text);
    for (; row->choices[n]; n++) {
        if (strcmp(meant, row->choices[n]) == 0) {
            *at = (int)n;
            return;
        }
    }
    char known[400];
    list_choices(row->choices, known, sizeof known);
    const char *near = nearest_name(value->text, row->choices, n);
    if (near)
        diag_error(diags, value->at, "%s: unknown '%.40s'; did you mean '%s'? (%s)", key_of(row, value), value->text, near,
                   known);
    else
        diag_error(diags, value->at, "%s: unknown '%.40s'; one of %s", key_of(row, value), value->text, known);
}

void field_read(const struct field *row, const struct yaml_node *value, void *object, struct diags *diags)
{
    char *at = (char *)object + row->offset;
    if (row->type == FIELD_CUSTOM) {
        row->read(row, value, at, diags);
        return;
    }
    enum yaml_kind wanted = row->type == FIELD_GROUP ? YAML_MAPPING : YAML_SCALAR;
    if (value->kind != wanted) {
        diag_error(diags, value->at, "%s is %s; it must be %s", key_of(row, value), yaml_kind_name(value->kind),
                   yaml_kind_name(wanted));
        return;
    }
    switch (row->type) {
    case FIELD_TEXT: read_text(row, value, at, diags); break;
    case FIELD_INT:
    case FIELD_INT64: read_integer(row, value, at, diags); break;
    case FIELD_QUANTITY: {
        double number;
        if (read_number(row, value, &number, diags))
            memcpy(at, &number, sizeof number);
        break;
    }
    case FIELD_BOOL: read_boolean(row, value, (bool *)at, diags); break;
    case FIELD_CHOICE: read_choice(row, value, (int *)at, diags); break;
    case FIELD_GROUP: schema_read(row->group, value, at, diags); break;
    case FIELD_CUSTOM: break;
    }
}

/* The group whose key it is, where it is one group's alone; NULL otherwise. */
static const char *group_of_key(const struct schema *schema, const char *key)
{
    const char *found = NULL;
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct field *row = &schema->rows[i];
        if (row->type != FIELD_GROUP || !schema_find(row->group, key))
            continue;
        if (found)
            return NULL;
        found = row->key;
    }
    return found;
}

static void report_unknown_key(const struct schema *schema, const struct yaml_node *mapping, const struct yaml_node *child,
                               struct diags *diags)
{
    enum { KEYS_MAX = 64 };
    const char *keys[KEYS_MAX];
    size_t n = 0;
    if (diags->n_errors >= DIAGS_MAX) { /* nobody will read it: only count */
        diag_error(diags, child->key_at, "unknown key");
        return;
    }
    for (; n < schema->n_rows && n < KEYS_MAX; n++)
        keys[n] = schema->rows[n].key;
    const char *group = group_of_key(schema, child->key), *advice = schema->advice ? schema->advice(child->key, mapping) : NULL;
    char words[KEY_ADVICE];
    if (!advice && !group)
        advice = key_words_advice(schema->what, child->key, words, sizeof words);
    const char *near = nearest_name(child->key, keys, n);
    if (advice)
        diag_error(diags, child->key_at, "unknown key '%.60s' in %s; %s", child->key, schema->what, advice);
    else if (group)
        diag_error(diags, child->key_at, "unknown key '%.60s' in %s; it belongs to the group '%s': `%s: {%.60s: ...}`",
                   child->key, schema->what, group, group, child->key);
    else if (near)
        diag_error(diags, child->key_at, "unknown key '%.60s' in %s; did you mean '%s'?", child->key, schema->what, near);
    else
        diag_error(diags, child->key_at, "unknown key '%.60s' in %s", child->key, schema->what);
}

/* What the row holds when its key is absent. */
static void read_fallback(const struct schema *schema, const struct field *row, const struct yaml_node *mapping, void *object,
                          struct diags *diags)
{
    if (!row->fallback) {
        diag_error(diags, mapping->at, "%s: '%s' is missing (%s)", schema->what, row->key, row->help);
    } else if (*row->fallback) {
        struct yaml_node value = {.kind = YAML_SCALAR, .text = row->fallback, .at = {.file = "default"}};
        field_read(row, &value, object, diags);
    }
}

void schema_read(const struct schema *schema, const struct yaml_node *mapping, void *object, struct diags *diags)
{
    if (mapping->kind != YAML_MAPPING) {
        diag_error(diags, mapping->at, "%s is %s; it must be a mapping of keys to values", schema->what,
                   yaml_kind_name(mapping->kind));
        return;
    }
    for (const struct yaml_node *child = mapping->first; child; child = child->next) {
        const struct field *row = schema_find(schema, child->key);
        if (!row)
            report_unknown_key(schema, mapping, child, diags);
        else if (!yaml_is_null(child))
            field_read(row, child, object, diags);
        else if (!row->fallback)
            diag_error(diags, child->at, "'%s' has no value (%s)", row->key, row->help);
    }
    for (size_t i = 0; i < schema->n_rows; i++) {
        const struct yaml_node *given = yaml_find(mapping, schema->rows[i].key);
        if (!given || (yaml_is_null(given) && schema->rows[i].fallback))
            read_fallback(schema, &schema->rows[i], mapping, object, diags);
    }
}
