/* host_states.c - optimizer states, gradients and weights in the memory of the host: their memory and their copies.
 *
 * The elements of a unit that this rank updates are divided once. The host has master weights, moments and gradients of the
 * first host.n of them, and of the first host.fetched of those also the weights. The rest is on the device. update_part.c
 * updates them.
 *
 * Gradients that leave with every backward pass (layout_offloads_gradients) are computed in a temporary tensor. If other ranks
 * have parts or copies of the unit, the part of this pass is reduced and added to the sum, which was copied up during the pass.
 * If no other rank has, the tensor starts with the sum. The order of additions is the same as without offloading, with one
 * exception: the second exchange of hybrid sharding runs with every micro-batch here, and once per step without offloading. */
#include <math.h>
#include <string.h>

#include "runtime/base/rank.h"

enum { DIVIDED_AT = 8 }; /* elements: what is left of a vector's 16 bytes of bf16 */

bool rank_offloads(const struct rank *rank)
{
    return layout_offloads(rank->layout, OFFLOAD_OPTIMIZER) || layout_offloads(rank->layout, OFFLOAD_ACTIVATIONS) ||
           layout_offloads(rank->layout, OFFLOAD_PARAMETERS);
}

bool rank_gradients_leave(const struct rank *rank)
{
    return layout_offloads_gradients(rank->layout);
}

bool unit_weights_travel(const struct rank *rank, const struct unit_state *u)
{
    return rank->layout->zero == 3 && (u->unit->copies.n > 1 || u->host.fetched > 0);
}

bool unit_gradients_travel(const struct rank *rank, const struct unit_state *u)
{
    return (layout_scatters_gradients(rank->layout) && u->unit->copies.n > 1) || rank_gradients_leave(rank);
}

/* --- memory */

void *rank_host_memory(struct rank *rank, size_t bytes)
{
    void *memory = NULL;
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->host_new(rank->device, bytes, &memory, &rank->diags);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void rank_copy(struct rank *rank, struct device_stream *stream, void *to, const void *from, size_t bytes)
{
    if (rank->status == STATUS_OK && bytes)
        rank->status = rank->device->api->copy_between(stream, to, from, bytes, &rank->diags);
}

static int64_t share_of(const struct rank *rank, int64_t owned, enum offload_part part)
{
    double share = offload_share(&rank->layout->offload, part);
    int64_t n = (int64_t)llround(share * (double)owned / DIVIDED_AT) * DIVIDED_AT;
    return share >= 1 || n > owned ? owned : n;
}

void host_states_plan(struct rank *rank, struct unit_state *u)
{
    u->host.n = share_of(rank, u->owned, OFFLOAD_OPTIMIZER);
    u->host.fetched = share_of(rank, u->owned, OFFLOAD_PARAMETERS);
}

static size_t weights_bytes(const struct rank *rank, int64_t elements)
{
    return (size_t)elements * device_element_bytes(rank->device);
}

/* Whether the optimizer updates the same weights that the device computes with: in fp32. */
static bool is_master(const struct rank *rank)
{
    return rank->device->precision == PRECISION_FP32;
}

/* The first weights, rounded as the device rounds. */
static void set_weights(struct rank *rank, struct host_share *host, const float *initial)
{
    const struct device_api *api = rank->device->api;
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    size_t wide = (size_t)host->n * sizeof(float), narrow = weights_bytes(rank, host->n);
    float *from = rank_memory(rank, wide);
    void *to = rank_memory(rank, narrow);
    if (rank->status == STATUS_OK)
        rank->status = api->copy_in(stream, from, initial, wide, &rank->diags);
    struct kernel_call cast = {.kernel = KERNEL_CAST, .cast = {.n = host->n, .from = from, .to = to}};
    rank_launch(rank, stream, &cast);
    rank_copy(rank, stream, host->weights, to, narrow);
    if (rank->status == STATUS_OK)
        rank->status = api->stream_synchronise(stream, &rank->diags);
    api->memory_free(rank->device, from, wide);
    api->memory_free(rank->device, to, narrow);
}

/* Of the second moments: SGD has none. */
static size_t squares_bytes(const struct rank *rank, const struct host_share *host)
{
    return rank->setting->job->optimizer == OPTIMIZER_SGD ? 0 : (size_t)host->n * sizeof(float);
}

/* Refuses LAMB with bf16 weights: the host's kernels (kernels/optimizer_host.c) have no sums over whole tensors. */
static void check_optimizer(struct rank *rank)
{
    if (rank->status != STATUS_OK || is_master(rank) || rank->setting->job->optimizer != OPTIMIZER_LAMB)
        return;
    diag_error(
        &rank->diags, PLACE_NONE,
        "the host of a GPU updates weights by adam and sgd, by lamb that of a CPU's rank alone: set job.optimizer to one of "
        "the former, or offload none of it");
    rank->status = STATUS_MISSING;
}

void host_states_new(struct rank *rank, struct unit_state *u, const float *initial)
{
    struct host_share *host = &u->host;
    size_t bytes = (size_t)host->n * sizeof(float);
    if (host->n)
        check_optimizer(rank);
    if (rank_gradients_leave(rank) && rank->status == STATUS_OK)
        rank->status = rank->device->api->event_new(rank->device, &host->left, &rank->diags);
    if (!host->n)
        return;
    host->master = rank_host_memory(rank, bytes);
    host->m = rank_host_memory(rank, bytes);
    host->v = rank_host_memory(rank, squares_bytes(rank, host));
    host->gradients = rank_host_memory(rank, bytes);
    host->weights = is_master(rank) ? host->master : rank_host_memory(rank, weights_bytes(rank, host->n));
    if (rank->status != STATUS_OK)
        return;
    memcpy(host->master, initial, bytes);
    if (!is_master(rank))
        set_weights(rank, host, initial);
}

void host_states_free(struct rank *rank, struct unit_state *u)
{
    const struct device_api *api = rank->device->api;
    struct host_share *host = &u->host;
    size_t bytes = (size_t)host->n * sizeof(float);
    if (host->weights != host->master)
        api->host_free(rank->device, host->weights, weights_bytes(rank, host->n));
    api->host_free(rank->device, host->master, bytes);
    api->host_free(rank->device, host->m, bytes);
    api->host_free(rank->device, host->v, squares_bytes(rank, host));
    api->host_free(rank->device, host->gradients, bytes);
    api->event_free(host->left);
}

void host_states_begin(struct rank *rank)
{
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++)
            rank->chunks[c].states[i].host.has_sum = false;
}

/* --- gradients of a pass */

static void add(struct rank *rank, struct device_stream *stream, float *sum, const float *part, int64_t n)
{
    struct kernel_call call = {.kernel = KERNEL_ADD, .add = {.n = n, .h = n, .wide = true, .a = sum, .b = part, .y = sum}};
    if (n)
        rank_launch(rank, stream, &call);
}

/* No other rank has a part of it, or a copy that is added up. */
static bool is_alone(const struct rank *rank, const struct unit_state *u)
{
    return u->unit->copies.n == 1 && layout_group_size(rank->layout, GROUP_REPLICA) == 1;
}

/* The sum so far, for a pass to add to: what others have parts of is added to it later, the rest by the pass itself. */
static void sum_up(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    struct host_share *host = &u->host;
    bool alone = is_alone(rank, u);
    int64_t kept = u->owned - host->n;
    (void)op;
    if (!host->has_sum || (alone ? u->gradients_tensor != NULL : !host->n))
        return;
    rank_wait(rank, host->left, stream);
    struct tensor *sum = tensor_new_travelling(rank, (size_t)(alone ? u->owned : host->n) * sizeof(float), stream);
    rank_copy(rank, stream, sum->data, host->gradients, (size_t)host->n * sizeof(float));
    if (!alone) {
        host->sum = sum;
        return;
    }
    rank_copy(rank, stream, (float *)sum->data + host->n, u->owned_gradients, (size_t)kept * sizeof(float));
    u->gradients_tensor = sum;
    u->gradients = sum->data;
}

/* Copies the gradients of a pass to the host. */
static void sum_down(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    struct host_share *host = &u->host;
    size_t bytes = (size_t)host->n * sizeof(float);
    (void)op;
    if (!u->gradients_tensor)
        return;
    float *own = u->gradients + u->first;
    if (is_alone(rank, u)) {
        rank_copy(rank, stream, u->owned_gradients, own + host->n, (size_t)(u->owned - host->n) * sizeof(float));
    } else {
        add(rank, stream, u->owned_gradients, own + host->n, u->owned - host->n);
        if (host->sum)
            add(rank, stream, host->sum->data, own, host->n);
    }
    rank_copy(rank, stream, host->gradients, host->sum ? host->sum->data : own, bytes);
    host->has_sum = true;
    rank_record(rank, host->left, stream);
    tensor_drop(rank, &host->sum, stream);
    tensor_drop(rank, &u->gradients_tensor, stream);
    u->gradients = NULL;
}

/* Of the whole step, where they stayed until now: when they are finished (update.c). */
static void gradients_down(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    (void)op;
    rank_wait(rank, rank->finished, stream);
    rank_copy(rank, stream, u->host.gradients, u->owned_gradients, (size_t)u->host.n * sizeof(float));
}

/* --- weights */

/* For a gather, or, of a unit that no other rank has, for a pass. */
static void fetch(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    struct host_share *host = &u->host;
    bool gathered = u->unit->copies.n > 1;
    (void)op;
    if (!host->fetched)
        return;
    if ((gathered ? host->n_arrived : u->n_gathered) == GATHERED_MAX) {
        diag_error(&rank->diags, PLACE_NONE, "weights of layer %d are fetched %d times before anything gathers them",
                   u->unit->layer, GATHERED_MAX);
        rank->status = STATUS_FAILED;
        return;
    }
    struct tensor *slice = tensor_new_travelling(rank, weights_bytes(rank, u->owned), stream);
    rank_copy(rank, stream, slice->data, host->weights, weights_bytes(rank, host->fetched));
    rank_copy(rank, stream, (char *)slice->data + weights_bytes(rank, host->fetched), u->shard,
              weights_bytes(rank, u->owned - host->fetched));
    if (gathered)
        host->arrived[host->n_arrived++] = slice;
    else
        u->gathered[u->n_gathered++] = slice;
}

struct tensor *host_states_arrived(struct rank *rank, struct unit_state *u)
{
    struct host_share *host = &u->host;
    if (!host->n_arrived) {
        diag_error(&rank->diags, PLACE_NONE, "weights of layer %d are gathered before they have come from the host",
                   u->unit->layer);
        rank->status = STATUS_FAILED;
        return NULL;
    }
    struct tensor *first = host->arrived[0];
    memmove(host->arrived, host->arrived + 1, (size_t)--host->n_arrived * sizeof first);
    return first;
}

/* Copies updated weights that are not fetched later to the device. */
static void weights_up(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    const struct host_share *host = &u->host;
    (void)op;
    rank_copy(rank, stream, u->shard, (const char *)host->weights + weights_bytes(rank, host->fetched),
              weights_bytes(rank, host->n - host->fetched));
}

/* --- operations */

void host_states_copy(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    bool of_pass = op->micro_batch >= 0;
    if (op->role == COPIED_WEIGHTS)
        shards_visit(rank, op, of_pass ? fetch : weights_up, stream);
    else if (op->stream == STREAM_UP)
        shards_visit(rank, op, sum_up, stream);
    else
        shards_visit(rank, op, of_pass ? sum_down : gradients_down, stream);
}

void host_states_gradients(struct rank *rank, const struct unit_state *u, int64_t first, int64_t n, float *device, bool back,
                           struct device_stream *stream)
{
    const bool leave = rank_gradients_leave(rank);
    const int64_t there = leave && first < u->host.n ? (n < u->host.n - first ? n : u->host.n - first) : 0;
    float *host = u->host.gradients + first, *kept = u->owned_gradients + (first + there - (leave ? u->host.n : 0));
    rank_copy(rank, stream, back ? host : device, back ? device : host, (size_t)there * sizeof(float));
    rank_copy(rank, stream, back ? kept : device + there, back ? device + there : kept, (size_t)(n - there) * sizeof(float));
}
