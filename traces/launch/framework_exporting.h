/*
 * framework_exporting.h - a job on its way into a framework's keys. Private to framework_export.c and to what single frameworks
 * say in words of their own.
 */
#ifndef MSIM_TRACES_FRAMEWORK_EXPORTING_H
#define MSIM_TRACES_FRAMEWORK_EXPORTING_H

#include "traces/launch/framework_lines.h"
#include "traces/launch/framework_tables.h"
#include "traces/launch/megatron_export.h"

struct config {
    const struct framework *framework;
    const struct launch_job *job;
    struct megatron_export exported;
    struct framework_lines lines;
    bool covered[N_ARGUMENTS]; /* a key says it, or nothing has to */
};

/* What an argument is from here on; lives as long as the export. */
void config_set(struct config *c, enum argument argument, const char *format, ...) PRINTF_LIKE(3, 4);

/* torchtitan (framework_torchtitan_export.c). What Megatron-LM's arguments can say of a job is left; the rest is torchtitan's own
 * and is set behind them. */
struct launch_job titan_plain(const struct launch_job *job);
void titan_complete(struct config *c);
/* A comment: what starts it. */
void titan_write_command(const struct launch_job *job, FILE *out);

#endif
