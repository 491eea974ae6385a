/*
 * job_table.h - reads tables of jobs: sacct (with or without -P), and tables of other schedulers and of public traces.
 *
 * Example:
 *
 *     JobID|State|Start|End|NodeList
 *     4711|NODE_FAIL|2024-03-03T12:01:02|2024-03-03T14:00:00|n[17-18]
 *
 * The second row is a job that ended because of a node. Columns, in any case and with or without underscores: state (status,
 * job_state); submit, start and end under the names of sacct and of public traces; elapsed (duration, run_time); node (NodeList,
 * hosts); FailedNode; the number of GPUs, also in AllocTRES (gres/gpu=8); JobID; user. Any of them may be missing.
 */
#ifndef MSIM_TRACES_TABLE_JOB_TABLE_H
#define MSIM_TRACES_TABLE_JOB_TABLE_H

#include "traces/table/record_table.h"

/* How a job ended: as Slurm's states have it, and what other schedulers write in their place. */
enum job_ending {
    JOB_ENDED_WELL,      /* completed, cancelled, out of time or memory, or it still runs */
    JOB_ENDED_BY_ITSELF, /* it failed */
    JOB_ENDED_BY_NODE,   /* its node or the hardware did */
};
enum job_ending job_ending_of(const char *state);

/* -1: the table does not have it */
struct job_columns {
    int id, user, state, submit, start, end, duration, nodes, failed_node, gpus, tres;
    bool nodes_are_counts; /* the column of nodes says how many, and `nodes` is -1 */
    int node_count;        /* that column, or NNodes */
};
void job_columns_find(const struct csv_table *table, struct job_columns *columns);

/* 17.batch and 17.0 are steps of Slurm's job 17, which has a row of its own. */
bool job_is_step(const struct csv_table *table, const struct job_columns *columns, size_t row);
/* The number of its GPUs; -1: the table does not say it. */
double job_gpus(const struct csv_table *table, const struct job_columns *columns, size_t row);
/* From the end, or the start and the duration. False, and reported: a cell is wrong. */
MUST_CHECK bool job_end(struct record_table *records, const struct job_columns *columns, size_t row, nanos longest, nanos *end);

#endif
