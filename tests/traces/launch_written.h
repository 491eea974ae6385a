/* launch_written.h - what an export writes of a job, as text. */
#ifndef MSIM_TESTS_LAUNCH_WRITTEN_H
#define MSIM_TESTS_LAUNCH_WRITTEN_H

#include <stdio.h>

#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

/* By a framework's configuration, or (NULL) Megatron-LM's script; what it does not say is in `lost`. The caller frees it. */
static inline char *launch_written(const char *framework, const struct launch_job *x, struct diags *lost)
{
    char *text;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (framework)
        framework_write_config(frameworks_loaded(), framework, x, NULL, 0, out, lost);
    else
        megatron_write_script(x, NULL, 0, out, lost);
    fclose(out);
    return text;
}

#endif
