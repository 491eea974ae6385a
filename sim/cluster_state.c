#include "sim/cluster_state.h"

#include <stdlib.h>

#include "model/base/memory.h"

void cluster_state_init(struct cluster_state *state, int32_t n_nodes)
{
    *state = (struct cluster_state){
        .n_nodes = n_nodes,
        .outages = memory_new((size_t)n_nodes, sizeof *state->outages),
        .speed = FULL_SPEED,
    };
}

void cluster_state_free(struct cluster_state *state)
{
    free(state->outages);
    free(state->ends);
    free(state->slow);
    *state = (struct cluster_state){0};
}

static bool end_before(const struct fault_end *a, const struct fault_end *b)
{
    if (a->time != b->time)
        return a->time < b->time;
    if (a->class != b->class)
        return a->class < b->class;
    return a->sequence < b->sequence;
}

static void heap_push(struct cluster_state *state, struct fault_end end)
{
    state->ends = memory_grow(state->ends, &state->ends_capacity, state->n_ends + 1, sizeof *state->ends);
    size_t at = state->n_ends++;
    while (at > 0 && end_before(&end, &state->ends[(at - 1) / 2])) {
        state->ends[at] = state->ends[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    state->ends[at] = end;
}

static struct fault_end heap_pop(struct cluster_state *state)
{
    struct fault_end *heap = state->ends;
    struct fault_end top = heap[0];
    struct fault_end last = heap[--state->n_ends];
    size_t n = state->n_ends;
    size_t at = 0;
    for (size_t child = 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && end_before(&heap[child + 1], &heap[child]))
            child++;
        if (!end_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

static void slow_begin(struct cluster_state *state, int32_t speed)
{
    state->slow = memory_grow(state->slow, &state->slow_capacity, state->n_slow + 1, sizeof *state->slow);
    state->slow[state->n_slow++] = speed;
    if (speed < state->speed)
        state->speed = speed;
}

static void slow_end(struct cluster_state *state, int32_t speed)
{
    size_t at = 0;
    while (state->slow[at] != speed)
        at++;
    state->slow[at] = state->slow[--state->n_slow];
    if (speed > state->speed)
        return;
    state->speed = FULL_SPEED;
    for (size_t i = 0; i < state->n_slow; i++)
        if (state->slow[i] < state->speed)
            state->speed = state->slow[i];
}

void cluster_state_begin(struct cluster_state *state, const struct fault *fault)
{
    if (fault->kind != FAULT_NODE)
        slow_begin(state, fault->speed);
    else if (state->outages[fault->node]++ == 0)
        state->n_down++;
    nanos end = fault->time > INT64_MAX - fault->down ? INT64_MAX : fault->time + fault->down;
    heap_push(state, (struct fault_end){
                         .time = end,
                         .class = fault->down == 0 ? EVENT_END_OF_EMPTY : EVENT_END,
                         .sequence = state->sequence++,
                         .node = fault->node,
                         .speed = fault->speed,
                         .kind = fault->kind,
                     });
}

const struct fault_end *cluster_state_next_end(const struct cluster_state *state)
{
    return state->n_ends > 0 ? &state->ends[0] : NULL;
}

struct fault_end cluster_state_end(struct cluster_state *state)
{
    struct fault_end end = heap_pop(state);
    if (end.kind != FAULT_NODE)
        slow_end(state, end.speed);
    else if (--state->outages[end.node] == 0)
        state->n_down--;
    return end;
}
