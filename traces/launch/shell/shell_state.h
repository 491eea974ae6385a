/*
 * shell_state.h - a script being read: its tokens, its variables, and how words expand.
 */
#ifndef MSIM_TRACES_LAUNCH_SHELL_SHELL_STATE_H
#define MSIM_TRACES_LAUNCH_SHELL_SHELL_STATE_H

#include <stdint.h>

#include "traces/launch/job/launch_words.h"

/* --- the text --- */

enum { SHELL_EXPANSION = 1 << 24 };

enum shell_token { SHELL_END, SHELL_WORD, SHELL_OPERATOR /* newline ; & | && || ;; ( ) */ };

struct shell_lexer {
    const char *name, *text, *end, *at;
    int line;
    const char *line_start;
    /* the token */
    enum shell_token kind;
    const char *start; /* of a word, raw */
    size_t length;
    char sign[3];
    struct place place;
    /* here-documents that begin behind this line: their ends */
    char heredocs[4][64];
    int n_heredocs;
    /* of the command that is read: where its output goes, raw (NULL: nowhere), and the last here-document that it is given */
    const char *target, *target_end, *body, *body_end;
    bool appends;   /* its output goes behind what the target has */
    bool body_kept; /* its end stands in quotes: nothing in it is expanded */
    bool body_bare; /* <<-: its lines lose their tabs in front */
    bool bad;       /* reported: the rest cannot be read */
};

/* The next token; an array's parentheses belong to its word: A=( a b ). */
void shell_next(struct shell_lexer *lexer, struct diags *diags);
/* What stands before the ')' of a case's pattern, which is passed; false where no pattern stands: at esac, or the end. */
bool shell_pattern(struct shell_lexer *lexer);

/* --- variables --- */

struct shell_variable {
    const char *name;
    struct launch_field *items; /* one of a plain variable */
    size_t n;
    bool is_array;
};

struct shell_state {
    struct launch_words *words; /* whose arena has the texts */
    const char *name, *script, *script_end;
    const struct launch_field *line; /* what is read is a line within the script that another shell is given; NULL: it is not */
    const char *line_end;
    const char **lines; /* where each begins */
    size_t n_lines;
    struct shell_variable *variables;
    size_t n, capacity;
    size_t expanded; /* bytes so far; use shell_is_full */
    struct diags *diags;
};

struct shell_variable *shell_find(struct shell_state *state, const char *name, size_t n);
void shell_set(struct shell_state *state, const char *name, size_t n, struct launch_field *items, size_t n_items, bool is_array);

/* A variable as it was: `old`, or that nobody sets it (items NULL). */
void shell_restore(struct shell_state *state, const char *name, size_t n, const struct shell_variable *old);

/* What a plain variable holds; NULL: nobody sets it (name NULL, too), it is empty, or it cannot be told. */
const char *shell_variable_text(struct shell_state *state, const char *name);

/* A plain variable whose text is in no file. */
void shell_set_text(struct shell_state *state, const char *name, size_t n, const char *value);
/* The script's #SBATCH lines: words of what they ask for, and the variables that Slurm sets from them. */
void shell_slurm(struct shell_state *state);

/* --- expansion --- */

struct shell_fields {
    struct launch_field *items;
    size_t n, capacity;
};

/* Counts bytes that are about to be held; true, and an error once, when that is more than SHELL_EXPANSION in all. */
bool shell_is_full(struct shell_state *state, size_t bytes);

/* A raw word into fields: quotes gone, variables in their place, split where they stand unquoted. */
void shell_expand(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields);
/* The same into one field, unsplit: what an assignment takes. */
struct launch_field shell_expand_one(struct shell_state *state, const char *raw, size_t n);
/* All words of a text, as those between an array's parentheses. */
void shell_expand_all(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields);
/* A here-document, and one in which nothing is expanded. */
struct launch_field shell_expand_kept(struct shell_state *state, const char *p, const char *end);
struct launch_field shell_expand_body(struct shell_state *state, const char *p, const char *end);
void shell_fields_add(struct shell_fields *fields, const struct launch_field *field);
void shell_fields_free(struct shell_fields *fields);
/* A field's text; "" behind the last. */
const char *shell_text_at(const struct shell_fields *fields, size_t i);

/* Where a letter of the script, or of the line that is read, was written. */
struct place shell_place(struct shell_state *state, const char *source);
/* A text that is in no file. */
struct launch_field shell_field_of(struct shell_state *state, const char *text, const char *unknown);
/* n characters of a field from one of them on. */
struct launch_field shell_slice(struct shell_state *state, const struct launch_field *field, size_t from, size_t n);
/* Two fields as one. */
struct launch_field shell_join(struct shell_state *state, const struct launch_field *a, const struct launch_field *b);
/* n fields as one, with blanks between them. */
struct launch_field shell_join_all(struct shell_state *state, const struct launch_field *items, size_t n);
/* The same field, nothing of which is known. */
struct launch_field shell_doubt(struct shell_state *state, const struct launch_field *field, const char *why);

/* An expression of whole numbers, + - * / % and parentheses, variables with or without $; false when it is none. `expand` is
 * shell_expand_one, which this is a part of. */
typedef struct launch_field shell_expander(struct shell_state *state, const char *raw, size_t n);
bool shell_arithmetic(struct shell_state *state, const char *text, size_t n, shell_expander *expand, int64_t *value);

#endif
