/* rank_record.c - runs all steps of one rank and keeps their times, losses and norms. */
#include "runtime/run/rank_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

struct rank_options run_rank_options(const struct program *program, const struct setting *setting,
                                     const struct thread_run_options *options)
{
    return (struct rank_options){.program = program,
                                 .setting = setting,
                                 .data = {.seed = options->seed,
                                          .vocab = setting->model->vocab,
                                          .seq_len = setting->job->seq_len,
                                          .predictions = setting->model->mtp_layers,
                                          .text = options->text,
                                          .n_text = options->n_text},
                                 .seed = options->seed,
                                 .rate = options->rate};
}

void rank_record_new(struct rank_record *record, const struct program *program, int rank, int steps)
{
    size_t count = (size_t)steps;
    *record = (struct rank_record){.n_ops = program->scripts[program->ranks[rank].script].n_ops, .steps = steps};
    record->timings = memory_new(count, sizeof *record->timings);
    for (size_t s = 0; s < count; s++) {
        record->timings[s].start = memory_new(record->n_ops, sizeof(nanos));
        record->timings[s].end = memory_new(record->n_ops, sizeof(nanos));
        record->timings[s].pieces = memory_new(record->n_ops, sizeof(nanos));
        record->timings[s].work = memory_new(record->n_ops, sizeof(nanos));
    }
    record->losses = memory_new(count, sizeof *record->losses);
    record->square_norms = memory_new(count, sizeof *record->square_norms);
}

void rank_record_free(struct rank_record *record)
{
    for (int s = 0; s < record->steps; s++) {
        free(record->timings[s].start);
        free(record->timings[s].end);
        free(record->timings[s].pieces);
        free(record->timings[s].work);
    }
    free(record->timings);
    free(record->losses);
    free(record->square_norms);
    *record = (struct rank_record){0};
}

/* A slow rank needs the times of the step before: copies them to where this step's times will be. */
static void begin_with_last(struct rank_record *record, int step)
{
    size_t bytes = record->n_ops * sizeof(nanos);
    if (step == 0)
        return;
    memcpy(record->timings[step].start, record->timings[step - 1].start, bytes);
    memcpy(record->timings[step].end, record->timings[step - 1].end, bytes);
}

enum status rank_run(const struct rank_options *options, const struct injection *injection, struct device *device,
                     struct world *world, struct rank *rank, struct rank_record *record)
{
    enum status status = rank_open(options, device, world, rank);
    for (int s = 0; s < record->steps && status == STATUS_OK; s++) {
        begin_with_last(record, s);
        status = rank_run_step(options, rank, injection, &record->timings[s]);
        if (status == STATUS_OK)
            status = rank_read(rank, &record->losses[s], &record->square_norms[s]);
    }
    record->peak = device->peak;
    record->host_peak = device->host_peak;
    if (status != STATUS_OK) {
        char text[64];
        snprintf(text, sizeof text, "rank %d failed", world->rank);
        world->api->abandon(world, rank->diags.n_items ? rank->diags.items[0].text : text);
    }
    return status;
}

nanos rank_record_end(const struct rank_record *record, int step)
{
    nanos end = 0;
    for (uint32_t i = 0; i < record->n_ops; i++)
        end = record->timings[step].end[i] > end ? record->timings[step].end[i] : end;
    return end;
}

void rank_record_add_work(const struct rank_record *record, int step, const struct program *program, int rank,
                          struct thread_run *run)
{
    const struct op *ops = &program->ops[program->scripts[program->ranks[rank].script].first_op];
    const struct rank_timing *timing = &record->timings[step];
    for (uint32_t i = 0; i < record->n_ops; i++) {
        double *worked = ops[i].kind == OP_COMPUTE ? run->computed : run->exchanged;
        worked[ops[i].class] += (double)timing->work[i] * 1e-9;
        if (ops[i].kind == OP_COLLECTIVE)
            run->rested[ops[i].class] += (double)(timing->end[i] - timing->start[i] - timing->pieces[i]) * 1e-9;
    }
}

bool rank_has_loss(const struct layout *layout, int rank)
{
    struct coordinates at = layout_coordinates(layout, rank);
    bool head = false; /* DualPipe has it twice */
    for (int c = 0; c < layout->vpp; c++)
        head = head || layout_virtual_stage(layout, at.pp, c) == layout_virtual_stages(layout) - 1;
    return at.tp == 0 && head;
}

int run_median_step(const struct thread_run_step *steps, int n)
{
    int first = n > 1 ? 1 : 0, count = n - first;
    for (int i = first; i < n; i++) {
        int before = 0;
        for (int j = first; j < n; j++)
            before += steps[j].duration < steps[i].duration || (steps[j].duration == steps[i].duration && j < i);
        if (before == (count - 1) / 2)
            return i;
    }
    return first;
}
