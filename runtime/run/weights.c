/* weights.c - the weights of a chunk in device memory.
 *
 * In fp32 the optimizer updates the weights themselves. In bf16 it updates fp32 copies of the elements that this rank owns (all
 * of a unit, or its slice under ZeRO). Under ZeRO-3 only slices stay on the device; whole weights and gradients are gathered
 * tensors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/work/work.h"
#include "runtime/layer/casts.h"
#include "runtime/update/update_muon.h"

static size_t weights_bytes(const struct rank *rank, int64_t elements)
{
    return (size_t)elements * device_element_bytes(rank->device);
}

void *unit_kept_weights(const struct rank *rank, const struct unit_state *u)
{
    return u->shard ? (char *)u->shard + weights_bytes(rank, u->host.n - u->host.fetched) : NULL;
}

/* --- initial values */

static void fill_initial(const struct model_map *map, const struct unit *unit, uint64_t seed, float *values)
{
    for (int p = 0; p < unit->n_parameters; p++) {
        const struct parameter *parameter = &unit->parameters[p];
        for (int64_t i = 0; i < parameter->rows * parameter->cols; i += parameter->cols) {
            const int64_t row = model_map_index(map, parameter, i); /* whose columns follow one another there too */
            for (int64_t c = 0; c < parameter->cols; c++)
                values[parameter->offset + i + c] = parameter_initial(map, parameter->kind, row + c, seed);
        }
    }
}

/* Through the device, so that it is rounded as the device rounds. */
static void set_weights(struct rank *rank, void *weights, const float *values, int64_t n)
{
    if (rank->device->precision == PRECISION_FP32) {
        rank_upload(rank, weights, values, (size_t)n * sizeof *values);
        return;
    }
    const size_t bytes = (size_t)n * sizeof *values;
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    void *wide = rank_memory(rank, bytes); /* and not a tensor's, which would stay */
    rank_upload(rank, wide, values, bytes);
    struct kernel_call cast = {.kernel = KERNEL_CAST, .cast = {.n = n, .from = wide, .to = weights}};
    rank_launch(rank, stream, &cast);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->stream_synchronise(stream, &rank->diags);
    rank->device->api->memory_free(rank->device, wide, bytes);
}

/* --- memory */

/* Whether the optimizer updates the same weights that the device computes with. */
static bool is_master(const struct rank *rank)
{
    return rank->device->precision == PRECISION_FP32;
}

/* Of one of the states that the device has. */
static size_t states_bytes(const struct unit_state *u)
{
    return (size_t)(u->owned - u->host.n) * sizeof(float);
}

/* Of the second moments: SGD has none, Muon those of what Adam updates, one parameter's behind the other's. */
static size_t squares_bytes(const struct rank *rank, const struct unit_state *u)
{
    switch (rank->setting->job->optimizer) {
    case OPTIMIZER_SGD: return 0;
    case OPTIMIZER_MUON: return (size_t)muon_adam_elements(u) * sizeof(float);
    default: return states_bytes(u);
    }
}

static size_t kept_gradients_bytes(const struct rank *rank, const struct unit_state *u)
{
    return rank_gradients_leave(rank) ? states_bytes(u) : (size_t)u->owned * sizeof(float);
}

static void allocate(struct rank *rank, struct unit_state *u)
{
    int64_t elements = u->unit->elements, slice = u->unit->slice;
    bool zero = rank->layout->zero > 0;
    u->first = zero ? u->unit->copies.index * slice : 0;
    u->owned = zero ? slice : elements;
    host_states_plan(rank, u);
    if (unit_weights_travel(rank, u)) {
        u->shard = rank_memory(rank, weights_bytes(rank, u->owned - u->host.fetched));
    } else {
        u->weights = rank_memory(rank, weights_bytes(rank, elements));
        u->shard = u->weights ? (char *)u->weights + weights_bytes(rank, u->first) : NULL;
    }
    if (unit_gradients_travel(rank, u)) {
        u->owned_gradients = rank_memory(rank, kept_gradients_bytes(rank, u));
    } else {
        u->gradients = rank_memory(rank, (size_t)elements * sizeof(float));
        u->owned_gradients = u->gradients ? u->gradients + u->first : NULL;
    }
    u->master = is_master(rank) ? unit_kept_weights(rank, u) : rank_memory(rank, states_bytes(u));
    u->m = rank_memory(rank, states_bytes(u));
    u->v = rank_memory(rank, squares_bytes(rank, u));
}

static void initialise(struct rank *rank, struct unit_state *u, const struct model_map *map, uint64_t seed)
{
    float *values = memory_new((size_t)u->unit->elements, sizeof *values);
    fill_initial(map, u->unit, seed, values);
    if (rank->status == STATUS_OK) {
        if (u->weights)
            set_weights(rank, u->weights, values, u->unit->elements);
        else
            set_weights(rank, u->shard, values + u->first + u->host.fetched, u->owned - u->host.fetched);
        if (!is_master(rank))
            rank_upload(rank, u->master, values + u->first + u->host.n, states_bytes(u));
    }
    host_states_new(rank, u, values + u->first);
    free(values);
}

static void release(struct rank *rank, struct unit_state *u)
{
    const struct device_api *api = rank->device->api;
    if (!is_master(rank))
        api->memory_free(rank->device, u->master, states_bytes(u));
    api->memory_free(rank->device, u->m, states_bytes(u));
    api->memory_free(rank->device, u->v, squares_bytes(rank, u));
    if (unit_weights_travel(rank, u))
        api->memory_free(rank->device, u->shard, weights_bytes(rank, u->owned - u->host.fetched));
    else
        api->memory_free(rank->device, u->weights, weights_bytes(rank, u->unit->elements));
    if (unit_gradients_travel(rank, u))
        api->memory_free(rank->device, u->owned_gradients, kept_gradients_bytes(rank, u));
    else
        api->memory_free(rank->device, u->gradients, (size_t)u->unit->elements * sizeof(float));
    host_states_free(rank, u);
}

void chunk_open(struct rank *rank, struct chunk_state *chunk, uint64_t seed)
{
    struct model_map map = model_map_of(rank->setting);
    struct stage_content content = {.range = chunk->range,
                                    .embedding = chunk->embedding,
                                    .head = chunk->head,
                                    .holds_table = chunk->head && work_shares_table(rank->layout, rank->setting->model)};
    stage_units_build(&rank->shape, rank->setting->model, content, &chunk->units);
    chunk->states = memory_new((size_t)chunk->units.n_items, sizeof *chunk->states);
    chunk->passes = memory_new((size_t)rank->micro_batches, sizeof *chunk->passes);
    for (int64_t i = 0; i < rank->micro_batches; i++) {
        chunk->passes[i] = memory_new(1, sizeof **chunk->passes);
        chunk->passes[i]->layers = memory_new((size_t)chunk->units.n_layers, sizeof *chunk->passes[i]->layers);
        chunk->passes[i]->predictions = memory_new((size_t)chunk->predictions, sizeof *chunk->passes[i]->predictions);
    }
    for (int i = 0; i < chunk->units.n_items; i++) {
        chunk->states[i].unit = &chunk->units.items[i];
        allocate(rank, &chunk->states[i]);
        initialise(rank, &chunk->states[i], &map, seed);
    }
}

void chunk_close(struct rank *rank, struct chunk_state *chunk)
{
    for (int i = 0; chunk->states && i < chunk->units.n_items; i++)
        release(rank, &chunk->states[i]);
    for (int64_t i = 0; chunk->passes && i < rank->micro_batches; i++) {
        free(chunk->passes[i]->layers);
        free(chunk->passes[i]->predictions);
        free(chunk->passes[i]);
    }
    free(chunk->passes);
    free(chunk->states);
    stage_units_free(&chunk->units);
}

struct unit_state *chunk_layer_unit(struct chunk_state *chunk, int layer)
{
    return &chunk->states[chunk->units.first_layer + layer];
}

struct unit_state *chunk_experts_unit(struct chunk_state *chunk, int layer)
{
    int index = chunk->units.experts[layer];
    return index < 0 ? NULL : &chunk->states[index];
}

struct unit_state *rank_table(struct rank *rank)
{
    for (int c = 0; c < rank->layout->vpp; c++)
        if (rank->chunks[c].units.table >= 0)
            return &rank->chunks[c].states[rank->chunks[c].units.table];
    return NULL;
}

bool chunk_shares_table(const struct rank *rank, const struct chunk_state *chunk, int unit)
{
    return unit == chunk->units.table && chunk->head && (rank->shape.tied || chunk->predictions);
}

static const struct parameter *find(const struct unit *unit, enum parameter_kind kind)
{
    for (int i = 0; i < unit->n_parameters; i++)
        if (unit->parameters[i].kind == kind)
            return &unit->parameters[i];
    return NULL;
}

void *unit_weights(const struct rank *rank, const struct unit_state *u, enum parameter_kind kind)
{
    const struct parameter *p = find(u->unit, kind);
    return p && u->weights ? (char *)u->weights + weights_bytes(rank, p->offset) : NULL;
}

float *unit_gradients(const struct unit_state *u, enum parameter_kind kind)
{
    const struct parameter *p = find(u->unit, kind);
    return p && u->gradients ? u->gradients + p->offset : NULL;
}

/* --- ZeRO-3
 *
 * How many tensors of a size there come to be: those in use at once, and the spare ones. Of a layer's weights there are those it
 * is computed with and those fetched ahead, one has the gradients; the ends have their weights for a whole pass, and where
 * micro-batches follow one another those of the next pass come before the last gradients have gone. Units of one size use each
 * other's tensors, and gradients those of weights where elements are as large. */

static double tensors_of_unit(const struct unit *unit, bool several, size_t element_bytes)
{
    bool end = unit->layer < 0 || unit->is_head;
    double weights = end && !several ? 1 : 2, gradients = 1, n = (double)unit->elements;
    if (element_bytes == sizeof(float))
        return (weights + gradients + TRAVELLING_SPARE) * n * sizeof(float);
    return (weights + TRAVELLING_SPARE) * n * (double)element_bytes + (gradients + TRAVELLING_SPARE) * n * sizeof(float);
}

/* Whether an earlier unit is as large. */
static bool has_alike(const struct stage_units *units, int i)
{
    for (int k = 0; k < i; k++)
        if (units->items[k].copies.n == units->items[i].copies.n && units->items[k].elements == units->items[i].elements)
            return true;
    return false;
}

/* Bytes of the temporary tensors of a unit's gradients, if these are not gathered with the weights. With host memory also: the
 * sum to which they are added, and slices that wait for a gather. */
static double passing_tensors_of_unit(const struct unit *unit, const struct layout *layout, bool several, size_t element_bytes)
{
    const double slice = (double)(layout->zero ? unit->slice : unit->elements), all = 1 + TRAVELLING_SPARE;
    const bool shared = unit->copies.n > 1, scatters = layout_scatters_gradients(layout) && shared;
    const bool travels = layout->zero == 3 && shared, leave = layout_offloads_gradients(layout);
    double passes = (leave || scatters) && !travels ? all * (double)unit->elements * sizeof(float) : 0;
    double sums = leave && several && unit->copies.n > 1 ? all * slice * sizeof(float) : 0;
    return passes + offload_share(&layout->offload, OFFLOAD_OPTIMIZER) * sums +
           (layout_offloads(layout, OFFLOAD_PARAMETERS) ? all * slice * (double)element_bytes : 0);
}

double gathered_bytes(const struct layout *layout, const struct setting *setting, size_t element_bytes)
{
    struct shape shape = shape_of(layout, setting, 0);
    struct stage_content all = {.range = {0, setting->model->layers}, .embedding = true, .head = true};
    struct stage_units units;
    double bytes = 0, largest = 0;
    const bool several = layout_micro_batches(layout, setting->job) > 1, leave = layout_offloads_gradients(layout);
    if (!layout_gradients_leave_rank(layout))
        return 0;
    stage_units_build(&shape, setting->model, all, &units);
    for (int i = 0; i < units.n_items; i++) {
        const struct unit *unit = &units.items[i];
        largest = fmax(largest, (double)(layout->zero ? unit->slice : unit->elements));
        if (has_alike(&units, i))
            continue;
        if (layout->zero == 3 && unit->copies.n > 1)
            bytes += tensors_of_unit(unit, several, element_bytes);
        bytes += passing_tensors_of_unit(unit, layout, several, element_bytes);
    }
    stage_units_free(&units);
    return bytes + (leave ? largest * sizeof(float) : 0); /* and those of one unit for their norm */
}

double largest_owned_bytes(const struct layout *layout, const struct setting *setting)
{
    struct shape shape = shape_of(layout, setting, 0);
    struct stage_content all = {.range = {0, setting->model->layers}, .embedding = true, .head = true};
    struct stage_units units;
    int64_t largest = 0;
    stage_units_build(&shape, setting->model, all, &units);
    for (int i = 0; i < units.n_items; i++) {
        int64_t owned = layout->zero ? units.items[i].slice : units.items[i].elements;
        largest = owned > largest ? owned : largest;
    }
    stage_units_free(&units);
    return (double)largest * sizeof(float);
}

void unit_enter(struct rank *rank, struct unit_state *u, bool backward, struct device_stream *stream)
{
    if (rank->status != STATUS_OK)
        return;
    if (!u->weights_tensor && u->n_gathered) {
        u->weights_tensor = u->gathered[0];
        memmove(u->gathered, u->gathered + 1, (size_t)--u->n_gathered * sizeof *u->gathered);
        u->weights = u->weights_tensor->data;
        narrow_weights(rank, u, stream);
    }
    if (!backward || u->gradients_tensor || !unit_gradients_travel(rank, u))
        return;
    size_t bytes = (size_t)u->unit->elements * sizeof(float);
    u->gradients_tensor = tensor_new_travelling(rank, bytes, stream);
    u->gradients = u->gradients_tensor->data;
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {u->gradients, bytes}};
    rank_launch(rank, stream, &zero);
}

void unit_leave(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    if (!u->weights_tensor)
        return;
    tensor_drop(rank, &u->weights_tensor, stream);
    narrow_weights_drop(rank, u, stream);
    u->weights = NULL;
}
