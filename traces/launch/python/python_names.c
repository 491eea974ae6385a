/* python_names.c - names of a program: their values, and the objects whose fields they are. */
#include <stdio.h>
#include <string.h>

#include "traces/launch/python/python_internal.h"

/* The reader keeps so much and no more: what follows would be read as if the rest had not been there. */
static void tell_too_much(struct python *y, struct place at, const char *what, int most)
{
    if (!y->too_much)
        diag_error(y->diags, at, "more %s than %d: the program is too long to be read", what, most);
    y->too_much = true;
}

struct yaml_node *python_new_node(struct python *y, enum yaml_kind kind, const char *at)
{
    struct yaml_node *node = arena_new(y->arena, sizeof *node, 1);
    *node = (struct yaml_node){.kind = kind, .at = python_place(y, at), .key_at = python_place(y, at)};
    return node;
}

/* --- names --- */

static int find(const struct python *y, const char *path)
{
    size_t n = strcspn(path, ".");
    int i = y->n_names;
    while (i-- > 0)
        if (strncmp(y->names[i].name, path, n) == 0 && !y->names[i].name[n])
            return i;
    return -1;
}

const struct python_name *python_find_name(const struct python *y, const char *path)
{
    int i = find(y, path);
    return i < 0 ? NULL : &y->names[i];
}

struct python_name *python_bind(struct python *y, const char *name, size_t n)
{
    int first = y->n_scopes ? y->scopes[y->n_scopes - 1].first_name : 0, i = y->n_names;
    while (i-- > first)
        if (strncmp(y->names[i].name, name, n) == 0 && !y->names[i].name[n])
            break;
    if (i < first && y->n_names == PYTHON_NAMES_MAX) {
        tell_too_much(y, python_place(y, y->p), "names", PYTHON_NAMES_MAX);
        i = PYTHON_NAMES_MAX - 1;
    } else if (i < first) {
        i = y->n_names++;
        y->names[i].name = python_copy(y, name, n);
    }
    y->names[i] = (struct python_name){.name = y->names[i].name, .object = -1, .path = ""};
    return &y->names[i];
}

void python_unbind(struct python *y, const char *name)
{
    for (int i = 0; i < y->n_names; i++)
        if (strcmp(y->names[i].name, name) == 0)
            y->names[i] = (struct python_name){.name = y->names[i].name, .object = -1, .path = "", .is_computed = true};
}

void python_open_scope(struct python *y, int column, const char *name)
{
    python_bind(y, name, strlen(name))->is_function = true;
    if (y->n_scopes == PYTHON_SCOPES_MAX) {
        tell_too_much(y, python_place(y, y->p), "functions in one another", PYTHON_SCOPES_MAX);
        return;
    }
    int function = find(y, name);
    if (function >= 0)
        y->scopes[y->n_scopes++] = (struct python_scope){.column = column, .first_name = y->n_names, .function = function};
}

void python_close_scopes(struct python *y, int column)
{
    while (y->n_scopes && column <= y->scopes[y->n_scopes - 1].column)
        y->n_names = y->scopes[--y->n_scopes].first_name;
}

/* --- objects --- */

int python_new_object(struct python *y, const char *name, enum python_origin origin, struct yaml_node *node, struct place at)
{
    if (y->n_objects == PYTHON_OBJECTS_MAX) {
        tell_too_much(y, at, "objects", PYTHON_OBJECTS_MAX);
        return -1;
    }
    node = node ? node : python_new_node(y, YAML_MAPPING, y->p);
    y->objects[y->n_objects] =
        (struct python_object){.name = python_copy(y, name, strcspn(name, ".")), .origin = origin, .node = node, .at = at};
    return y->n_objects++;
}

int python_find_object(struct python *y, const char *path, struct place at, char rest[PYTHON_NAME_SIZE])
{
    int i = find(y, path);
    const char *dot = strchr(path, '.');
    if (i < 0) {
        python_bind(y, path, strcspn(path, "."));
        i = find(y, path);
    }
    if (i < 0) /* there are too many */
        return -1;
    struct python_name *name = &y->names[i];
    if (name->is_module || (name->object < 0 && (name->is_function || (name->value && name->value->kind != YAML_SCALAR))))
        return -1;
    if (name->object < 0) {
        enum python_origin origin = name->value || name->is_computed ? ORIGIN_COMPUTED : ORIGIN_OUTSIDE;
        name->object = python_new_object(y, path, origin, NULL, at);
        name->value = NULL;
    }
    int n = snprintf(rest, PYTHON_NAME_SIZE, "%s%s%s", name->path, *name->path && dot ? "." : "", dot ? dot + 1 : "");
    return n < PYTHON_NAME_SIZE ? name->object : -1;
}

void python_tell(struct python *y, struct python_object *object)
{
    for (size_t i = 0; i < object->reports.n_items; i++) {
        const struct diag *d = &object->reports.items[i];
        diag_warning(y->diags, (struct place){.file = y->name, .line = d->line, .column = d->column}, "%s", d->text);
    }
    diags_free(&object->reports);
    object->reports = (struct diags){0};
}

/* --- fields --- */

static struct yaml_node *find_child(const struct yaml_node *mapping, const char *key, size_t n)
{
    struct yaml_node *child = mapping->kind == YAML_MAPPING ? mapping->first : NULL;
    while (child && !(strncmp(child->key, key, n) == 0 && !child->key[n]))
        child = child->next;
    return child;
}

struct yaml_node *python_field(struct python *y, int object, const char *path, const char *at)
{
    struct yaml_node *node = y->objects[object].node;
    int parts = 0;
    for (const char *part = path; *part; parts++) {
        size_t n = strcspn(part, ".");
        struct yaml_node *child = find_child(node, part, n);
        if (!child && (parts == PYTHON_PARTS_MAX || y->n_keys >= PYTHON_KEYS_MAX))
            return NULL;
        if (node->kind != YAML_MAPPING) {
            node->kind = YAML_MAPPING;
            node->first = NULL;
        }
        if (!child) {
            child = python_new_node(y, YAML_MAPPING, at);
            child->key = python_copy(y, part, n);
            yaml_append(node, NULL, child);
            y->n_keys++;
        }
        node = child;
        part += n + (part[n] == '.');
    }
    return node;
}

struct yaml_node *python_known_field(const struct python *y, const char *path)
{
    const struct python_name *name = python_find_name(y, path);
    const char *dot = strchr(path, '.'), *paths[] = {name ? name->path : "", dot ? dot + 1 : ""};
    struct yaml_node *node = name && name->object >= 0 ? y->objects[name->object].node : NULL;
    for (int i = 0; i < 2; i++)
        for (const char *part = paths[i]; node && *part;) {
            size_t n = strcspn(part, ".");
            node = find_child(node, part, n);
            part += n + (part[n] == '.');
        }
    return node;
}

void python_forget(struct python *y, int object, const char *path)
{
    struct yaml_node *node = y->objects[object].node;
    for (const char *part = path; *part;) {
        size_t n = strcspn(part, ".");
        struct yaml_node *child = find_child(node, part, n), **link = &node->first;
        if (!child)
            return;
        while (*link != child)
            link = &(*link)->next;
        part += n + (part[n] == '.');
        if (!*part)
            *link = child->next;
        node = child;
    }
}

/* --- values of fields --- */

bool python_contains(const struct yaml_node *tree, const struct yaml_node *node)
{
    bool found = tree == node;
    for (const struct yaml_node *child = tree->first; child && !found; child = child->next)
        found = python_contains(child, node);
    return found;
}

static struct python_list *list_of(struct python *y, const struct yaml_node *field)
{
    int i = 0;
    while (i < y->n_lists && y->lists[i].list != field)
        i++;
    return i < y->n_lists ? &y->lists[i] : NULL;
}

static void set(struct python *y, struct yaml_node *field, const struct yaml_node *value)
{
    struct python_list *list = list_of(y, field);
    if (list)
        list->last = NULL;
    field->kind = value->kind;
    field->quoted = value->quoted;
    field->text = value->text;
    field->first = value->first;
    field->at = value->at;
}

void python_assign(struct python *y, struct yaml_node *field, struct yaml_node *value)
{
    set(y, field, value);
    for (int i = 0; i < y->n_objects; i++) /* one that was given away is changed where it is now */
        if (y->objects[i].node == value)
            y->objects[i].node = field;
}

void python_append(struct python *y, struct yaml_node *field, struct yaml_node *value)
{
    struct python_list *list = list_of(y, field);
    if (!list && y->n_lists < PYTHON_KEYS_MAX) {
        list = &y->lists[y->n_lists++];
        *list = (struct python_list){.list = field};
    }
    if (field->kind != YAML_SEQUENCE) {
        field->kind = YAML_SEQUENCE;
        field->first = NULL;
    }
    yaml_append(field, list ? &list->last : NULL, value);
}

/* --- all together --- */

static bool is_later(const struct place *a, const struct place *b)
{
    return a->line != b->line ? a->line > b->line : a->column > b->column;
}

/* What two objects say, as if it were one: the last counts. Recursion follows paths, which are bounded. */
static void merge(struct python *y, struct yaml_node *into, struct yaml_node *from)
{
    for (struct yaml_node *child = from->first, *next; child; child = next) {
        struct yaml_node *same = yaml_find(into, child->key);
        next = child->next;
        child->next = NULL;
        if (!same)
            yaml_append(into, NULL, child);
        else if (same->kind == YAML_MAPPING && child->kind == YAML_MAPPING)
            merge(y, same, child);
        else {
            bool later = is_later(&child->at, &same->at), text = same->text && child->text;
            if (!text || strcmp(same->text, child->text) != 0)
                diag_warning(y->diags, later ? child->at : same->at,
                             "%.80s is also set in line %d, of another object; msim takes both for one, and this value counts",
                             child->key, later ? same->at.line : child->at.line);
            if (later)
                set(y, same, child);
        }
    }
}

/* Do both say the same field? */
static bool conflicts(const struct yaml_node *a, const struct yaml_node *b)
{
    for (const struct yaml_node *child = a->first; child; child = child->next) {
        const struct yaml_node *same = yaml_find(b, child->key);
        bool both = same && same->kind == YAML_MAPPING && child->kind == YAML_MAPPING;
        if (same && (!both || conflicts(child, same)))
            return true;
    }
    return false;
}

/* Does an object have parts, as jobs have? */
static bool has_parts(const struct python_object *object)
{
    int parts = 0;
    for (const struct yaml_node *child = object->node->first; child; child = child->next)
        parts += child->kind == YAML_MAPPING;
    return parts > (object->origin == ORIGIN_MADE);
}

static bool is_job(const struct python_object *object, bool recipes)
{
    if (object->used || object->origin == ORIGIN_OUTSIDE)
        return false;
    return recipes ? object->origin == ORIGIN_RECIPE : has_parts(object);
}

/* The job that most is said of, the first of these; NULL: none. */
static struct python_object *find_job(struct python *y, bool recipes)
{
    struct python_object *best = NULL;
    for (int i = 0; i < y->n_objects; i++)
        if (is_job(&y->objects[i], recipes) && (!best || y->objects[i].n_fields > best->n_fields))
            best = &y->objects[i];
    return best;
}

static int count_recipes(const struct python *y)
{
    int n = 0;
    for (int i = 0; i < y->n_objects; i++)
        n += is_job(&y->objects[i], true);
    return n;
}

/* An object that is not the job itself becomes part of its recipe, or is reported and left out. There are `n` recipes. */
static void settle(struct python *y, struct python_object *object, const struct python_object *job, int n,
                   struct yaml_node *result)
{
    bool made = object->origin == ORIGIN_MADE, parts = is_job(object, false);
    bool whole = made && yaml_find(object->node, "model");
    bool rival = object->origin == ORIGIN_RECIPE || (parts && (n ? whole : conflicts(object->node, result)));
    if (object == job || object->used)
        return;
    if (rival)
        diag_warning(y->diags, object->at,
                     "%.80s is left out: of several recipes, msim takes that of line %d, which the program changes most",
                     object->name, job->at.line);
    else if (n > 1 && object->n_fields)
        diag_warning(y->diags, object->at, "%.80s is left out: it is not known which of %d recipes it changes", object->name, n);
    else if (made && (n || !parts) && object->n_fields)
        diag_note(y->diags, object->at, "%.80s is left out: it is not part of a recipe", object->name);
    else if (n <= 1 && (!made || (parts && !n))) {
        python_tell(y, object);
        merge(y, result, object->node);
    }
}

struct yaml_node *python_result(struct python *y)
{
    int n = count_recipes(y);
    struct python_object *job = find_job(y, n > 0);
    struct yaml_node *result = job ? job->node : python_new_node(y, YAML_MAPPING, y->p);
    if (job)
        python_tell(y, job);
    if (n > 1)
        diag_warning(y->diags, job->at, "of %d recipes msim takes this one, %.80s, which the program changes most", n, job->name);
    for (int i = 0; i < y->n_objects; i++)
        settle(y, &y->objects[i], job, n, result);
    for (int i = 0; i < y->n_objects; i++)
        diags_free(&y->objects[i].reports);
    return result;
}
