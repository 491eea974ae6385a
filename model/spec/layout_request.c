#include "model/spec/layout_request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/spec/cp_comm.h"
#include "model/spec/json_text.h"
#include "model/spec/layout_dimensions.h"
#include "model/spec/layout_items.h"
#include "model/spec/offload.h"
#include "model/spec/recompute.h"
#include "model/spec/schemas.h"

/* The key, and the word that stands for it: auto,pp=2. */
#define AUTO "auto"

/* Only to be read into and looked at: the request keeps the text. */
#define MEMBER_NUMBER(member)    int member;
#define MEMBER_FLAG(member)      int member;
#define MEMBER_CP_COMM(member)   int member;
#define MEMBER_SCHEDULE(member)  int member;
#define MEMBER_RECOMPUTE(member) struct recompute member;
#define MEMBER_OFFLOAD(member)   struct offload member;
struct layout_keys {
#define X(id, type, member, ...) MEMBER_##type(member)
    LAYOUT_DIMENSIONS(X)
#undef X
    int search;
};

static const char *const flags[] = {"0", "1", "false", "true", NULL};

static void read_cp_comm(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    char why[CP_COMM_WHY];
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but a word is expected, such as ring", row->key, yaml_kind_name(value->kind));
        return;
    }
    int found = cp_comm_parse(value->text, why, sizeof why);
    if (found < 0)
        diag_error(diags, value->at, "%s: %s", row->key, why);
    else
        memcpy(at, &found, sizeof found);
}

static void read_recompute(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    char why[RECOMPUTE_WHY];
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but words joined by '+' are expected", row->key, yaml_kind_name(value->kind));
        return;
    }
    struct recompute found;
    if (recompute_parse(value->text, &found, why, sizeof why))
        memcpy(at, &found, sizeof found);
    else
        diag_error(diags, value->at, "%s: %s", row->key, why);
}

/* What is offloaded, or "auto" or "auto:25%": what a search finds best. */
static void read_offload(const struct field *row, const struct yaml_node *value, void *at, struct diags *diags)
{
    struct offload sets[OFFLOAD_SETS];
    char why[OFFLOAD_WHY];
    int n;
    if (value->kind != YAML_SCALAR) {
        diag_error(diags, value->at, "%s: %s, but a word is expected, such as optimizer", row->key, yaml_kind_name(value->kind));
        return;
    }
    struct offload found = {.of = {{0}}};
    if (offload_sets_of(value->text, sets, &n) || offload_parse(value->text, &found, why, sizeof why))
        memcpy(at, &found, sizeof found);
    else
        diag_error(diags, value->at, "%s: %s", row->key, why);
}

#define ROW_NUMBER(key, member, least, most, help)    INTEGER(key, struct layout_keys, member, least, most, UNSET, help),
#define ROW_FLAG(key, member, least, most, help)      CHOICE(key, struct layout_keys, member, flags, UNSET, help),
#define ROW_CP_COMM(key, member, least, most, help)   CUSTOM(key, struct layout_keys, member, read_cp_comm, NULL, UNSET, help),
#define ROW_RECOMPUTE(key, member, least, most, help) CUSTOM(key, struct layout_keys, member, read_recompute, NULL, UNSET, help),
#define ROW_OFFLOAD(key, member, least, most, help)   CUSTOM(key, struct layout_keys, member, read_offload, NULL, UNSET, help),
#define ROW_SCHEDULE(key, member, least, most, help)  CHOICE(key, struct layout_keys, member, schedule_names, UNSET, help),
static const struct field rows[] = {
#define X(id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, help, values)                      \
    ROW_##type(key, member, least, most, help)
    LAYOUT_DIMENSIONS(X)
#undef X
        CHOICE(AUTO, struct layout_keys, search, flags, UNSET, "what is not given is what msim plan finds best"),
};
const struct schema layout_schema = SCHEMA("layout", rows);

const char *layout_request_key(const char *key)
{
    int dimension = layout_dimension_of(key);
    return dimension < 0 ? key : layout_dimensions[dimension].key;
}

static struct place inside(struct place at, size_t offset, bool quoted)
{
    if (at.line > 0)
        at.column += (int)offset + quoted;
    return at;
}

static struct yaml_node *auto_item(struct place at, struct arena *arena)
{
    struct yaml_node *node = arena_new(arena, 1, sizeof *node);
    *node = (struct yaml_node){.kind = YAML_SCALAR, .text = "true", .key = AUTO, .key_at = at, .at = at};
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
    const struct yaml_node *search = tree && tree->kind == YAML_MAPPING ? yaml_find(tree, AUTO) : NULL;
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
        const struct field *row = &rows[i];
        const struct yaml_node *child = yaml_find(tree, row->key);
        char number[32];
        if (!child || yaml_is_null(child) || strcmp(row->key, AUTO) == 0)
            continue;
        snprintf(number, sizeof number, "%d", *(const int *)((const char *)&keys + row->offset));
        text_append(request->text, sizeof request->text, "%s%s=%s", *request->text ? "," : "", row->key,
                    row->type == FIELD_INT ? number : child->text);
    }
}

json_t *layout_request_write(const struct layout_request *request)
{
    if (!request->given && !*request->text)
        return json_string(AUTO);
    json_t *mapping = json_object();
    if (!request->given)
        json_object_set_new(mapping, AUTO, json_true());
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
