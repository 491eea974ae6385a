/* tensors.c - allocates tensors and uses freed ones again. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "runtime/base/rank.h"

void *rank_memory(struct rank *rank, size_t bytes)
{
    void *memory = NULL;
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->memory_new(rank->device, bytes, &memory, &rank->diags);
    return memory;
}

static struct tensor *tensor_create(struct rank *rank, size_t bytes, bool travels)
{
    void *data = rank_memory(rank, bytes);
    struct tensor *tensor = memory_new(1, sizeof *tensor);
    *tensor = (struct tensor){.data = data, .bytes = bytes, .references = 1, .travels = travels};
    if (travels && rank->status == STATUS_OK)
        rank->status = rank->device->api->event_new(rank->device, &tensor->released, &rank->diags);
    rank->all = memory_grow(rank->all, &rank->capacity, rank->n_all + 1, sizeof *rank->all);
    rank->all[rank->n_all++] = tensor;
    return tensor;
}

static struct tensor *take(struct tensor **list, size_t bytes)
{
    for (struct tensor **at = list; *at; at = &(*at)->next) {
        struct tensor *tensor = *at;
        if (tensor->bytes != bytes)
            continue;
        *at = tensor->next;
        tensor->next = NULL;
        tensor->references = 1;
        tensor->format = NARROW_NONE;
        return tensor;
    }
    return NULL;
}

struct tensor *tensor_new(struct rank *rank, size_t bytes)
{
    struct tensor *tensor = take(&rank->ordinary, bytes);
    return tensor ? tensor : tensor_create(rank, bytes, false);
}

struct tensor *tensor_new_travelling(struct rank *rank, size_t bytes, struct device_stream *stream)
{
    int free_ones = 0;
    for (const struct tensor *t = rank->travelling; t; t = t->next)
        free_ones += t->bytes == bytes;
    if (free_ones <= TRAVELLING_SPARE)
        return tensor_create(rank, bytes, true);
    struct tensor *tensor = take(&rank->travelling, bytes);
    rank_wait(rank, tensor->released, stream);
    return tensor;
}

struct tensor *tensor_share(struct tensor *tensor)
{
    if (tensor)
        tensor->references++;
    return tensor;
}

struct tensor *tensor_take(struct tensor **at)
{
    struct tensor *tensor = *at;
    *at = NULL;
    return tensor;
}

static void append(struct tensor **list, struct tensor *tensor)
{
    while (*list)
        list = &(*list)->next;
    *list = tensor;
}

void tensor_drop(struct rank *rank, struct tensor **at, struct device_stream *stream)
{
    struct tensor *tensor = *at;
    *at = NULL;
    if (!tensor || --tensor->references)
        return;
    tensor->next = NULL;
    if (tensor->travels) {
        rank_record(rank, tensor->released, stream);
        append(&rank->travelling, tensor);
    } else {
        tensor->next = rank->quarantine;
        rank->quarantine = tensor;
    }
}

void tensors_settle(struct rank *rank)
{
    while (rank->quarantine) {
        struct tensor *tensor = rank->quarantine;
        rank->quarantine = tensor->next;
        tensor->next = rank->ordinary;
        rank->ordinary = tensor;
    }
}

void tensors_free(struct rank *rank)
{
    for (size_t i = 0; i < rank->n_all; i++) {
        struct tensor *tensor = rank->all[i];
        rank->device->api->memory_free(rank->device, tensor->data, tensor->bytes);
        rank->device->api->event_free(tensor->released);
        free(tensor);
    }
    free(rank->all);
    rank->all = NULL;
    rank->n_all = rank->capacity = 0;
}

/* --- enqueueing */

void rank_launch(struct rank *rank, struct device_stream *stream, const struct kernel_call *call)
{
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->launch(stream, call, &rank->diags);
}

void rank_exchange(struct rank *rank, struct communicator *communicator, struct device_stream *stream,
                   const struct exchange_call *call)
{
    if (rank->status == STATUS_OK && communicator)
        rank->status = rank->world->api->enqueue(communicator, stream, call, &rank->diags);
}

void rank_wait(struct rank *rank, struct device_event *event, struct device_stream *stream)
{
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->event_wait(event, stream, &rank->diags);
}

void rank_record(struct rank *rank, struct device_event *event, struct device_stream *stream)
{
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->event_record(event, stream, &rank->diags);
}

enum element rank_element(const struct rank *rank)
{
    return rank->device->precision == PRECISION_FP32 ? ELEMENT_FP32 : ELEMENT_BF16;
}
