/* timeline.c - spans of operations, and their sums. */
#include "traces/timeline/timeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "model/base/memory.h"

int program_stages(const struct program *program)
{
    const struct layout *layout = &program->layout;
    int64_t world = (int64_t)layout->tp * layout->cp * layout->dp * layout->pp;

    return world == program->n_ranks || layout->pp == program->n_ranks ? layout->pp : 1;
}

struct rank_place program_rank_place(const struct program *program, int rank)
{
    const struct layout *layout = &program->layout;
    int per_stage = layout->tp * layout->cp * layout->dp;

    if ((int64_t)per_stage * layout->pp == program->n_ranks)
        return (struct rank_place){.rank = rank, .at = layout_coordinates(layout, rank), .stands_for = 1};
    if (layout->pp != program->n_ranks)
        return (struct rank_place){.rank = rank, .stands_for = 1};
    struct coordinates first = {.pp = rank};
    return (struct rank_place){.rank = layout_rank(layout, first), .at = first, .stands_for = per_stage};
}

void timeline_free(struct timeline *timeline)
{
    free(timeline->spans);
    *timeline = (struct timeline){0};
}

void timeline_record(struct timeline *timeline, struct span span)
{
    timeline->spans = memory_grow(timeline->spans, &timeline->capacity, timeline->n_spans + 1, sizeof *timeline->spans);
    timeline->spans[timeline->n_spans++] = span;
    if (span.end > timeline->end)
        timeline->end = span.end;
}

static int span_compare(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

void timeline_close(struct timeline *timeline)
{
    bool sorted = true;

    for (size_t i = 1; sorted && i < timeline->n_spans; i++)
        sorted = span_compare(&timeline->spans[i - 1], &timeline->spans[i]) <= 0;
    if (!sorted)
        qsort(timeline->spans, timeline->n_spans, sizeof *timeline->spans, span_compare);
}

const char *stream_title(enum stream stream)
{
    static const char *const titles[N_STREAMS] = {"compute", "tp", "send", "recv", "dp", "host", "down", "up"};

    return stream < N_STREAMS ? titles[stream] : "?";
}

static const char *kind_title(const struct op *op)
{
    static const char *const titles[N_OP_KINDS] = {"compute", "send", "recv", "collective", "join"};

    if (op->kind == OP_COLLECTIVE)
        return collective_name(op->collective);
    return op->kind < N_OP_KINDS ? titles[op->kind] : "?";
}

char *span_label(const struct program *program, const struct op *op, char *buffer, size_t size)
{
    const char *what = op->pass < N_PASSES ? pass_name(op->pass) : work_class_name(op->class);
    const char *prefix = "", *blank = "";
    char where[32] = "";

    if (op->micro_batch >= 0 && op->chunk >= 0 && program->layout.vpp > 1)
        snprintf(where, sizeof where, " %d.%d", (int)op->micro_batch, op->chunk);
    else if (op->micro_batch >= 0)
        snprintf(where, sizeof where, " %d", (int)op->micro_batch);
    if (op->kind == OP_COLLECTIVE) {
        snprintf(buffer, size, "%s %s%s", collective_name(op->collective), group_kind_name(op->role), where);
        return buffer;
    }
    if (op->kind == OP_COMPUTE && program->detail == DETAIL_KERNEL && op->work >= 0)
        what = program->works.items[op->work].label;
    if (op->kind != OP_COMPUTE) {
        prefix = kind_title(op);
        blank = " ";
    }
    snprintf(buffer, size, "%s%s%s%s", prefix, blank, what != NULL ? what : "?", where);
    return buffer;
}

void timeline_write_csv(const struct timeline *timeline, const struct program *program, FILE *out)
{
    fputs("rank,stage,stream,kind,pass,chunk,micro_batch,start_s,end_s\n", out);
    for (size_t i = 0; i < timeline->n_spans; i++) {
        const struct span *span = &timeline->spans[i];
        const struct program_rank *rank = &program->ranks[span->rank];
        const struct op *op = &program->ops[program->scripts[rank->script].first_op + span->op];
        struct rank_place place = program_rank_place(program, span->rank);
        fprintf(out, "%d,%d,%s,%s,%s,%d,%d,%" PRId64 ".%09" PRId64 ",%" PRId64 ".%09" PRId64 "\n", place.rank, place.at.pp,
                stream_title(op->stream), kind_title(op), op->pass < N_PASSES ? pass_name(op->pass) : work_class_name(op->class),
                op->chunk, (int)op->micro_batch, span->start / NANOS_PER_SECOND, span->start % NANOS_PER_SECOND,
                span->end / NANOS_PER_SECOND, span->end % NANOS_PER_SECOND);
    }
}
