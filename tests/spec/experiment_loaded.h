/* Experiments that suites load, by flags and overrides. */
#ifndef MSIM_TESTS_SPEC_EXPERIMENT_LOADED_H
#define MSIM_TESTS_SPEC_EXPERIMENT_LOADED_H

#include "tests/spec/said.h"

extern struct experiment e; /* the one loaded last */

/* Loads e, or fails the test with what was said. */
void load(const struct experiment_flags *flags);
/* The same with an override, or none (NULL). */
void load_with(struct experiment_flags flags, const char *override);
/* What is said of flags that are wrong; free it. */
char *said_of(struct experiment_flags flags, const char *override);

/* The example of the manual; a model and a cluster of the catalog. */
extern const struct experiment_flags the_file, two_names;

#endif
