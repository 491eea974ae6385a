/*
 * fabric_import.h - a cluster's entry from topologies of other programs.
 */
#ifndef MSIM_CLI_FABRIC_FABRIC_IMPORT_H
#define MSIM_CLI_FABRIC_FABRIC_IMPORT_H

#include "cli/options/command.h"

/* msim fabric import FILE...: writes the entry to call->out. */
MUST_CHECK enum status fabric_import(struct invocation *call);

#endif
