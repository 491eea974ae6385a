/*
 * verify_progress.c - check that every operation ends, by running the program without times.
 *
 * A rank's state is the position of each of its streams; an operation has ended when its stream is past it. Ranks that may be
 * able to continue are in a list. Operations that are left when the list is empty wait in a circle, which is found by following
 * the waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/program/verify.h"

enum { CIRCLE_SHOWN = 6 };

struct rank_state {
    uint32_t done[N_STREAMS]; /* operations of the stream that have ended */
    bool listed;
    uint8_t entered; /* bit s: the head of stream s has entered its collective */
};

struct group_state {
    uint32_t ended;  /* collectives */
    int32_t entered; /* members in the one that is next */
};

struct run {
    struct verifier *v;
    struct rank_state *ranks;
    struct group_state *groups;
    int32_t *list;
    size_t n_list;
};

static void wake(struct run *run, int32_t rank)
{
    if (run->ranks[rank].listed)
        return;
    run->ranks[rank].listed = true;
    run->list[run->n_list++] = rank;
}

static const struct script_view *view_of(const struct run *run, int32_t rank)
{
    return &run->v->views[run->v->program->ranks[rank].script];
}

static bool has_ended(const struct run *run, int32_t rank, uint32_t op)
{
    const struct script_view *view = view_of(run, rank);
    return run->ranks[rank].done[view->ops[op].stream] > view->position[op];
}

/* What the head of a stream waits for: an operation of some rank. */
struct cause {
    int32_t rank;
    uint32_t op;
};
static const struct cause NOTHING = {-1, NO_OP};

static struct cause sending(const struct run *run, int32_t rank, uint32_t recv)
{
    const struct matching *matching = &run->v->matchings[run->v->matching_of[rank]];
    int32_t sender = run->v->program->ranks[rank].peers[view_of(run, rank)->ops[recv].role];
    return (struct cause){sender, matching->send_of[recv]};
}

/* Why operation `op`, the head of its stream, cannot start; NOTHING when it can. Collectives are asked separately. */
static struct cause obstacle(const struct run *run, int32_t rank, uint32_t op)
{
    const struct op *o = &view_of(run, rank)->ops[op];
    for (int d = 0; d < OP_DEPS; d++)
        if (o->deps[d] != NO_OP && !has_ended(run, rank, o->deps[d]))
            return (struct cause){rank, o->deps[d]};
    if (o->kind == OP_RECV) {
        struct cause sent = sending(run, rank, op);
        if (!has_ended(run, sent.rank, sent.op))
            return sent;
    }
    return NOTHING;
}

/* The group whose collective this is, and whether it has ended. */
static bool collective_ended(struct run *run, int32_t rank, const struct op *op, unsigned stream)
{
    struct rank_state *state = &run->ranks[rank];
    int32_t g = run->v->program->ranks[rank].groups[op->role];
    const struct rank_group *group = &run->v->program->groups[g];
    if (state->entered >> stream & 1)
        return false; /* whoever completes it moves this stream on */
    if (++run->groups[g].entered < group->n_members) {
        state->entered |= (uint8_t)(1u << stream);
        return false;
    }
    run->groups[g].entered = 0;
    run->groups[g].ended++;
    for (int32_t m = 0; m < group->n_members; m++) {
        int32_t member = run->v->program->members[group->first_member + m];
        if (member == rank)
            continue;
        /* All collectives of the kind are on one stream of the member's script. */
        const struct script_view *view = view_of(run, member);
        unsigned its = view->ops[view->collectives[op->role][0]].stream;
        run->ranks[member].entered &= (uint8_t) ~(1u << its);
        run->ranks[member].done[its]++;
        wake(run, member);
    }
    return true;
}

static void tell_receiver(struct run *run, int32_t rank, const struct op *op)
{
    wake(run, run->v->program->ranks[rank].peers[op->role]);
}

/* Go on with one stream as far as it goes; did it move? */
static bool advance_stream(struct run *run, int32_t rank, unsigned stream)
{
    const struct script_view *view = view_of(run, rank);
    struct rank_state *state = &run->ranks[rank];
    uint32_t before = state->done[stream];
    while (state->done[stream] < view->n_queue[stream]) {
        uint32_t i = view->queue[stream][state->done[stream]];
        const struct op *op = &view->ops[i];
        if (obstacle(run, rank, i).rank >= 0)
            break;
        if (op->kind == OP_COLLECTIVE && !collective_ended(run, rank, op, stream))
            break;
        state->done[stream]++;
        if (op->kind == OP_SEND)
            tell_receiver(run, rank, op);
    }
    return state->done[stream] != before;
}

static void advance_rank(struct run *run, int32_t rank)
{
    bool moved = true;
    run->ranks[rank].listed = false;
    while (moved) {
        moved = false;
        for (unsigned s = 0; s < N_STREAMS; s++)
            moved |= advance_stream(run, rank, s);
    }
}

/* --- who waits for whom */

static struct cause head_of(const struct run *run, int32_t rank, unsigned stream)
{
    const struct script_view *view = view_of(run, rank);
    if (run->ranks[rank].done[stream] >= view->n_queue[stream])
        return NOTHING;
    return (struct cause){rank, view->queue[stream][run->ranks[rank].done[stream]]};
}

/* A member that has not entered the collective its group is at: the head of the stream it would enter from. */
static struct cause absent_member(const struct run *run, int32_t rank, const struct op *op)
{
    const struct program *program = run->v->program;
    const struct rank_group *group = &program->groups[program->ranks[rank].groups[op->role]];
    for (int32_t m = 0; m < group->n_members; m++) {
        int32_t member = program->members[group->first_member + m];
        const struct script_view *view = view_of(run, member);
        unsigned stream = view->ops[view->collectives[op->role][0]].stream;
        struct cause head = head_of(run, member, stream);
        bool waiting = run->ranks[member].entered >> stream & 1 && view->ops[head.op].role == op->role;
        if (!waiting)
            return head;
    }
    return NOTHING;
}

/* The stuck head of a stream that the stuck head `at` waits for. */
static struct cause next_in_circle(const struct run *run, struct cause at)
{
    const struct op *op = &view_of(run, at.rank)->ops[at.op];
    struct cause why = obstacle(run, at.rank, at.op);
    if (why.rank < 0)
        return op->kind == OP_COLLECTIVE ? absent_member(run, at.rank, op) : NOTHING;
    return head_of(run, why.rank, view_of(run, why.rank)->ops[why.op].stream);
}

static bool same_cause(struct cause a, struct cause b)
{
    return a.rank == b.rank && a.op == b.op;
}

/* From any stuck head, following causes ends in a circle: two walkers, one twice as fast, meet in it (Floyd). */
static struct cause find_circle(const struct run *run, struct cause start)
{
    struct cause slow = start, fast = start;
    do {
        slow = next_in_circle(run, slow);
        fast = next_in_circle(run, fast);
        if (fast.rank >= 0)
            fast = next_in_circle(run, fast);
        if (fast.rank < 0)
            return start;
    } while (!same_cause(slow, fast));
    return slow;
}

static void report_circle(struct run *run, struct cause start)
{
    struct cause first = find_circle(run, start), at = first;
    char text[CIRCLE_SHOWN * (OP_TEXT_SIZE + 32)] = "", op[OP_TEXT_SIZE];
    size_t used = 0;
    for (int i = 0; i < CIRCLE_SHOWN && at.rank >= 0; i++) {
        int n = snprintf(text + used, sizeof text - used, "%srank %" PRId32 " %s", i ? " waits for " : "", at.rank,
                         op_text(&view_of(run, at.rank)->ops[at.op], at.op, op));
        used += n > 0 ? (size_t)n : 0;
        at = next_in_circle(run, at);
        if (same_cause(at, first))
            break;
    }
    diag_error(run->v->diags, PLACE_NONE, "program: waits in a circle: %s waits for %s", text,
               same_cause(at, first) ? "the first of these" : "...");
}

/* The head of some stream that has not come to its end. */
static struct cause find_stuck(const struct run *run)
{
    for (int32_t r = 0; r < run->v->program->n_ranks; r++)
        for (unsigned s = 0; s < N_STREAMS; s++)
            if (head_of(run, r, s).rank >= 0)
                return head_of(run, r, s);
    return NOTHING;
}

bool verify_progress(struct verifier *v)
{
    const struct program *program = v->program;
    struct run run = {
        .v = v,
        .ranks = memory_new((size_t)program->n_ranks, sizeof *run.ranks),
        .groups = memory_new((size_t)program->n_groups, sizeof *run.groups),
        .list = memory_new((size_t)program->n_ranks, sizeof *run.list),
    };
    for (int32_t r = program->n_ranks - 1; r >= 0; r--)
        wake(&run, r);
    while (run.n_list)
        advance_rank(&run, run.list[--run.n_list]);
    struct cause stuck = find_stuck(&run);
    if (stuck.rank >= 0)
        report_circle(&run, stuck);
    free(run.ranks);
    free(run.groups);
    free(run.list);
    return stuck.rank < 0;
}
