#include "traces/launch/python_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 160, PARTS_MAX = 12, NESTING_MAX = 8, KEYS_MAX = 4096 };

struct python {
    const char *p, *end, *line_start;
    int line;
    const char *name;
    struct arena *arena;
    struct diags *diags;
    struct yaml_node *root;
    int n_keys;
    int doubtful; /* the column of the condition or loop that this stands under; -1: none */
};

/* --- characters --- */

static struct place place_of(const struct python *y, const char *at)
{
    return (struct place){.file = y->name, .line = y->line, .column = (int)(at - y->line_start) + 1};
}

static bool at(const struct python *y, char c)
{
    return y->p < y->end && *y->p == c;
}

static void skip_line_end(struct python *y)
{
    y->p++;
    y->line++;
    y->line_start = y->p;
}

static void skip_comment(struct python *y)
{
    while (y->p < y->end && *y->p != '\n')
        y->p++;
}

/* Blanks, and within brackets ends of lines and comments, too. */
static void skip_blanks(struct python *y, bool lines)
{
    while (y->p < y->end) {
        if (*y->p == ' ' || *y->p == '\t' || *y->p == '\r')
            y->p++;
        else if (*y->p == '\\' && y->p + 1 < y->end && y->p[1] == '\n') {
            y->p++;
            skip_line_end(y);
        } else if (lines && *y->p == '#')
            skip_comment(y);
        else if (lines && *y->p == '\n')
            skip_line_end(y);
        else
            return;
    }
}

static bool is_name_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Behind the string that begins here: of one line, or of several where three quotes begin it. */
static void skip_string(struct python *y)
{
    char quote = *y->p;
    bool three = y->end - y->p >= 3 && y->p[1] == quote && y->p[2] == quote;
    y->p += three ? 3 : 1;
    while (y->p < y->end) {
        if (*y->p == '\n' && !three)
            return;
        if (*y->p == '\\' && y->p + 1 < y->end && y->p[1] != '\n')
            y->p++;
        else if (*y->p == quote && (!three || (y->end - y->p >= 3 && y->p[1] == quote && y->p[2] == quote))) {
            y->p += three ? 3 : 1;
            return;
        }
        if (*y->p == '\n')
            skip_line_end(y);
        else
            y->p++;
    }
}

/* To the end of a statement: of its line, or of that in which its brackets are closed. */
static void skip_statement(struct python *y)
{
    int depth = 0;
    while (y->p < y->end && !(*y->p == '\n' && depth <= 0)) {
        skip_blanks(y, depth > 0);
        if (y->p == y->end || (*y->p == '\n' && depth <= 0))
            break;
        if (*y->p == '"' || *y->p == '\'') {
            skip_string(y);
            continue;
        }
        if (*y->p == '#') {
            skip_comment(y);
            continue;
        }
        depth += strchr("([{", *y->p) != NULL;
        depth -= strchr(")]}", *y->p) != NULL;
        y->p++;
    }
    if (at(y, '\n'))
        skip_line_end(y);
}

/* a.b.c into `name`; false where there is none. */
static bool read_name(struct python *y, char name[NAME_MAX_LENGTH])
{
    size_t n = 0;
    if (y->p == y->end || !(isalpha((unsigned char)*y->p) || *y->p == '_'))
        return false;
    while (y->p < y->end && (is_name_letter(*y->p) || (*y->p == '.' && y->p + 1 < y->end && is_name_letter(y->p[1])))) {
        if (n + 1 == NAME_MAX_LENGTH)
            return false;
        name[n++] = *y->p++;
    }
    name[n] = '\0';
    return true;
}

/* --- values --- */

static struct yaml_node *new_node(struct python *y, enum yaml_kind kind, const char *at)
{
    struct yaml_node *node = arena_new(y->arena, sizeof *node, 1);
    *node = (struct yaml_node){.kind = kind, .at = place_of(y, at), .key_at = place_of(y, at)};
    return node;
}

static const char *copy(struct python *y, const char *text, size_t n)
{
    char *copied = arena_new(y->arena, n + 1, 1);
    memcpy(copied, text, n);
    copied[n] = '\0';
    return copied;
}

static struct yaml_node *read_value(struct python *y, int depth);

static struct yaml_node *read_string(struct python *y)
{
    const char *start = y->p;
    struct yaml_node *node = new_node(y, YAML_SCALAR, start);
    node->quoted = true;
    skip_string(y);
    size_t n = (size_t)(y->p - start);
    bool plain =
        n >= 2 && y->p[-1] == *start && !memchr(start, '\\', n) && !memchr(start, '\n', n) && (n == 2 || start[1] != *start);
    node->text = plain ? copy(y, start + 1, n - 2) : NULL;
    return plain ? node : NULL;
}

static struct yaml_node *read_number(struct python *y)
{
    char text[64];
    size_t n = 0;
    struct yaml_node *node = new_node(y, YAML_SCALAR, y->p);
    for (; y->p < y->end && strchr("+-.0123456789_eE", *y->p); y->p++)
        if (*y->p != '_' && n + 1 < sizeof text)
            text[n++] = *y->p;
    node->text = copy(y, text, n);
    return n > 0 && isdigit((unsigned char)text[n - 1]) ? node : NULL;
}

/* Lists of numbers that are multiplied and added, and tuples of numbers, as they are written: [0]*3+[1]*29, (4096, 0). NULL where
 * what begins here is none, and nothing is read then. */
static struct yaml_node *read_sum(struct python *y)
{
    const char *p = y->p, *last = p;
    bool is_sum = *p == '(', closed = false;
    for (int depth = 0; p < y->end && strchr("[]()*+0123456789, ", *p); p++) {
        if (depth == 0 && *p == ',')
            break;
        depth += *p == '[' || *p == '(';
        depth -= *p == ']' || *p == ')';
        if (depth < 0)
            break;
        is_sum |= *p == '*' || *p == '+';
        last = *p == ' ' ? last : p;
        closed = depth == 0;
    }
    bool ends = p == y->end || strchr("\n\r#,)]", *p);
    if (!is_sum || !closed || !ends)
        return NULL;
    struct yaml_node *node = new_node(y, YAML_SCALAR, y->p);
    node->text = copy(y, y->p, (size_t)(last - y->p) + 1);
    y->p = last + 1;
    return node;
}

static struct yaml_node *read_list(struct python *y, int depth)
{
    struct yaml_node *list = new_node(y, YAML_SEQUENCE, y->p++), *last = NULL;
    for (skip_blanks(y, true); !at(y, ']'); skip_blanks(y, true)) {
        struct yaml_node *item = read_value(y, depth + 1);
        if (!item)
            return NULL;
        yaml_append(list, &last, item);
        skip_blanks(y, true);
        if (!at(y, ',') && !at(y, ']'))
            return NULL;
        y->p += at(y, ',');
    }
    y->p++;
    return list;
}

/* One value of a call; false where it is none that can be read. What run.Config is told first is what is called. */
static bool read_argument(struct python *y, struct yaml_node *call, int depth)
{
    char name[NAME_MAX_LENGTH];
    const char *start = y->p;
    struct place key_at = place_of(y, start);
    bool named = read_name(y, name);
    skip_blanks(y, true);
    if (named && at(y, '=')) {
        y->p++;
        skip_blanks(y, true);
        struct yaml_node *value = read_value(y, depth + 1);
        if (!value)
            return false;
        value->key = copy(y, name, strlen(name));
        value->key_at = key_at;
        yaml_append(call, NULL, value);
        return true;
    }
    struct yaml_node *target = yaml_find(call, "_target_"), *values = yaml_find(call, "_args_");
    bool config = strcmp(target->text, "run.Config") == 0 || strcmp(target->text, "Config") == 0;
    if (named && config) {
        target->text = copy(y, name, strlen(name));
        return at(y, ',') || at(y, ')');
    }
    y->p = start;
    struct yaml_node *value = read_value(y, depth + 1);
    if (!value)
        return false;
    if (!values) {
        values = new_node(y, YAML_SEQUENCE, start);
        values->key = "_args_";
        yaml_append(call, NULL, values);
    }
    yaml_append(values, NULL, value);
    return true;
}

static struct yaml_node *read_call(struct python *y, const char *name, const char *start, int depth)
{
    struct yaml_node *call = new_node(y, YAML_MAPPING, start), *target = new_node(y, YAML_SCALAR, start);
    target->key = "_target_";
    target->text = copy(y, name, strlen(name));
    yaml_append(call, NULL, target);
    y->p++;
    for (skip_blanks(y, true); !at(y, ')'); skip_blanks(y, true)) {
        if (y->p == y->end || !read_argument(y, call, depth))
            return NULL;
        skip_blanks(y, true);
        if (!at(y, ',') && !at(y, ')'))
            return NULL;
        y->p += at(y, ',');
    }
    y->p++;
    return call;
}

/* True, None, torch.bfloat16, or a call. A name alone is a variable, which nobody knows. */
static struct yaml_node *read_named(struct python *y, int depth)
{
    char name[NAME_MAX_LENGTH];
    const char *start = y->p;
    if (!read_name(y, name))
        return NULL;
    if (at(y, '('))
        return read_call(y, name, start, depth);
    bool none = strcmp(name, "None") == 0, truth = strcmp(name, "True") == 0 || strcmp(name, "False") == 0;
    if (!none && !truth && !strchr(name, '.'))
        return NULL;
    struct yaml_node *node = new_node(y, YAML_SCALAR, start);
    node->text = none ? "null" : copy(y, name, strlen(name));
    return node;
}

/* NULL: it is computed. */
static struct yaml_node *read_value(struct python *y, int depth)
{
    if (y->p == y->end || depth > NESTING_MAX)
        return NULL;
    struct yaml_node *sum = *y->p == '[' || *y->p == '(' ? read_sum(y) : NULL;
    if (sum)
        return sum;
    if (*y->p == '[')
        return read_list(y, depth);
    if (*y->p == '"' || *y->p == '\'')
        return read_string(y);
    if (isdigit((unsigned char)*y->p) || *y->p == '-' || *y->p == '.')
        return read_number(y);
    return read_named(y, depth);
}

/* --- statements --- */

/* The child of this name, made where there is none; one of no mapping becomes one. */
static struct yaml_node *child_of(struct python *y, struct yaml_node *mapping, const char *key, size_t n, const char *at_)
{
    char name[NAME_MAX_LENGTH];
    snprintf(name, sizeof name, "%.*s", (int)n, key);
    struct yaml_node *child = yaml_find(mapping, name);
    if (!child) {
        child = new_node(y, YAML_MAPPING, at_);
        child->key = copy(y, key, n);
        yaml_append(mapping, NULL, child);
        y->n_keys++;
    }
    return child;
}

/* The place of a path behind the object's name; NULL where there are too many. */
static struct yaml_node *find_field(struct python *y, const char *path, const char *at_)
{
    struct yaml_node *node = y->root;
    const char *part = strchr(path, '.');
    for (int i = 0; part && node; i++) {
        size_t n = strcspn(++part, ".");
        if (node->kind != YAML_MAPPING) {
            node->kind = YAML_MAPPING;
            node->first = NULL;
        }
        node = i < PARTS_MAX && y->n_keys < KEYS_MAX ? child_of(y, node, part, n, at_) : NULL;
        part = part[n] ? part + n : NULL;
    }
    return node;
}

static void assign(struct yaml_node *field, const struct yaml_node *value)
{
    field->kind = value->kind;
    field->quoted = value->quoted;
    field->text = value->text;
    field->first = value->first;
    field->at = value->at;
}

static void append(struct yaml_node *field, struct yaml_node *value)
{
    if (field->kind != YAML_SEQUENCE) {
        field->kind = YAML_SEQUENCE;
        field->first = NULL;
    }
    yaml_append(field, NULL, value);
}

/* What an object begins as, where that is a recipe: all of the call, or, where the program computes a part of it, what is called.
 */
static void read_recipe(struct python *y)
{
    char name[NAME_MAX_LENGTH];
    struct python trial = *y;
    trial.p++;
    skip_blanks(&trial, false);
    const char *start = trial.p;
    if (!read_name(&trial, name) || !at(&trial, '(') || !(strstr(name, "pretrain") || strstr(name, "finetune")) ||
        y->doubtful >= 0)
        return;
    struct python whole = trial;
    struct yaml_node *call = read_call(&whole, name, start, 0), *target = new_node(&trial, YAML_SCALAR, start);
    if (!call) {
        call = new_node(&trial, YAML_MAPPING, start);
        target->key = "_target_";
        target->text = copy(y, name, strlen(name));
        yaml_append(call, NULL, target);
    }
    assign(child_of(y, y->root, "_recipe_", strlen("_recipe_"), start), call);
}

/* Behind a name: an assignment, or one more of a list. */
static void read_field(struct python *y, char *path, const char *start)
{
    static const char more[] = ".append";
    size_t n = strlen(path);
    bool appends = n > sizeof more && strcmp(path + n - (sizeof more - 1), more) == 0 && at(y, '(');
    skip_blanks(y, false);
    bool assigns = at(y, '=') && !(y->p + 1 < y->end && y->p[1] == '=');
    bool changes = y->p + 1 < y->end && strchr("+-*/", *y->p) && y->p[1] == '=';
    if (!strchr(path, '.') && assigns)
        read_recipe(y);
    if (!strchr(path, '.') || (!assigns && !changes && !appends))
        return;
    if (appends)
        path[n - (sizeof more - 1)] = '\0';
    if (!strchr(path, '.'))
        return;
    struct place here = place_of(y, start);
    const struct python before = *y;
    y->p++;
    skip_blanks(y, appends);
    struct yaml_node *value = changes ? NULL : read_value(y, 0);
    skip_blanks(y, appends);
    y->p += value && appends && at(y, ')');
    skip_blanks(y, false);
    bool whole = value && (y->p == y->end || strchr("\n#;", *y->p));
    if (!whole)
        diag_warning(y->diags, here, "%.80s is left out: the program computes its value", path);
    else if (y->doubtful >= 0)
        diag_warning(y->diags, here, "%.80s is left out: whether the program gets there is not known", path);
    if (!whole) { /* what follows is skipped from here on, brackets and all */
        y->p = before.p;
        y->line = before.line;
        y->line_start = before.line_start;
    }
    struct yaml_node *field = whole && y->doubtful < 0 ? find_field(y, path, start) : NULL;
    if (whole && y->doubtful < 0 && !field)
        diag_error(y->diags, here, "%.80s: more fields than %d, or deeper ones than %d", path, KEYS_MAX, PARTS_MAX);
    else if (field && appends)
        append(field, value);
    else if (field)
        assign(field, value);
}

static bool is_one_of(const char *name, const char *const *words)
{
    while (*words && strcmp(*words, name) != 0)
        words++;
    return *words != NULL;
}

static void read_statement(struct python *y)
{
    static const char *const conditions[] = {"if", "elif", "else", "for", "while", "try", "except", "match", "case", NULL};
    char name[NAME_MAX_LENGTH];
    const char *start = y->p;
    int column = (int)(start - y->line_start);
    if (column <= y->doubtful)
        y->doubtful = -1;
    if (!read_name(y, name))
        return;
    if (is_one_of(name, conditions)) {
        skip_blanks(y, false);
        bool main = strcmp(name, "if") == 0 && y->end - y->p > 8 && strncmp(y->p, "__name__", 8) == 0;
        y->doubtful = y->doubtful < 0 && !main ? column : y->doubtful;
        return;
    }
    read_field(y, name, start);
}

struct yaml_node *python_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags)
{
    const char *zero = memchr(bytes, '\0', n);
    struct python y = {.p = bytes,
                       .end = zero ? zero : bytes + n,
                       .line_start = bytes,
                       .line = 1,
                       .name = name,
                       .arena = arena,
                       .diags = diags,
                       .doubtful = -1};
    y.root = new_node(&y, YAML_MAPPING, bytes);
    while (y.p < y.end) {
        skip_blanks(&y, true);
        if (y.p == y.end)
            break;
        const char *before = y.p;
        read_statement(&y);
        skip_statement(&y);
        if (y.p == before) /* a bracket that closes nothing */
            y.p++;
    }
    return y.root;
}
