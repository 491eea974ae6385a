/*
 * python_internal.h - the state of reading a Python program, statement by statement (private to traces/launch/python).
 *
 * Example: after these statements the object cfg has the field model.tp with the value 4.
 *
 *     provider = LlamaProvider()          a new object, with the name provider
 *     provider.tp = 4                     a field of it
 *     cfg = Container(model=provider)     provider becomes the field model of cfg
 *
 * Fields are kept by object: all assignments to a recipe, through any name or alias. An object that becomes a field of another
 * one is part of that one from then on.
 */
#ifndef MSIM_TRACES_LAUNCH_PYTHON_PYTHON_INTERNAL_H
#define MSIM_TRACES_LAUNCH_PYTHON_PYTHON_INTERNAL_H

#include "model/spec/yaml.h"

enum { PYTHON_NAME_SIZE = 160, PYTHON_PARTS_MAX = 12, PYTHON_NESTING_MAX = 8, PYTHON_KEYS_MAX = 4096 };
enum { PYTHON_NAMES_MAX = 4096, PYTHON_OBJECTS_MAX = 1024, PYTHON_SCOPES_MAX = 16 };

/* Where an object is from. */
enum python_origin {
    ORIGIN_OUTSIDE,  /* from outside: a parameter, an imported name */
    ORIGIN_COMPUTED, /* its first value is computed */
    ORIGIN_MADE,     /* a call with named arguments, a dictionary */
    ORIGIN_RECIPE,   /* a recipe's function */
};

struct python_object {
    const char *name; /* its first name */
    enum python_origin origin;
    struct yaml_node *node; /* a mapping */
    struct place at;
    int n_fields;         /* number of assignments */
    struct diags reports; /* reports of what was left out, which matter if the object is part of a recipe */
    bool used;            /* part of another object */
    struct place called;  /* the first call of the function that makes it */
};

/* The meaning of a name: an object or a field of one, a value, a module, or nothing known. */
struct python_name {
    const char *name;
    int object;              /* -1: none */
    const char *path;        /* of a field of the object; "": the object itself */
    struct yaml_node *value; /* a scalar or a list; NULL: none */
    const char *imported;    /* its name where it is imported from; NULL: not imported */
    bool is_module;
    bool is_function; /* a function; the object is its result */
    bool is_computed;
};

/* A function: its names end with it. */
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
    int doubtful;                 /* column of the condition or loop around this statement; -1: none */
    char field[PYTHON_NAME_SIZE]; /* the field whose value is being read */
    int n_keys;
    struct python_name names[PYTHON_NAMES_MAX];
    int n_names;
    struct python_object objects[PYTHON_OBJECTS_MAX];
    int n_objects;
    struct python_scope scopes[PYTHON_SCOPES_MAX];
    int n_scopes;
    struct python_list lists[PYTHON_KEYS_MAX];
    int n_lists;
    bool gave;     /* this statement makes an object part of another */
    bool too_much; /* the limit was exceeded and reported */
};

/* --- characters (python_text.c) --- */

struct place python_place(const struct python *y, const char *at);
bool python_at(const struct python *y, char c);
/* Skips blanks; within brackets also line ends and comments. */
void python_skip_blanks(struct python *y);
void python_skip_line_end(struct python *y);
/* A position, to return to. */
struct python_mark {
    const char *p, *line_start;
    int line, brackets;
};
struct python_mark python_mark(const struct python *y);
void python_return(struct python *y, struct python_mark mark);
/* Skips the string that begins here; one in triple quotes may span lines. */
void python_skip_string(struct python *y);
/* Skips to the first of these letters, or to the end of the statement (its line, or the line where its brackets close, or ';').
 * Strings and nested brackets are passed over. */
void python_skip_to(struct python *y, const char *stops);
/* Skips the bracket that opens here, to after the one that closes it. */
void python_skip_brackets(struct python *y);
/* Is this the end of a statement? */
bool python_at_end(const struct python *y);
/* Reads a.b.c into `name`; false if there is none. */
bool python_read_name(struct python *y, char name[PYTHON_NAME_SIZE]);
bool python_is_one_of(const char *name, const char *const *words);
const char *python_copy(struct python *y, const char *text, size_t n);
/* Reports that an assignment is left out, and why. */
void python_leave_out(struct python *y, struct place at, const char *field, const char *why);
extern const char python_computed[], python_in_doubt[];

/* --- values (python_values.c) --- */

/* Reads a value; NULL: it is computed. */
struct yaml_node *python_read_value(struct python *y, int depth);
/* Reads a call, after its name, which begins at `start`. Computed arguments of a recipe's function are reported and left out.
 * */
struct yaml_node *python_read_call(struct python *y, const char *name, const char *start, int depth);
/* Is this the name of a function that makes recipes? */
bool python_is_recipe(const char *name);

/* --- names and objects (python_names.c) --- */

struct yaml_node *python_new_node(struct python *y, enum yaml_kind kind, const char *at);
/* The meaning of the first part of a path; NULL: unknown. */
const struct python_name *python_find_name(const struct python *y, const char *path);
/* Binds a name in the current function. */
struct python_name *python_bind(struct python *y, const char *name, size_t n);
/* Forgets the meaning of a name: global, nonlocal, del. */
void python_unbind(struct python *y, const char *name);
/* A new object with the first value `node` (NULL: none); -1: there are too many. */
int python_new_object(struct python *y, const char *name, enum python_origin origin, struct yaml_node *node, struct place at);
/* The object of the first part of a path, from outside if nothing defines it, and the rest of the path; -1: the part is a
 * module or a value. */
int python_find_object(struct python *y, const char *path, struct place at, char rest[PYTHON_NAME_SIZE]);
/* Reports what was left out of an object. */
void python_tell(struct python *y, struct python_object *object);
/* The field of an object at a path, created if needed; NULL: there are too many. */
struct yaml_node *python_field(struct python *y, int object, const char *path, const char *at);
/* The same if it exists; NULL: it does not. */
struct yaml_node *python_known_field(const struct python *y, const char *path);
/* Is a node in a tree? Recursion is as deep as the tree, which has at most PYTHON_KEYS_MAX keys. */
bool python_contains(const struct yaml_node *tree, const struct yaml_node *node);
void python_assign(struct python *y, struct yaml_node *field, struct yaml_node *value);
void python_append(struct python *y, struct yaml_node *field, struct yaml_node *value);
/* Forgets a field: its value is not known any more. */
void python_forget(struct python *y, int object, const char *path);
/* A function or class begins. */
void python_open_scope(struct python *y, int column, const char *name);
/* Ends the functions that a statement at this column is not part of. */
void python_close_scopes(struct python *y, int column);
/* The fields of the chosen recipe, together with those of names from outside. */
struct yaml_node *python_result(struct python *y);

/* --- assignments (python_assign.c) --- */

enum { PYTHON_TARGETS_MAX = 16 };

/* The target of an assignment: a path, in which a["b"] is a.b. */
struct python_target {
    char path[PYTHON_NAME_SIZE];
    const char *start;
    struct place at;
    bool known; /* no part of it is computed */
};

struct python_targets {
    struct python_target of[PYTHON_TARGETS_MAX];
    int n;
    bool all; /* all targets were read */
};

/* Reads a.b["c"].d; false if no path begins here. */
bool python_read_target(struct python *y, struct python_target *target);
/* Reads one target, or several between commas, with or without brackets. */
bool python_read_targets(struct python *y, struct python_targets *targets);
/* The object and the path of a target; false if it belongs to no recipe. */
bool python_find_field(struct python *y, const struct python_target *target, int *object, char path[PYTHON_NAME_SIZE]);
/* Sets a field, or appends to it; value NULL: it is computed. */
void python_set_field(struct python *y, const struct python_target *target, struct yaml_node *value, bool appends);
/* The object that begins here, new or known, up to the end of the statement; -1: none. */
int python_read_object(struct python *y, const char *name, struct place at);
bool python_at_assignment(const struct python *y);
/* Reads what follows the targets. */
void python_read_assignment(struct python *y, struct python_targets *targets);

#endif
