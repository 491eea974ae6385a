/*
 * frameworks_loaded.h - the tables of all frameworks, read once for a suite.
 */
#ifndef MSIM_TESTS_TRACES_FRAMEWORKS_LOADED_H
#define MSIM_TESTS_TRACES_FRAMEWORKS_LOADED_H

#include <stdlib.h>

#include "traces/launch/frameworks/framework_table.h"

static inline const struct frameworks *frameworks_loaded(void)
{
    static struct frameworks frameworks;
    static struct diags diags;
    if (frameworks.n == 0 && frameworks_load(&frameworks, &diags) != STATUS_OK)
        abort();
    return &frameworks;
}

#endif
