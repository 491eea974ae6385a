/*
 * diag.h - a list of diagnostics: the problem, its place, and a suggested fix.
 *
 * Example:
 *
 *     diag_error(&diags, (struct place){"job.yaml", 3, 11}, "unknown key 'zeroo'; did you mean 'zero'?");
 *     diags_print(&diags, stderr, false);          job.yaml:3:11: error: unknown key 'zeroo'; did you mean 'zero'?
 *
 * A reader that finds a mistake adds a diagnostic and continues, so that one run reports all mistakes. A place whose file is
 * NULL has no position (a flag, for example); line 0 or column 0 is left out. Control characters in quoted text are printed as
 * '?'. A list keeps at most DIAGS_MAX entries and counts the rest. Strings are copied.
 */
#ifndef MSIM_MODEL_BASE_DIAG_H
#define MSIM_MODEL_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/base/status.h"

enum { DIAGS_MAX = 100 };

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };

struct place {
    const char *file; /* NULL: no position */
    int line;         /* 1-based, 0 unknown */
    int column;       /* 1-based, 0 unknown */
};

/* No position: a flag, or a property that no file states. */
#define PLACE_NONE ((struct place){0})

struct diag {
    enum severity severity;
    char *file; /* NULL: no position */
    int line, column;
    char *text; /* one sentence, no newline */
};

struct diags {
    struct diag *items;
    size_t n_items, capacity;
    size_t n_errors; /* including those beyond DIAGS_MAX */
    size_t n_dropped;
};

/* An empty list is all zero: struct diags d = {0}. */
void diags_free(struct diags *diags);

/* A warning or a note that is already there, with the same place, is not added again. */
void diag_error(struct diags *diags, struct place at, const char *format, ...) PRINTF_LIKE(3, 4);
void diag_warning(struct diags *diags, struct place at, const char *format, ...) PRINTF_LIKE(3, 4);
void diag_note(struct diags *diags, struct place at, const char *format, ...) PRINTF_LIKE(3, 4);

/* STATUS_BAD_INPUT when the list holds an error, STATUS_OK otherwise. */
enum status diags_status(const struct diags *diags);

/* Sorts consecutive diagnostics about one file by line. */
void diags_sort(struct diags *diags);

/* One line per diagnostic, and a last line for those dropped; `colour` adds ANSI codes. */
void diags_print(const struct diags *diags, FILE *out, bool colour);

#endif
