/*
 * run_internal.h - the state machine of a run, shared by run*.c. Private to them.
 *
 * Phases. A run is in one phase at a time. Each line is a phase, each column an event, each cell the next phase:
 *
 *                 a failure    a failure    an announced   the goal's   replicas      its time
 *                 stops all    others       stop, in time  work is      come back     is over
 *                              survive      to save        done
 *     training    recovering   regrouping   saving         last save    recovering(a) -
 *     regrouping  recovering   regrouping   saving         -            -             training
 *     saving      recovering   -            saving(b)      -            -             training
 *     last save   recovering   -            last save(b)   -            -             over
 *     recovering  recovering   -            recovering(b)  -            -             training
 *
 *     (a) regrouping with failover, whose replicas join without a restart of the job
 *     (b) the node leaves too: the recovery waits for it, or its restart begins anew
 *
 * A failure undoes work in the first four phases; while recovering nothing is left to undo. Once the state of an announced stop
 * is saved, `saving` becomes `recovering` at the next look (run_settle_saving).
 *
 * Rules. Two tables of functions say what the events do, as struct network does for transfers:
 *
 *     struct fault_rules     how a fault is noticed and repaired       plain (run_plain.c), robust (run_robust.c)
 *     struct replica_rules   who stops when a node of the job fails    whole job, elastic (run_whole_job.c),
 *                                                                      failover (run_failover.c)
 *
 * run.c picks the rules and loops over events. The rules call the functions of run_phases.c, which alone changes the phase. Calls
 * go one way: run.c -> rules -> run_phases.c; the way back is through the tables.
 */
#ifndef MSIM_SIM_WEEKS_RUN_INTERNAL_H
#define MSIM_SIM_WEEKS_RUN_INTERNAL_H

#include "sim/weeks/cluster_state.h"
#include "sim/weeks/run.h"

enum run_phase {
    RUN_TRAINING,
    RUN_REGROUPING, /* failover: the surviving replicas stand still to form groups without the lost ones, or with returned ones */
    RUN_SAVING,     /* an announced stop: the state goes to storage, then the job restarts */
    RUN_LAST_SAVE,  /* the goal's work is done; the run is over when the state is saved */
    RUN_RECOVERING, /* the job stands still until its restart is over */
    RUN_OVER,       /* the goal is reached */
};

struct run;

/* How faults are noticed and repaired. */
struct fault_rules {
    void (*open)(struct run *run);  /* NULL: nothing to do */
    void (*close)(struct run *run); /* NULL: nothing to do */
    /* A fault of the trace happens now. */
    void (*fault)(struct run *run, const struct fault *fault);
    /* Training goes on after a stop. */
    void (*restart)(struct run *run, nanos time);
    /* The time of the next event that is in no trace, NEVER if there is none; and that event happens. */
    nanos (*next)(const struct run *run);
    void (*happen)(struct run *run, nanos time);
    /* The fraction of its speed that training has lost since its processes started. */
    double (*drift)(const struct run *run);
};

/* Who stops when a node fails, and how they come back. */
struct replica_rules {
    void (*open)(struct run *run);  /* NULL: nothing to do */
    void (*close)(struct run *run); /* NULL: nothing to do */
    /* Could the others go on without the replicas of this node (-1: of no node)? */
    bool (*survives)(struct run *run, int32_t node);
    /* Everybody stops. The node of `gone` leaves (NULL: none) and is known as faulty at `found`. Returns how many nodes count as
     * down for the recovery: replicas that are left out need none. */
    int32_t (*stop)(struct run *run, const struct fault *gone, nanos found);
    /* Training goes on after a stop. */
    void (*resume)(struct run *run, nanos time);
    /* All processes start anew; and when the oldest that run now started. */
    void (*begin)(struct run *run, nanos time);
    nanos (*oldest)(const struct run *run);
    /* Speed of the slowest straggler or link that holds up training, in parts of FULL_SPEED. */
    int32_t (*slowest)(const struct run *run, enum fault_kind kind);
    /* A repaired node is back. */
    void (*node_back)(struct run *run, nanos time);
    /* When replicas next come back by themselves, NEVER if none do; and they do. */
    nanos (*next)(const struct run *run);
    void (*come_back)(struct run *run, nanos time);
    /* At a restart: nodes that have been slow for `age` leave for `away`. */
    void (*evict_slow)(struct run *run, nanos time, nanos age, nanos away);
    /* Sets run->missing_replicas. */
    void (*count_missing)(struct run *run);
    /* The node that a false alarm of the heartbeats names: -1 stops the whole job, NODE_NOT_IN_JOB nothing. */
    int32_t (*silent_node)(const struct run *run, struct random_stream *random);

    /* The rest is called only where `survives` said yes; NULL where it never does. */

    /* Nodes of the replicas that one failure takes out. */
    int32_t (*unit_nodes)(const struct run *run);
    /* How long replicas need to come back once they have their nodes. */
    nanos (*rejoin_time)(const struct run *run);
    /* The replicas of the node of `gone` leave: noticed after `detect`, understood `search` later. */
    void (*leave)(struct run *run, struct incident *incident, const struct fault *gone, nanos detect, nanos search);
    /* A healthy node of the replicas of `node`, which are out, is taken for faulty too and stays away for `away`. */
    void (*condemn)(struct run *run, int32_t node, nanos found, nanos away, struct random_stream *random);
};
#define NODE_NOT_IN_JOB (-2)

extern const struct fault_rules plain_fault_rules, robust_fault_rules;
extern const struct replica_rules whole_job_rules, elastic_rules, failover_rules;

/* --- state of the rules --- */

/* A fault that nobody found: it comes back. */
struct latent {
    const struct fault *fault;
    int attempt;
    nanos gap;  /* training time until it is back */
    nanos time; /* when it is back; NEVER until training goes on */
};

/* An outage that counts for the blocklist. */
struct node_failure {
    nanos time;
    int32_t before; /* index of the node's failure before this one; -1: none that counts */
};

/* What a cause means; read once per cause of the trace. */
struct cause_reading {
    enum component component;
    enum symptom symptom;
};

struct robust_state {
    struct latent *latent;
    size_t n_latent, latent_capacity;
    struct cause_reading *causes; /* [n_details + 1]; the last is for faults without a cause */
    /* The blocklist: outages of nodes, each with the one before of its node. NULL without a blocklist. */
    struct node_failure *node_failures;
    int32_t *last_failure; /* [nodes] index into node_failures; -1: none that counts */
    size_t n_node_failures, node_failures_capacity;
    nanos next_drift; /* NEVER without drift */
    nanos next_alarm; /* NEVER without false alarms */
    int64_t n_alarm_draws;
};

/* A node whose replicas are out. */
struct absence {
    int32_t node;
    nanos found;  /* when the fault is understood */
    nanos rejoin; /* from a node for it until its replicas may come back */
    nanos ready;  /* when they may; NEVER while there is no node for it */
};

struct failover_state {
    struct absence *absent; /* in the order of their failures */
    size_t n_absent, absent_capacity;
    int32_t *ranks_out; /* [units] absent ranks of each unit */
    int32_t units_out;
    nanos *since;         /* [units] when the unit's processes started */
    bool needs_all_nodes; /* no unit was left: the stop under way ends when there is a node for all */
};

/* How long a restart takes. */
struct restart_times {
    nanos cold;
    nanos hot;      /* when hot spares replace all nodes that are down */
    int hot_spares; /* -1: there is no such thing */
    nanos reload;   /* in addition, when the state comes from storage instead of neighbours */
};

struct run_counts {
    int64_t failures, slowdowns, planned, interruptions, borne, relapses, alarms, outside, called, condemned, listed;
    int64_t by_channel[N_CHANNELS];
};

/* One run in progress. The ledger is its clock. */
struct run {
    const struct run_options *options;
    const struct fault_trace *trace;
    const struct fault_rules *faults;
    const struct replica_rules *replicas;
    enum run_phase phase;
    size_t next_fault; /* index into the trace */
    struct cluster_state cluster;
    struct training training;
    struct recovery recovery; /* active in every phase but RUN_TRAINING and RUN_OVER */
    struct ledger ledger;
    struct restart_times restart;
    int32_t n_replicas, missing_replicas;
    nanos processes_began; /* of the whole job; with failover each unit has its own (failover.since) */
    bool from_storage;     /* what neighbours held is lost: the restart under way reads from storage */
    int64_t *memory_lost;  /* [nodes] checkpoints complete when the node's memory was lost last, -1 never; NULL: none are there */
    struct robust_state robust;
    struct failover_state failover;
    struct incident *incidents;
    size_t n_incidents, incidents_capacity;
    size_t n_resumed; /* incidents before this one know when training went on */
    struct run_counts counts;
};

/* --- run_phases.c --- */

/* Lets time pass to `until` without an event, except that training resumes on its way. */
void run_advance(struct run *run, nanos until);
/* Training goes on, at the ledger's time. */
void run_resume(struct run *run);
/* A stop begins, or begins anew. `n_down` nodes have to be replaced. */
void run_stop(struct run *run, enum run_phase phase, nanos time, int32_t n_down, const struct recovery_plan *plan);
/* In `saving` or `last save`: books the save as a checkpoint if it is complete; returns whether it did. */
bool run_settle_saving(struct run *run);
/* The job trains, or its survivors regroup: its state is there and could be saved. */
bool run_has_state(const struct run *run);
/* Sets the speed of training from the slow nodes and links, missing replicas and drift. */
void run_set_speed(struct run *run);
/* Adds an incident without consequences so far; valid until the next one is added. */
struct incident *run_add_incident(struct run *run, const struct fault *fault, nanos time);
/* Whether copies of the state in neighbours' memory are of use after an incident, apart from those on its own node. */
enum memory_fate { MEMORY_STAYS, MEMORY_STALE };
/* An incident after which nothing trains, until run_stop: work since the last safe checkpoint is undone. */
void run_lose_work(struct run *run, struct incident *incident, enum memory_fate fate);
/* The memory of a fault's node is lost; returns whether neighbours still hold everything. */
bool run_lose_memory(struct run *run, const struct fault *fault);
/* A planned outage, which the cluster state knows of already. */
void run_leave_as_planned(struct run *run, const struct fault *fault);
/* Hot spares replace all nodes that are down. */
bool run_is_hot(const struct run *run);
nanos run_restart_time(const struct run *run);

#endif
