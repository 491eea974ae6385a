/*
 * said.h - what the reader says, as the user sees it.
 */
#ifndef MSIM_TESTS_SPEC_SAID_H
#define MSIM_TESTS_SPEC_SAID_H

#include "model/spec/experiment.h"

/* The printed diagnostics; the caller frees them. */
char *said(const struct diags *diags);

/* Read a text as the experiment file "t.yaml" and return what was said; *status as the reader's. */
char *said_of_text(const char *text, enum status *status);

/* A file in a fresh temporary directory; both are removed when the test ends. */
const char *temporary_file(const char *name, const char *bytes, size_t n);

#endif
