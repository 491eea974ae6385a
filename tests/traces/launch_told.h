/*
 * launch_told.h - what a configuration or a command says of a job, for tests that compare it field by field.
 */
#ifndef MSIM_TESTS_LAUNCH_TOLD_H
#define MSIM_TESTS_LAUNCH_TOLD_H

#include "traces/launch/job/launch_words.h"
#include "traces/launch/megatron/megatron_translate.h"

struct told {
    struct launch_words words;
    struct diags diags;
    struct launch_description d;
};

/* A configuration (NULL: none) and the command line behind it (NULL: nothing), on this number of GPUs (0: as they specify). */
struct told tell(const char *config, const char *line, int gpus);
/* The same of a configuration whose language its name tells. */
struct told tell_as(const char *path, const char *config, const char *line, int gpus);
/* The same for a file of tests/traces/configurations. */
struct told tell_file(const char *name, const char *line, int gpus);
void told_free(struct told *told);

/* No errors, nothing missing, this layout and batch. */
void expect_layout(const struct told *told, const char *layout, int64_t batch);
/* A diagnostic has these words; the same in this line and column; none has them. */
void expect_warning(const struct told *told, const char *words);
void expect_warning_at(const struct told *told, const char *words, int line, int column);
void expect_quiet(const struct told *told, const char *words);
/* This warning; NULL: nothing is said at all. */
void expect_said(const struct told *told, const char *warning);

#endif
