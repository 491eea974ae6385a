#include "sim/weeks/failover.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

/* --- which replicas are a unit --- */

static int32_t common_multiple(int32_t a, int32_t b)
{
    int32_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

bool failover_units(const struct layout *layout, const struct cluster *cluster, struct run_failover *failover, char *why,
                    size_t size)
{
    int32_t span = layout->dp * layout->cp, unit = layout->cp, experts = layout->ep * layout_expert_tp(layout);
    if (layout->zero > 0 && layout->shard == 0) {
        snprintf(why, size, "zero=%d divides states among all replicas, so no other has what one loses; zero=0, or shard=N",
                 layout->zero);
        return false;
    }
    if (layout->zero > 0)
        unit = common_multiple(unit, layout->shard);
    if (experts > layout->tp)
        unit = common_multiple(unit, (experts + layout->tp - 1) / layout->tp);
    if (span / unit < 2) {
        snprintf(why, size,
                 "nobody would go on: ranks that hold parts of one state or sequence are %d of %d; give it more replicas, or a "
                 "smaller shard, cp or ep",
                 unit, span);
        return false;
    }
    if (span % unit) {
        snprintf(why, size,
                 "the %d ranks with the same weights are no multiple of the %d that hold parts of one state or sequence", span,
                 unit);
        return false;
    }
    failover->units = span / unit;
    failover->replicas = unit / layout->cp;
    failover->tp = layout->tp;
    failover->span = span;
    failover->size = unit;
    failover->gpus_per_node = cluster->gpus_per_node;
    return true;
}

double failover_regroup_s(const struct layout *layout, int gpus, enum store_kind store)
{
    return startup_groups_s(gpus, (double)gpus / (layout->dp * layout->cp), 1, store);
}

struct startup failover_rejoin(const struct startup_options *options, const struct layout *layout,
                               const struct run_failover *failover, const struct setting *setting, double loading_s)
{
    struct layout alone = *layout;
    struct setting part = *setting;
    alone.dp = failover->replicas;
    part.gpus = setting->gpus / failover->units;
    return startup_of(options, &alone, &part, 1, loading_s);
}

/* --- in a run --- */

/* Of a node's GPU. */
static int32_t unit_of(const struct run_failover *f, int32_t node, int32_t gpu)
{
    return (int32_t)(((int64_t)node * f->gpus_per_node + gpu) / f->tp % f->span / f->size);
}

/* All ranks of a node leave their units, or are back in them. */
static void mark(struct run *run, int32_t node, int32_t by)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node; i++) {
        int32_t *out = &run->out[unit_of(f, node, i)];
        run->units_out -= *out > 0;
        *out += by;
        run->units_out += *out > 0;
    }
}

static void set_missing(struct run *run)
{
    run->missing_replicas = run->units_out * run->options->failover->replicas;
}

void failover_open(struct run *run)
{
    if (!run->options->failover)
        return;
    run->out = memory_new((size_t)run->options->failover->units, sizeof *run->out);
    run->since = memory_new((size_t)run->options->failover->units, sizeof *run->since);
}

void failover_begin(struct run *run, nanos time)
{
    for (int32_t unit = 0; run->since && unit < run->options->failover->units; unit++)
        run->since[unit] = time;
}

nanos failover_oldest(const struct run *run)
{
    nanos oldest = NEVER;
    for (int32_t unit = 0; unit < run->options->failover->units; unit++)
        if (run->out[unit] == 0)
            oldest = nanos_earlier(oldest, run->since[unit]);
    return oldest;
}

bool failover_is_in(const struct run *run, int32_t node)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node; i++)
        if (run->out[unit_of(f, node, i)] == 0)
            return true;
    return false;
}

int32_t failover_slowest(const struct run *run, enum fault_kind kind)
{
    int32_t least = FULL_SPEED;
    for (size_t i = 0; i < run->cluster.n_ends && run->cluster.slow[kind].n > 0; i++) {
        const struct fault_end *end = &run->cluster.ends[i];
        if (end->kind == kind && end->speed < least && failover_is_in(run, end->node))
            least = end->speed;
    }
    return least;
}

void failover_close(struct run *run)
{
    free(run->out);
    free(run->since);
    free(run->absent);
}

bool failover_bears(struct run *run, int32_t node)
{
    if (!run->options->failover || node < 0 || (run->recovery.active && !run->regrouping))
        return false;
    mark(run, node, 1);
    bool some_left = run->units_out < run->options->failover->units;
    mark(run, node, -1);
    return some_left;
}

static void regroup(struct run *run, nanos time, nanos detect)
{
    struct recovery_plan plan = {.detect = detect, .restart = run->options->failover->regroup};
    set_missing(run);
    recovery_begin(&run->recovery, time, 0, &plan);
    run->regrouping = true;
}

/* Nodes that are out without another in their place, and of how many that is so. */
static int32_t n_waiting(const struct run *run)
{
    int32_t n = 0;
    for (size_t i = 0; i < run->n_absent; i++)
        n += run->absent[i].ready == NEVER;
    return n;
}

static int32_t n_lacking(const struct run *run)
{
    int32_t lacking = run->cluster.n_down - run->recovery.policy.spares;
    return lacking > 0 ? lacking : 0;
}

static void add_absence(struct run *run, const struct fault *fault, nanos found)
{
    const struct run_failover *f = run->options->failover;
    bool stays = !fault_takes_node(fault) || !cluster_state_is_down(&run->cluster, fault->node); /* nobody found it, say */
    bool there = stays || n_waiting(run) >= n_lacking(run);
    nanos rejoin = robust_is_hot(run) ? f->rejoin_hot : f->rejoin;
    run->absent = memory_grow(run->absent, &run->absent_capacity, run->n_absent + 1, sizeof *run->absent);
    run->absent[run->n_absent++] = (struct absence){
        .node = fault->node, .found = found, .rejoin = rejoin, .ready = there ? nanos_after(found, rejoin) : NEVER};
}

/* A planned outage waits for the end of the step under way. */
static bool ends_step(const struct run *run, const struct fault *fault)
{
    nanos notice = run->options->notice;
    return fault->kind == FAULT_PLANNED && (notice == 0 || notice >= run->options->failover->step);
}

void failover_leave(struct run *run, struct incident *incident, const struct fault *gone, nanos detect, nanos search)
{
    int32_t before = run->units_out;
    nanos time = incident->time;
    (void)run_lose_memory(run, gone);
    mark(run, gone->node, 1);
    add_absence(run, gone, nanos_after(time, detect + search));
    if (run->units_out == before)
        return; /* its unit was gone already */
    incident->interrupted = !run->recovery.active;
    incident->resumed = NEVER;
    if (incident->interrupted && !ends_step(run, gone))
        incident->lost = training_lose_step(&run->training, &run->ledger, run->options->failover->step);
    run->interruptions += incident->interrupted;
    incident->borne = true;
    run->borne++;
    regroup(run, time, detect);
}

/* Is `other` one of the nodes with a rank of a unit of `node`, and out as that is? */
static bool is_out_with(const struct run *run, int32_t node, int32_t other)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node && !failover_is_in(run, other); i++)
        for (int32_t k = 0; k < f->gpus_per_node; k++)
            if (unit_of(f, node, i) == unit_of(f, other, k))
                return true;
    return false;
}

void failover_condemn(struct run *run, int32_t node, nanos found, nanos away, struct random_stream *random)
{
    int64_t n = 0;
    for (int32_t other = 0; other < run->options->nodes; other++)
        n += is_out_with(run, node, other);
    int64_t left = (int64_t)random_below(random, (uint64_t)n);
    int32_t taken = -1;
    while (left >= 0)
        left -= is_out_with(run, node, ++taken);
    const struct fault gone = {.time = run->ledger.now, .down = away, .node = taken, .speed = FULL_SPEED, .kind = FAULT_NODE};
    cluster_state_begin_for(&run->cluster, &gone, AWAY_CHECKED);
    mark(run, taken, 1);
    add_absence(run, &gone, found);
}

int32_t failover_stop(struct run *run, const struct fault *gone, nanos found)
{
    const struct run_failover *f = run->options->failover;
    run->regrouping = false;
    if (!f)
        return run->cluster.n_down;
    if (gone) {
        mark(run, gone->node, 1);
        add_absence(run, gone, found);
    }
    run->whole |= run->units_out == f->units;
    for (size_t i = 0; i < run->n_absent && run->whole; i++)
        mark(run, run->absent[i].node, -1);
    run->n_absent = run->whole ? 0 : run->n_absent;
    set_missing(run);
    return run->whole ? run->cluster.n_down : 0;
}

nanos failover_next(const struct run *run)
{
    nanos next = NEVER;
    for (size_t i = 0; i < run->n_absent && !run->recovery.active; i++)
        next = nanos_earlier(next, nanos_later(run->absent[i].ready, run->ledger.now));
    return next;
}

/* With processes that begin anew. */
static void come_back(struct run *run, int32_t node, nanos time)
{
    const struct run_failover *f = run->options->failover;
    mark(run, node, -1);
    for (int32_t i = 0; i < f->gpus_per_node; i++)
        if (run->out[unit_of(f, node, i)] == 0)
            run->since[unit_of(f, node, i)] = time;
}

/* Those that are ready come back. Whether a unit has all of its ranks again. */
static bool join(struct run *run, nanos time)
{
    int32_t before = run->units_out;
    size_t kept = 0;
    for (size_t i = 0; i < run->n_absent; i++)
        if (run->absent[i].ready <= time)
            come_back(run, run->absent[i].node, time);
        else
            run->absent[kept++] = run->absent[i];
    run->n_absent = kept;
    return run->units_out < before;
}

void failover_return(struct run *run, nanos time)
{
    if (join(run, time))
        regroup(run, time, 0);
}

void failover_resume(struct run *run, nanos time)
{
    if (!run->options->failover)
        return;
    (void)join(run, time);
    set_missing(run);
    run->whole = false;
}

/* Nodes that have been slow for `age`, as in cluster_state_evict_slow; out of their units if that leaves one. */
static size_t mark_slow(struct run *run, nanos time, nanos age, int32_t *nodes)
{
    size_t n = 0;
    for (size_t i = 0; i < run->cluster.n_ends; i++) {
        const struct fault_end *end = &run->cluster.ends[i];
        if (end->kind != FAULT_STRAGGLER || end->begun > time - age || end->time <= time)
            continue;
        nodes[n++] = end->node;
        mark(run, end->node, 1);
    }
    if (run->units_out < run->options->failover->units)
        return n;
    while (n > 0)
        mark(run, nodes[--n], -1);
    return 0;
}

void failover_evict_slow(struct run *run, nanos time, nanos age, nanos away)
{
    int32_t *nodes = memory_new(run->cluster.n_ends + 1, sizeof *nodes);
    size_t n = mark_slow(run, time, age, nodes);
    if (n > 0)
        cluster_state_evict_slow(&run->cluster, time, age, away, INT_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct fault gone = {.time = time, .down = away, .node = nodes[i], .kind = FAULT_NODE};
        if (run->regrouping || n_waiting(run) < n_lacking(run))
            add_absence(run, &gone, time);
        else /* a spare takes its place in the restart */
            mark(run, nodes[i], -1);
    }
    set_missing(run);
    free(nodes);
}

void failover_node_back(struct run *run, nanos time)
{
    int32_t waiting = n_waiting(run);
    for (size_t i = 0; i < run->n_absent && waiting > n_lacking(run); i++)
        if (run->absent[i].ready == NEVER) {
            run->absent[i].ready = nanos_after(nanos_later(time, run->absent[i].found), run->absent[i].rejoin);
            waiting--;
        }
}
