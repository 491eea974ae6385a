/*
 * fault_trace.h - faults of a cluster: what went wrong, when, and for how long.
 *
 *     time_s,node,kind,down_s,factor,detail
 *     3600,17,node,900,,gpu ecc                     node 17 is lost for 15 minutes, one hour after the beginning
 *     7200,3,straggler,1800,0.8,thermal             node 3 computes at 80 % of its speed for half an hour
 *
 * A trace is a CSV table (".gz" is read through zlib) with one row per fault, in order of time:
 *
 *     time_s   start of the fault, seconds since the run began; fractions of a second are kept to the nanosecond
 *     node     the node, 0-based
 *     kind     enum fault_kind below; empty or no column: node
 *     down_s   duration in seconds; 0: over at once
 *     factor   remaining share of the speed: of the node for a straggler, of the link for a degraded link; empty: 1
 *     detail   free text, such as the cause
 *     host     the node's name, for reports; a node has one. No column if no node has a name
 *
 * time_s, node and down_s are required. Columns may stand in any order; a warning names others, which are ignored. Rows of equal
 * time keep the order of the file.
 */
#ifndef MSIM_TRACES_FAULT_FAULT_TRACE_H
#define MSIM_TRACES_FAULT_FAULT_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/units.h"

enum fault_kind {
    FAULT_NODE,      /* the node is lost until it is repaired: training stops */
    FAULT_STRAGGLER, /* the node is slow: training continues at `factor` of its speed */
    FAULT_LINK,      /* one of the node's links is slow: likewise */
    FAULT_PLANNED,   /* an announced outage: maintenance, a preemption, or (of no length) a restart with new code; training saves
                        before it stops */
    N_FAULT_KINDS
};
const char *fault_kind_name(enum fault_kind kind); /* node straggler link planned */

/* Speeds are integers so that a run's arithmetic is exact: parts of 10^9. */
enum { FULL_SPEED = 1000000000 };

/* The longest time and the longest outage of a trace. */
#define FAULT_TRACE_LONGEST ((nanos)100 * 366 * 24 * 3600 * NANOS_PER_SECOND)

struct fault {
    nanos time;
    nanos down;
    int32_t node;
    int32_t speed;  /* remaining speed, in parts of FULL_SPEED; FULL_SPEED for a node outage */
    int32_t detail; /* index in fault_trace.details, -1 none */
    int32_t line;   /* of the file, 0 unknown */
    enum fault_kind kind;
};

struct fault_host {
    int32_t node;
    char *name;
};

struct fault_trace {
    struct fault *items; /* in order of time */
    size_t n_items, capacity;
    char **details; /* distinct texts, in order of appearance */
    size_t n_details, details_capacity;
    struct fault_host *hosts; /* names of nodes, in order of node; nodes without a name are left out */
    size_t n_hosts, hosts_capacity;
    size_t n_outside;   /* rows left out because of their node, see fault_trace_limits */
    nanos last_outside; /* the time of the last of them */
};

/* The nodes that a reader accepts. All zero: every node. */
struct fault_trace_limits {
    int32_t keep;  /* rows of nodes [0, keep) are kept; 0: all */
    int32_t known; /* rows of nodes [keep, known) are counted in n_outside and left out */
    bool drop;     /* rows of nodes at or beyond `known` are left out instead of being mistakes */
};

/* Reads a trace. Every mistake is reported with its line and column; *trace is written only on success. Free it with
 * fault_trace_free. */
MUST_CHECK enum status fault_trace_read(const char *path, struct fault_trace_limits limits, struct fault_trace *trace,
                                        struct diags *diags);
void fault_trace_free(struct fault_trace *trace);

/* The path of a trace by name: a shipped trace ("llama3-54d"), or a file (a name with '/' or '.', or of a file that exists and
 * is not shipped). *shipped (may be NULL) says which. The caller frees the path; an unknown name is reported with the known
 * ones. */
MUST_CHECK enum status fault_trace_find(const char *name, char **path, bool *shipped, struct diags *diags);

/* Appends a row; `detail` is copied, NULL or "": none. Rows may be appended in any order; fault_trace_sort then orders them by
 * (time, node, kind, order of appending). */
void fault_trace_add(struct fault_trace *trace, struct fault fault, const char *detail);
void fault_trace_sort(struct fault_trace *trace);

/* Names a node (copied); the first name stays. Fast if nodes come in order, O(names) otherwise. */
void fault_trace_name_node(struct fault_trace *trace, int32_t node, const char *name);
const char *fault_trace_host(const struct fault_trace *trace, int32_t node); /* "": it has none */

/* Is the node away during such a fault? (Slow nodes stay.) */
static inline bool fault_takes_node(const struct fault *fault)
{
    return (fault->kind == FAULT_NODE || fault->kind == FAULT_PLANNED) && fault->down > 0;
}

/* "" when there is none */
const char *fault_trace_detail(const struct fault_trace *trace, const struct fault *fault);
/* Keeps faults that begin in [zero, zero + length) (length 0: all from zero on); a note counts the others. Times stay as they
 * are. */
void fault_trace_cut(struct fault_trace *trace, nanos zero, nanos length, struct place at, struct diags *diags);
int32_t fault_trace_nodes(const struct fault_trace *trace); /* highest node + 1 */

/* Writes the rows in the columns above; reading them gives the same trace. */
void fault_trace_write(const struct fault_trace *trace, FILE *out);

#endif
