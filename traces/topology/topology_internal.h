/*
 * topology_internal.h - the readers of topologies. Private to traces/topology.
 */
#ifndef MSIM_TRACES_TOPOLOGY_TOPOLOGY_INTERNAL_H
#define MSIM_TRACES_TOPOLOGY_TOPOLOGY_INTERNAL_H

#include <string.h>

#include "traces/topology/topology.h"

/* Each fills its part of *topology; mistakes are reported. */
void nccl_topology_parse(const char *name, const char *bytes, size_t n, struct topology_seen *topology, struct diags *diags);
void slurm_topology_parse(const char *name, char *bytes, struct topology_seen *topology, struct diags *diags);
void ib_topology_parse(const char *name, char *bytes, struct topology_seen *topology, struct diags *diags);

/* The next line of *text, with a NUL at its end; NULL: there is none. */
static inline char *topology_line(char **text)
{
    char *line = *text;
    if (!*line)
        return NULL;
    size_t n = strcspn(line, "\n");
    bool more = line[n] == '\n';
    line[n] = '\0';
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    *text = line + n + more;
    return line;
}

#endif
