/*
 * launch_read.h - scripts, configurations and logs of one or several jobs together.
 *
 *     msim import run1.log run2.log train.sh      two runs of the job that train.sh describes
 *     msim import base.yml train.sh               train.sh sets keys of base.yml (MaxText)
 *     msim import train.sh ds.json                ds.json (DeepSpeed) says more about the job of train.sh
 *
 * Each log is a run of a job. Scripts and configurations describe jobs. Without logs each of them is one job. With logs there is
 * at most one description, which supplies what the logs do not say. A companion (a configuration of DeepSpeed, accelerate or
 * peft, or a command that sets keys of a configuration) belongs to all jobs.
 */
#ifndef MSIM_TRACES_LAUNCH_READ_H
#define MSIM_TRACES_LAUNCH_READ_H

#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/job/launch.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron/megatron_log.h"

struct launch_source {
    const char *path;
    char *bytes; /* the words point into them */
    size_t n;
    struct launch_words words;
    bool is_log, is_companion;
    const struct framework *framework; /* whose configuration it is, or whose keys it sets; NULL: none */
    bool is_override;                  /* a companion whose words win: a command that sets keys */
    struct launch_log log;
};

struct launch_options {
    const struct frameworks *frameworks;
    const struct launch_environment *environment;
    int warm_up;             /* iterations to leave out; -1: a fifth, at most ten */
    const char *const *with; /* n_with texts of further arguments; they win, later ones over earlier ones */
    int n_with;
    bool all; /* list all unknown arguments */
    int gpus; /* 0: as the files say */
};

struct launch_sources {
    struct launch_source *items;
    size_t n;
};

/* Reads all files. STATUS_BAD_INPUT if one cannot be read, or if they do not belong together. Free with launch_sources_free. */
MUST_CHECK enum status launch_sources_read(const char *const *paths, size_t n, const struct launch_options *how,
                                           struct launch_sources *sources, struct diags *diags);
void launch_sources_free(struct launch_sources *sources);

/* Is this source a job of its own, or a companion of others? */
bool launch_is_job(const struct launch_sources *sources, size_t i);

/* The job of one source, with what its companions say. Mistakes go to diags; required values that nothing specifies go to
 * description->missing. */
void launch_describe(const struct launch_sources *sources, size_t i, const struct launch_options *how,
                     struct launch_description *description, struct diags *diags);

#endif
