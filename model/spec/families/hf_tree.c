/* Values of trees, by paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/families/hf_internal.h"

static const struct yaml_node *find(const struct yaml_node *tree, const char *path)
{
    const char *dot = strchr(path, '.');
    char outer[64];
    if (!dot)
        return yaml_find(tree, path);
    snprintf(outer, sizeof outer, "%.*s", (int)(dot - path), path);
    const struct yaml_node *inner = yaml_find(tree, outer);
    return inner && inner->kind == YAML_MAPPING ? find(inner, dot + 1) : NULL;
}

const struct yaml_node *hf_find(const struct yaml_node *tree, const char *path)
{
    const struct yaml_node *value = find(tree, path);
    return value && !yaml_is_null(value) ? value : NULL;
}

double hf_number(const struct yaml_node *value)
{
    const double most = 1e12; /* products of three stay whole numbers of 64 bits in the schema's bounds */
    double number = value && value->kind == YAML_SCALAR ? strtod(value->text, NULL) : 0;
    return number > most ? most : number > -most ? number : -most; /* also of what is no number at all */
}

int64_t hf_integer(const struct yaml_node *tree, const char *path)
{
    return (int64_t)hf_number(hf_find(tree, path));
}

bool hf_true(const struct yaml_node *tree, const char *path)
{
    const struct yaml_node *value = hf_find(tree, path);
    return value && value->kind == YAML_SCALAR && strcmp(value->text, "true") == 0;
}

bool hf_is_neutral(const struct yaml_node *value)
{
    char *end;
    if (value->kind != YAML_SCALAR)
        return !value->first;
    if (yaml_is_null(value) || !*value->text || strcmp(value->text, "false") == 0)
        return true;
    double number = strtod(value->text, &end);
    return !*end && number == 0;
}

void hf_set(struct hf_reading *r, const char *path, const struct yaml_node *value, const char *theirs)
{
    struct yaml_node named = *value;
    named.alias = theirs;
    named.next = NULL;
    r->entry = yaml_with(r->entry, path, &named, r->arena);
}

void hf_set_text(struct hf_reading *r, const char *path, const char *text, const struct yaml_node *from)
{
    struct yaml_node value = *yaml_scalar(from->at.file ? from->at.file : "config", text, r->arena);
    value.at = from->at;
    hf_set(r, path, &value, from->alias);
}

void hf_set_integer(struct hf_reading *r, const char *path, int64_t value, const struct yaml_node *from)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    hf_set_text(r, path, text, from);
}

void hf_remove(struct hf_reading *r, const char *path)
{
    const char *dot = strchr(path, '.');
    char outer[64];
    if (!dot) {
        r->entry = yaml_without(r->entry, path, r->arena);
        return;
    }
    snprintf(outer, sizeof outer, "%.*s", (int)(dot - path), path);
    const struct yaml_node *inner = yaml_find(r->entry, outer);
    if (inner && inner->kind == YAML_MAPPING)
        r->entry = yaml_replace(r->entry, outer, yaml_without(inner, dot + 1, r->arena), r->arena);
}

const struct yaml_node *hf_take(struct hf_reading *r, const char *name)
{
    const struct yaml_node *value = hf_find(r->entry, name);
    r->entry = yaml_without(r->entry, name, r->arena);
    return value;
}

const struct yaml_node *hf_take_single(struct hf_reading *r, const char *name)
{
    const struct yaml_node *value = hf_take(r, name);
    if (!value || value->kind == YAML_SCALAR)
        return value;
    diag_error(r->diags, value->at, "%s is %s; it must be a single value", hf_name(value), yaml_kind_name(value->kind));
    return NULL;
}

const char *hf_name(const struct yaml_node *value)
{
    return value->alias ? value->alias : value->key;
}
