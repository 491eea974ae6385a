/*
 * shell_state.h - the text, the variables and the expansion of words of a script that is being read.
 *
 * Example: with the variable TP=4,
 *
 *     shell_expand(state, "--tp=$TP", 8, &fields);             appends the field "--tp=4"
 *     shell_expand_one(state, "${N:-2}", 7)                    the field "2" if N is not set
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
    /* end marks of the here-documents that begin after this line */
    char heredocs[4][64];
    int n_heredocs;
    /* of the current command: where its output goes, raw (NULL: nowhere), and its last here-document */
    const char *target, *target_end, *body, *body_end;
    bool appends;   /* its output is appended (>>) */
    bool body_kept; /* its end mark is quoted: nothing in it is expanded */
    bool body_bare; /* <<-: its lines lose their leading tabs */
    bool bad;       /* reported: the rest cannot be read */
};

/* The next token. The parentheses of an array belong to its word: A=( a b ). */
void shell_next(struct shell_lexer *lexer, struct diags *diags);
/* Passes the pattern of a case, up to its ')'; false if no pattern follows: at esac, or at the end. */
bool shell_pattern(struct shell_lexer *lexer);

/* --- variables --- */

struct shell_variable {
    const char *name;
    struct launch_field *items; /* one if it is no array */
    size_t n;
    bool is_array;
};

/* A text whose letters have places: the script, or a file that it sources. */
struct shell_text {
    const char *name, *begin, *end;
    const char **lines; /* where each begins; NULL: not looked for yet */
    size_t n_lines;
};
enum { SHELL_TEXTS_MAX = 17 };

struct shell_state {
    struct launch_words *words;               /* its arena owns the texts */
    const char *name;                         /* of the script */
    struct shell_text texts[SHELL_TEXTS_MAX]; /* the script first */
    int n_texts;
    const char *unread; /* why a variable that is set nowhere may be set all the same: a sourced file is not read; NULL: none */
    const struct launch_field *line; /* the line for another shell that is being read; NULL: none */
    const char *line_end;
    struct shell_variable *variables;
    size_t n, capacity;
    size_t expanded; /* bytes so far; use shell_is_full */
    struct diags *diags;
};

struct shell_variable *shell_find(struct shell_state *state, const char *name, size_t n);
void shell_set(struct shell_state *state, const char *name, size_t n, struct launch_field *items, size_t n_items, bool is_array);

/* Restores a variable: to `old`, or to not being set (items NULL). */
void shell_restore(struct shell_state *state, const char *name, size_t n, const struct shell_variable *old);

/* The value of a variable; NULL: it is not set (or `name` is NULL), empty, or not known. */
const char *shell_variable_text(struct shell_state *state, const char *name);

/* Sets a variable to a text that is in no file. */
void shell_set_text(struct shell_state *state, const char *name, size_t n, const char *value);
/* The script's #SBATCH lines: words for what they request, and the variables that Slurm sets. */
void shell_slurm(struct shell_state *state);

/* --- expansion --- */

struct shell_fields {
    struct launch_field *items;
    size_t n, capacity;
};

/* Counts bytes that are about to be allocated. True, and an error once, if they exceed SHELL_EXPANSION in all. */
bool shell_is_full(struct shell_state *state, size_t bytes);

/* A raw word into fields: quotes removed, variables replaced, split at unquoted blanks. */
void shell_expand(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields);
/* The same into one field, not split, as in an assignment. */
struct launch_field shell_expand_one(struct shell_state *state, const char *raw, size_t n);
/* All words of a text, like those between an array's parentheses. */
void shell_expand_all(struct shell_state *state, const char *raw, size_t n, struct shell_fields *fields);
/* A here-document: as written, and expanded. */
struct launch_field shell_expand_kept(struct shell_state *state, const char *p, const char *end);
struct launch_field shell_expand_body(struct shell_state *state, const char *p, const char *end);
void shell_fields_add(struct shell_fields *fields, const struct launch_field *field);
void shell_fields_free(struct shell_fields *fields);
/* The text of a field; "" after the last. */
const char *shell_text_at(const struct shell_fields *fields, size_t i);

/* The text in which a letter stands; NULL: none. */
const struct shell_text *shell_text_around(const struct shell_state *state, const char *source);
/* Where a letter of the script, or of the current line for another shell, was written. */
struct place shell_place(struct shell_state *state, const char *source);
/* A text that is in no file. */
struct launch_field shell_field_of(struct shell_state *state, const char *text, const char *unknown);
/* n letters of a field, from one of them on. */
struct launch_field shell_slice(struct shell_state *state, const struct launch_field *field, size_t from, size_t n);
/* Two fields as one. */
struct launch_field shell_join(struct shell_state *state, const struct launch_field *a, const struct launch_field *b);
/* n fields as one, with blanks between them. */
struct launch_field shell_join_all(struct shell_state *state, const struct launch_field *items, size_t n);
/* The same field as unknown. */
struct launch_field shell_doubt(struct shell_state *state, const struct launch_field *field, const char *why);

/* The value of an expression of whole numbers: + - * / %, parentheses, variables with or without $. False if it is none.
 * `expand` is shell_expand_one, which calls this function. */
typedef struct launch_field shell_expander(struct shell_state *state, const char *raw, size_t n);
bool shell_arithmetic(struct shell_state *state, const char *text, size_t n, shell_expander *expand, int64_t *value);

#endif
