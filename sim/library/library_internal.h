/*
 * library_internal.h - what lies behind the handles of msim.h, and the way from statuses and diagnostics to theirs.
 */
#ifndef MSIM_SIM_LIBRARY_LIBRARY_INTERNAL_H
#define MSIM_SIM_LIBRARY_LIBRARY_INTERNAL_H

#include "model/base/diag.h"
#include "model/layout/layout.h"
#include "model/program/program.h"
#include "model/spec/experiment.h"
#include "sim/library/msim.h"

struct msim_messages {
    struct diags diags;
};

/* The text it came from and what was changed since: a change reads all of it again, so that it means what it would mean on a
 * command line. */
struct msim_experiment {
    struct experiment experiment;
    char *name; /* of the text, for messages; NULL: standard input */
    char *text;
    size_t n_text;
    char **overrides; /* "key=value" */
    int n_overrides;
};

/* Where the diagnostics of one call go: to the caller's messages, or to a list of its own that library_done releases. */
struct library_call {
    struct diags own;
};
struct diags *library_begin(struct library_call *call, struct msim_messages *messages);
/* Releases what the call does not need any more, and returns its status as msim.h has it. */
enum msim_status library_done(struct library_call *call, enum status status);

/* The layout of a text, or of the experiment when it is NULL (searched for `auto`), completed and checked. */
MUST_CHECK enum status library_layout(const struct experiment *experiment, const char *text, struct layout *layout,
                                      struct diags *diags);

/* STATUS_USAGE when the number is that of no detail. */
MUST_CHECK enum status library_detail(enum msim_detail number, enum detail *detail, struct diags *diags);

#endif
