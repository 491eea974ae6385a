/*
 * xid_trace_internal.h - the parser of Xid errors in kernel logs and in DCGM's gauge (private to xid_trace.c, xid_gauge.c,
 * xid_parser.c).
 *
 * Example: a line "NVRM: Xid (PCI:0000:3b:00): 79, ..." of host n17.
 *
 *     int32_t node = xid_node(&parser, "n17", 3);
 *     xid_add(&parser, time, node, class_of_79, "xid 79");             a fault, if the class is one
 */
#ifndef MSIM_TRACES_FAULT_XID_TRACE_INTERNAL_H
#define MSIM_TRACES_FAULT_XID_TRACE_INTERNAL_H

#include "traces/fault/log_time.h"
#include "traces/fault/trace_convert.h"
#include "traces/fault/xid.h"

/* A GPU's gauge at one scrape. */
enum { XID_BLANK = -1 }; /* its value if DCGM has none */
struct xid_sample {
    int32_t gpu, node;
    nanos time;
    int value;
    size_t order;
};

struct xid_file {
    const char *name;
    bool names_hosts; /* some of its Xids did */
    bool timeless;    /* a metric without a time was reported */
    struct log_clock clock;
};

struct xid_parser {
    struct fault_trace trace;
    struct host_table hosts, gpus;
    struct xid_sample *samples;
    size_t n_samples, capacity;
    const struct convert_options *options;
    struct diags *diags;
    struct xid_file file;
    enum log_time clock; /* of all lines so far */
    bool moved;          /* a file to the year of the one before */
    nanos first;
    int *ranks; /* severity of each of the trace's details */
    size_t ranks_capacity;
    size_t counts[XID_LARGEST + 1]; /* number of each Xid, also of those that are no fault */
    size_t n_others;                /* errors without an Xid, and those below */
    size_t n_nonfatal;              /* Xids 144 to 150 and SXids that are marked as not fatal */
    size_t n_unsaid;                /* Xids 144 to 150 of the gauge, which has no such mark */
    size_t n_blank;                 /* values of the gauge that are no Xid */
    size_t n_stood;                 /* GPUs whose gauge had an Xid at the first scrape */
};

struct place xid_place(const struct xid_parser *parser, int line);
/* The node of a host; NULL: the line has no host, so the file is one host. */
int32_t xid_node(struct xid_parser *parser, const char *host, size_t length);
/* Adds an error, as a fault if its class is one. */
void xid_add(struct xid_parser *parser, nanos time, int32_t node, enum xid_class class, const char *cause);
/* Whether a line has the same kind of time as the lines before: seconds since boot, dates, or dates without a year. Reports if
 * not.
 */
MUST_CHECK bool xid_clock_fits(struct xid_parser *parser, enum log_time clock, int line);

/* Reads a line of DCGM's gauge. */
void xid_gauge_line(struct xid_parser *parser, const char *line, int number_line);
/* Adds all changes of the gauges as Xids, in order of time. */
void xid_gauge_finish(struct xid_parser *parser);

#endif
