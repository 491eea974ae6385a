/* python_assign.c - assignments of a program: fields of recipes, and the values of names. */
#include <stdio.h>
#include <string.h>

#include "traces/launch/python/python_internal.h"

/* --- targets --- */

/* ["x"] behind a path; false where what is in the brackets is computed. */
static bool read_subscript(struct python *y, struct python_target *target)
{
    struct python_mark here = python_mark(y);
    size_t n = strlen(target->path);
    y->p++;
    python_skip_blanks(y);
    const char *start = y->p;
    bool quoted = python_at(y, '"') || python_at(y, '\'');
    if (quoted)
        python_skip_string(y);
    size_t length = quoted ? (size_t)(y->p - start) : 0;
    python_skip_blanks(y);
    bool plain = length > 2 && python_at(y, ']') && !memchr(start, '.', length) && !memchr(start, '\\', length) &&
                 n + length < sizeof target->path;
    if (plain)
        snprintf(target->path + n, sizeof target->path - n, ".%.*s", (int)length - 2, start + 1);
    python_return(y, here);
    python_skip_brackets(y);
    return plain;
}

bool python_read_target(struct python *y, struct python_target *target)
{
    target->start = y->p;
    target->at = python_place(y, y->p);
    target->known = true;
    if (!python_read_name(y, target->path))
        return false;
    while (python_at(y, '[') || (python_at(y, '.') && y->p[-1] == ']')) {
        size_t n = strlen(target->path);
        char more[PYTHON_NAME_SIZE];
        if (python_at(y, '[')) {
            target->known = read_subscript(y, target) && target->known;
            continue;
        }
        y->p++;
        if (!python_read_name(y, more) || n + strlen(more) + 2 > sizeof target->path)
            return false;
        snprintf(target->path + n, sizeof target->path - n, ".%s", more);
    }
    return true;
}

bool python_read_targets(struct python *y, struct python_targets *targets)
{
    bool bracket = python_at(y, '(') || python_at(y, '[');
    int first = targets->n;
    y->p += bracket;
    y->brackets += bracket;
    for (;;) {
        python_skip_blanks(y);
        targets->all &= !python_at(y, '*');
        y->p += python_at(y, '*');
        if (targets->n == PYTHON_TARGETS_MAX || !python_read_target(y, &targets->of[targets->n])) {
            targets->all &= targets->n > first && strchr(")]=", y->p < y->end ? *y->p : '\n');
            break;
        }
        targets->n++;
        python_skip_blanks(y);
        if (!python_at(y, ','))
            break;
        y->p++;
    }
    y->brackets -= bracket;
    if (bracket && (python_at(y, ')') || python_at(y, ']')))
        y->p++;
    python_skip_blanks(y);
    return targets->n > first;
}

/* --- assignments --- */

bool python_find_field(struct python *y, const struct python_target *target, int *object, char path[PYTHON_NAME_SIZE])
{
    if (!strchr(target->path, '.'))
        return false;
    *object = python_find_object(y, target->path, target->at, path);
    return *object >= 0 && *path;
}

void python_set_field(struct python *y, const struct python_target *target, struct yaml_node *value, bool appends)
{
    int object;
    char path[PYTHON_NAME_SIZE];
    if (!python_find_field(y, target, &object, path))
        return;
    if (!target->known)
        python_leave_out(y, target->at, target->path, "the program computes the name of the field");
    else if (!value || (y->gave && python_contains(value, y->objects[object].node))) { /* computed, or a part of itself */
        value = NULL;
        python_leave_out(y, target->at, target->path, python_computed);
        if (y->doubtful < 0 && !appends)
            python_forget(y, object, path);
    } else if (y->doubtful >= 0)
        python_leave_out(y, target->at, target->path, python_in_doubt);
    if (!target->known || !value || y->doubtful >= 0)
        return;
    struct yaml_node *field = python_field(y, object, path, target->start);
    y->objects[object].n_fields++;
    if (!field)
        diag_error(y->diags, target->at, "%.80s: more fields than %d, or deeper ones than %d", target->path, PYTHON_KEYS_MAX,
                   PYTHON_PARTS_MAX);
    else if (appends)
        python_append(y, field, value);
    else
        python_assign(y, field, value);
}

/* What stands on the right: a value, or the object, or the field of one, that a name stands for from then on. */
struct right {
    struct yaml_node *value; /* NULL: none that is known */
    int object;              /* -1: none */
    const char *path;
};

/* Behind one of the values. */
static bool at_value_end(const struct python *y)
{
    return python_at_end(y) || strchr(",)]", *y->p);
}

/* Reads another object, or a field of one (m = cfg.model), or the result of a function of this program. Returns false, and reads
 * nothing, where the text is anything else. */
static bool read_alias(struct python *y, struct right *right)
{
    struct python_mark here = python_mark(y);
    struct python_target meant;
    char path[PYTHON_NAME_SIZE];
    bool read = python_read_target(y, &meant);
    python_skip_blanks(y);
    bool calls = read && python_at(y, '(') && !strchr(meant.path, '.');
    const struct python_name *known = read ? python_find_name(y, meant.path) : NULL;
    if (calls && known && known->is_function && known->object >= 0) {
        struct place *called = &y->objects[known->object].called;
        if (called->line && (called->line != meant.at.line || called->column != meant.at.column))
            diag_warning(y->diags, meant.at, "%.80s is called again (first in line %d); msim takes both results for one object",
                         meant.path, called->line);
        else
            *called = meant.at;
        python_skip_brackets(y);
        python_skip_blanks(y);
    } else if (calls || (known && (known->is_function || known->value || known->is_module))) {
        read = false;
    } else if (read && !known && at_value_end(y)) { /* a constant, perhaps */
        struct python_mark behind = python_mark(y);
        python_return(y, here);
        read = !python_read_value(y, 0);
        python_return(y, behind);
    }
    const struct yaml_node *value = read ? python_known_field(y, meant.path) : NULL;
    bool object = read && meant.known && at_value_end(y) && !(value && value->kind != YAML_MAPPING);
    right->object = object ? python_find_object(y, meant.path, meant.at, path) : -1;
    if (right->object < 0) {
        python_return(y, here);
        return false;
    }
    right->path = python_copy(y, path, strlen(path));
    return true;
}

/* The call of a recipe's function, by the name that it has where it is from. NULL: none stands here. */
static struct yaml_node *read_recipe(struct python *y, struct place *at)
{
    char name[PYTHON_NAME_SIZE];
    struct python_mark here = python_mark(y);
    const char *start = y->p;
    *at = python_place(y, start);
    bool read = python_read_name(y, name) && python_at(y, '(');
    const struct python_name *known = read && !strchr(name, '.') ? python_find_name(y, name) : NULL;
    const char *called = known && known->imported ? known->imported : name;
    struct yaml_node *call = NULL;
    if (read && !(known && known->is_function) && python_is_recipe(called))
        call = python_read_call(y, called, start, 0);
    if (!call)
        python_return(y, here);
    return call;
}

/* The object that a recipe's function makes. */
static int new_recipe(struct python *y, const char *name, struct yaml_node *call, struct place at)
{
    struct yaml_node *node = python_new_node(y, YAML_MAPPING, y->p);
    call->key = "_recipe_";
    yaml_append(node, NULL, call);
    return python_new_object(y, name, ORIGIN_RECIPE, node, at);
}

/* Reads the right side of an assignment. Messages about parts that msim leaves out go to `told`: they matter only if the program
 * uses the object. */
static struct right read_right(struct python *y, const char *name, struct diags *reports)
{
    struct right right = {.object = -1, .path = ""};
    struct diags *loud = y->diags;
    struct place at;
    snprintf(y->field, sizeof y->field, "%s", name);
    if (y->doubtful < 0 && read_alias(y, &right))
        return right;
    struct python_mark here = python_mark(y);
    struct yaml_node *recipe = read_recipe(y, &at);
    python_skip_blanks(y);
    if (recipe && at_value_end(y)) {
        if (y->doubtful < 0)
            right.object = new_recipe(y, name, recipe, at);
        else
            python_leave_out(y, at, name, "it is not known whether the program reaches this recipe");
        return right;
    }
    python_return(y, here);
    y->diags = reports;
    right.value = python_read_value(y, 0);
    y->diags = loud;
    python_skip_blanks(y);
    if (!right.value || !at_value_end(y) || y->doubtful >= 0)
        right.value = NULL;
    return right;
}

/* A name is that from here on; under a condition nobody knows what it is, but that an object stays one. */
static void bind_name(struct python *y, const struct python_target *target, struct right right, struct diags *reports)
{
    const struct python_name *before = python_find_name(y, target->path);
    if (y->doubtful >= 0 && before && before->object >= 0) {
        if (y->objects[before->object].origin == ORIGIN_RECIPE && right.object < 0)
            python_leave_out(y, target->at, target->path, python_in_doubt);
        diags_free(reports);
        return;
    }
    if (right.value && right.value->kind == YAML_MAPPING) {
        right.object = python_new_object(y, target->path, ORIGIN_MADE, right.value, target->at);
        right.value = NULL;
        if (right.object >= 0) {
            y->objects[right.object].reports = *reports;
            *reports = (struct diags){0};
        }
    }
    struct python_name *name = python_bind(y, target->path, strlen(target->path));
    name->object = right.object;
    name->path = right.path;
    name->value = right.value;
    name->is_computed = right.object < 0 && !right.value;
    diags_free(reports);
}

int python_read_object(struct python *y, const char *name, struct place at)
{
    struct diags reports = {0};
    struct right right = read_right(y, name, &reports);
    bool whole = python_at_end(y) && !(right.path && *right.path);
    if (whole && right.value && right.value->kind == YAML_MAPPING) {
        right.object = python_new_object(y, name, ORIGIN_MADE, right.value, at);
        if (right.object >= 0) {
            y->objects[right.object].reports = reports;
            return right.object;
        }
    }
    diags_free(&reports);
    return whole ? right.object : -1;
}

/* An item of what a name stands for: of a list, which is not known from then on, or a field that nobody knows. */
static void assign_item(struct python *y, const struct python_target *target)
{
    const struct python_name *known = python_find_name(y, target->path);
    if (known && known->object >= 0)
        python_leave_out(y, target->at, target->path, "the program computes the name of the field");
    else
        python_bind(y, target->path, strlen(target->path))->is_computed = true;
}

/* Does the very field that is assigned to stand on the right? cfg.model = model, where that is cfg.model. */
static bool is_itself(struct python *y, const struct python_target *target)
{
    struct python_mark here = python_mark(y);
    struct python_target meant;
    char path[PYTHON_NAME_SIZE], other[PYTHON_NAME_SIZE];
    int object;
    bool same = target->known && python_read_target(y, &meant) && meant.known;
    python_skip_blanks(y);
    const struct python_name *known = same ? python_find_name(y, meant.path) : NULL;
    same = known && known->object >= 0 && !known->is_function && python_at_end(y) &&
           python_find_field(y, target, &object, path) && python_find_object(y, meant.path, meant.at, other) == object &&
           strcmp(path, other) == 0;
    python_return(y, here);
    return same;
}

/* One value for one path, or for several: a.x = b.y = 4. */
static void assign_one(struct python *y, const struct python_targets *targets)
{
    for (int i = 0; i < targets->n; i++) {
        const struct python_target *target = &targets->of[i];
        struct python_mark here = python_mark(y);
        if (!strchr(target->path, '.') && !target->known) {
            assign_item(y, target);
        } else if (strchr(target->path, '.') && is_itself(y, target)) {
            continue;
        } else if (!strchr(target->path, '.')) {
            struct diags reports = {0};
            struct right right = read_right(y, target->path, &reports);
            if (!python_at_end(y))
                right = (struct right){.object = -1, .path = ""};
            bind_name(y, target, right, &reports);
        } else {
            snprintf(y->field, sizeof y->field, "%s", target->path);
            struct yaml_node *value = python_read_value(y, 0);
            python_skip_blanks(y);
            bool whole = value && python_at_end(y);
            if (!whole)
                python_return(y, here);
            python_set_field(y, target, whole ? value : NULL, false);
        }
        if (i + 1 < targets->n)
            python_return(y, here);
    }
}

/* Values of a.x, a.y = 4, 2: all of them, before anything is assigned; false where they are not as many. */
static bool read_values(struct python *y, const struct python_targets *targets, struct right *rights, struct diags *reports)
{
    struct python_mark here = python_mark(y);
    bool bracket = python_at(y, '(') || python_at(y, '[');
    if (bracket) { /* around all of them */
        python_skip_brackets(y);
        python_skip_blanks(y);
        bracket = python_at_end(y);
        python_return(y, here);
        y->p += bracket;
        y->brackets += bracket;
    }
    int n = 0;
    for (; n < targets->n; n++) {
        python_skip_blanks(y);
        struct python_mark before = python_mark(y);
        const char *path = targets->of[n].path;
        if (strchr(path, '.')) {
            snprintf(y->field, sizeof y->field, "%s", path);
            rights[n] = (struct right){.value = python_read_value(y, 0), .object = -1};
        } else {
            rights[n] = read_right(y, path, &reports[n]);
        }
        python_skip_blanks(y);
        if (!at_value_end(y) || (!rights[n].value && rights[n].object < 0)) {
            rights[n] = (struct right){.object = -1, .path = ""};
            python_return(y, before);
            python_skip_to(y, ",)]");
        }
        if (!python_at(y, ','))
            break;
        y->p++;
    }
    bool as_many = n == targets->n - 1;
    y->brackets -= bracket;
    y->p += bracket && (python_at(y, ')') || python_at(y, ']'));
    python_skip_blanks(y);
    return as_many && python_at_end(y);
}

static void assign_several(struct python *y, const struct python_targets *targets)
{
    struct right rights[PYTHON_TARGETS_MAX], nothing = {.object = -1, .path = ""};
    struct diags reports[PYTHON_TARGETS_MAX] = {0};
    for (int i = 0; i < targets->n; i++)
        rights[i] = nothing;
    bool known = read_values(y, targets, rights, reports) && targets->all;
    for (int i = 0; i < targets->n; i++) {
        const struct python_target *target = &targets->of[i];
        if (strchr(target->path, '.'))
            python_set_field(y, target, known && target->known ? rights[i].value : NULL, false);
        else
            bind_name(y, target, known ? rights[i] : nothing, &reports[i]);
        diags_free(&reports[i]);
    }
}

bool python_at_assignment(const struct python *y)
{
    return python_at(y, '=') && !(y->p + 1 < y->end && y->p[1] == '=');
}

/* += and its like, and the length of it; 0: none stands here. */
static size_t change_at(const struct python *y)
{
    size_t n = 0;
    while (y->p + n < y->end && n < 2 && strchr("+-*/%@&|^<>", y->p[n]))
        n++;
    return n && y->p + n < y->end && y->p[n] == '=' ? n + 1 : 0;
}

static void tell_computed(struct python *y, const struct python_targets *targets)
{
    for (int i = 0; i < targets->n; i++) {
        const struct python_target *target = &targets->of[i];
        if (strchr(target->path, '.'))
            python_set_field(y, target, NULL, false);
        else if (target->known)
            python_bind(y, target->path, strlen(target->path));
    }
}

void python_read_assignment(struct python *y, struct python_targets *targets)
{
    if (python_at(y, ':') && targets->n == 1) { /* x: int = 4 */
        y->p++;
        python_skip_to(y, "=");
    }
    if (change_at(y)) {
        tell_computed(y, targets);
        return;
    }
    if (!python_at_assignment(y))
        return;
    bool several = targets->n > 1;
    for (;;) {
        y->p++;
        python_skip_blanks(y);
        struct python_mark here = python_mark(y);
        int n = targets->n;
        bool more = !several && python_read_targets(y, targets) && targets->n == n + 1 && python_at_assignment(y);
        if (more)
            continue;
        python_return(y, here);
        targets->n = n;
        break;
    }
    if (several)
        assign_several(y, targets);
    else
        assign_one(y, targets);
}
