/*
 * trace_convert.h - records of other systems as fault traces.
 *
 *     msim faults convert --source jobs sacct.txt -o faults.csv
 *
 * titan   GPU events of Titan. Columns time, gpu_sn, location (c21-5c0s7n2), event (DBE, OTB). A node is a location, numbered by
 * cabinet, cage, slot and node as ((column * 8 + row) * 3 + cage) * 32 + slot * 4 + node: places of the floor, also those without
 * a node.
 *
 * jobs    A table of jobs (traces/table/job_table.h; also sacct). A job whose state names its node or the hardware (NODE_FAIL,
 *         BOOT_FAIL, LAUNCH_FAILED, ...) is a failure at its end. A FAILED job is one only with `failed_jobs`, and only if it had
 *         GPUs; a job that exceeded its time or memory never is. The node is that of FailedNode, else one of the job's nodes:
 * which one depends on the row alone. Without names of nodes, or with `nodes`, it is the row's number modulo `nodes`: an invented
 *         number, so no rows are joined. Steps of Slurm's jobs (JobID 17.batch) are left out.
 *
 * nodes   A table of states of nodes (sacctmgr list event, sinfo -R). Columns, in any case and with or without underscores:
 *         NodeName (node, host, NodeList), State (status), TimeStart (start, from, timestamp), TimeEnd (end, to), as seconds or
 *         dates, possibly with a zone, or a duration (duration_s) instead of the end, and Reason. The reason is the cause,
 * without the user and time that Slurm appends. A node that is down, failing or does not respond has failed. One that drains or
 * is offline has failed if the reason names what broke (node_reason.h); else, as in maintenance or a reboot, it is away as
 *         announced (planned). One that is idle, allocated or powered down to save energy is there. States of one node that
 * touch, or are `merge` apart, are one outage, with the kind and cause of the first. Rows without a node (Slurm's events of the
 *         cluster) are left out.
 *
 * xid     Kernel logs and DCGM. Lines with "NVRM: Xid (PCI:...): 79, ..." after a time (log_time.h; a zone is applied), with or
 * without a host. Prometheus text, DCGM_FI_DEV_XID_ERRORS{gpu="0",Hostname="n1"} 79 TIME (without Hostname= the host is
 * instance=): a gauge that keeps a GPU's last Xid, so its changes count, except to 0. Its value at a GPU's first scrape may be
 * weeks old: it is left out and reported. TIME is since 1970, in milliseconds (Prometheus) or seconds (OpenMetrics); its size
 * decides, as neither is before 1973. An exporter's page has no times and is refused. xid.h says what Xids mean, kernel_event.h
 * which other errors of GPUs and switches are read: informative and unknown ones are no faults, and a program's own errors take
 * no node away. Xids of one node within `merge` are one fault, the worst of them. Notes count what was left out. Several files
 * are one trace. If lines name no host, each file is one, numbered in order of appearance, also without faults. Yearless lines of
 * a file end within half a year of those of the file before.
 *
 * smi     nvidia-smi --query-gpu=timestamp,... --format=csv, repeated (with a column host for many nodes, or a file per node).
 *         Uncorrected ECC errors that grow are failures. A straggler is an SM clock below 95 % of its maximum while the hardware
 * slows it (0x8), it is too hot (software 0x20, hardware 0x40) or the power brake is on (0x80); columns of single reasons
 *         (clocks_event_reasons.hw_slowdown: Active) are read, too. No faults are the power cap (0x4), under which a loaded GPU
 * runs, clocks set by a user (0x2), sync boost (0x10) and idling (0x1). A note names what a missing column hides.
 *
 * slurm   slurmctld's log. A node that is set DOWN (not responding, unexpectedly rebooted, failed) has failed until it responds,
 *         returns to service or is resumed; drains are as in tables of nodes.
 *
 * events  Kubernetes' events of nodes (kubectl get events -o json, or its text, whose ages count back from the newest), also
 *         node-problem-detector's. NodeNotReady is a failure until NodeReady, NodeNotSchedulable planned until NodeSchedulable;
 *         kernel lines in messages are read as under xid.
 *
 * bgl     BlueGene's RAS log: messages of severity FATAL or FAILURE.
 *
 * table   Any other table of failures: columns time, node, and perhaps end or a duration, kind, factor, detail, under usual names
 *         or those that `map` gives.
 *
 * Times become seconds since `from`, or midnight before the first event, or (for seconds since boot) the first event's own start.
 * Events that begin before `from`, or `length` after it or later, are left out and counted in a note. Nodes keep the names of the
 * source (the file if it has none, Titan's locations). If the source does not have a duration, it is `down`. Events of one node
 * and cause, each closer than `merge` to the one before, are one. Wrong rows are reported with their places, and then nothing is
 * written.
 */
#ifndef MSIM_TRACES_FAULT_TRACE_CONVERT_H
#define MSIM_TRACES_FAULT_TRACE_CONVERT_H

#include "traces/fault/fault_trace.h"
#include "traces/table/csv.h"

struct convert_options {
    nanos down;    /* duration of a failure if the source does not have it */
    nanos merge;   /* events of one node and cause, each closer than this to the one before, are one; 0: none are joined */
    int32_t nodes; /* nodes of the cluster, for jobs without names of nodes; 0: unknown */
    const char *const *map; /* for CONVERT_TABLE: "time=started", our column = the table's; NULL: by their usual names */
    int n_map;
    bool failed_jobs; /* FAILED jobs are failures of their nodes, too */
    bool has_from;
    nanos from;   /* time 0, since 1970-01-01 00:00 on the source's clock */
    nanos length; /* length of the window; 0: to the end */
};

/* The source of a file, by its columns, states or lines. */
enum convert_source {
    CONVERT_LANL,
    CONVERT_TITAN,
    CONVERT_JOBS,
    CONVERT_XID,
    CONVERT_SMI,
    CONVERT_NODES,
    CONVERT_SLURM,
    CONVERT_EVENTS,
    CONVERT_BGL,
    CONVERT_TABLE,
    CONVERT_UNKNOWN
};
/* Their names, in this order; NULL at the end. */
extern const char *const convert_source_names[];
/* STATUS_BAD_INPUT, and reported: it cannot be read, or is none of these sources. */
MUST_CHECK enum status convert_source_of(const char *path, enum convert_source *source, struct diags *diags);

MUST_CHECK enum status titan_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                        struct diags *diags);
MUST_CHECK enum status job_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status node_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                       struct diags *diags);
MUST_CHECK enum status slurm_log_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status event_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                        struct diags *diags);
MUST_CHECK enum status bgl_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                      struct diags *diags);
MUST_CHECK enum status table_trace_read(const char *path, const struct convert_options *options, struct fault_trace *trace,
                                        struct diags *diags);
/* Converts one or more files. */
MUST_CHECK enum status xid_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                                      struct fault_trace *trace, struct diags *diags);
MUST_CHECK enum status smi_trace_read(const char *const *paths, int n_paths, const struct convert_options *options,
                                      struct fault_trace *trace, struct diags *diags);

/* --- for the readers --- */

/* Does a table name nodes, and states that only nodes have (down, drained, up, idle, ...; not completed or failed)? */
bool node_trace_has_states(const struct csv_table *table);

/* Is this a table of failures: does it name nodes and times, and no states? */
bool table_trace_fits(const struct csv_table *table);

/* A node's outage that has begun and not ended yet, in logs of what changes. */
struct open_outage {
    bool open, ends_by_answer; /* it is over as soon as the node answers again */
    struct fault fault;
    char cause[64], reason[64]; /* reason: of the change of state that follows */
};
struct open_outages {
    struct open_outage *items; /* by node */
    size_t n, capacity;
    size_t n_endless;
};
struct open_outage *outage_of(struct open_outages *outages, int32_t node);
/* Begins one, unless the node is away already; a failure is not hidden by what was planned. */
void outage_begin(struct open_outages *outages, struct fault_trace *trace, struct fault fault, bool ends_by_answer,
                  const char *cause);
void outage_end(struct open_outages *outages, struct fault_trace *trace, int32_t node, nanos time);
/* What is still open lasts `down`. Frees them. */
void outages_finish(struct open_outages *outages, struct fault_trace *trace, nanos down);

/* Names as numbers, in order of appearance. */
struct host_table {
    char **names;
    size_t n, capacity;
    size_t *places; /* [n_places], a power of two: by a name's hash its number + 1; 0: none */
    size_t n_places;
};
int32_t host_number(struct host_table *table, const char *name, size_t length);
void host_table_free(struct host_table *table);

void host_table_name(const struct host_table *table, struct fault_trace *trace); /* gives the trace's nodes their names */

/* Sorts, joins repeats, moves `from` (or `zero`, if not negative, or midnight before the first event) to 0 and cuts to the
 * window. With ranks [n_details], events of a node are one whatever their causes, and the one with the highest rank stays.
 * Frees a trace that is too long. */
MUST_CHECK enum status convert_finish(struct fault_trace *trace, const struct convert_options *options, const int *ranks,
                                      nanos zero, const char *path, struct diags *diags);

#endif
