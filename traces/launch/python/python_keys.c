/* python_keys.c - statements of a program: which set a field of a recipe, and under which conditions. */
#include "traces/launch/python/python_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/launch/python/python_internal.h"

/* --- calls --- */

/* setattr(cfg.model, "x", 4) */
static void read_setattr(struct python *y)
{
    struct python_target target;
    y->p++;
    y->brackets++;
    python_skip_blanks(y);
    struct place at = python_place(y, y->p);
    bool object = python_read_target(y, &target);
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
        python_leave_out(y, at, what, "the program computes the name of the field");
        return;
    }
    snprintf(target.path + n, sizeof target.path - n, ".%s", name->text);
    y->p++;
    python_skip_blanks(y);
    snprintf(y->field, sizeof y->field, "%s", target.path);
    struct yaml_node *value = python_read_value(y, 0);
    python_skip_blanks(y);
    bool closed = python_at(y, ')');
    y->p += closed;
    y->brackets -= closed;
    python_skip_blanks(y);
    python_set_field(y, &target, closed && python_at_end(y) ? value : NULL, false); /* not: ... if x else None */
}

/* A change of what a name without dots stands for: a list is not known from then on, an object keeps what was said of it. */
static void read_change(struct python *y, const struct python_target *target)
{
    const struct python_name *known = python_find_name(y, target->path);
    const struct python_object *object = known && known->object >= 0 ? &y->objects[known->object] : NULL;
    if (known && known->value)
        python_bind(y, target->path, strlen(target->path))->is_computed = true;
    else if (object && (*known->path || object->origin == ORIGIN_RECIPE))
        python_leave_out(y, target->at, target->path, "msim does not read how this changes it");
}

/* One more of a list, or a change that is none: cfg.x.append(y), cfg.x.update(y). */
static void read_method(struct python *y, struct python_target *target)
{
    static const char *const changes[] = {"update", "extend", "insert", "remove", "pop", "clear", "setdefault", NULL};
    char *dot = strrchr(target->path, '.');
    if (!dot || !strchr(target->path, '.'))
        return;
    bool appends = strcmp(dot + 1, "append") == 0, changed = python_is_one_of(dot + 1, changes);
    *dot = '\0';
    if (!appends && !changed)
        return;
    if (!strchr(target->path, '.')) {
        read_change(y, target);
        return;
    }
    if (changed) {
        int object;
        char path[PYTHON_NAME_SIZE];
        if (python_find_field(y, target, &object, path))
            python_leave_out(y, target->at, target->path, "msim does not read how this changes it");
        return;
    }
    snprintf(y->field, sizeof y->field, "%s", target->path);
    y->p++;
    y->brackets++;
    python_skip_blanks(y);
    struct yaml_node *value = python_read_value(y, 0);
    python_skip_blanks(y);
    python_set_field(y, target, python_at(y, ')') ? value : NULL, true);
}

/* --- statements --- */

/* Which names of a statement it gives: the parameters of a function, those before "in", behind "as", all. */
enum given { GIVEN_PARAMETERS, GIVEN_BEFORE_IN, GIVEN_BEHIND_AS, GIVEN_ALL };

/* del x, del cfg.x, global x */
static void lose(struct python *y, const char *name, struct place at)
{
    struct python_target target = {.at = at, .known = true};
    int object;
    char path[PYTHON_NAME_SIZE];
    snprintf(target.path, sizeof target.path, "%s", name);
    if (!strchr(name, '.'))
        python_unbind(y, name);
    else if (python_find_field(y, &target, &object, path) && y->doubtful < 0)
        python_forget(y, object, path);
}

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
        struct place at = python_place(y, y->p);
        if (python_read_name(y, name)) {
            if (given == GIVEN_BEFORE_IN && strcmp(name, "in") == 0)
                break;
            bool parameter = y->brackets == outside + 1 && strchr("(,*", before);
            if (given == GIVEN_PARAMETERS ? parameter : given == GIVEN_BEHIND_AS ? behind_as : before != '.')
                given == GIVEN_ALL ? lose(y, name, at) : (void)python_bind(y, name, strcspn(name, "."));
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

/* A function, or a class, which keeps its names to itself as one does. */
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
    bool plain = python_is_recipe(name) && strncmp(name, "pretrain", 8) != 0 && strncmp(name, "finetune", 8) != 0 && !renamed;
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
    if (!y->n_scopes || y->doubtful >= 0)
        return;
    struct python_name *function = &y->names[y->scopes[y->n_scopes - 1].function];
    python_skip_blanks(y);
    int object = python_read_object(y, function->name, python_place(y, y->p));
    function->object = object >= 0 ? object : function->object;
}

/* A statement that begins with a word of the language; false: this is none. Behind a `block` statements of it may follow in its
 * line. */
static bool read_keyword(struct python *y, const char *word, int column, bool *block)
{
    static const char *const conditions[] = {"if", "elif", "else", "for", "while", "try", "except", "match", "case", NULL};
    static const char *const blocks[] = {"finally", "with", "class", "def", "async", NULL};
    static const char *const losers[] = {"del", "global", "nonlocal", NULL}, *const others[] = {"import", "from", "return", NULL};
    bool condition = python_is_one_of(word, conditions);
    python_skip_blanks(y);
    bool soft = strcmp(word, "match") == 0 || strcmp(word, "case") == 0; /* which may be names, too */
    if (soft && (python_at_assignment(y) || python_at(y, '.') || python_at(y, ',')))
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
    else if (strcmp(word, "def") == 0 || strcmp(word, "class") == 0)
        read_function(y, column);
    else if (strcmp(word, "return") == 0)
        read_return(y);
    else if (python_is_one_of(word, others))
        read_import(y, *word == 'f');
    *block = condition || python_is_one_of(word, blocks);
    while (*block && strcmp(word, "async") != 0) {
        python_skip_to(y, ":");
        y->p += python_at(y, ':');
        if (!python_at(y, '=')) /* := */
            break;
    }
    return *block || python_is_one_of(word, losers) || python_is_one_of(word, others);
}

/* One statement, up to where nothing of it is read any more; true where its block may follow behind it. */
static bool read_statement(struct python *y, int column)
{
    struct python_targets targets = {.all = true};
    struct python_mark here = python_mark(y);
    char word[PYTHON_NAME_SIZE];
    bool block = false;
    if (python_read_name(y, word)) {
        if (read_keyword(y, word, column, &block))
            return block;
        if (strcmp(word, "setattr") == 0 && python_at(y, '(')) {
            read_setattr(y);
            return false;
        }
    }
    python_return(y, here);
    if (!python_read_targets(y, &targets))
        return false;
    if (python_at(y, '(') && targets.n == 1)
        read_method(y, &targets.of[0]);
    else
        python_read_assignment(y, &targets);
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
        y->gave = false;
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
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, at the beginning of a file */
    const char *zero = memchr(bytes, '\0', n);
    size_t before_text = n >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    struct python *y = memory_new(1, sizeof *y);
    y->p = y->line_start = bytes + before_text;
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
    if (zero)
        diag_warning(diags, python_place(y, y->p), "a zero byte: the rest is not read");
    struct yaml_node *root = python_result(y);
    free(y);
    return root;
}
