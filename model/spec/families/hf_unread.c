/* Keys that a family does not read: nothing that changes the answer is dropped in silence. */
#include <stdio.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/families/hf_internal.h"

static const struct yaml_node *list(const struct yaml_node *rows, const char *name)
{
    return yaml_find(yaml_find(rows, "_keys"), name);
}

/* Whether the row has keys inside this one, "rope_parameters.rope_theta". */
static bool reads_inside(const struct yaml_node *row, const char *key)
{
    size_t n = strlen(key);
    const struct yaml_node *keys = yaml_find(row, "keys");
    for (const struct yaml_node *k = keys ? keys->first : NULL; k; k = k->next)
        if (strncmp(k->key, key, n) == 0 && k->key[n] == '.')
            return true;
    return false;
}

static bool reads(const struct yaml_node *row, const char *key)
{
    return yaml_find(yaml_find(row, "keys"), key) || yaml_find(yaml_find(row, "not_modelled"), key) || reads_inside(row, key);
}

bool hf_understands(const struct yaml_node *rows, const struct yaml_node *row, const char *key)
{
    return reads(row, key) || hf_matches(list(rows, "ignored"), key) || hf_matches(list(rows, "of_the_checkpoint"), key);
}

/* A part of its own, which hf_towers reports. */
static bool is_part(const struct yaml_node *value)
{
    size_t n = strlen(value->key);
    return value->kind == YAML_MAPPING && n > 7 && strcmp(value->key + n - 7, "_config") == 0;
}

static bool is_structure(const struct yaml_node *rows, const struct yaml_node *row, const struct yaml_node *value)
{
    return !reads(row, value->key) && !hf_is_neutral(value) && hf_matches(list(rows, "structure"), value->key) &&
           !hf_matches(list(rows, "ignored"), value->key);
}

int hf_lost(const struct yaml_node *rows, const struct yaml_node *row, const struct yaml_node *config, char *words, size_t size)
{
    int n = 0;
    words[0] = '\0';
    for (const struct yaml_node *value = config->first; value; value = value->next)
        if (is_structure(rows, row, value) && n++ < 4)
            text_append(words, size, "%s%s", n > 1 ? ", " : "", value->key);
    if (n > 4)
        text_append(words, size, " and %d more", n - 4);
    return n;
}

static void report_not_modelled(const struct hf_reading *r, const struct yaml_node *config)
{
    const struct yaml_node *known = yaml_find(r->row, "not_modelled");
    for (const struct yaml_node *key = known ? known->first : NULL; key; key = key->next) {
        const struct yaml_node *value = hf_find(config, key->key);
        if (value && !hf_is_neutral(value))
            diag_note(r->diags, value->at, "%s: not modelled%s%s", key->key, *key->text ? ": " : "", key->text);
    }
}

static void report_unread(const struct hf_reading *r, const struct yaml_node *config, const char *part)
{
    for (const struct yaml_node *value = config->first; value; value = value->next) {
        if (hf_is_neutral(value) || is_part(value) || hf_understands(r->rows, r->row, value->key))
            continue;
        if (value->kind == YAML_SCALAR && value->quoted && !is_structure(r->rows, r->row, value))
            continue; /* a word is a name or a choice between implementations */
        diag_warning(r->diags, value->key_at,
                     "%s%s: unknown key of this model_type, which msim leaves out; it may change parameters or time", part,
                     value->key);
    }
}

void hf_unread(struct hf_reading *r)
{
    const struct yaml_node *always = yaml_find(r->row, "always");
    report_not_modelled(r, r->config);
    if (always)
        diag_note(r->diags, r->config->at, "not modelled: %s", always->text);
    report_unread(r, r->config, "");
    if (r->file == r->config)
        return;
    for (const struct yaml_node *value = r->file->first; value; value = value->next)
        if (!hf_is_neutral(value) && hf_matches(list(r->rows, "structure"), value->key) &&
            !hf_matches(list(r->rows, "ignored"), value->key) && !reads(r->row, value->key))
            diag_warning(r->diags, value->key_at, "%s: unknown key outside the text part, which msim leaves out", value->key);
}
