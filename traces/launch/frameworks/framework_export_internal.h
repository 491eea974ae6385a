/*
 * framework_export_internal.h - the state of an export of a job to the keys of a framework (private to framework_*export*.c).
 *
 * Example: torchtitan's export. framework_export.c calls
 *
 *     titan_plain(job)           the part of the job that the table's keys can express
 *     titan_open(c, out)         comments at the top of the file
 *     titan_complete(c)          adds keys that depend on several values, such as the degrees of sharding
 */
#ifndef MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_INTERNAL_H
#define MSIM_TRACES_LAUNCH_FRAMEWORKS_FRAMEWORK_EXPORT_INTERNAL_H

#include "traces/launch/frameworks/framework_lines.h"
#include "traces/launch/frameworks/framework_table.h"
#include "traces/launch/megatron/megatron_export.h"

struct config {
    const struct framework *framework;
    const struct launch_job *job;
    struct megatron_export exported;
    struct framework_lines lines;
    bool covered[N_ARGUMENTS]; /* written by a key, or not needed */
};

/* Sets an argument from here on; the text lives as long as the export. */
void config_set(struct config *c, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);

/* What a framework writes in its own way. */
struct exporter {
    const char *framework;
    struct launch_job (*plain)(
        const struct launch_job *job);                /* the part of the job that Megatron-LM's arguments write; NULL: all */
    void (*complete)(struct config *c);               /* adds the rest, after them */
    void (*open)(const struct config *c, FILE *out);  /* what precedes the lines */
    void (*close)(const struct config *c, FILE *out); /* what follows them */
    struct framework_object object;
};

/* The number of GPUs per node. */
static inline int config_node_gpus(const struct config *c)
{
    int per_node = c->job->gpus_per_node;
    return per_node && per_node < c->job->gpus ? per_node : c->job->gpus;
}

/* Writes the command that starts the program, as a comment. */
void config_write_command(const struct config *c, const char *program, FILE *out);

/* framework_torchtitan_export.c */
struct launch_job titan_plain(const struct launch_job *job);
void titan_complete(struct config *c);
void titan_open(const struct config *c, FILE *out);

/* framework_recipe_export.c */
#define BRIDGE_OBJECT                                                                                                            \
    {                                                                                                                            \
        "cfg", "comm_overlap", " = CommOverlapConfig(", ")"                                                                      \
    }
void bridge_complete(struct config *c);
void bridge_open(const struct config *c, FILE *out);
void bridge_close(const struct config *c, FILE *out);
#define NEMO2_OBJECT                                                                                                             \
    {                                                                                                                            \
        "recipe", "trainer.callbacks", ".append(run.Config(MegatronCommOverlapCallback,", "))"                                   \
    }
void nemo2_complete(struct config *c);
void nemo2_open(const struct config *c, FILE *out);
void nemo2_close(const struct config *c, FILE *out);

#endif
