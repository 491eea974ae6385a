/* executor_results.c - copies results of a rank to the host: loss, norm, gradients and weights. */
#include "runtime/run/executor.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"

static void copy_out(struct rank *rank, void *to, const void *from, size_t bytes)
{
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->copy_out(stream, to, from, bytes, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->stream_synchronise(stream, &rank->diags);
}

enum status rank_read(struct rank *rank, double *loss, double *square_norm)
{
    float norm = 0;
    copy_out(rank, loss, rank->loss, sizeof *loss);
    copy_out(rank, &norm, rank->norm, sizeof norm);
    *square_norm = rank->program->rolling && !rank->side[GROUP_MODEL] ? NAN : norm; /* of this stage alone */
    return rank->status;
}

/* Of one row the part that is owned. */
static void collect_row(const struct unit_state *u, const struct parameter *p, int64_t row, const float *owned, float *there)
{
    int64_t begin = p->offset + row * p->cols, end = begin + p->cols, last = u->first + u->owned;
    int64_t from = begin > u->first ? begin : u->first, to = end < last ? end : last;
    if (from < to)
        memcpy(there + (from - begin), owned + (from - u->first), (size_t)(to - from) * sizeof *there);
}

static void collect_unit(const struct unit_state *u, const struct model_map *map, const float *owned, float *whole)
{
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        for (int64_t row = 0; row < p->rows; row++)
            collect_row(u, p, row, owned, whole + model_map_index(map, p, row * p->cols));
    }
}

/* The elements that this rank updates, from host and device memory. */
static void collect_owned(struct rank *rank, const struct unit_state *u, bool gradients, float *owned)
{
    int64_t there = gradients && !rank_gradients_leave(rank) ? 0 : u->host.n;
    if (there)
        memcpy(owned, gradients ? u->host.gradients : u->host.master, (size_t)there * sizeof *owned);
    copy_out(rank, owned + there, gradients ? u->owned_gradients : u->master, (size_t)(u->owned - there) * sizeof *owned);
}

enum status rank_collect(struct rank *rank, bool gradients, float *whole)
{
    struct model_map map = model_map_of(rank->setting);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            float *owned = memory_new((size_t)u->owned, sizeof *owned);
            collect_owned(rank, u, gradients, owned);
            if (rank->status == STATUS_OK)
                collect_unit(u, &map, owned, whole);
            free(owned);
        }
    return rank->status;
}
