/*
 * run_internal.h - what run.c (the events of a trace, the plain rules) and run_robust.c (what a robust policy makes of them, and
 * what no trace holds) share. Private to them.
 */
#ifndef MSIM_SIM_RUN_INTERNAL_H
#define MSIM_SIM_RUN_INTERNAL_H

#include "sim/cluster_state.h"
#include "sim/run.h"

/* A fault that nobody found: it comes back. */
struct latent {
    const struct fault *fault;
    int attempt;
    nanos gap;  /* of training until it is back */
    nanos time; /* when, once training goes on; NEVER before */
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
    int64_t failures, slowdowns, interruptions;
    int64_t *memory_lost; /* [nodes] checkpoints that had been completed when what a node's memory held was lost last, -1 never;
                           * NULL unless checkpoints are kept there */
    bool from_storage;    /* what neighbours held is gone: the restart under way reads from storage */
    /* With a robust policy: */
    struct latent *latent;
    size_t n_latent, latent_capacity;
    struct cause_reading *causes; /* [n_details + 1], the last for faults without a cause; NULL without a policy */
    uint16_t *node_failures;      /* [nodes] for the blocklist; NULL without */
    nanos trained_since;          /* the last restart; speed drifts from there */
    nanos next_drift;             /* NEVER without drift */
    nanos next_alarm;             /* NEVER while nothing trains, or without false alarms */
    int64_t restarts;             /* the stream of the next alarm */
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

/* --- run_robust.c: only with options->robust, but for robust_drift, robust_next, robust_grow and robust_close, which then do
 * nothing --- */

void robust_open(struct run *run);
void robust_close(struct run *run);
/* The part of its speed that training has lost since the last restart. */
double robust_drift(const struct run *run);
/* A restart: the clocks of drift, of false alarms and of faults not found begin, slow nodes that were found leave. */
void robust_restart(struct run *run, nanos time);
/* A fault of the trace. */
void robust_fault(struct run *run, const struct fault *fault);
/* Nodes are back: replicas that were left out come back after a planned restart, for which nothing is undone. */
void robust_grow(struct run *run, nanos time);

/* What no trace holds: a fault that comes back, the speed that drifts, a false alarm. */
enum robust_event { ROBUST_LATENT, ROBUST_DRIFT, ROBUST_ALARM };
/* The next of them and when it is, NEVER: none. */
nanos robust_next(const struct run *run, enum robust_event *what);
void robust_happen(struct run *run, nanos time, enum robust_event what);

#endif
