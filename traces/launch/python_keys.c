/* Statements: which of them say a field of a recipe, and under which conditions they stand. */
#include "traces/launch/python_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/python_reading.h"

enum { TARGETS_MAX = 16 };

/* What is assigned to: a path, in which a["b"] is a.b. */
struct target {
    char path[PYTHON_NAME_SIZE];
    const char *start;
    struct place at;
    bool known; /* no part of it is computed */
};

struct targets {
    struct target of[TARGETS_MAX];
    int n;
    bool all; /* there are no more */
};

/* --- targets --- */

/* ["x"] behind a path; false where what is in the brackets is computed. */
static bool read_subscript(struct python *y, struct target *target)
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

/* a.b["c"].d; false where no path begins here. */
static bool read_target(struct python *y, struct target *target)
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

/* One, or several between commas, in brackets or not. */
static bool read_targets(struct python *y, struct targets *targets)
{
    bool bracket = python_at(y, '(') || python_at(y, '[');
    int first = targets->n;
    y->p += bracket;
    y->brackets += bracket;
    for (;;) {
        python_skip_blanks(y);
        if (targets->n == TARGETS_MAX || !read_target(y, &targets->of[targets->n])) {
            targets->all = targets->n > first && strchr(")]=", y->p < y->end ? *y->p : '\n');
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

/* Whose field it is, and where; false where it is no recipe's. */
static bool find_field(struct python *y, const struct target *target, int *object, char path[PYTHON_NAME_SIZE])
{
    if (!strchr(target->path, '.'))
        return false;
    *object = python_find_object(y, target->path, target->at, path);
    return *object >= 0 && *path;
}

/* A field is said (or, `appends`, one more of a list); value NULL: it is computed. */
static void set_field(struct python *y, const struct target *target, struct yaml_node *value, bool appends)
{
    int object;
    char path[PYTHON_NAME_SIZE];
    if (!find_field(y, target, &object, path))
        return;
    if (!target->known)
        python_leave_out(y, target->at, target->path, "the program computes which field it is");
    else if (!value) {
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

/* A name stands for another object, or a field of one: m = cfg.model. False where that is not what stands here. */
static bool bind_alias(struct python *y, const struct target *target)
{
    struct python_mark here = python_mark(y);
    struct target meant;
    char path[PYTHON_NAME_SIZE];
    bool read = read_target(y, &meant);
    python_skip_blanks(y);
    bool calls = read && python_at(y, '(') && !strchr(meant.path, '.');
    const struct python_name *known = read ? python_find_name(y, meant.path) : NULL;
    if (calls && known && known->is_function && known->object >= 0) {
        python_skip_brackets(y);
        python_skip_blanks(y);
    } else if (calls || (known && (known->is_function || known->value || known->is_module))) {
        read = false;
    } else if (read && !known && python_at_end(y)) { /* a constant, perhaps */
        struct python_mark behind = python_mark(y);
        python_return(y, here);
        read = !python_read_value(y, 0);
        python_return(y, behind);
    }
    const struct yaml_node *value = read ? python_known_field(y, meant.path) : NULL;
    int object = read && meant.known && python_at_end(y) && !(value && value->kind != YAML_MAPPING)
                     ? python_find_object(y, meant.path, meant.at, path)
                     : -1;
    if (object < 0) {
        python_return(y, here);
        return false;
    }
    struct python_name *name = python_bind(y, target->path, strlen(target->path));
    name->object = object;
    name->path = python_copy(y, path, strlen(path));
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

/* A name is a value from here on, or an object of which what is left out is told where somebody reads it. */
static void bind_value(struct python *y, const struct target *target)
{
    struct diags quiet = {0}, *loud = y->diags;
    y->diags = &quiet;
    struct yaml_node *value = python_read_value(y, 0);
    y->diags = loud;
    python_skip_blanks(y);
    bool whole = value && python_at_end(y) && y->doubtful < 0;
    struct python_name *name = python_bind(y, target->path, strlen(target->path));
    name->is_computed = !whole;
    if (whole && value->kind == YAML_MAPPING)
        name->object = python_new_object(y, target->path, ORIGIN_MADE, value, target->at);
    else if (whole)
        name->value = value;
    if (name->object >= 0)
        y->objects[name->object].told = quiet;
    else
        diags_free(&quiet);
}

/* What a name without dots is from here on. */
static void bind_name(struct python *y, const struct target *target)
{
    struct place at;
    struct python_mark here = python_mark(y);
    snprintf(y->field, sizeof y->field, "%s", target->path);
    if (y->doubtful < 0 && bind_alias(y, target))
        return;
    struct yaml_node *recipe = read_recipe(y, &at);
    python_skip_blanks(y);
    if (recipe && !python_at_end(y)) {
        python_return(y, here);
        recipe = NULL;
    }
    if (!recipe)
        bind_value(y, target);
    else if (y->doubtful >= 0)
        python_leave_out(y, target->at, target->path, "whether the program gets there, to this recipe, is not known");
    else
        python_bind(y, target->path, strlen(target->path))->object = new_recipe(y, target->path, recipe, at);
    python_return(y, here);
}

/* One value for one path, or for several: a.x = b.y = 4. */
static void assign_one(struct python *y, const struct targets *targets)
{
    for (int i = 0; i < targets->n; i++) {
        const struct target *target = &targets->of[i];
        struct python_mark here = python_mark(y);
        if (!strchr(target->path, '.'))
            bind_name(y, target);
        else {
            snprintf(y->field, sizeof y->field, "%s", target->path);
            struct yaml_node *value = python_read_value(y, 0);
            python_skip_blanks(y);
            bool whole = value && python_at_end(y);
            if (!whole)
                python_return(y, here);
            set_field(y, target, whole ? value : NULL, false);
        }
        if (i + 1 < targets->n)
            python_return(y, here);
    }
}

/* Values of a.x, a.y = 4, 2: all of them, before anything is assigned; false where they are not as many. */
static bool read_values(struct python *y, const struct targets *targets, struct yaml_node **values)
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
        snprintf(y->field, sizeof y->field, "%s", targets->of[n].path);
        values[n] = python_read_value(y, 0);
        python_skip_blanks(y);
        bool whole = values[n] && (python_at_end(y) || strchr(",)]", *y->p));
        if (!whole) {
            python_return(y, before);
            python_skip_to(y, ",)]");
            values[n] = NULL;
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

static void assign_several(struct python *y, const struct targets *targets)
{
    struct yaml_node *values[TARGETS_MAX] = {0};
    bool known = read_values(y, targets, values) && targets->all;
    for (int i = 0; i < targets->n; i++) {
        const struct target *target = &targets->of[i];
        struct yaml_node *value = known && target->known ? values[i] : NULL;
        if (strchr(target->path, '.')) {
            set_field(y, target, value, false);
            continue;
        }
        struct python_name *name = python_bind(y, target->path, strlen(target->path));
        if (value && value->kind != YAML_MAPPING && y->doubtful < 0)
            name->value = value;
        else
            name->is_computed = true;
    }
}

static bool at_assignment(const struct python *y)
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

static void tell_computed(struct python *y, const struct targets *targets)
{
    for (int i = 0; i < targets->n; i++) {
        const struct target *target = &targets->of[i];
        if (strchr(target->path, '.'))
            set_field(y, target, NULL, false);
        else if (target->known)
            python_bind(y, target->path, strlen(target->path));
    }
}

/* Behind the targets. */
static void read_assignment(struct python *y, struct targets *targets)
{
    if (python_at(y, ':') && targets->n == 1) { /* x: int = 4 */
        y->p++;
        python_skip_to(y, "=");
    }
    if (change_at(y)) {
        tell_computed(y, targets);
        return;
    }
    if (!at_assignment(y))
        return;
    bool several = targets->n > 1;
    for (;;) {
        y->p++;
        python_skip_blanks(y);
        struct python_mark here = python_mark(y);
        int n = targets->n;
        bool more = !several && read_targets(y, targets) && targets->n == n + 1 && at_assignment(y);
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

/* --- calls --- */

/* setattr(cfg.model, "x", 4) */
static void read_setattr(struct python *y)
{
    struct target target;
    y->p++;
    y->brackets++;
    python_skip_blanks(y);
    struct place at = python_place(y, y->p);
    bool object = read_target(y, &target);
    python_skip_blanks(y);
    if (!object || !python_at(y, ','))
        return;
    y->p++;
    python_skip_blanks(y);
    struct yaml_node *name = python_at(y, '"') || python_at(y, '\'') ? python_read_value(y, 0) : NULL;
    python_skip_blanks(y);
    size_t n = strlen(target.path);
    if (!name || !python_at(y, ',') || !*name->text || strchr(name->text, '.') ||
        n + strlen(name->text) + 2 > sizeof target.path) {
        char what[PYTHON_NAME_SIZE + 16];
        snprintf(what, sizeof what, "a field of %s", target.path);
        python_leave_out(y, at, what, "the program computes which field it is");
        return;
    }
    snprintf(target.path + n, sizeof target.path - n, ".%s", name->text);
    y->p++;
    python_skip_blanks(y);
    snprintf(y->field, sizeof y->field, "%s", target.path);
    struct yaml_node *value = python_read_value(y, 0);
    python_skip_blanks(y);
    set_field(y, &target, python_at(y, ')') ? value : NULL, false);
}

/* One more of a list, or a change that is none: cfg.x.append(y), cfg.x.update(y). */
static void read_method(struct python *y, struct target *target)
{
    static const char *const changes[] = {"update", "extend", "insert", "remove", "pop", "clear", "setdefault", NULL};
    char *dot = strrchr(target->path, '.');
    if (!dot || !strchr(target->path, '.'))
        return;
    bool appends = strcmp(dot + 1, "append") == 0, changed = python_is_one_of(dot + 1, changes);
    *dot = '\0';
    if (!strchr(target->path, '.') || (!appends && !changed))
        return;
    if (changed) {
        int object;
        char path[PYTHON_NAME_SIZE];
        if (find_field(y, target, &object, path))
            python_leave_out(y, target->at, target->path, "how this changes it is not read");
        return;
    }
    snprintf(y->field, sizeof y->field, "%s", target->path);
    y->p++;
    y->brackets++;
    python_skip_blanks(y);
    struct yaml_node *value = python_read_value(y, 0);
    python_skip_blanks(y);
    set_field(y, target, python_at(y, ')') ? value : NULL, true);
}

/* --- statements --- */

/* Which names of a statement it gives: the parameters of a function, those before "in", behind "as", all. */
enum given { GIVEN_PARAMETERS, GIVEN_BEFORE_IN, GIVEN_BEHIND_AS, GIVEN_ALL };

/* Names that a statement gives, up to its colon or end, are not known from here on. */
static void forget_names(struct python *y, enum given given)
{
    char name[PYTHON_NAME_SIZE];
    char before = ' ';
    int outside = y->brackets;
    bool behind_as = false;
    for (; y->p < y->end; python_skip_blanks(y)) {
        if (y->brackets == outside && strchr(":;\n", *y->p))
            break;
        if (python_read_name(y, name)) {
            if (given == GIVEN_BEFORE_IN && strcmp(name, "in") == 0)
                break;
            bool parameter = y->brackets == outside + 1 && strchr("(,*", before);
            if (given == GIVEN_PARAMETERS ? parameter : given == GIVEN_BEHIND_AS ? behind_as : before != '.')
                python_bind(y, name, strcspn(name, "."));
            behind_as = strcmp(name, "as") == 0;
            before = 'a';
        } else if (*y->p == '"' || *y->p == '\'') {
            python_skip_string(y);
            before = 'a';
        } else {
            y->brackets += strchr("([{", *y->p) != NULL;
            y->brackets -= strchr(")]}", *y->p) && y->brackets > outside;
            before = *y->p;
            y->p += *y->p != '\n';
        }
    }
    y->brackets = outside;
}

static void read_function(struct python *y, int column)
{
    char name[PYTHON_NAME_SIZE];
    python_skip_blanks(y);
    if (!python_read_name(y, name))
        return;
    python_open_scope(y, column, name);
    forget_names(y, GIVEN_PARAMETERS);
}

/* One of what is imported: a module, or, `from` one, a name. */
static void read_imported(struct python *y, const char *from)
{
    char name[PYTHON_NAME_SIZE], as[PYTHON_NAME_SIZE], whole[2 * PYTHON_NAME_SIZE];
    if (!python_read_name(y, name))
        return;
    snprintf(whole, sizeof whole, "%s.%s", from ? from : "", name);
    struct python_mark here = python_mark(y);
    python_skip_blanks(y);
    bool renamed = python_read_name(y, as) && strcmp(as, "as") == 0;
    python_skip_blanks(y);
    renamed = renamed && python_read_name(y, as);
    if (!renamed)
        python_return(y, here);
    const char *bound = renamed ? as : name;
    struct python_name *known = python_bind(y, bound, strcspn(bound, "."));
    known->is_module = !from;
    bool plain = python_is_recipe(name) && strncmp(name, "pretrain", 8) && strncmp(name, "finetune", 8) && !renamed;
    known->imported = !from ? NULL : plain ? known->name : python_copy(y, whole, strlen(whole));
}

static void read_import(struct python *y, bool from)
{
    char module[PYTHON_NAME_SIZE] = "", word[PYTHON_NAME_SIZE];
    python_skip_blanks(y);
    while (from && python_at(y, '.'))
        y->p++;
    if (from && !python_read_name(y, module))
        return;
    python_skip_blanks(y);
    if (from && strcmp(module, "import") != 0 && (!python_read_name(y, word) || strcmp(word, "import") != 0))
        return;
    python_skip_blanks(y);
    bool bracket = python_at(y, '(');
    y->p += bracket;
    y->brackets += bracket;
    for (python_skip_blanks(y); y->p < y->end && !python_at_end(y) && !python_at(y, ')'); python_skip_blanks(y)) {
        const char *before = y->p;
        read_imported(y, from ? module : NULL);
        python_skip_blanks(y);
        y->p += python_at(y, ',');
        if (y->p == before)
            break;
    }
    y->brackets -= bracket;
}

/* What a function gives back is what its callers get. */
static void read_return(struct python *y)
{
    char name[PYTHON_NAME_SIZE];
    struct place at;
    if (!y->n_scopes || y->doubtful >= 0)
        return;
    struct python_name *function = &y->names[y->scopes[y->n_scopes - 1].function];
    python_skip_blanks(y);
    snprintf(y->field, sizeof y->field, "%s", function->name);
    struct yaml_node *recipe = read_recipe(y, &at);
    bool read = !recipe && python_read_name(y, name);
    python_skip_blanks(y);
    const struct python_name *known = read && python_at_end(y) && !strchr(name, '.') ? python_find_name(y, name) : NULL;
    if (known && known->object >= 0 && !*known->path)
        function->object = known->object;
    if (recipe && python_at_end(y))
        function->object = new_recipe(y, function->name, recipe, at);
}

/* A statement that begins with a word of the language; false: this is none. On the way out its block may follow, in its line. */
static bool read_keyword(struct python *y, const char *word, int column)
{
    static const char *const conditions[] = {"if", "elif", "else", "for", "while", "try", "except", "match", "case", NULL};
    static const char *const blocks[] = {"finally", "with", "class", NULL}, *const losers[] = {"del", "global", "nonlocal", NULL};
    struct python_mark here = python_mark(y);
    bool condition = python_is_one_of(word, conditions);
    python_skip_blanks(y);
    if (at_assignment(y) || python_at(y, '.')) /* match = ... */
        return false;
    if (condition) {
        bool main = strcmp(word, "if") == 0 && y->end - y->p > 8 && strncmp(y->p, "__name__", 8) == 0;
        y->doubtful = y->doubtful < 0 && !main ? column : y->doubtful;
    }
    if (strcmp(word, "for") == 0)
        forget_names(y, GIVEN_BEFORE_IN);
    else if (strcmp(word, "with") == 0 || strcmp(word, "except") == 0)
        forget_names(y, GIVEN_BEHIND_AS);
    else if (python_is_one_of(word, losers))
        forget_names(y, GIVEN_ALL);
    else if (strcmp(word, "def") == 0)
        read_function(y, column);
    else if (strcmp(word, "import") == 0 || strcmp(word, "from") == 0)
        read_import(y, *word == 'f');
    else if (strcmp(word, "return") == 0)
        read_return(y);
    else if (!condition && !python_is_one_of(word, blocks)) {
        python_return(y, here);
        return false;
    }
    if (condition || python_is_one_of(word, blocks) || strcmp(word, "def") == 0)
        do {
            python_skip_to(y, ":");
            y->p += python_at(y, ':');
        } while (python_at(y, '=')); /* := */
    return true;
}

/* One statement, up to where nothing of it is read any more; true where its block may follow behind it. */
static bool read_statement(struct python *y, int column)
{
    struct targets targets = {.all = true};
    struct python_mark here = python_mark(y);
    char word[PYTHON_NAME_SIZE];
    if (python_read_name(y, word)) {
        if (strcmp(word, "async") == 0) {
            python_skip_blanks(y);
            return true;
        }
        if (read_keyword(y, word, column))
            return true;
        if (strcmp(word, "setattr") == 0 && python_at(y, '(')) {
            read_setattr(y);
            return false;
        }
    }
    python_return(y, here);
    if (!read_targets(y, &targets))
        return false;
    if (python_at(y, '(') && targets.n == 1)
        read_method(y, &targets.of[0]);
    else
        read_assignment(y, &targets);
    return false;
}

/* The statements of a line, with what they have on further ones. */
static void read_line(struct python *y)
{
    int column = (int)(y->p - y->line_start);
    if (column <= y->doubtful)
        y->doubtful = -1;
    python_close_scopes(y, column);
    for (bool more = true; more && y->p < y->end;) {
        struct python_mark here = python_mark(y);
        bool block = read_statement(y, column);
        y->brackets = 0;
        python_skip_blanks(y);
        if (!block) { /* from its beginning on: what was read of it may stand within brackets */
            python_return(y, here);
            python_skip_to(y, "");
        }
        more = y->p > here.p && !python_at(y, '\n') && !python_at(y, '#');
        y->p += python_at(y, ';');
        python_skip_blanks(y);
    }
    python_skip_to(y, "");
    if (python_at(y, '\n'))
        python_skip_line_end(y);
    else if (python_at(y, ';'))
        y->p++;
}

struct yaml_node *python_parse(const char *name, const char *bytes, size_t n, struct arena *arena, struct diags *diags)
{
    const char *zero = memchr(bytes, '\0', n);
    struct python *y = memory_new(1, sizeof *y);
    y->p = y->line_start = bytes;
    y->end = zero ? zero : bytes + n;
    y->line = 1;
    y->name = name;
    y->arena = arena;
    y->diags = diags;
    y->doubtful = -1;
    while (y->p < y->end) {
        y->brackets = 1; /* empty lines and comments are skipped as within them */
        python_skip_blanks(y);
        y->brackets = 0;
        if (y->p == y->end)
            break;
        const char *before = y->p;
        read_line(y);
        if (y->p == before) /* a bracket that closes nothing */
            y->p++;
    }
    struct yaml_node *root = python_result(y);
    free(y);
    return root;
}
