/*
 * run_setup.h - what `msim run` is asked, made ready: experiment, faults, policy, checkpoints, step.
 */
#ifndef MSIM_CLI_RUN_RUN_SETUP_H
#define MSIM_CLI_RUN_RUN_SETUP_H

#include "cli/run/run_report.h"
#include "model/layout/layout.h"
#include "sim/faults/fault_model.h"
#include "sim/faults/repairs.h"
#include "sim/search/replica_campaign.h"
#include "sim/weeks/checkpoint_cost.h"
#include "sim/weeks/robust_policy.h"
#include "sim/weeks/startup.h"

/* Everything one call holds. */
struct run_session {
    struct experiment experiment;
    bool has_model;
    struct fault_model model;
    struct fault_trace trace;
    struct repairs repairs;                   /* of the model or the trace, as read */
    char repairs_text[160], storage_text[64]; /* assumptions */
    bool has_policy;
    struct robust_policy policy;
    struct run_robust robust;
    struct run_failover failover;
    struct setting setting; /* points into the experiment: do not copy the session */
    struct degraded *degraded;
    struct degraded_speed degraded_speed;
    bool has_cost;
    struct checkpoint_cost cost;
    double storage_loading_s; /* of a checkpoint from storage, as --load says */
    struct startup startup;
    struct run_options options;
    struct run_result result;
    struct run_report report;
    bool has_layout;
    bool restart_given; /* with a policy: by the user, not from what starting up takes */
    struct layout layout;
    char layout_text[256];
};

/* The experiment with the flags laid over it, defaults filled in. */
MUST_CHECK enum status run_session_load(struct invocation *call, struct run_session *s);
/* Trace, step, costs, options: everything up to the run itself. */
MUST_CHECK enum status run_session_prepare(struct invocation *call, struct run_session *s);
void run_session_free(struct run_session *s);
/* The parts of a session that searches and sweeps change; they point into it. */
static inline struct run_parts run_parts_of(struct run_session *s)
{
    return (struct run_parts){.experiment = &s->experiment,
                              .options = &s->options,
                              .robust = &s->robust,
                              .failover = &s->failover,
                              .policy = &s->policy,
                              .model = &s->model,
                              .trace = &s->trace,
                              .repairs = &s->repairs,
                              .startup = &s->startup,
                              .has_model = s->has_model,
                              .has_policy = s->has_policy,
                              .has_cost = s->has_cost};
}

/* --- run_recovery.c --- */

/* As the options failover and degraded have them. */
enum { FAILOVER_JOB, FAILOVER_REPLICA };
enum { DEGRADED_AUTO, DEGRADED_FACTOR, DEGRADED_STEP };

/* Does a request name a policy with stages of its own? */
bool run_has_stages(const struct faults_request *faults);
/* Checkpoints and what they cost, restarts, policy, failover and what slow nodes do: behind the step and the other options. */
MUST_CHECK enum status run_set_recovery(struct invocation *call, struct run_session *s);
/* Another kind of checkpoint, with what it costs and what restarts from it take; the interval stays, but for "step". */
MUST_CHECK enum status run_set_checkpoint(struct invocation *call, struct run_session *s, const char *kind);
/* Checkpoints that are due sooner than the one before is safe wait for it: says so where an interval is that short. */
void run_warn_interval(struct invocation *call, const struct run_session *s, nanos interval);
/* A policy that keeps more hot spares than there are spares has these: says so. */
void run_note_hot_spares(struct invocation *call, const struct run_session *s, int spares);

#endif
