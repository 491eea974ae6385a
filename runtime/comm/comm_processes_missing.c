/* comm_processes_missing.c - the error message of a build without MPI. */
#include "runtime/comm/comm_processes.h"

enum status comm_processes_open(nanos timeout, struct world **world, struct diags *diags)
{
    (void)timeout, (void)world;
    diag_error(diags, PLACE_NONE, "this msim was built without MPI; its CPU ranks are threads of one process");
    return STATUS_MISSING;
}

const nanos *comm_processes_epoch(const struct world *world)
{
    (void)world;
    return NULL;
}
