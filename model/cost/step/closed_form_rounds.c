/*
 * closed_form_rounds.c - follow interleaved pipelines with different chunks pass by pass.
 *
 * Where chunks take different times, no small set of paths always contains the longest. A stage that is ahead of the others in
 * one chunk waits in the next, and its lead is used up over rounds. So passes are followed one after the other in the order of
 * the stages (schedule_interleaved.c): rounds of p micro-batches through all chunks. In turn t stage r has
 *
 *     forward pass i = t - r,    then backward pass j = t + r - D,    D = (v - 1) p + 2 (p - 1),
 *
 * of its p v passes in a round. (With one round all forward passes come first, and D comes after them.) Both need a result of a
 * neighbour on the ring of stages from the turn before:
 *
 *     end = max(end of the stage's pass before, arrival) + time,    arrival = max(end at the neighbour, its link free) + message,
 *
 * as a stage sends one message at a time. It also receives one at a time; leaving this out makes the result too short by up to
 * 5 % where messages take nearly as long as passes.
 *
 * Blocking messages (program.h) are exchanged after each turn: the results of a stage's passes, and the inputs of its next
 * turn, a forward's before a backward's. A stage sends one message at a time once its passes are over. It receives, one at a
 * time, what has begun to be sent to it. Its passes continue when it has done both.
 *
 * With more than ROUNDS full rounds turns are periodic, except for filling and draining. Each further round takes the time of
 * the last full one, in which all stages have passes of both directions.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/step/closed_form_schedule.h"

enum { ROUNDS = 3 };

/* A stage's time, and its link's; where messages block since when it exchanges, and until when it gets them. */
struct clock {
    double free, link;
    double exchanges, gets;
};

/* Passes of one direction in a turn: p (or fewer) of a chunk, behind them those of the chunk before. */
struct sweep {
    const double *row[2]; /* of the chunks that stages from the first on are at, and others: seconds by stage */
    int edge, index;      /* the first of those others; which pass of all the first stage has */
    double *come, *gives; /* what has come to stages, and will have in the next turn */
};

struct rounds {
    const double *seconds[PASS_BACKWARD + 1]; /* of virtual stages */
    double message;
    bool blocking;
    int p, v, total;       /* passes of a stage in one direction */
    int full;              /* of these the ones in full rounds */
    int short_from, lasts; /* the first pass of a last round, and how many of p micro-batches it has */
    double *come[4];       /* of either direction and turn, by stage, with one place beyond them either way */
};

static inline double later(double a, double b)
{
    return a > b ? a : b;
}

/* Pass `index` of a stage does not exist. */
static inline bool is_missing(const struct rounds *w, int index)
{
    return (unsigned)index >= (unsigned)w->total || (index >= w->short_from && index % w->p >= w->lasts);
}

/* When what it gives is at the neighbour; nothing `leaves` the ends of the model. */
static inline double pass_run(struct clock *clock, double come, double seconds, double message, bool leaves)
{
    clock->free = later(clock->free, come) + seconds;
    if (leaves)
        clock->link = later(clock->free, clock->link) + message;
    return clock->link;
}

/* `chunk` of the model, behind the one of the stages from `edge` on. */
static struct sweep sweep_of(const struct rounds *w, enum pass pass, int turn, int index)
{
    int at = index >= 0 ? index / w->p : -((w->p - 1 - index) / w->p), off = index - at * w->p;
    int one = ((at % w->v) + w->v) % w->v, other = pass == PASS_FORWARD ? (one + w->v - 1) % w->v : (one + 1) % w->v;
    struct sweep s = {.index = index, .edge = pass == PASS_FORWARD ? off + 1 : w->p - off};
    s.row[0] = w->seconds[pass] + (pass == PASS_FORWARD ? one : w->v - 1 - one) * w->p;
    s.row[1] = w->seconds[pass] + (pass == PASS_FORWARD ? other : w->v - 1 - other) * w->p;
    s.come = w->come[2 * pass + turn % 2];
    s.gives = w->come[2 * pass + (turn + 1) % 2];
    return s;
}

/* Forward passes stand one behind the other along the stages, backward ones before. `all`: none of these is missing. */
static inline void stages_run(const struct rounds *w, struct clock *clocks, const struct sweep *f, const struct sweep *b,
                              bool forward, bool backward, bool all)
{
    const double *last_f = w->seconds[PASS_FORWARD] + (w->v - 1) * w->p, *first_b = w->seconds[PASS_BACKWARD];
    int last = w->p - 1;
    for (int r = 0; r <= last; r++) {
        const double *row_f = f->row[r >= f->edge], *row_b = b->row[r >= b->edge];
        if (forward && (all || !is_missing(w, f->index - r)))
            f->gives[r + 1] = pass_run(&clocks[r], f->come[r], row_f[r], w->message, r < last || row_f != last_f);
        if (backward && (all || !is_missing(w, b->index + r)))
            b->gives[r] = pass_run(&clocks[r], b->come[r + 1], row_b[r], w->message, r > 0 || row_b != first_b);
    }
}

static inline void message_run(struct clock *from, struct clock *to, double message)
{
    double sent = later(from->exchanges, from->link), got = later(sent, later(to->exchanges, to->gets));
    from->link = sent + message;
    to->gets = got + message;
    from->free = later(from->free, from->link);
    to->free = later(to->free, to->gets);
}

/* The same where messages block: what all stages have made is exchanged behind their passes. */
static void stages_exchange(const struct rounds *w, struct clock *clocks, const struct sweep *f, const struct sweep *b,
                            bool forward, bool backward, bool all)
{
    const double *last_f = w->seconds[PASS_FORWARD] + (w->v - 1) * w->p, *first_b = w->seconds[PASS_BACKWARD];
    int last = w->p - 1;
    for (int r = 0; r <= last; r++) {
        bool has_f = forward && (all || !is_missing(w, f->index - r)), has_b = backward && (all || !is_missing(w, b->index + r));
        clocks[r].free += (has_f ? f->row[r >= f->edge][r] : 0) + (has_b ? b->row[r >= b->edge][r] : 0);
        if (has_f || has_b)
            clocks[r].exchanges = clocks[r].free;
    }
    for (int r = 0; r <= last && forward; r++)
        if ((all || !is_missing(w, f->index - r)) && (r < last || f->row[r >= f->edge] != last_f))
            message_run(&clocks[r], &clocks[r < last ? r + 1 : 0], w->message);
    for (int r = 0; r <= last && backward; r++)
        if ((all || !is_missing(w, b->index + r)) && (r > 0 || b->row[r >= b->edge] != first_b))
            message_run(&clocks[r], &clocks[r > 0 ? r - 1 : last], w->message);
}

static void turn_run(const struct rounds *w, struct clock *clocks, int turn, int behind)
{
    struct sweep f = sweep_of(w, PASS_FORWARD, turn, turn), b = sweep_of(w, PASS_BACKWARD, turn, turn - behind);
    int last = w->p - 1;
    f.come[0] = f.row[0] == w->seconds[PASS_FORWARD] ? 0 : f.come[w->p]; /* what the model is given; else the ring's */
    b.come[w->p] = b.row[last >= b.edge] == w->seconds[PASS_BACKWARD] + (w->v - 1) * w->p ? 0 : b.come[0];
    bool whole = w->short_from == INT_MAX, forward = turn - last < w->total, backward = turn - behind + last >= 0;
    bool all_f = turn >= last && turn < w->total, all_b = turn >= behind && turn - behind + last < w->total;
    if (w->blocking)
        stages_exchange(w, clocks, &f, &b, forward, backward, whole && (all_f || !forward) && (all_b || !backward));
    else if (whole && all_f && all_b)
        stages_run(w, clocks, &f, &b, true, true, true);
    else if (whole && all_f && !backward)
        stages_run(w, clocks, &f, &b, true, false, true);
    else if (whole && all_b && !forward)
        stages_run(w, clocks, &f, &b, false, true, true);
    else
        stages_run(w, clocks, &f, &b, true, true, false);
}

/* From the first turn on; *round: the last one of passes of both directions. */
static double rounds_run(const struct rounds *w, int behind, struct clock *clocks, double *marks, double *round)
{
    double end = 0;
    *round = 0;
    for (int t = 0; t < w->total + behind; t++) {
        turn_run(w, clocks, t, behind);
        for (int r = 0; r < w->p && t == w->full - w->p * w->v - 1; r++)
            marks[r] = clocks[r].free;
        for (int r = 0; r < w->p && t == w->full - 1; r++)
            *round = fmax(*round, clocks[r].free - marks[r]);
    }
    for (int r = 0; r < w->p; r++)
        end = fmax(end, clocks[r].free);
    return end;
}

static double followed_seconds(const struct pass_costs *c, const struct layout *l, double m, double message)
{
    int p = l->pp, v = l->vpp, full = (int)floor(m / p), all = (int)ceil(m / p), left = full > ROUNDS ? full - ROUNDS : 0;
    struct rounds w = {.seconds = {c->chunks, c->chunks + p * v}, .message = message, .p = p, .v = v, .short_from = INT_MAX};
    w.blocking = c->stages.followed_blocking;
    w.total = (all - left) * p * v;
    w.full = (full - left) * p * v;
    w.lasts = (int)m - (all - 1) * p;
    if (w.lasts < p)
        w.short_from = w.total - p * v;
    size_t places = (size_t)p + 1;
    double *doubles = memory_new(4 * places + (size_t)p, sizeof *doubles), round;
    struct clock *clocks = memory_new((size_t)p, sizeof *clocks);
    for (size_t i = 0; i < 4; i++)
        w.come[i] = doubles + i * places;
    double end =
        rounds_run(&w, all > 1 ? (v - 1) * p + 2 * (p - 1) : w.total + 2 * (p - 1), clocks, doubles + 4 * places, &round);
    free(clocks);
    free(doubles);
    return end + left * round;
}

void stage_times_follow(struct pass_costs *c, const struct layout *l, double m, double message)
{
    struct stage_times *t = &c->stages;
    bool blocking = !(l->features & FEATURE_BIT(PP_OVERLAP));
    t->follows = t->uneven && t->copies <= 0 && schedule_paired(l, m) <= 0;
    if (!t->follows || (t->followed_m == m && t->followed_message == message && t->followed_blocking == blocking))
        return;
    t->followed_blocking = blocking;
    t->followed_m = m;
    t->followed_message = message;
    t->followed_s = followed_seconds(c, l, m, message);
}
