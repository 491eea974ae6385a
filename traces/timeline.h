/*
 * timeline.h - what happened: (rank, operation, start, end). The simulator computes it, the runtime measures it.
 */
#ifndef MSIM_TRACES_TIMELINE_H
#define MSIM_TRACES_TIMELINE_H

#include "model/base/units.h"
#include "model/program/program.h"

struct span {
    int32_t rank;
    uint32_t op; /* index within the rank's script */
    nanos start, end;
};

struct timeline {
    struct span *spans; /* in order of (rank, op) once closed */
    size_t n_spans, capacity;
    nanos end; /* of the step */
};

void timeline_free(struct timeline *timeline);
void timeline_record(struct timeline *timeline, struct span span);
void timeline_close(struct timeline *timeline); /* sort */

/* Chrome trace event format (opens in ui.perfetto.dev and chrome://tracing): one process per rank, one thread per stream, flow
 * arrows from sends to receives. `name` labels the process group ("predicted"). */
MUST_CHECK enum status timeline_write_chrome(const struct timeline *timeline, const struct program *program, const char *name,
                                             FILE *out, struct diags *diags);
/* The same as CSV (rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s), which plots read. */
void timeline_write_csv(const struct timeline *timeline, const struct program *program, FILE *out);

#endif
