#include "sim/weeks/checkpoint_traffic.h"

#include "sim/fabric/load.h"

/* Seconds until the bytes of every GPU have reached the GPU `stride` further (0: half the GPUs further). */
static enum status shift_s(const struct router *router, int gpus, int stride, double bytes, int queue_pairs, double *seconds,
                           struct diags *diags)
{
    const struct load load = {.pattern = LOAD_SHIFT, .gpus = gpus, .stride = stride, .bytes = bytes, .queue_pairs = queue_pairs};
    struct load_result result;
    enum status status = load_run(router, &load, &result, diags);
    if (status != STATUS_OK)
        return status;
    *seconds = result.seconds;
    load_result_free(&result);
    return STATUS_OK;
}

enum status checkpoint_cost_on_fabric(const struct layout *layout, const struct setting *setting, const struct router *router,
                                      int queue_pairs, struct checkpoint_cost *cost, struct diags *diags)
{
    double neighbour_s = 0, ring_s = 0;
    int gpus = setting->gpus, next = layout->tp * layout->cp;
    if (router->fabric->n_gpus < gpus) {
        diag_error(diags, PLACE_NONE, "the fabric has %d GPUs, the job uses %d", router->fabric->n_gpus, gpus);
        return STATUS_BAD_INPUT;
    }
    enum status status = STATUS_OK;
    if (gpus > 1)
        status = shift_s(router, gpus, 0, cost->rank_bytes, queue_pairs, &neighbour_s, diags);
    if (status == STATUS_OK && layout->dp > 1)
        status = shift_s(router, gpus, next, cost->rank_bytes, queue_pairs, &ring_s, diags);
    if (status != STATUS_OK)
        return status;
    cost->neighbour_s = neighbour_s;
    cost->load_broadcast_s = cost->storage_s + ring_s + cost->snapshot_s + cost->base_s;
    cost->load_memory_s = neighbour_s + cost->snapshot_s + cost->base_s;
    return STATUS_OK;
}
