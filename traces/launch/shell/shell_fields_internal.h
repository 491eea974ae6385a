/*
 * shell_fields_internal.h - builds a field of a command line piece by piece; each piece keeps the place where it was written.
 *
 * Example: the word --tp=$TP, where TP=4 was set in line 2.
 *
 *     shell_builder_add(&g, "--tp=", 5);                      a piece from the place of the word
 *     shell_builder_text(&g, "4", 1, place_in_line_2, NULL);   a piece from line 2
 *     shell_builder_finish(&g);                               the field "--tp=4" of two segments
 */
#ifndef MSIM_TRACES_LAUNCH_SHELL_SHELL_FIELDS_INTERNAL_H
#define MSIM_TRACES_LAUNCH_SHELL_SHELL_FIELDS_INTERNAL_H

#include "traces/launch/shell/shell_state.h"

/* A field in progress, and the fields before it. */
struct shell_builder {
    struct shell_state *state;
    struct shell_fields *fields;
    char *text;
    size_t n, capacity;
    struct launch_segment *segments;
    size_t n_segments, segments_capacity;
    bool open;  /* there is a field, possibly empty */
    bool split; /* unquoted blanks in the value of a variable end a field */
    int depth;  /* of expansions within expansions */
};

/* Adds text from `source` (NULL: from no file). It continues the last segment if it was written directly after it. */
void shell_builder_text(struct shell_builder *g, const char *bytes, size_t n, const char *source, const char *unknown);
/* Adds text of the script, or of the line for another shell that is read. */
void shell_builder_add(struct shell_builder *g, const char *bytes, size_t n);
/* Adds n letters of a field from `from` on. */
void shell_builder_slice(struct shell_builder *g, const struct launch_field *field, size_t from, size_t n);
/* Adds a text that is not known; `format` has one %.*s for the n letters of `what`. */
void shell_builder_unknown(struct shell_builder *g, const char *source, const char *format, const char *what, size_t n);
/* The field so far. */
struct launch_field shell_builder_field(struct shell_builder *g);
/* Ends the field, where one is open, and adds it to the builder's list. */
void shell_builder_finish(struct shell_builder *g);
void shell_builder_free(struct shell_builder *g);

/* Where a letter was written in the script; NULL: it is not from there. */
const char *shell_source_of(const struct shell_state *state, const char *p);

#endif
