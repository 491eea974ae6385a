/*
 * chrome_trace.c - a timeline in the Chrome trace event format, written as it goes: a trace of millions of spans needs no tree
 * of JSON values in memory. One event per line, in order of ranks and operations.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/timeline/timeline.h"

struct trace {
    const struct timeline *timeline;
    const struct program *program;
    FILE *out;
    bool first; /* no event has been written */
};

static const struct op *trace_op(const struct trace *trace, const struct span *span)
{
    return &trace->program->ops[trace->program->scripts[trace->program->ranks[span->rank].script].first_op + span->op];
}

static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

/* Microseconds with the nanoseconds as decimals. */
static void write_time(FILE *out, const char *key, nanos time)
{
    fprintf(out, ",\"%s\":%" PRId64 ".%03d", key, time / 1000, (int)(time % 1000));
}

/* Begin an event on a rank (and, from 0, a stream); the caller writes the rest and the closing brace. */
static void event_begin(struct trace *trace, const char *phase, int rank, int stream)
{
    fputs(trace->first ? "\n" : ",\n", trace->out);
    trace->first = false;
    fprintf(trace->out, "{\"ph\":\"%s\",\"pid\":%d", phase, program_rank_place(trace->program, rank).rank);
    if (stream >= 0)
        fprintf(trace->out, ",\"tid\":%d", stream);
}

static void write_rank(struct trace *trace, int rank, unsigned streams, const char *name)
{
    struct rank_place place = program_rank_place(trace->program, rank);
    char title[192], cp[24] = "", fold[40] = "";

    if (trace->program->layout.cp > 1)
        snprintf(cp, sizeof cp, ", cp %d", place.at.cp);
    if (place.stands_for > 1)
        snprintf(fold, sizeof fold, ", stands for %d", place.stands_for);
    snprintf(title, sizeof title, "%s%srank %d (stage %d, dp %d%s, tp %d%s)", name != NULL ? name : "", name != NULL ? " " : "",
             place.rank, place.at.pp, place.at.dp, cp, place.at.tp, fold);
    event_begin(trace, "M", rank, -1);
    fputs(",\"name\":\"process_name\",\"args\":{\"name\":", trace->out);
    write_text(trace->out, title);
    fputs("}}", trace->out);
    event_begin(trace, "M", rank, -1);
    fprintf(trace->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}", place.rank);
    for (int s = 0; s < N_STREAMS; s++) {
        if (!(streams >> s & 1u))
            continue;
        event_begin(trace, "M", rank, s);
        fprintf(trace->out, ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", stream_title(s));
        event_begin(trace, "M", rank, s);
        fprintf(trace->out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", s);
    }
}

/* Names of the ranks and of the streams that each uses. */
static void write_ranks(struct trace *trace, const char *name)
{
    const struct timeline *timeline = trace->timeline;

    for (size_t i = 0, next; i < timeline->n_spans; i = next) {
        unsigned streams = 0;
        for (next = i; next < timeline->n_spans && timeline->spans[next].rank == timeline->spans[i].rank; next++)
            streams |= 1u << trace_op(trace, &timeline->spans[next])->stream;
        write_rank(trace, timeline->spans[i].rank, streams, name);
    }
}

static void write_span(struct trace *trace, const struct span *span)
{
    const struct op *op = trace_op(trace, span);
    FILE *out = trace->out;
    char label[96];

    event_begin(trace, "X", span->rank, op->stream);
    write_time(out, "ts", span->start);
    write_time(out, "dur", span->end - span->start);
    fputs(",\"name\":", out);
    write_text(out, span_label(trace->program, op, label, sizeof label));
    fprintf(out, ",\"cat\":\"%s\",\"args\":{\"op\":%u", work_class_name(op->class), span->op);
    if (op->pass < N_PASSES)
        fprintf(out, ",\"pass\":\"%s\"", pass_name(op->pass));
    if (op->micro_batch >= 0)
        fprintf(out, ",\"micro_batch\":%d", (int)op->micro_batch);
    if (op->chunk >= 0)
        fprintf(out, ",\"chunk\":%d", op->chunk);
    if (op->layer >= 0)
        fprintf(out, ",\"layer\":%d", (int)op->layer);
    if (op->bytes > 0)
        fprintf(out, ",\"bytes\":%.0f", op->bytes);
    fputs("}}", out);
}

/* ---- arrows */

/* One end of a message; sorted so that the k-th send stands k-th among the sends of its (from, to, tag), likewise receives. */
struct arrow_end {
    int32_t from, to;
    uint32_t tag;
    uint32_t op;
    bool receive;
    size_t span;
};

static int arrow_end_compare(const void *a, const void *b)
{
    const struct arrow_end *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->receive != y->receive)
        return x->receive ? 1 : -1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return (x->span > y->span) - (x->span < y->span);
}

static bool arrow_same_lane(const struct arrow_end *a, const struct arrow_end *b)
{
    return a->from == b->from && a->to == b->to && a->tag == b->tag;
}

static void write_arrow_end(struct trace *trace, const struct arrow_end *end, size_t id)
{
    const struct span *span = &trace->timeline->spans[end->span];

    event_begin(trace, end->receive ? "f" : "s", span->rank, trace_op(trace, span)->stream);
    write_time(trace->out, "ts", span->start);
    fprintf(trace->out, ",\"id\":%zu,\"name\":\"message\",\"cat\":\"message\"%s}", id, end->receive ? ",\"bp\":\"e\"" : "");
}

static void write_arrows(struct trace *trace)
{
    const struct timeline *timeline = trace->timeline;
    struct arrow_end *ends = memory_new(timeline->n_spans, sizeof *ends);
    size_t n = 0, id = 0;

    for (size_t i = 0; i < timeline->n_spans; i++) {
        const struct span *span = &timeline->spans[i];
        const struct op *op = trace_op(trace, span);
        if (op->kind != OP_SEND && op->kind != OP_RECV)
            continue;
        int32_t peer = trace->program->ranks[span->rank].peers[op->role];
        bool receive = op->kind == OP_RECV;
        ends[n++] = (struct arrow_end){receive ? peer : span->rank, receive ? span->rank : peer, op->tag, span->op, receive, i};
    }
    qsort(ends, n, sizeof *ends, arrow_end_compare);
    for (size_t i = 0, receives, next; i < n; i = next) {
        for (receives = i; receives < n && arrow_same_lane(&ends[i], &ends[receives]) && !ends[receives].receive; receives++)
            ;
        for (next = receives; next < n && arrow_same_lane(&ends[i], &ends[next]); next++)
            ;
        for (size_t k = 0; i + k < receives && receives + k < next; k++, id++) {
            write_arrow_end(trace, &ends[i + k], id);
            write_arrow_end(trace, &ends[receives + k], id);
        }
    }
    free(ends);
}

enum status timeline_write_chrome(const struct timeline *timeline, const struct program *program, const char *name, FILE *out,
                                  struct diags *diags)
{
    struct trace trace = {.timeline = timeline, .program = program, .out = out, .first = true};

    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
    write_ranks(&trace, name);
    for (size_t i = 0; i < timeline->n_spans; i++)
        if (trace_op(&trace, &timeline->spans[i])->kind != OP_JOIN)
            write_span(&trace, &timeline->spans[i]);
    write_arrows(&trace);
    fputs("\n]}\n", out);
    if (fflush(out) != 0 || ferror(out)) {
        diag_error(diags, PLACE_NONE, "cannot write the trace: %s", strerror(errno ? errno : EIO));
        return STATUS_FAILED;
    }
    return STATUS_OK;
}
