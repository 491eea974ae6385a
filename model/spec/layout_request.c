/* layout_request.c - the layout of an experiment: from a text or a mapping to a request, and back to JSON. */
#include "model/spec/layout_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/json_text.h"
#include "model/spec/layout_items.h"
#include "model/spec/layout_request_internal.h"
#include "model/spec/schemas.h"

static struct place inside(struct place at, size_t offset, bool quoted)
{
    if (at.line > 0)
        at.column += (int)offset + quoted;
    return at;
}

static struct yaml_node *auto_item(struct place at, struct arena *arena)
{
    struct yaml_node *node = arena_new(arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = YAML_SCALAR, .text = "true", .key = LAYOUT_AUTO, .key_at = at, .at = at};
    return node;
}

static struct yaml_node *item_tree(const struct yaml_node *whole, const struct layout_item *item, struct arena *arena)
{
    struct yaml_node *node = arena_new(arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = YAML_SCALAR, .quoted = true};
    node->text = arena_copy_text(arena, item->value);
    node->key = layout_request_key(arena_copy_text(arena, item->key));
    node->key_at = inside(whole->at, item->key_at, whole->quoted);
    node->at = inside(whole->at, item->value_at, whole->quoted);
    return node;
}

/* Appends an item whose key (by its long name) is new to the tree; reports it otherwise. */
static void add_item(struct yaml_node *tree, struct yaml_node **last, struct yaml_node *item, struct diags *diags)
{
    const struct yaml_node *first = yaml_find(tree, item->key);
    if (first) {
        diag_error(diags, item->key_at, "layout: '%s' is given twice", item->key);
        return;
    }
    if (*last)
        (*last)->next = item;
    else
        tree->first = item;
    *last = item;
}

static struct yaml_node *text_tree(const struct yaml_node *text, struct arena *arena, struct diags *diags)
{
    struct yaml_node *tree = arena_new(arena, 1, sizeof *tree), *last = NULL;
    *tree = (struct yaml_node){.kind = YAML_MAPPING, .at = text->at};
    struct layout_items items = {.text = text->text};
    struct layout_item item;
    char why[LAYOUT_ITEM_WHY];
    size_t n = 0;
    for (enum layout_item_found found; (found = layout_items_next(&items, &item, why)) != LAYOUT_ITEM_NONE; n++)
        if (found == LAYOUT_ITEM_READ)
            add_item(tree, &last, item_tree(text, &item, arena), diags);
        else
            diag_error(diags, inside(text->at, item.key_at, text->quoted), "layout: %s", why);
    if (n == 0)
        diag_error(diags, text->at, "layout: '%.40s' is empty; write for example tp=8,pp=8,vpp=6,mb=1, or auto", text->text);
    return tree;
}

static struct yaml_node *with_long_names(const struct yaml_node *mapping, struct arena *arena, struct diags *diags)
{
    struct yaml_node *tree = arena_new(arena, 1, sizeof *tree), *last = NULL;
    *tree = *mapping;
    tree->first = NULL;
    for (const struct yaml_node *child = mapping->first; child; child = child->next) {
        struct yaml_node *copy = arena_new(arena, 1, sizeof *copy);
        *copy = *child;
        copy->key = layout_request_key(child->key);
        copy->next = NULL;
        add_item(tree, &last, copy, diags);
    }
    return tree;
}

struct yaml_node *layout_request_tree(const struct yaml_node *value, struct arena *arena, struct diags *diags)
{
    struct yaml_node *tree = arena_new(arena, 1, sizeof *tree);
    *tree = *value;
    if (value->kind == YAML_MAPPING)
        return with_long_names(value, arena, diags);
    if (value->kind != YAML_SCALAR)
        return tree;
    if (!yaml_is_null(value))
        return text_tree(value, arena, diags);
    *tree = (struct yaml_node){.kind = YAML_MAPPING, .at = value->at, .first = auto_item(value->at, arena)};
    return tree;
}

bool layout_request_searches(const struct yaml_node *tree)
{
    const struct yaml_node *search = tree && tree->kind == YAML_MAPPING ? yaml_find(tree, LAYOUT_AUTO) : NULL;
    return search && search->text && (strcmp(search->text, "true") == 0 || strcmp(search->text, "1") == 0);
}

void layout_request_read(const struct yaml_node *tree, struct layout_request *request, struct diags *diags)
{
    struct layout_keys keys = {0};
    size_t before = diags->n_errors;
    schema_read(&layout_schema, tree, &keys, diags);
    if (diags->n_errors > before)
        return;
    request->given = !layout_request_searches(tree);
    for (size_t i = 0; i < layout_schema.n_rows; i++) { /* in this order, however it is typed: one layout is one text */
        const struct field *row = &layout_schema.rows[i];
        const struct yaml_node *child = yaml_find(tree, row->key);
        char number[32];
        if (!child || yaml_is_null(child) || strcmp(row->key, LAYOUT_AUTO) == 0)
            continue;
        snprintf(number, sizeof number, "%d", *(const int *)((const char *)&keys + row->offset));
        text_append(request->text, sizeof request->text, "%s%s=%s", *request->text ? "," : "", row->key,
                    row->type == FIELD_INT ? number : child->text);
    }
}

json_t *layout_request_write(const struct layout_request *request)
{
    if (!request->given && !*request->text)
        return json_string(LAYOUT_AUTO);
    json_t *mapping = json_object();
    if (!request->given)
        json_object_set_new(mapping, LAYOUT_AUTO, json_true());
    for (const char *item = request->text; *item; item += strspn(item, ",")) {
        char key[32], value[128];
        if (sscanf(item, "%31[^=]=%127[^,]", key, value) != 2)
            break;
        bool number = isdigit((unsigned char)value[0]) && strspn(value, "0123456789") == strlen(value);
        json_object_set_new(mapping, key, number ? json_integer(strtol(value, NULL, 10)) : json_text(value));
        item += strcspn(item, ",");
    }
    return mapping;
}
