/*
 * step_executor_contended.c - execution over a network whose transfers share links: the network decides when a transfer ends.
 */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/step/step_executor_internal.h"

/* Schedules EVENT_SETTLED: everything that begins at this time has begun. */
static void settle_later(struct executor *x)
{
    if (!x->settling)
        engine_schedule(x->engine, engine_now(x->engine), EVENT_SETTLED, NO_WORD);
    x->settling = true;
}

static uint64_t transfer_new(struct executor *x, struct contended_transfer transfer)
{
    uint32_t i = x->free_transfer;

    if (i != NO_OP) {
        x->free_transfer = x->transfers[i].next;
    } else {
        if (x->n_transfers == x->transfer_capacity)
            x->transfers = memory_grow(x->transfers, &x->transfer_capacity, x->n_transfers + 1, sizeof *x->transfers);
        i = (uint32_t)x->n_transfers++;
    }
    x->transfers[i] = transfer;
    settle_later(x);
    return i;
}

void contended_collective_begin(struct executor *x, int32_t rank, uint32_t i, nanos start)
{
    const struct program_rank *at = &x->program->ranks[rank];
    const struct step_op *op = &x->actors[rank].ops[i];
    const struct work_collective exchange = op_exchange(x->program, &x->tables->scripts[at->script].source[i]);
    int32_t group = at->groups[op->role];
    uint64_t word = transfer_new(x, (struct contended_transfer){.from = -1, .to = group, .receive = op->ordinal});

    x->network->begin_collective(x->network->state, start, &exchange, group, word);
}

/* ---- messages */

void contended_message_end(struct executor *x, int32_t rank, uint32_t i, nanos end)
{
    struct actor *actor = &x->actors[rank];
    const struct step_op *op = &actor->ops[i];

    if (op->stream == STREAM_COMPUTE)
        actor_account(x, actor)->ns[op->class] += end - op_time_at(actor->times, i)->start;
    op_complete(x, actor, i, end);
    actor_wake(x, rank, 0);
}

void contended_send_begin(struct executor *x, int32_t rank, uint32_t i, nanos start)
{
    struct actor *actor = &x->actors[rank];

    actor->busy |= (uint8_t)(1u << actor->ops[i].stream);
    message_deliver(x, rank, i, start);
    if (x->n_sends == x->send_capacity)
        x->sends = memory_grow(x->sends, &x->send_capacity, x->n_sends + 1, sizeof *x->sends);
    x->sends[x->n_sends++] = (uint64_t)rank << 32 | i;
    settle_later(x);
}

void contended_receive_begin(struct executor *x, int32_t rank, uint32_t i, nanos start)
{
    struct actor *actor = &x->actors[rank];
    int32_t from = actor->peers[actor->ops[i].role];
    uint32_t send = actor->match[i];
    bool at_once = op_time_at(x->actors[from].times, send)->start == start && from != rank;
    const struct op *op = &x->tables->scripts[x->program->ranks[rank].script].source[i];
    uint64_t word =
        transfer_new(x, (struct contended_transfer){.from = from, .to = rank, .send = at_once ? send : NO_OP, .receive = i});

    actor->busy |= (uint8_t)(1u << actor->ops[i].stream);
    x->network->begin_message(x->network->state, start, from, rank, op->bytes, word);
}

/* Ends the sends whose receivers are not there by now after the time they take alone. */
static void sends_settle(struct executor *x)
{
    for (size_t k = 0; k < x->n_sends; k++) {
        int32_t rank = (int32_t)(x->sends[k] >> 32);
        uint32_t i = (uint32_t)x->sends[k];
        const struct actor *actor = &x->actors[rank];
        int32_t to = actor->peers[actor->ops[i].role];
        const struct actor *receiver = &x->actors[to];
        uint32_t receive = actor->match[i], stream = receiver->ops[receive].stream;
        bool received = receiver->head[stream] == receive && (receiver->busy >> stream & 1u) && to != rank;
        if (!received)
            engine_schedule(x->engine, op_time_at(actor->times, i)->start + actor->ops[i].duration, EVENT_OP, x->sends[k]);
    }
    x->n_sends = 0;
}

/* ---- passes of ranks in lockstep */

static void block_start(struct executor *x, int32_t block, uint32_t i)
{
    const int32_t *members = x->lockstep->members + x->lockstep->first[block];
    int32_t n = x->lockstep->first[block + 1] - x->lockstep->first[block];
    nanos start = x->blocks[block].latest, duration = x->actors[members[0]].ops[i].duration;

    x->blocks[block] = (struct block){0};
    for (int32_t m = 0; m < n; m++) {
        struct actor *actor = &x->actors[members[m]];
        struct op_time *time = op_time_at(actor->times, i);
        actor_account(x, actor)->ns[CLASS_TP_COMM] += start - time->start;
        time->start = start;
    }
    engine_schedule(x->engine, start + duration, EVENT_OP, (uint64_t)members[0] << 32 | i);
}

void block_enter(struct executor *x, int32_t rank, uint32_t i, nanos ready)
{
    struct actor *actor = &x->actors[rank];
    int32_t block = x->lockstep->block[rank];
    struct block *at = &x->blocks[block];

    actor->busy |= 1u << STREAM_COMPUTE;
    op_time_at(actor->times, i)->start = ready;
    at->latest = ready > at->latest ? ready : at->latest;
    if (++at->entered == x->lockstep->first[block + 1] - x->lockstep->first[block])
        block_start(x, block, i);
}

void block_end(struct executor *x, int32_t block, uint32_t i, nanos end)
{
    for (int32_t m = x->lockstep->first[block]; m < x->lockstep->first[block + 1]; m++) {
        int32_t rank = x->lockstep->members[m];
        op_complete(x, &x->actors[rank], i, end);
        actor_wake(x, rank, 0);
    }
}

/* ---- the network's events */

/* A transfer has arrived. */
static void transfer_end(struct executor *x, const struct contended_transfer *done, nanos end)
{
    if (done->from < 0) {
        collective_end(x, done->to, done->receive, x->entries[done->to].latest, end);
        return;
    }
    if (done->send != NO_OP)
        contended_message_end(x, done->from, done->send, end);
    contended_message_end(x, done->to, done->receive, end);
}

static void transfers_end(struct executor *x, uint32_t first, nanos end)
{
    for (uint32_t word = first; word != NO_OP;) {
        struct contended_transfer done = x->transfers[word];
        x->transfers[word].next = x->free_transfer;
        x->free_transfer = word;
        word = done.next;
        transfer_end(x, &done, end);
    }
}

/* Takes the transfers that leave the links now. Those that then arrive at the same time share one event. */
static void network_take(struct executor *x, nanos now)
{
    uint32_t first = NO_OP, last = NO_OP;
    nanos latency, together = 0;
    uint64_t word;

    while (x->network->take(x->network->state, now, &word, &latency)) {
        x->transfers[word].next = NO_OP;
        if (last != NO_OP && latency == together) {
            x->transfers[last].next = (uint32_t)word;
        } else {
            if (first != NO_OP)
                engine_schedule(x->engine, now + together, EVENT_NETWORK, first);
            first = (uint32_t)word;
            together = latency;
        }
        last = (uint32_t)word;
    }
    if (first != NO_OP)
        engine_schedule(x->engine, now + together, EVENT_NETWORK, first);
}

void contended_event(struct executor *x, const struct event *event)
{
    const struct network *network = x->network;
    nanos next;

    if (event->priority == EVENT_NETWORK && event->payload != NO_WORD) {
        transfers_end(x, (uint32_t)event->payload, event->time);
        return;
    }
    if (event->priority == EVENT_SETTLED) {
        x->settling = false;
        sends_settle(x);
    }
    while ((next = network->next(network->state)) <= event->time)
        network_take(x, event->time);
    if (next == INT64_MAX || (next == x->wake && event->time < x->wake))
        return;
    x->wake = next;
    engine_schedule(x->engine, next, EVENT_NETWORK, NO_WORD);
}

bool contended_go_on(struct executor *x)
{
    if (x->network->advance == NULL)
        return true;
    nanos end = x->network->advance(x->network->state, engine_peek(x->engine));
    x->stopped = end < 0;
    if (end >= 0 && end < INT64_MAX)
        engine_schedule(x->engine, end, EVENT_NETWORK, NO_WORD);
    return !x->stopped;
}
