/*
 * run_internal.h - what run.c (the events of a trace, the plain rules) and run_robust.c (what a robust policy makes of them, and
 * what no trace holds) share. Private to them.
 */
#ifndef MSIM_SIM_WEEKS_RUN_INTERNAL_H
#define MSIM_SIM_WEEKS_RUN_INTERNAL_H

#include "sim/weeks/cluster_state.h"
#include "sim/weeks/run.h"

/* A fault that nobody found: it comes back. */
struct latent {
    const struct fault *fault;
    int attempt;
    nanos gap;  /* of training until it is back */
    nanos time; /* when, once training goes on; NEVER before */
};

/* A node whose replicas are out: the fault has been found, so long after a node is there they may come back. */
struct absence {
    int32_t node;
    nanos found, rejoin;
    nanos ready; /* NEVER while no node is there */
};

/* An outage that counts for the blocklist. */
struct node_failure {
    nanos time;
    int32_t before; /* of the same node, in an array of these; -1: none that counts */
};

/* What a cause speaks of: read once for each. */
struct cause_reading {
    enum component component;
    enum symptom symptom;
};

/* One run in progress: the ledger is its clock. */
struct run {
    const struct run_options *options;
    const struct fault_trace *trace;
    size_t next_fault;
    struct cluster_state cluster;
    struct training training;
    struct recovery recovery;
    struct ledger ledger;
    struct incident *incidents;
    size_t n_incidents, incidents_capacity, n_resumed; /* incidents before n_resumed know when training went on */
    int64_t failures, slowdowns, planned, interruptions;
    bool saving;          /* the recovery under way began with everything being saved, which is not booked yet */
    bool ending;          /* that is the last save, after the goal; the run is over ... */
    bool over;            /* ... with it */
    int64_t *memory_lost; /* [nodes] checkpoints that had been completed when what a node's memory held was lost last, -1 never;
                           * NULL unless checkpoints are kept there */
    bool from_storage;    /* what neighbours held is gone: the restart under way reads from storage */
    /* With failover: */
    struct absence *absent; /* in the order of their failures */
    size_t n_absent, absent_capacity;
    int32_t *out; /* [units] ranks that are absent */
    int32_t units_out;
    nanos *since;    /* [units] when its processes began */
    bool regrouping; /* the recovery under way is the others' stop */
    bool whole;      /* no unit was left: it ends when there are nodes for all */
    int64_t borne;
    /* With a robust policy: */
    struct latent *latent;
    size_t n_latent, latent_capacity;
    struct cause_reading *causes; /* [n_details + 1], the last for faults without a cause; NULL without a policy */
    /* For the blocklist: outages of nodes, each with the one before of its node; NULL without. */
    struct node_failure *node_failures;
    int32_t *last_failure; /* [nodes] in node_failures, -1: none that counts */
    size_t n_node_failures, node_failures_capacity;
    nanos trained_since; /* the last restart; speed drifts from there */
    nanos next_drift;    /* NEVER without drift */
    nanos next_alarm;    /* NEVER while nothing trains, or without false alarms */
    int64_t restarts;    /* the stream of the next alarm */
    int32_t missing_replicas;
    int64_t relapses, alarms, outside, called, condemned, listed, by_channel[N_CHANNELS];
};

/* --- run.c --- */

/* Training goes on at what the cluster, missing replicas and drift leave of its speed. */
void run_set_speed(struct run *run);
/* The next incident, of nothing so far; valid until the next one is added. */
struct incident *run_add_incident(struct run *run, const struct fault *fault, nanos time);
/* What neighbours hold goes with an incident, beside what the loss of a node takes with it. */
enum memory_fate { MEMORY_STAYS, MEMORY_STALE };
/* An incident after which nothing trains: work since the last safe checkpoint is undone if training was going on; what the memory
 * of neighbours held, too, if it is lost. */
void run_stop_training(struct run *run, struct incident *incident, enum memory_fate memory);
/* A planned outage, which the cluster knows of. */
void run_leave_as_planned(struct run *run, const struct fault *fault);
/* The memory of a fault's node is lost; whether neighbours still hold everything. */
bool run_lose_memory(struct run *run, const struct fault *fault);

/* --- failover.c: without options->failover they do nothing --- */

void failover_open(struct run *run);
/* The slowest of a kind among the nodes whose units are there, in parts of FULL_SPEED; only with failover. */
int32_t failover_slowest(const struct run *run, enum fault_kind kind);
/* Since when the processes run that have run longest among those that are there; only with failover. */
nanos failover_oldest(const struct run *run);
/* All processes begin anew. */
void failover_begin(struct run *run, nanos time);
/* Does a node belong to a unit that is there? */
bool failover_is_in(const struct run *run, int32_t node);
void failover_close(struct run *run);
/* Is a failure of this node one that takes replicas out while others go on? */
bool failover_bears(struct run *run, int32_t node);
/* Then the node of `gone` does so: noticed after `detect`, found `search` later. */
void failover_leave(struct run *run, struct incident *incident, const struct fault *gone, nanos detect, nanos search);
/* A healthy node of the units of `node`, which are out, is taken for faulty, too, and stays away for `away`. */
void failover_condemn(struct run *run, int32_t node, nanos found, nanos away, struct random_stream *random);
/* The job stops as a whole, and the node of `gone` (NULL: none) leaves it, found then. Returns how many nodes count as down for
 * its recovery: none where it goes on with the units that are left. */
int32_t failover_stop(struct run *run, const struct fault *gone, nanos found);
/* Training goes on; those who are ready are with it, without another stop. */
void failover_resume(struct run *run, nanos time);
/* When the next replicas are ready to come back, NEVER: none while nothing trains; and they are. */
nanos failover_next(const struct run *run);
void failover_return(struct run *run, nanos time);
/* While the others regroup, nodes that have been slow for `age` leave, too, for `away`: their units come back with others. So do
 * those for which there is no spare at a restart of the job. */
void failover_evict_slow(struct run *run, nanos time, nanos age, nanos away);
/* A node is back at `time`. */
void failover_node_back(struct run *run, nanos time);

/* --- run_robust.c: only with options->robust, but for robust_drift, robust_next, robust_grow and robust_close, which then do
 * nothing, and for what a restart takes, then as the plain rules have it --- */

void robust_open(struct run *run);
void robust_close(struct run *run);
/* The part of its speed that training has lost since the last restart. */
double robust_drift(const struct run *run);
/* A restart: the clocks of drift, of false alarms and of faults not found begin, slow nodes that were found leave. */
void robust_restart(struct run *run, nanos time);
/* How long a restart takes now, and whether all nodes that are down are replaced by hot spares. */
nanos robust_restart_time(const struct run *run);
bool robust_is_hot(const struct run *run);
/* How many nodes count as down for a restart, without those whose replicas are left out. The node of `gone` leaves (NULL: none),
 * found then. */
int32_t robust_lacking(struct run *run, const struct fault *gone, nanos found);
/* A fault of the trace. */
void robust_fault(struct run *run, const struct fault *fault);
/* Nodes are back: a job that waits for them goes on once some replicas are whole; replicas that were left out come back after a
 * planned restart, for which nothing is undone. */
void robust_grow(struct run *run, nanos time);

/* What no trace holds: a fault that comes back, the speed that drifts, a false alarm. */
enum robust_event { ROBUST_LATENT, ROBUST_DRIFT, ROBUST_ALARM };
/* The next of them and when it is, NEVER: none. */
nanos robust_next(const struct run *run, enum robust_event *what);
void robust_happen(struct run *run, nanos time, enum robust_event what);

#endif
