/*
 * trace_convert.h - records of other systems as fault traces.
 *
 *   titan: GPU events of Titan. Columns time, gpu_sn, location (c21-5c0s7n2), event (DBE, OTB). A node is a location, numbered
 *          by cabinet, cage, slot and node as ((column * 8 + row) * 3 + cage) * 32 + slot * 4 + node: places of the floor, also
 *          those without a node.
 *
 *   jobs:  a table of jobs (sacct -P too). Columns, in any case and with or without underscores: state (status, job_state); end
 *          (end_s, end_time, finished_time), or a start (start_s, start_time, submit_s, submit, submit_time, submitted_time) with
 *          a duration (duration_s, run_time), as seconds or dates, also with a zone; node (nodes, host, hosts, node_list); the
 *          GPUs (num_gpu, gpus, gpu_num). A job whose state names its node or the hardware (NODE_FAIL, BOOT_FAIL, LAUNCH_FAILED,
 *          ...) is a failure at its end; one that just failed only with `failed_jobs`, and then if it had GPUs; never one that
 *          ran out of time or memory. The node is the first of a list such as gpu[001-003,007]. Where no column names nodes, or
 *          `nodes` counts them, the row's number modulo `nodes`: made up, so nothing is taken for a repeat. Steps of Slurm's
 *          jobs (JobID 17.batch) are left out.
 *
 *   nodes: a table of the states that nodes were in (sacctmgr -P list event). Columns, in any case, with or without underscores:
 *          NodeName (node, host), State (status), TimeStart (start, from), TimeEnd (end, to), as seconds or dates, also with a
 *          zone, or a duration (duration_s) in place of the latter, and Reason, which becomes the cause, without the user and
 *          time that Slurm appends. A node that is down, failing or does not answer has failed; one that drains, is offline, in
 *          maintenance or reboots leaves as announced (planned). Idle, allocated or powered down to save energy it is there.
 *          States of one node that touch, or are `merge` apart, are one outage, of the kind and cause of the first. A row without
 *          a node (Slurm's events of the cluster) is left out.
 *
 *   xid:   kernel logs and DCGM. Lines with "NVRM: Xid (PCI:...): 79, ..." after a time (log_time.h; a zone is applied), with or
 *          without a host; and Prometheus text, DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n1"} 79 TIME (without Hostname= the host
 *          is instance=): a gauge that keeps a GPU's last Xid, so that a change of it counts, to anything but 0. What it shows at
 *          a GPU's first scrape may be weeks old and is left out and told. TIME is since 1970, in milliseconds (Prometheus) or
 *          seconds (OpenMetrics): which follows from its size, as neither is of before 1973. An exporter's page has none, and is
 *          refused. What Xids mean is said by xid.h: those of information and unknown ones are no faults, a program's own errors
 *          take no node away. Xids of one node within `merge` are one fault, the worst of them; told is how many of which were
 *          left out. Several files are one trace; where lines name no host, each file is one, numbered in order of appearance,
 *          also without faults. Yearless lines of a file are taken to end within half a year of those of the file before.
 *
 *   smi:   nvidia-smi --query-gpu=timestamp,... --format=csv (repeated; a column host added for many nodes, or each file is one).
 *          Uncorrected ECC errors that grow are failures. A straggler is an SM clock below 95 % of its maximum while the hardware
 *          slows it (0x8), it is too hot (software 0x20, hardware 0x40) or the power brake is on (0x80); the columns of single
 *          reasons (clocks_event_reasons.hw_slowdown: Active) say the same. The power cap (0x4), under which a loaded GPU runs,
 *          and clocks that somebody set (0x2), sync boost (0x10) or idling (0x1) are none. What cannot be told for want of a
 *          column is said.
 *
 * Times become seconds since `from`, or the first event's midnight, or its own start for seconds since boot; what begins before
 * `from`, or `length` after that or later, is left out and told. Nodes keep the names that the source gives them (the file where
 * it gives none, Titan's locations). What a source does not say, how long a node was away, is the `down` given. Events of one
 * node and cause, each closer than `merge` to the one before, are one. Wrong rows are reported with their places; nothing is
 * written then.
 */
#ifndef MSIM_TRACES_FAULT_TRACE_CONVERT_H
#define MSIM_TRACES_FAULT_TRACE_CONVERT_H

#include "traces/fault/fault_trace.h"
#include "traces/table/csv.h"

struct convert_options {
    nanos down;       /* of a failure whose source does not say */
    nanos merge;      /* events of one node and cause, each closer than this to the one before, are one; 0: none */
    int32_t nodes;    /* of the cluster, for jobs that name none; 0: not said */
    bool failed_jobs; /* jobs that just failed are failures of their nodes, too */
    bool has_from;
    nanos from;   /* what becomes time 0, since 1970-01-01 00:00 on the source's clock */
    nanos length; /* faults that begin within it are kept; 0: to the end */
};

/* What a file is, by its columns, states or lines. */
enum convert_source { CONVERT_LANL, CONVERT_TITAN, CONVERT_JOBS, CONVERT_XID, CONVERT_SMI, CONVERT_NODES, CONVERT_UNKNOWN };
/* STATUS_BAD_INPUT: it cannot be read, or is nothing of the kind; told either way. */
MUST_CHECK enum status convert_source_of(const char *path, enum convert_source *source, struct diags *diags);

MUST_CHECK enum status titan_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                        struct diags *diags);
MUST_CHECK enum status job_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status node_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                       struct diags *diags);
/* One file or more. */
MUST_CHECK enum status xid_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                                      struct fault_trace *trace, struct diags *diags);
MUST_CHECK enum status smi_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                                      struct fault_trace *trace, struct diags *diags);

/* --- for the readers --- */

/* Whether a table names nodes, and states as only nodes have them (down, drained, up, idle, ...; not completed or failed). */
bool node_trace_has_states(const struct csv_table *table);

/* Names as numbers, in order of appearance. */
struct host_table {
    char **names;
    size_t n, capacity;
    size_t *places; /* [n_places], a power of two: where a name's hash leads, its number + 1; 0 nobody's */
    size_t n_places;
};
int32_t host_number(struct host_table *table, const char *name, size_t length);
void host_table_free(struct host_table *table);

void host_table_name(const struct host_table *table, struct fault_trace *trace); /* its nodes keep their names */

/* Sorts, merges, moves `from` (or `zero`, when not negative, or the first event's midnight) to 0 and cuts to the window. With
 * ranks [n_details] events of a node are one whatever their causes, and the one of the highest rank is kept. A trace that is too
 * long is released. */
MUST_CHECK enum status convert_finish(struct fault_trace *trace, const struct convert_options *options, const int *ranks,
                                      nanos zero, const char *path, struct diags *diags);

#endif
