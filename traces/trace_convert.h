/*
 * trace_convert.h - records of other systems as fault traces.
 *
 *   titan: GPU events of Titan. Columns time, gpu_sn, location (c21-5c0s7n2), event (DBE, OTB). A node is a location, numbered
 *          by cabinet, cage, slot and node as ((column * 8 + row) * 3 + cage) * 32 + slot * 4 + node: places of the floor, also
 *          those without a node.
 *
 *   jobs:  a table of jobs, as Philly's or Acme's: a state (status, state), an end (end_s, end, or a submission or start plus a
 *          duration). A job whose state says that it failed (fail, node_fail, timeout, error) is a failure at its end. The node
 *          is the column node (nodes, host: the first that is named), or the row's number modulo `nodes` without one.
 *
 *   xid:   kernel logs and DCGM. Lines with "NVRM: Xid (PCI:...): 79, ..." after seconds since boot ("[12345.678]") or a date, as
 *          dmesg (also -T, -x, --raw, --time-format iso), syslog and journalctl (short, -iso, -precise, -full) write it, with or
 *          without a host; and Prometheus text, DCGM_FI_DEV_XID_ERRORS{...Hostname="..."} 79 MILLISECONDS. Of lines without a
 *          year (syslog, journalctl short) one that is more than half a year before those above it begins a new year, which is
 *          told.
 *
 *   smi:   nvidia-smi --query-gpu=timestamp,... --format=csv (repeated; a column host added for many nodes). Uncorrected ECC
 *          errors that grow are failures; an SM clock below its maximum under a throttle reason is a straggler until it is back.
 *
 * Times become seconds since the first event's midnight, or since its own start for seconds since boot. What a source does not
 * say, how long a node was away, is the `down` given. Rows of equal node and cause within `merge` are one event. Wrong rows are
 * reported with their places; nothing is written then.
 */
#ifndef MSIM_TRACES_TRACE_CONVERT_H
#define MSIM_TRACES_TRACE_CONVERT_H

#include "traces/fault_trace.h"

struct convert_options {
    nanos down;    /* of a failure whose source does not say */
    nanos merge;   /* events of one node and cause closer than this are one; 0: none */
    int32_t nodes; /* of the cluster, for jobs that name none */
};

MUST_CHECK enum status titan_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                        struct diags *diags);
MUST_CHECK enum status job_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status xid_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status smi_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);

/* --- for the readers ---------------------------------------------------------------------------------------------------------
 */

/* Names as numbers, in order of appearance. */
struct host_table {
    char **names;
    size_t n, capacity;
};
int32_t host_number(struct host_table *table, const char *name, size_t length);
void host_table_free(struct host_table *table);

/* Sorts, merges, and moves the first event's midnight (or `zero`, when not negative) to 0. A trace that is too long is released.
 */
MUST_CHECK enum status convert_finish(struct fault_trace *trace, const struct convert_options *options, nanos zero,
                                      const char *path, struct diags *diags);

#endif
