/*
 * launch_read.h - files that tell of jobs, put together: scripts, configurations and logs.
 *
 * Each log is a run of a job. Scripts and configurations describe jobs: without logs each is one; with logs there is at most one,
 * which says what the logs leave out. A DeepSpeed configuration belongs to all of them, and so does a command that sets keys of a
 * configuration.
 */
#ifndef MSIM_TRACES_LAUNCH_READ_H
#define MSIM_TRACES_LAUNCH_READ_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_log.h"

struct launch_source {
    const char *path;
    char *bytes; /* words point into them */
    size_t n;
    struct launch_words words;
    bool is_log, is_companion;
    const struct framework *framework; /* whose configuration it is, or whose keys it sets; NULL: nobody's */
    bool is_override;                  /* a companion whose words win: a command that sets keys of a configuration */
    struct launch_log log;
};

struct launch_options {
    const struct frameworks *frameworks;
    const struct launch_environment *environment;
    int warm_up;             /* iterations, -1: as usual */
    const char *const *with; /* n_with texts of further arguments, which win, the later ones over those before */
    int n_with;
    bool all; /* list all unknown arguments */
    int gpus; /* 0: as the files say */
};

struct launch_sources {
    struct launch_source *items;
    size_t n;
};

/* All files. STATUS_BAD_INPUT when any cannot be read, or when they do not belong together. Free with launch_sources_free. */
MUST_CHECK enum status launch_sources_read(const char *const *paths, size_t n, const struct launch_options *how,
                                           struct launch_sources *sources, struct diags *diags);
void launch_sources_free(struct launch_sources *sources);

/* Is this source a job of its own, or does it only say more about others? */
bool launch_is_job(const struct launch_sources *sources, size_t i);

/* The job of one source, with what the others say of it. Mistakes go to diags; what is not said to description->missing. */
void launch_describe(const struct launch_sources *sources, size_t i, const struct launch_options *how,
                     struct launch_description *description, struct diags *diags);

#endif
