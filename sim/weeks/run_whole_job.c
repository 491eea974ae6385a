/*
 * run_whole_job.c - rules for replicas that stop together: a failure of any node stops the job.
 *
 * whole job   the job restarts when it has all of its nodes
 * elastic     a job that is short of nodes goes on with fewer replicas. In the worst case each missing node costs one. When nodes
 *             return, a planned restart lets the job grow; nothing is undone for it
 */
#include "sim/weeks/run_internal.h"

/* --- whole job --- */

static bool none_survive(struct run *run, int32_t node)
{
    (void)run;
    (void)node;
    return false;
}

static int32_t whole_stop(struct run *run, const struct fault *gone, nanos found)
{
    (void)gone;
    (void)found;
    return run->cluster.n_down;
}

static void nothing_at(struct run *run, nanos time)
{
    (void)run;
    (void)time;
}

static void begin(struct run *run, nanos time)
{
    run->processes_began = time;
}

static nanos oldest(const struct run *run)
{
    return run->processes_began;
}

static int32_t slowest(const struct run *run, enum fault_kind kind)
{
    return run->cluster.slow[kind].least;
}

static nanos never(const struct run *run)
{
    (void)run;
    return NEVER;
}

/* Slow nodes are better than none: at most as many leave as the restart need not wait for. */
static void evict_most(struct run *run, nanos time, nanos age, nanos away, int most)
{
    cluster_state_evict_slow(&run->cluster, time, age, away, most > 0 ? most : 0);
}

static void whole_evict_slow(struct run *run, nanos time, nanos age, nanos away)
{
    evict_most(run, time, age, away, run->recovery.policy.spares - run->cluster.n_down);
}

static void none_missing(struct run *run)
{
    run->missing_replicas = 0;
}

static int32_t any_node(const struct run *run, struct random_stream *random)
{
    (void)run;
    (void)random;
    return -1;
}

const struct replica_rules whole_job_rules = {
    .survives = none_survive,
    .stop = whole_stop,
    .resume = nothing_at,
    .begin = begin,
    .oldest = oldest,
    .slowest = slowest,
    .node_back = nothing_at,
    .next = never,
    .come_back = nothing_at,
    .evict_slow = whole_evict_slow,
    .count_missing = none_missing,
    .silent_node = any_node,
};

/* --- elastic --- */

/* Replicas that lack nodes; 0 also when none would be left. */
static int32_t replicas_short(const struct run *run)
{
    int32_t lacking = run->cluster.n_down - run->recovery.policy.spares;
    return lacking > 0 && lacking < run->n_replicas ? lacking : 0;
}

static void count_short(struct run *run)
{
    run->missing_replicas = replicas_short(run);
}

static int32_t elastic_stop(struct run *run, const struct fault *gone, nanos found)
{
    (void)gone;
    (void)found;
    count_short(run);
    return run->missing_replicas > 0 ? 0 : run->cluster.n_down;
}

static void elastic_node_back(struct run *run, nanos time)
{
    int32_t lacking = replicas_short(run);
    if (lacking > 0) /* a job that waits for nodes has enough to go on without the other replicas */
        recovery_node_back(&run->recovery, time, 0);
    if (run->phase != RUN_TRAINING || run->missing_replicas == 0 || lacking >= run->missing_replicas)
        return;
    const struct recovery_plan plan = {.restart = run->restart.hot};
    run->missing_replicas = lacking;
    run_stop(run, RUN_RECOVERING, time, 0, &plan);
}

static void elastic_evict_slow(struct run *run, nanos time, nanos age, nanos away)
{
    evict_most(run, time, age, away, run->recovery.policy.spares - run->cluster.n_down + run->n_replicas - 1);
}

const struct replica_rules elastic_rules = {
    .survives = none_survive,
    .stop = elastic_stop,
    .resume = nothing_at,
    .begin = begin,
    .oldest = oldest,
    .slowest = slowest,
    .node_back = elastic_node_back,
    .next = never,
    .come_back = nothing_at,
    .evict_slow = elastic_evict_slow,
    .count_missing = count_short,
    .silent_node = any_node,
};
