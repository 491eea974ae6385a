/*
 * timeline.h - what happened in a step: rank, operation, start, end. The simulator predicts it, the runtime measures it.
 *
 *     rank 0   forward 0.0     0.000 .. 3.120 ms
 *     rank 0   send forward 0  3.120 .. 3.180 ms
 */
#ifndef MSIM_TRACES_TIMELINE_TIMELINE_H
#define MSIM_TRACES_TIMELINE_TIMELINE_H

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

/* The position of a rank of a program. In a folded program (one rank per stage) rank r stands for all ranks of stage r, and is
 * shown as the first of them. A program without a layout has one stage, and ranks have their own numbers. */
struct rank_place {
    int rank;              /* in the whole job */
    struct coordinates at; /* .pp is the stage */
    int stands_for;        /* ranks, itself included */
};
struct rank_place program_rank_place(const struct program *program, int rank);
int program_stages(const struct program *program);

void timeline_free(struct timeline *timeline);
void timeline_record(struct timeline *timeline, struct span span);
void timeline_close(struct timeline *timeline); /* sort */

/* The name of an operation for people: "forward 3.1" (micro-batch 3, chunk 1), "send backward 0", "all_gather dp", "optimizer".
 * Returns buffer. */
char *span_label(const struct program *program, const struct op *op, char *buffer, size_t size);
const char *stream_title(enum stream stream);

/* Writes the Chrome trace event format (for ui.perfetto.dev and chrome://tracing): one process per rank, named "rank 0 (stage
 * 0, dp 0, tp 0)", one thread per stream, times in microseconds with three decimals, flow arrows from sends to receives if both
 * ranks are there. `name` ("predicted") precedes the names of ranks. The timeline must be closed. */
MUST_CHECK enum status timeline_write_chrome(const struct timeline *timeline, const struct program *program, const char *name,
                                             FILE *out, struct diags *diags);
/* The same as CSV (rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s), for plots. */
void timeline_write_csv(const struct timeline *timeline, const struct program *program, FILE *out);

#endif
