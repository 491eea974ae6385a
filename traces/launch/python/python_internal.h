/*
 * python_internal.h - a Python program while it is read: where the reader stands (python_text.c), what values are
 * (python_values.c), what names stand for (python_names.c). Private to the files python_*.c.
 *
 * Fields are kept by object: the assignments to a recipe, whatever names and aliases they went by. An object that another one
 * gets (cfg = Container(model=provider)) is part of that one from then on.
 */
#ifndef MSIM_TRACES_LAUNCH_PYTHON_PYTHON_INTERNAL_H
#define MSIM_TRACES_LAUNCH_PYTHON_PYTHON_INTERNAL_H

#include "model/spec/yaml.h"

enum { PYTHON_NAME_SIZE = 160, PYTHON_PARTS_MAX = 12, PYTHON_NESTING_MAX = 8, PYTHON_KEYS_MAX = 4096 };
enum { PYTHON_NAMES_MAX = 4096, PYTHON_OBJECTS_MAX = 1024, PYTHON_SCOPES_MAX = 16 };

/* Where an object is from. */
enum python_origin {
    ORIGIN_OUTSIDE,  /* the program never says: a parameter, a name that it imports */
    ORIGIN_COMPUTED, /* it computes what it begins as */
    ORIGIN_MADE,     /* a call that names its values, a dictionary */
    ORIGIN_RECIPE,   /* a recipe's function */
};

struct python_object {
    const char *name; /* the first it went by */
    enum python_origin origin;
    struct yaml_node *node; /* a mapping */
    struct place at;
    int n_fields;        /* said of it */
    struct diags told;   /* what was left out of it, which matters where it is a part of a recipe */
    bool used;           /* part of another one */
    struct place called; /* where the function that makes it was called first */
};

/* What a name stands for: an object or a field of one, a value, a module; nothing known otherwise. */
struct python_name {
    const char *name;
    int object;              /* -1: none */
    const char *path;        /* of the field in it, "" the object itself */
    struct yaml_node *value; /* a scalar or a list; NULL: none */
    const char *imported;    /* what it is called where it is from; NULL: not from anywhere */
    bool is_module;
    bool is_function; /* whose result the object is */
    bool is_computed;
};

/* A function: the names that it gives end with it. */
struct python_scope {
    int column;
    int first_name;
    int function; /* its own name's index */
};

/* A list that grows, and its last item. */
struct python_list {
    struct yaml_node *list, *last;
};

struct python {
    const char *p, *end, *line_start;
    int line;
    int brackets; /* around p, within a statement */
    const char *name;
    struct arena *arena;
    struct diags *diags;
    int doubtful;                 /* the column of the condition or loop that this stands under; -1: none */
    char field[PYTHON_NAME_SIZE]; /* whose value is being read */
    int n_keys;
    struct python_name names[PYTHON_NAMES_MAX];
    int n_names;
    struct python_object objects[PYTHON_OBJECTS_MAX];
    int n_objects;
    struct python_scope scopes[PYTHON_SCOPES_MAX];
    int n_scopes;
    struct python_list lists[PYTHON_KEYS_MAX];
    int n_lists;
    bool gave;     /* this statement makes an object part of another one */
    bool too_much; /* was it told that there is more than is kept? */
};

/* --- characters (python_text.c) --- */

struct place python_place(const struct python *y, const char *at);
bool python_at(const struct python *y, char c);
/* Blanks, and within brackets ends of lines and comments, too. */
void python_skip_blanks(struct python *y);
void python_skip_line_end(struct python *y);
/* Where the reader stands, to go back there. */
struct python_mark {
    const char *p, *line_start;
    int line, brackets;
};
struct python_mark python_mark(const struct python *y);
void python_return(struct python *y, struct python_mark mark);
/* Behind the string that begins here: of one line, or of several where three quotes begin it. */
void python_skip_string(struct python *y);
/* To the first of these letters, or the end of the statement (its line, or that in which its brackets are closed; ';'), outside
 * of strings and of brackets that are opened on the way. */
void python_skip_to(struct python *y, const char *stops);
/* Behind the bracket that closes the one that stands here. */
void python_skip_brackets(struct python *y);
/* Is this the end of a statement? */
bool python_at_end(const struct python *y);
/* a.b.c into `name`; false where there is none. */
bool python_read_name(struct python *y, char name[PYTHON_NAME_SIZE]);
bool python_is_one_of(const char *name, const char *const *words);
const char *python_copy(struct python *y, const char *text, size_t n);
/* The assignment is left out, for this reason. */
void python_leave_out(struct python *y, struct place at, const char *field, const char *why);
extern const char python_computed[], python_in_doubt[];

/* --- values (python_values.c) --- */

/* NULL: it is computed. */
struct yaml_node *python_read_value(struct python *y, int depth);
/* A call, behind whose name `start` this stands; of a recipe's function what is computed is told and left out. */
struct yaml_node *python_read_call(struct python *y, const char *name, const char *start, int depth);
/* Is this the name of a function that makes recipes? */
bool python_is_recipe(const char *name);

/* --- names and objects (python_names.c) --- */

struct yaml_node *python_new_node(struct python *y, enum yaml_kind kind, const char *at);
/* What the first part of a path stands for; NULL: nothing that is known. */
const struct python_name *python_find_name(const struct python *y, const char *path);
/* From here on a name stands for this, in the function at hand. */
struct python_name *python_bind(struct python *y, const char *name, size_t n);
/* Wherever it stands for something it no longer does: global, nonlocal, del. */
void python_unbind(struct python *y, const char *name);
/* A new object, which begins as `node` (NULL: nothing); -1: there are too many. */
int python_new_object(struct python *y, const char *name, enum python_origin origin, struct yaml_node *node, struct place at);
/* The object that the first part of a path stands for, one from outside where nobody says, and the rest of the path, within that
 * object; -1: it stands for a module or a value. */
int python_find_object(struct python *y, const char *path, struct place at, char rest[PYTHON_NAME_SIZE]);
/* What was left out of an object is told. */
void python_tell(struct python *y, struct python_object *object);
/* The field of an object at a path, made where there is none; NULL where there are too many. */
struct yaml_node *python_field(struct python *y, int object, const char *path, const char *at);
/* The same where it is there; NULL: it is not. */
struct yaml_node *python_known_field(const struct python *y, const char *path);
/* Is a node in a tree? Recursion is as deep as that, which has at most PYTHON_KEYS_MAX keys. */
bool python_contains(const struct yaml_node *tree, const struct yaml_node *node);
void python_assign(struct python *y, struct yaml_node *field, struct yaml_node *value);
void python_append(struct python *y, struct yaml_node *field, struct yaml_node *value);
/* Nothing is known of it any more. */
void python_forget(struct python *y, int object, const char *path);
/* A function begins, or a class. */
void python_open_scope(struct python *y, int column, const char *name);
/* Functions end where what stands at this column is none of theirs. */
void python_close_scopes(struct python *y, int column);
/* The fields of the one recipe that is meant, with those of names from outside. */
struct yaml_node *python_result(struct python *y);

/* --- assignments (python_assign.c) --- */

enum { PYTHON_TARGETS_MAX = 16 };

/* What is assigned to: a path, in which a["b"] is a.b. */
struct python_target {
    char path[PYTHON_NAME_SIZE];
    const char *start;
    struct place at;
    bool known; /* no part of it is computed */
};

struct python_targets {
    struct python_target of[PYTHON_TARGETS_MAX];
    int n;
    bool all; /* there are no more */
};

/* a.b["c"].d; false where no path begins here. */
bool python_read_target(struct python *y, struct python_target *target);
/* One, or several between commas, in brackets or not. */
bool python_read_targets(struct python *y, struct python_targets *targets);
/* Whose field it is, and where; false where it is no recipe's. */
bool python_find_field(struct python *y, const struct python_target *target, int *object, char path[PYTHON_NAME_SIZE]);
/* A field is said (or, `appends`, one more of a list); value NULL: it is computed. */
void python_set_field(struct python *y, const struct python_target *target, struct yaml_node *value, bool appends);
/* The object that stands here, new or known, up to the end of the statement; -1: none. */
int python_read_object(struct python *y, const char *name, struct place at);
bool python_at_assignment(const struct python *y);
/* Behind the targets. */
void python_read_assignment(struct python *y, struct python_targets *targets);

#endif
