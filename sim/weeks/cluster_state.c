#include "sim/weeks/cluster_state.h"

#include <stdlib.h>

#include "model/base/memory.h"

void cluster_state_init(struct cluster_state *state, int32_t n_nodes)
{
    *state = (struct cluster_state){
        .n_nodes = n_nodes,
        .outages = memory_new((size_t)n_nodes, sizeof *state->outages),
        .speed = FULL_SPEED,
    };
    for (int kind = 0; kind < N_FAULT_KINDS; kind++)
        state->slow[kind].least = FULL_SPEED;
}

void cluster_state_free(struct cluster_state *state)
{
    free(state->outages);
    free(state->ends);
    for (int kind = 0; kind < N_FAULT_KINDS; kind++)
        free(state->slow[kind].items);
    *state = (struct cluster_state){0};
}

static bool is_slow(enum fault_kind kind)
{
    return kind == FAULT_STRAGGLER || kind == FAULT_LINK;
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

static void find_speed(struct cluster_state *state)
{
    state->speed = FULL_SPEED;
    for (int kind = 0; kind < N_FAULT_KINDS; kind++)
        if (state->slow[kind].least < state->speed)
            state->speed = state->slow[kind].least;
}

static void slow_begin(struct cluster_state *state, enum fault_kind kind, int32_t speed)
{
    state->slow[kind].items = memory_grow(state->slow[kind].items, &state->slow[kind].capacity, state->slow[kind].n + 1,
                                          sizeof *state->slow[kind].items);
    state->slow[kind].items[state->slow[kind].n++] = speed;
    if (speed < state->slow[kind].least)
        state->slow[kind].least = speed;
    find_speed(state);
}

static void slow_end(struct cluster_state *state, enum fault_kind kind, int32_t speed)
{
    int32_t *items = state->slow[kind].items;
    size_t at = 0;
    while (items[at] != speed)
        at++;
    items[at] = items[--state->slow[kind].n];
    state->slow[kind].least = FULL_SPEED;
    for (size_t i = 0; i < state->slow[kind].n; i++)
        if (items[i] < state->slow[kind].least)
            state->slow[kind].least = items[i];
    find_speed(state);
}

void cluster_state_begin(struct cluster_state *state, const struct fault *fault)
{
    cluster_state_begin_for(state, fault, AWAY_OUTAGE);
}

void cluster_state_begin_for(struct cluster_state *state, const struct fault *fault, enum away_reason reason)
{
    if (is_slow(fault->kind))
        slow_begin(state, fault->kind, fault->speed);
    else if (state->outages[fault->node]++ == 0)
        state->n_down++;
    nanos end = fault->time > INT64_MAX - fault->down ? INT64_MAX : fault->time + fault->down;
    if (!is_slow(fault->kind))
        state->away_s[reason] += nanos_to_seconds(end - fault->time);
    heap_push(state, (struct fault_end){
                         .time = end,
                         .begun = fault->time,
                         .class = fault->down == 0 ? EVENT_END_OF_EMPTY : EVENT_END,
                         .sequence = state->sequence++,
                         .node = fault->node,
                         .speed = fault->speed,
                         .kind = fault->kind,
                         .reason = reason,
                     });
}

double cluster_state_away_s(const struct cluster_state *state, enum away_reason reason, nanos now)
{
    double seconds = state->away_s[reason];
    for (size_t i = 0; i < state->n_ends; i++)
        if (!is_slow(state->ends[i].kind) && state->ends[i].reason == reason && state->ends[i].time > now)
            seconds -= nanos_to_seconds(state->ends[i].time - now);
    return seconds;
}

const struct fault_end *cluster_state_next_end(const struct cluster_state *state)
{
    return state->n_ends > 0 ? &state->ends[0] : NULL;
}

struct fault_end cluster_state_end(struct cluster_state *state)
{
    struct fault_end end = heap_pop(state);
    if (is_slow(end.kind))
        slow_end(state, end.kind, end.speed);
    else if (--state->outages[end.node] == 0)
        state->n_down--;
    return end;
}

/* The slowest first; among equals the one that has been slow longest. */
static int compare_slow(const void *left, const void *right)
{
    const struct fault_end *a = left, *b = right;
    if (a->speed != b->speed)
        return a->speed < b->speed ? -1 : 1;
    return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

int cluster_state_evict_slow(struct cluster_state *state, nanos now, nanos age, nanos away, int most)
{
    int n = 0;
    if (state->slow[FAULT_STRAGGLER].n == 0 || most <= 0)
        return 0;
    size_t kept = 0, n_ends = state->n_ends;
    struct fault_end *ends = state->ends;
    struct fault_end *evicted = memory_new(n_ends, sizeof *evicted);
    for (size_t i = 0; i < n_ends; i++)
        if (ends[i].kind == FAULT_STRAGGLER && ends[i].begun <= now - age && ends[i].time > now)
            evicted[n++] = ends[i];
        else
            ends[kept++] = ends[i];
    if (n > most) {
        qsort(evicted, (size_t)n, sizeof *evicted, compare_slow);
        for (; n > most; n--)
            ends[kept++] = evicted[n - 1];
    }
    if (n > 0) {
        state->n_ends = 0;
        for (size_t i = 0; i < kept; i++) /* in place: the heap never gets longer than the part already read */
            heap_push(state, ends[i]);
        for (int i = 0; i < n; i++) {
            slow_end(state, FAULT_STRAGGLER, evicted[i].speed);
            struct fault repair = {.time = now, .down = away, .node = evicted[i].node, .speed = FULL_SPEED, .kind = FAULT_NODE};
            cluster_state_begin_for(state, &repair, AWAY_CHECKED);
        }
    }
    free(evicted);
    return n;
}
