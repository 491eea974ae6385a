/* python_values.c - right-hand sides of assignments: constants, lists, sums of whole numbers, known names, calls. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/python/python_internal.h"

/* --- constants --- */

static struct yaml_node *read_string(struct python *y)
{
    const char *start = y->p;
    struct yaml_node *node = python_new_node(y, YAML_SCALAR, start);
    node->quoted = true;
    python_skip_string(y);
    size_t n = (size_t)(y->p - start);
    bool plain =
        n >= 2 && y->p[-1] == *start && !memchr(start, '\\', n) && !memchr(start, '\n', n) && (n == 2 || start[1] != *start);
    node->text = plain ? python_copy(y, start + 1, n - 2) : NULL;
    return plain ? node : NULL;
}

/* Digits, with a point or an exponent; the sign of the exponent is a part. */
static struct yaml_node *read_number(struct python *y)
{
    char text[64];
    size_t n = 0;
    struct yaml_node *node = python_new_node(y, YAML_SCALAR, y->p);
    for (; y->p < y->end; y->p++) {
        bool sign = strchr("+-", *y->p) && n && strchr("eE", text[n - 1]);
        if (!sign && !strchr(".0123456789_eE", *y->p))
            break;
        if (n + 1 == sizeof text)
            return NULL;
        if (*y->p != '_')
            text[n++] = *y->p;
    }
    node->text = python_copy(y, text, n);
    return n > 0 && isdigit((unsigned char)text[n - 1]) ? node : NULL;
}

static const char *behind_blanks(const char *p, const char *end)
{
    while (p < end && *p == ' ')
        p++;
    return p;
}

/* Lists of numbers that are multiplied and added, and tuples of numbers, as they are written: [0]*3+[1]*29, (4096, 0). NULL where
 * what begins here is none, and nothing is read then. */
static struct yaml_node *read_sum(struct python *y)
{
    const char *p = y->p, *last = p;
    bool is_sum = false, closed = false, behind_list = false;
    for (int depth = 0; p < y->end && strchr("[]()*+0123456789, ", *p); p++) {
        if (depth == 0 && *p == ',')
            break;
        depth += *p == '[' || *p == '(';
        depth -= *p == ']' || *p == ')';
        if (depth < 0)
            break;
        const char *next = behind_blanks(p + 1, y->end);
        is_sum |= strchr("*+", *p) && (behind_list || (next < y->end && *next == '['));
        is_sum |= *y->p == '(' && depth == 1 && *p == ',';
        behind_list = *p == ']' || (*p == ' ' && behind_list);
        last = *p == ' ' ? last : p;
        closed = depth == 0;
    }
    bool ends = p == y->end || strchr("\n\r#;,)]}", *p);
    if (!is_sum || !closed || !ends)
        return NULL;
    struct yaml_node *node = python_new_node(y, YAML_SCALAR, y->p);
    node->text = python_copy(y, y->p, (size_t)(last - y->p) + 1);
    y->p = last + 1;
    return node;
}

/* --- lists and mappings --- */

static bool open_bracket(struct python *y)
{
    y->p++;
    y->brackets++;
    python_skip_blanks(y);
    return true;
}

/* Behind a value: the comma and what is blank, or the bracket that ends; false where neither stands there. */
static bool next_item(struct python *y, char close)
{
    python_skip_blanks(y);
    if (!python_at(y, ',') && !python_at(y, close))
        return false;
    y->p += python_at(y, ',');
    python_skip_blanks(y);
    return true;
}

static void close_bracket(struct python *y)
{
    y->p++;
    y->brackets--;
}

static struct yaml_node *read_list(struct python *y, int depth)
{
    struct yaml_node *list = python_new_node(y, YAML_SEQUENCE, y->p), *last = NULL;
    for (open_bracket(y); !python_at(y, ']');) {
        struct yaml_node *item = python_read_value(y, depth + 1);
        if (!item || !next_item(y, ']'))
            return NULL;
        yaml_append(list, &last, item);
    }
    close_bracket(y);
    return list;
}

/* The value of a field of a call or dictionary in `field`. A computed value is reported and left out. */
static bool read_member(struct python *y, struct yaml_node *mapping, const char *key, const char *start, int depth)
{
    struct place at = python_place(y, start);
    size_t n = strlen(y->field);
    struct python_mark here = python_mark(y);
    snprintf(y->field + n, sizeof y->field - n, ".%s", key);
    struct yaml_node *value = python_read_value(y, depth + 1);
    python_skip_blanks(y);
    bool whole = value && y->p < y->end && strchr(",)}", *y->p);
    if (!whole) {
        python_leave_out(y, at, y->field, python_computed);
        python_return(y, here);
        python_skip_to(y, ",)}");
    }
    y->field[n] = '\0';
    if (whole && !yaml_find(mapping, key)) {
        value->key = python_copy(y, key, strlen(key));
        value->key_at = at;
        yaml_append(mapping, NULL, value);
        y->n_keys++;
    }
    return y->n_keys < PYTHON_KEYS_MAX;
}

static struct yaml_node *read_dictionary(struct python *y, int depth)
{
    struct yaml_node *mapping = python_new_node(y, YAML_MAPPING, y->p);
    for (open_bracket(y); !python_at(y, '}');) {
        const char *start = y->p;
        struct yaml_node *key = python_at(y, '"') || python_at(y, '\'') ? read_string(y) : NULL;
        python_skip_blanks(y);
        if (!key || !python_at(y, ':'))
            return NULL;
        y->p++;
        python_skip_blanks(y);
        if (!read_member(y, mapping, key->text, start, depth) || !next_item(y, '}'))
            return NULL;
    }
    close_bracket(y);
    return mapping;
}

/* --- calls --- */

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

bool python_is_recipe(const char *name)
{
    static const char *const kinds[] = {"pretrain", "finetune", "sft", "peft"};
    const char *last = last_part(name);
    bool makes = strstr(last, "recipe") || strstr(last, "config"), kind = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        kind |= strstr(last, kinds[i]) != NULL;
    return makes && kind && !isupper((unsigned char)*last);
}

/* Does a call make an object of its arguments? It is a class, or a function with a name like a configuration. */
static bool is_maker(const char *name)
{
    static const char *const words[] = {"config", "recipe", "mixed", "precision"};
    const char *last = last_part(name);
    bool maker = isupper((unsigned char)*last) || strcmp(name, "dict") == 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        maker |= strstr(last, words[i]) != NULL;
    return maker;
}

/* A value without a name, after the `last` one. The first argument of run.Config or run.Partial is the function. */
static bool read_unnamed(struct python *y, struct yaml_node *call, struct yaml_node **last, const char *start, int depth)
{
    static const char *const wrappers[] = {"run.Config", "Config", "run.Partial", "Partial", NULL};
    struct yaml_node *target = yaml_find(call, "_target_"), *values = yaml_find(call, "_args_");
    char name[PYTHON_NAME_SIZE];
    struct python_mark here = python_mark(y);
    if (!target) /* a dictionary */
        return false;
    if (python_is_one_of(target->text, wrappers) && python_read_name(y, name)) {
        python_skip_blanks(y);
        target->text = python_copy(y, name, strlen(name));
        return python_at(y, ',') || python_at(y, ')');
    }
    python_return(y, here);
    struct yaml_node *value = python_read_value(y, depth + 1);
    if (!value)
        return false;
    if (!values) {
        values = python_new_node(y, YAML_SEQUENCE, start);
        values->key = "_args_";
        yaml_append(call, NULL, values);
    }
    yaml_append(values, last, value);
    return true;
}

/* Of a recipe's function where its files go, which is often computed, and says nothing. */
static bool is_idle(const char *name)
{
    return strcmp(name, "dir") == 0 || strcmp(name, "name") == 0;
}

static bool read_argument(struct python *y, struct yaml_node *call, struct yaml_node **last, bool recipe, int depth)
{
    char name[PYTHON_NAME_SIZE];
    struct python_mark here = python_mark(y);
    bool named = python_read_name(y, name);
    python_skip_blanks(y);
    if (named && python_at(y, '=') && !(y->p + 1 < y->end && y->p[1] == '=')) {
        y->p++;
        python_skip_blanks(y);
        if (recipe && is_idle(name)) {
            python_skip_to(y, ",)");
            return true;
        }
        return read_member(y, call, name, here.p, depth);
    }
    python_return(y, here);
    bool read = !python_at(y, '*') && read_unnamed(y, call, last, here.p, depth);
    python_skip_blanks(y);
    read = read && (python_at(y, ',') || python_at(y, ')'));
    if (read)
        return true;
    python_return(y, here);
    if (!recipe && !python_at(y, '*'))
        return false;
    python_skip_to(y, ",)");
    char what[PYTHON_NAME_SIZE + 40];
    snprintf(what, sizeof what, "%.*s of %s", y->p - here.p < 40 ? (int)(y->p - here.p) : 40, here.p, y->field);
    python_return(y, here);
    python_leave_out(y, python_place(y, here.p), what, python_computed);
    python_skip_to(y, ",)");
    return true;
}

struct yaml_node *python_read_call(struct python *y, const char *name, const char *start, int depth)
{
    struct yaml_node *call = python_new_node(y, YAML_MAPPING, start), *target = python_new_node(y, YAML_SCALAR, start);
    struct yaml_node *last = NULL;
    bool recipe = python_is_recipe(name);
    target->key = "_target_";
    target->text = python_copy(y, name, strlen(name));
    if (strcmp(name, "dict") != 0)
        yaml_append(call, NULL, target);
    for (open_bracket(y); !python_at(y, ')');)
        if (y->p == y->end || !read_argument(y, call, &last, recipe, depth) || !next_item(y, ')'))
            return NULL;
    close_bracket(y);
    return call;
}

/* --- names --- */

/* Is a name with dots a constant of a module or of a class (torch.bfloat16, AttnBackend.flash)? */
static bool is_constant(const struct python *y, const char *name)
{
    const struct python_name *known = python_find_name(y, name);
    bool class = false;
    for (const char *part = name, *dot; (dot = strchr(part, '.')); part = dot + 1)
        class |=
            isupper((unsigned char)*part) && part + 1 < dot && strcspn(part, "abcdefghijklmnopqrstuvwxyz") < (size_t)(dot - part);
    return class || strncmp(name, "torch.", 6) == 0 || (known && (known->is_module || known->imported));
}

/* An object as a part of what is being read from then on, which it can be once. NULL: it is none that a call has made. */
static struct yaml_node *give(struct python *y, int index, const char *start)
{
    struct python_object *object = &y->objects[index];
    if (object->origin != ORIGIN_MADE || object->used)
        return NULL;
    struct yaml_node *node = python_new_node(y, YAML_MAPPING, start);
    node->first = object->node->first;
    object->node = node;
    object->used = y->gave = true;
    python_tell(y, object);
    return node;
}

/* A copy of what a name stands for: a value, or an object. NULL: not known. */
static struct yaml_node *read_known(struct python *y, const char *name, const char *start)
{
    const struct python_name *known = python_find_name(y, name);
    bool field = strchr(name, '.') != NULL, whole = known && known->object >= 0 && !*known->path && !field;
    const struct yaml_node *value = field ? python_known_field(y, name) : known ? known->value : NULL;
    if (value && value->kind != YAML_MAPPING) {
        struct yaml_node *node = python_new_node(y, value->kind, start);
        node->quoted = value->quoted;
        node->text = value->text;
        node->first = value->first;
        return node;
    }
    return whole && !known->is_function ? give(y, known->object, start) : NULL;
}

/* True, None, torch.bfloat16, a name that is known, or a call. */
static struct yaml_node *read_named(struct python *y, int depth)
{
    char name[PYTHON_NAME_SIZE];
    const char *start = y->p;
    if (!python_read_name(y, name))
        return NULL;
    const struct python_name *function = python_at(y, '(') ? python_find_name(y, name) : NULL;
    if (function && function->is_function && function->object >= 0 && !strchr(name, '.')) {
        python_skip_brackets(y);
        return give(y, function->object, start);
    }
    if (python_at(y, '('))
        return is_maker(name) ? python_read_call(y, name, start, depth) : NULL;
    bool none = strcmp(name, "None") == 0, truth = strcmp(name, "True") == 0 || strcmp(name, "False") == 0;
    struct yaml_node *known = none || truth ? NULL : read_known(y, name, start);
    if (known)
        return known;
    if (!none && !truth && !(strchr(name, '.') && is_constant(y, name)))
        return NULL;
    struct yaml_node *node = python_new_node(y, YAML_SCALAR, start);
    node->text = none ? "null" : python_copy(y, name, strlen(name));
    return node;
}

/* --- whole numbers --- */

/* A value as it is written, and, where it is one, its whole number. */
struct operand {
    struct yaml_node *node; /* NULL: it is computed */
    bool whole;
    int64_t value;
};

static struct operand read_terms(struct python *y, int depth);

static struct operand operand_of(struct yaml_node *node)
{
    struct operand operand = {.node = node};
    const char *text = node && node->kind == YAML_SCALAR && !node->quoted ? node->text : "";
    size_t n = strspn(text + (*text == '-'), "0123456789");
    enum { DIGITS_MAX = 18 };
    operand.whole = n > 0 && n <= DIGITS_MAX && !text[(*text == '-') + n];
    operand.value = operand.whole ? strtoll(text, NULL, 10) : 0;
    return operand;
}

static struct operand computed_number(struct python *y, int64_t value, bool known, const char *start)
{
    char text[32];
    struct operand result = {0};
    if (!known)
        return result;
    int n = snprintf(text, sizeof text, "%lld", (long long)value);
    result.node = python_new_node(y, YAML_SCALAR, start);
    result.node->text = python_copy(y, text, (size_t)n);
    result.whole = true;
    result.value = value;
    return result;
}

static struct operand read_primary(struct python *y, int depth)
{
    struct operand nothing = {0};
    if (y->p == y->end || depth > PYTHON_NESTING_MAX)
        return nothing;
    const char *start = y->p;
    if (*y->p == '-' || *y->p == '+') {
        bool minus = *y->p == '-';
        y->p++;
        python_skip_blanks(y);
        struct operand of = read_primary(y, depth + 1);
        if (!of.node || of.node->kind != YAML_SCALAR || of.node->quoted || !strchr(".0123456789", *of.node->text))
            return nothing;
        size_t n = strlen(of.node->text);
        char *text = arena_new(y->arena, n + 2, 1);
        snprintf(text, n + 2, "%s%s", minus ? "-" : "", of.node->text);
        of.node->text = text;
        of.node->at = python_place(y, start);
        of.value = minus ? -of.value : of.value;
        return of;
    }
    if (*y->p == '(') {
        open_bracket(y);
        struct operand inner = read_terms(y, depth + 1);
        python_skip_blanks(y);
        if (!inner.node || !python_at(y, ')'))
            return nothing;
        close_bracket(y);
        return inner;
    }
    if (isdigit((unsigned char)*y->p) || *y->p == '.')
        return operand_of(read_number(y));
    if (*y->p == '"' || *y->p == '\'')
        return operand_of(read_string(y));
    return operand_of(read_named(y, depth));
}

/* The whole part of a quotient and what is left as Python has them: the remainder has the divisor's sign. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool power(int64_t base, int64_t exponent, int64_t *value)
{
    *value = 1;
    for (int64_t i = 0; i < exponent; i++)
        if (i >= 63 || __builtin_mul_overflow(*value, base, value))
            return false;
    return exponent >= 0;
}

/* + - * ** // and %, of which two letters are written as one; 0: none stands here. */
static char read_operator(struct python *y, const char *among)
{
    static const struct {
        const char *text;
        char operator;
    } operators[] = {{"**", '^'}, {"//", '/'}, {"+", '+'}, {"-", '-'}, {"*", '*'}, {"%", '%'}};
    struct python_mark here = python_mark(y);
    python_skip_blanks(y);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t n = strlen(operators[i].text);
        if ((size_t)(y->end - y->p) < n || strncmp(y->p, operators[i].text, n) != 0)
            continue;
        if (!strchr(among, operators[i].operator))
            break;
        y->p += n;
        python_skip_blanks(y);
        return operators[i].operator;
    }
    python_return(y, here);
    return 0;
}

static struct operand apply(struct python *y, struct operand a, char operator, struct operand b, const char *start)
{
    int64_t value = 0;
    bool known = a.whole && b.whole;
    if (known && operator== '+')
        known = !__builtin_add_overflow(a.value, b.value, &value);
    else if (known && operator== '-')
        known = !__builtin_sub_overflow(a.value, b.value, &value);
    else if (known && operator== '*')
        known = !__builtin_mul_overflow(a.value, b.value, &value);
    else if (known && operator== '^')
        known = power(a.value, b.value, &value);
    else if (known && b.value > 0 && operator== '/')
        value = floor_divide(a.value, b.value);
    else if (known && b.value > 0)
        value = a.value - b.value * floor_divide(a.value, b.value);
    else
        known = false;
    return computed_number(y, value, known, start);
}

/* A power's right side binds first: 2 ** 3 ** 2. A sign in front of one is the power's, which nobody writes here. */
static struct operand read_power(struct python *y, int depth)
{
    const char *start = y->p;
    bool signed_ = python_at(y, '-') || python_at(y, '+');
    struct operand base = read_primary(y, depth);
    if (!base.node || !read_operator(y, "^"))
        return base;
    struct operand exponent = depth < PYTHON_NESTING_MAX ? read_power(y, depth + 1) : (struct operand){0};
    return signed_ ? (struct operand){0} : apply(y, base, '^', exponent, start);
}

static struct operand read_factors(struct python *y, int depth)
{
    const char *start = y->p;
    struct operand product = read_power(y, depth);
    for (char operator; product.node && (operator= read_operator(y, "*/%"));)
        product = apply(y, product, operator, read_power(y, depth), start);
    return product;
}

static struct operand read_terms(struct python *y, int depth)
{
    const char *start = y->p;
    struct operand sum = read_factors(y, depth);
    for (char operator; sum.node && (operator= read_operator(y, "+-"));)
        sum = apply(y, sum, operator, read_factors(y, depth), start);
    return sum;
}

struct yaml_node *python_read_value(struct python *y, int depth)
{
    if (y->p == y->end || depth > PYTHON_NESTING_MAX)
        return NULL;
    struct yaml_node *sum = *y->p == '[' || *y->p == '(' ? read_sum(y) : NULL;
    if (sum)
        return sum;
    if (*y->p == '[')
        return read_list(y, depth);
    if (*y->p == '{')
        return read_dictionary(y, depth);
    return read_terms(y, depth).node;
}
