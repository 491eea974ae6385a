/* update.c - executes an operation of the optimizer: on the device or on the host, with SGD, Adam, LAMB or Muon. */
#include <string.h>

#include "runtime/update/update_internal.h"
#include "runtime/update/update_muon.h"

/* Which part of Muon's step an operation is, by the name of its work. */
static enum muon_part muon_part_of(const struct work *work)
{
    return strcmp(work->label, "muon") == 0 ? MUON_PRODUCTS : strcmp(work->label, "muon_apply") == 0 ? MUON_APPLY : MUON_UPDATE;
}

static void update_each(struct rank *rank, struct device_stream *stream)
{
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct kernel_call call = update_call(rank, update_part_of_device(rank, &rank->chunks[c].states[i]));
            rank_launch(rank, stream, &call);
        }
}

static void update_weights(struct rank *rank, const struct work *work, struct device_stream *stream)
{
    enum optimizer optimizer = rank->setting->job->optimizer;
    update_finish_gradients(rank, stream);
    if (optimizer == OPTIMIZER_MUON)
        muon_compute(rank, muon_part_of(work), stream);
    else if (optimizer == OPTIMIZER_LAMB)
        update_lamb(rank, stream);
    else
        update_each(rank, stream);
}

static void update_on_host(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    (void)op;
    if (rank->setting->job->optimizer == OPTIMIZER_LAMB) {
        update_lamb_on_host(rank, u, stream);
        return;
    }
    struct kernel_call call = update_call(rank, update_part_of_host(rank, u));
    if (rank->status == STATUS_OK && u->host.n)
        rank->status = rank->device->api->launch_host(stream, &call, &rank->diags);
}

/* Casts are made by the first pass that reads them (casts.h). */
void update_enqueue(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    const struct work *work = &rank->program->works.items[op->work];
    if (work->kind == WORK_HOST_UPDATE) {
        shards_visit(rank, op, update_on_host, stream);
    } else if (strcmp(work->label, WORK_NORM_LABEL) == 0) {
        update_finish_gradients(rank, stream);
        rank_copy(rank, stream, rank->host_norm, rank->norm, sizeof *rank->norm);
    } else if (strcmp(work->label, WORK_CAST_LABEL) != 0) {
        update_weights(rank, work, stream);
    }
}

void update_close(struct rank *rank)
{
    muon_close(rank);
    const struct device_api *api = rank->device->api;
    void (*release)(struct device * device, void *memory, size_t bytes) =
        layout_offloads(rank->layout, OFFLOAD_OPTIMIZER) ? api->host_free : api->memory_free;
    release(rank->device, rank->update, (size_t)rank->n_update * sizeof(float));
    api->memory_free(rank->device, rank->norms, 2 * (size_t)(rank->n_norms + 1) * sizeof(float));
    api->memory_free(rank->device, rank->partial, (size_t)rank->n_partial * sizeof *rank->partial);
    api->memory_free(rank->device, rank->gathered_gradients, (size_t)rank->n_gathered_gradients * sizeof(float));
}
