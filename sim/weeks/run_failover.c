/*
 * run_failover.c - rules for replicas that fail alone (sim/weeks/failover.h): the unit of a failed node leaves, the others
 * regroup and go on, and the unit rejoins when it has its nodes.
 */
#include <limits.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

/* The unit of a GPU of a node. */
static int32_t unit_of(const struct run_failover *f, int32_t node, int32_t gpu)
{
    return (int32_t)(((int64_t)node * f->gpus_per_node + gpu) / f->tp % f->span / f->size);
}

/* All ranks of a node leave their units (by 1) or return (by -1). */
static void mark(struct run *run, int32_t node, int32_t by)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node; i++) {
        int32_t *out = &run->failover.ranks_out[unit_of(f, node, i)];
        run->failover.units_out -= *out > 0;
        *out += by;
        run->failover.units_out += *out > 0;
    }
}

static void count_missing(struct run *run)
{
    run->missing_replicas = run->failover.units_out * run->options->failover->replicas;
}

static void failover_open(struct run *run)
{
    run->failover.ranks_out = memory_new((size_t)run->options->failover->units, sizeof *run->failover.ranks_out);
    run->failover.since = memory_new((size_t)run->options->failover->units, sizeof *run->failover.since);
}

static void failover_begin(struct run *run, nanos time)
{
    for (int32_t unit = 0; unit < run->options->failover->units; unit++)
        run->failover.since[unit] = time;
}

static nanos failover_oldest(const struct run *run)
{
    nanos oldest = NEVER;
    for (int32_t unit = 0; unit < run->options->failover->units; unit++)
        if (run->failover.ranks_out[unit] == 0)
            oldest = nanos_earlier(oldest, run->failover.since[unit]);
    return oldest;
}

/* Does the node have a rank in a unit that trains? */
static bool is_in(const struct run *run, int32_t node)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node; i++)
        if (run->failover.ranks_out[unit_of(f, node, i)] == 0)
            return true;
    return false;
}

/* A slow node whose units are out holds up nobody. */
static int32_t failover_slowest(const struct run *run, enum fault_kind kind)
{
    int32_t least = FULL_SPEED;
    for (size_t i = 0; i < run->cluster.n_ends && run->cluster.slow[kind].n > 0; i++) {
        const struct fault_end *end = &run->cluster.ends[i];
        if (end->kind == kind && end->speed < least && is_in(run, end->node))
            least = end->speed;
    }
    return least;
}

static void failover_close(struct run *run)
{
    free(run->failover.ranks_out);
    free(run->failover.since);
    free(run->failover.absent);
}

static bool failover_survives(struct run *run, int32_t node)
{
    if (node < 0 || !run_has_state(run))
        return false;
    mark(run, node, 1);
    bool some_left = run->failover.units_out < run->options->failover->units;
    mark(run, node, -1);
    return some_left;
}

static void regroup(struct run *run, nanos time, nanos detect)
{
    const struct recovery_plan plan = {.detect = detect, .restart = run->options->failover->regroup};
    count_missing(run);
    run_stop(run, RUN_REGROUPING, time, 0, &plan);
}

/* Absent nodes without a replacement; then the number of replacements that are missing. */
static int32_t n_waiting(const struct run *run)
{
    int32_t n = 0;
    for (size_t i = 0; i < run->failover.n_absent; i++)
        n += run->failover.absent[i].ready == NEVER;
    return n;
}

static int32_t n_lacking(const struct run *run)
{
    int32_t lacking = run->cluster.n_down - run->recovery.policy.spares;
    return lacking > 0 ? lacking : 0;
}

static nanos rejoin_time(const struct run *run)
{
    const struct run_failover *f = run->options->failover;
    return run_is_hot(run) ? f->rejoin_hot : f->rejoin;
}

static void add_absence(struct run *run, const struct fault *fault, nanos found)
{
    bool stays =
        !fault_takes_node(fault) || !cluster_state_is_down(&run->cluster, fault->node); /* e.g. its fault was not found */
    bool there = stays || n_waiting(run) >= n_lacking(run);
    nanos rejoin = rejoin_time(run);
    run->failover.absent = memory_grow(run->failover.absent, &run->failover.absent_capacity, run->failover.n_absent + 1,
                                       sizeof *run->failover.absent);
    run->failover.absent[run->failover.n_absent++] = (struct absence){
        .node = fault->node, .found = found, .rejoin = rejoin, .ready = there ? nanos_after(found, rejoin) : NEVER};
}

/* A planned outage with enough notice waits for the end of the step under way. */
static bool ends_step(const struct run *run, const struct fault *fault)
{
    nanos notice = run->options->notice;
    return fault->kind == FAULT_PLANNED && (notice == 0 || notice >= run->options->failover->step);
}

static void failover_leave(struct run *run, struct incident *incident, const struct fault *gone, nanos detect, nanos search)
{
    int32_t before = run->failover.units_out;
    nanos time = incident->time;
    (void)run_lose_memory(run, gone);
    mark(run, gone->node, 1);
    add_absence(run, gone, nanos_after(time, detect + search));
    if (run->failover.units_out == before)
        return; /* its units were out already */
    incident->interrupted = run->phase == RUN_TRAINING;
    incident->resumed = NEVER;
    if (incident->interrupted && !ends_step(run, gone))
        incident->lost = training_lose_step(&run->training, &run->ledger, run->options->failover->step);
    run->counts.interruptions += incident->interrupted;
    incident->borne = true;
    run->counts.borne++;
    regroup(run, time, detect);
}

/* Is `other` out together with `node`: do they have ranks of the same unit? */
static bool is_out_with(const struct run *run, int32_t node, int32_t other)
{
    const struct run_failover *f = run->options->failover;
    for (int32_t i = 0; i < f->gpus_per_node && !is_in(run, other); i++)
        for (int32_t k = 0; k < f->gpus_per_node; k++)
            if (unit_of(f, node, i) == unit_of(f, other, k))
                return true;
    return false;
}

static void failover_condemn(struct run *run, int32_t node, nanos found, nanos away, struct random_stream *random)
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

static int32_t failover_stop(struct run *run, const struct fault *gone, nanos found)
{
    if (gone) {
        mark(run, gone->node, 1);
        add_absence(run, gone, found);
    }
    run->failover.needs_all_nodes |= run->failover.units_out == run->options->failover->units;
    for (size_t i = 0; i < run->failover.n_absent && run->failover.needs_all_nodes; i++)
        mark(run, run->failover.absent[i].node, -1);
    run->failover.n_absent = run->failover.needs_all_nodes ? 0 : run->failover.n_absent;
    count_missing(run);
    return run->failover.needs_all_nodes ? run->cluster.n_down : 0;
}

static nanos failover_next(const struct run *run)
{
    nanos next = NEVER;
    for (size_t i = 0; i < run->failover.n_absent && run->phase == RUN_TRAINING; i++)
        next = nanos_earlier(next, nanos_later(run->failover.absent[i].ready, run->ledger.now));
    return next;
}

/* A node rejoins; its units' processes start anew. */
static void come_back(struct run *run, int32_t node, nanos time)
{
    const struct run_failover *f = run->options->failover;
    mark(run, node, -1);
    for (int32_t i = 0; i < f->gpus_per_node; i++)
        if (run->failover.ranks_out[unit_of(f, node, i)] == 0)
            run->failover.since[unit_of(f, node, i)] = time;
}

/* Absent nodes that are ready come back. Returns whether a unit is complete again. */
static bool join(struct run *run, nanos time)
{
    int32_t before = run->failover.units_out;
    size_t kept = 0;
    for (size_t i = 0; i < run->failover.n_absent; i++)
        if (run->failover.absent[i].ready <= time)
            come_back(run, run->failover.absent[i].node, time);
        else
            run->failover.absent[kept++] = run->failover.absent[i];
    run->failover.n_absent = kept;
    return run->failover.units_out < before;
}

static void failover_come_back(struct run *run, nanos time)
{
    if (join(run, time))
        regroup(run, time, 0);
}

/* Units that are ready rejoin without another stop. */
static void failover_resume(struct run *run, nanos time)
{
    (void)join(run, time);
    count_missing(run);
    run->failover.needs_all_nodes = false;
}

/* Takes nodes that have been slow for `age` out of their units (as cluster_state_evict_slow does), unless no unit would be left.
 * Returns how many. */
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
    if (run->failover.units_out < run->options->failover->units)
        return n;
    while (n > 0)
        mark(run, nodes[--n], -1);
    return 0;
}

/* At a regrouping slow nodes leave with their units, which come back on other nodes. At a restart of the whole job spares take
 * their places; only nodes without a spare take their units out. */
static void failover_evict_slow(struct run *run, nanos time, nanos age, nanos away)
{
    int32_t *nodes = memory_new(run->cluster.n_ends + 1, sizeof *nodes);
    size_t n = mark_slow(run, time, age, nodes);
    if (n > 0)
        cluster_state_evict_slow(&run->cluster, time, age, away, INT_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct fault gone = {.time = time, .down = away, .node = nodes[i], .kind = FAULT_NODE};
        if (run->phase == RUN_REGROUPING || n_waiting(run) < n_lacking(run))
            add_absence(run, &gone, time);
        else /* a spare takes its place at this restart */
            mark(run, nodes[i], -1);
    }
    count_missing(run);
    free(nodes);
}

static void failover_node_back(struct run *run, nanos time)
{
    int32_t waiting = n_waiting(run);
    for (size_t i = 0; i < run->failover.n_absent && waiting > n_lacking(run); i++)
        if (run->failover.absent[i].ready == NEVER) {
            run->failover.absent[i].ready =
                nanos_after(nanos_later(time, run->failover.absent[i].found), run->failover.absent[i].rejoin);
            waiting--;
        }
}

/* A false alarm hits any node; nobody listens to nodes whose units are out. */
static int32_t silent_node(const struct run *run, struct random_stream *random)
{
    int32_t node = (int32_t)random_below(random, (uint64_t)run->options->nodes);
    return is_in(run, node) ? node : NODE_NOT_IN_JOB;
}

static int32_t unit_nodes(const struct run *run)
{
    const int32_t units = run->options->failover->units;
    return (run->options->nodes + units - 1) / units;
}

const struct replica_rules failover_rules = {
    .open = failover_open,
    .close = failover_close,
    .survives = failover_survives,
    .stop = failover_stop,
    .resume = failover_resume,
    .begin = failover_begin,
    .oldest = failover_oldest,
    .slowest = failover_slowest,
    .node_back = failover_node_back,
    .next = failover_next,
    .come_back = failover_come_back,
    .evict_slow = failover_evict_slow,
    .count_missing = count_missing,
    .silent_node = silent_node,
    .unit_nodes = unit_nodes,
    .rejoin_time = rejoin_time,
    .leave = failover_leave,
    .condemn = failover_condemn,
};
