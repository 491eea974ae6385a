/*
 * lanl_trace.h - reads LANL's public outage records (LA-UR-05-7318, 22 systems, 1995-2005) as a fault trace.
 *
 * Example: the outages of system 18 in 2005.
 *
 *     struct lanl_window window = {.systems = {18}, .n_systems = 1, .from = start_of_2005};
 *     lanl_trace_read("lanl.csv", &window, &trace, &diags);             a node is called "system 18 node 3"
 *
 * Input: a table with the columns system, nodes, node, start, downtime_min, category, detail. start is local time,
 * YYYY-MM-DDTHH:MM. Daylight saving time is not corrected, so an outage can be an hour off twice a year. The chosen systems
 * become one cluster: their nodes are numbered consecutively, in the order of the systems. The detail of a fault is
 * "category/detail". Rows of node -1 (system 17 does not name the node) are left out and counted in n_outside.
 */
#ifndef MSIM_TRACES_FAULT_LANL_TRACE_H
#define MSIM_TRACES_FAULT_LANL_TRACE_H

#include "traces/fault/fault_trace.h"

enum { LANL_MAX_SYSTEMS = 32 };

struct lanl_window {
    int systems[LANL_MAX_SYSTEMS]; /* numbers as in the table */
    int n_systems;                 /* 0: every system, in order of number */
    nanos from;                    /* time 0, since 1970-01-01 00:00; LANL_FIRST_DAY: midnight before the first outage */
    nanos length;                  /* outages that start in [from, from + length); 0: to the end */
};
#define LANL_FIRST_DAY INT64_MIN

/* *trace is written only on success; mistakes are reported with their places. */
MUST_CHECK enum status lanl_trace_read(const char *path, const struct lanl_window *window, struct fault_trace *trace,
                                       struct diags *diags);

#endif
