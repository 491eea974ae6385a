/*
 * xid_trace_internal.h - the parser of kernel logs and DCGM's gauge. Private to xid_trace.c, xid_gauge.c and xid_parser.c.
 */
#ifndef MSIM_TRACES_FAULT_XID_TRACE_INTERNAL_H
#define MSIM_TRACES_FAULT_XID_TRACE_INTERNAL_H

#include "traces/fault/log_time.h"
#include "traces/fault/trace_convert.h"
#include "traces/fault/xid.h"

/* A GPU's gauge at one scrape. */
enum { XID_BLANK = -1 }; /* its value where DCGM knows none */
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
    int *ranks; /* of the trace's details: the worse, the higher */
    size_t ranks_capacity;
    size_t counts[XID_LARGEST + 1]; /* of Xids, whatever became of them */
    size_t n_others;                /* errors that are no Xid, and those below */
    size_t n_nonfatal;              /* Xids 144 to 150 and SXids that say that they are not fatal */
    size_t n_unsaid;                /* Xids 144 to 150 of the gauge, which does not say it */
    size_t n_blank;                 /* values of the gauge that are no Xid */
    size_t n_stood;                 /* GPUs whose gauge showed one from the first */
};

struct place xid_place(const struct xid_parser *parser, int line);
/* Where a line names no host (NULL) its file is one. */
int32_t xid_node(struct xid_parser *parser, const char *host, size_t length);
/* An error of a class, as a fault if it is one. */
void xid_add(struct xid_parser *parser, nanos time, int32_t node, enum xid_class class, const char *cause);
/* Seconds since boot, dates and dates without a year have nothing in common. False, and reported: the line is of another kind. */
MUST_CHECK bool xid_clock_fits(struct xid_parser *parser, enum log_time clock, int line);

/* A line of DCGM's gauge. */
void xid_gauge_line(struct xid_parser *parser, const char *line, int number_line);
/* All of them, in order of time, as Xids. */
void xid_gauge_finish(struct xid_parser *parser);

#endif
