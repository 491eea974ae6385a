/* What a run comes back from and how: checkpoints, start-up, policies, replicas that fail alone, nodes that are slow. */
#include <math.h>
#include <string.h>

#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/table.h"
#include "cli/run/run_setup.h"
#include "sim/step/step.h"
#include "sim/weeks/checkpoint_traffic.h"
#include "sim/weeks/degraded.h"

/* --- checkpoints and start-up --- */

static const char *const checkpoint_names[] = {"blocking", "two-stage", "memory", "step"};
enum { N_CHECKPOINT_NAMES = sizeof checkpoint_names / sizeof *checkpoint_names, CHECKPOINT_EVERY_STEP = N_CHECKPOINT_KINDS };

static int checkpoint_parse(struct invocation *call, const char *name)
{
    for (int i = 0; i < N_CHECKPOINT_NAMES; i++)
        if (strcmp(name, checkpoint_names[i]) == 0)
            return i;
    char hint[96];
    diag_error(&call->diags, PLACE_NONE, "unknown kind of checkpoint '%s'; %s", name,
               name_hint(name, checkpoint_names, N_CHECKPOINT_NAMES, "known are blocking, two-stage, memory and step", hint,
                         sizeof hint));
    return -1;
}

/* The way of checkpoints through the network: on a fabric when that is asked for. */
static enum status find_traffic(struct invocation *call, struct run_session *s, const struct setting *setting)
{
    struct fabric fabric;
    if (option_choice(call, "checkpoint-network") != NETWORK_FLOW)
        return STATUS_OK;
    enum status status = fabric_options_load(call, &s->experiment.cluster, &fabric);
    if (status != STATUS_OK)
        return status;
    struct router router = fabric_options_router(call, &fabric);
    status = checkpoint_cost_on_fabric(&s->layout, setting, &router, fabric_options_queue_pairs(call, setting->cluster), &s->cost,
                                       &call->diags);
    fabric_free(&fabric);
    return status;
}

static struct startup_options startup_asked(const struct invocation *call)
{
    struct startup_options startup = startup_usual();
    int store = option_choice(call, "store");
    startup.store = store >= 0 ? (enum store_kind)store : STORE_ORDERED;
    startup.image_bytes = option_quantity(call, "image");
    startup.registry_rate = option_quantity(call, "registry-rate");
    if (option_given(call, "scheduling"))
        startup.scheduling_s = option_quantity(call, "scheduling");
    if (option_given(call, "warm-up"))
        startup.warm_up_s = option_quantity(call, "warm-up");
    return startup;
}

static enum status find_costs(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    struct startup_options startup = startup_asked(call);
    checkpoint_cost_of(&s->layout, &setting, option_quantity(call, "storage-rate"), &s->cost);
    enum status status = find_traffic(call, s, &setting);
    if (status != STATUS_OK)
        return status;
    double loading = option_choice(call, "load") == LOAD_ALL ? s->cost.load_all_s : s->cost.load_broadcast_s;
    s->storage_loading_s = loading;
    if (s->options.checkpoint.kind == CHECKPOINT_MEMORY)
        loading = s->cost.load_memory_s;
    s->startup = startup_of(&startup, &s->layout, &setting, 1, loading);
    s->has_cost = true;
    return STATUS_OK;
}

/* Every-step checkpoints go to memory; one an hour of work goes to storage too. */
static void storage_every(struct checkpoint_policy *policy)
{
    nanos every = (3600 * NANOS_PER_SECOND + policy->interval - 1) / policy->interval;
    policy->storage_every = every > 1 ? (every < 1000000 ? (int)every : 1000000) : 1;
}

static enum status set_checkpoint(struct invocation *call, struct run_session *s)
{
    struct checkpoint_policy *policy = &s->options.checkpoint;
    const char *name = s->experiment.faults.checkpoint;
    int kind = *name ? checkpoint_parse(call, name) : CHECKPOINT_BLOCKING;
    if (kind < 0)
        return STATUS_BAD_INPUT;
    policy->kind = kind == CHECKPOINT_EVERY_STEP ? CHECKPOINT_MEMORY : (enum checkpoint_kind)kind;
    if (kind == CHECKPOINT_EVERY_STEP)
        policy->interval = nanos_from_seconds(s->report.step_time_s);
    enum status status = s->has_layout ? find_costs(call, s) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (!*name || !s->has_cost)
        return STATUS_OK;
    checkpoint_cost_apply(&s->cost, policy);
    if (s->experiment.faults.checkpoint_block_s >= 0)
        policy->block = nanos_from_seconds(s->experiment.faults.checkpoint_block_s);
    if (policy->kind == CHECKPOINT_MEMORY)
        storage_every(policy);
    return STATUS_OK;
}

void run_warn_interval(struct invocation *call, const struct run_session *s, nanos interval)
{
    char every[32], lag[32];
    nanos safe = checkpoint_lag(&s->options.checkpoint);
    if (interval >= safe)
        return;
    diag_warning(&call->diags, PLACE_NONE,
                 "a checkpoint every %s must wait for the previous one, which is safe only after %s, and training waits too; use "
                 "an interval of %s or more",
                 quantity_format(nanos_to_seconds(interval), DIM_TIME, every, sizeof every),
                 quantity_format(nanos_to_seconds(safe), DIM_TIME, lag, sizeof lag), lag);
}

void run_note_hot_spares(struct invocation *call, const struct run_session *s, int spares)
{
    if (s->has_policy && s->policy.hot_spares > spares)
        diag_note(&call->diags, PLACE_NONE,
                  "policy %s keeps %d hot spares, but there %s only %d spare node%s; only these are hot", s->policy.name,
                  s->policy.hot_spares, spares == 1 ? "is" : "are", spares, plural(spares));
}

static void assume_storage(const struct invocation *call, struct run_session *s)
{
    char rate[32];
    bool loads =
        s->experiment.faults.checkpoint[0] || (run_has_stages(&s->experiment.faults) && s->experiment.faults.restart_s < 0);
    if (!s->has_cost || !loads || option_given(call, "storage-rate") || s->experiment.cluster.storage_rate > 0)
        return;
    snprintf(s->storage_text, sizeof s->storage_text, "the bandwidth of the checkpoint store is %s",
             quantity_format(UNKNOWN_STORAGE, DIM_RATE, rate, sizeof rate));
    run_assume(&s->report, s->storage_text);
}

/* --- policies --- */

bool run_has_stages(const struct faults_request *faults)
{
    return faults->policy[0] && strcmp(faults->policy, "replay") != 0;
}

/* How long restarts take: as given, or what starting up takes with these checkpoints. */
static void set_restart(struct run_session *s)
{
    double given = s->experiment.faults.restart_s;
    s->robust.restart = nanos_from_seconds(s->restart_given ? given : startup_total_s(&s->startup));
    s->robust.restart_hot = nanos_from_seconds(s->restart_given ? given : startup_hot_s(&s->startup));
    bool memory = s->options.checkpoint.kind == CHECKPOINT_MEMORY && !s->restart_given && s->has_cost;
    s->robust.reload = memory ? nanos_from_seconds(fmax(0, s->storage_loading_s - s->cost.load_memory_s)) : 0;
    s->options.recovery.restart = s->robust.restart;
}

static void set_robust(struct invocation *call, struct run_session *s)
{
    s->robust = (struct run_robust){.policy = &s->policy, .seed = call->seed, .replicas = s->has_layout ? s->layout.dp : 1};
    s->options.robust = &s->robust;
    s->restart_given = s->experiment.faults.restart_s >= 0;
    set_restart(s);
}

enum status run_set_checkpoint(struct invocation *call, struct run_session *s, const char *kind)
{
    snprintf(s->experiment.faults.checkpoint, sizeof s->experiment.faults.checkpoint, "%s", kind);
    enum status status = set_checkpoint(call, s);
    if (status == STATUS_OK && s->has_policy)
        set_restart(s);
    return status;
}

static enum status set_policy(struct invocation *call, struct run_session *s)
{
    if (!run_has_stages(&s->experiment.faults))
        return STATUS_OK;
    enum status status = robust_policy_load(s->experiment.faults.policy, &s->policy, &call->diags);
    if (status != STATUS_OK)
        return status;
    s->has_policy = true;
    set_robust(call, s);
    return STATUS_OK;
}

/* --- what fails or slows alone --- */

/* How long the others stop, and until a unit is back: as given, or what starting up takes. */
static void time_failover(struct invocation *call, struct run_session *s, const struct setting *setting)
{
    struct run_failover *f = &s->failover;
    struct startup_options startup = startup_asked(call);
    struct startup rejoin = failover_rejoin(&startup, &s->layout, f, setting, s->cost.load_memory_s);
    bool given = s->has_policy ? s->restart_given : true;
    double regroup_s = failover_regroup_s(&s->layout, setting->gpus, startup.store);
    f->step = nanos_from_seconds(s->report.step_time_s);
    f->regroup = nanos_from_seconds(option_given(call, "regroup") ? option_quantity(call, "regroup") : regroup_s);
    f->rejoin = given ? s->options.recovery.restart : nanos_from_seconds(startup_total_s(&rejoin));
    f->rejoin_hot = given ? f->rejoin : nanos_from_seconds(startup_hot_s(&rejoin));
}

/* Options that say nothing unless replicas fail alone, or where they cannot. */
static enum status set_failover(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    char why[192] = "the layout determines which replicas share states";
    if (option_choice(call, "failover") != FAILOVER_REPLICA) {
        if (option_given(call, "regroup"))
            diag_warning(&call->diags, PLACE_NONE, "--regroup has no effect without --failover replica");
        return STATUS_OK;
    }
    if (!s->has_layout || !failover_units(&s->layout, setting.cluster, &s->failover, why, sizeof why)) {
        diag_error(&call->diags, PLACE_NONE, "--failover replica: %s", why);
        return STATUS_BAD_INPUT;
    }
    time_failover(call, s, &setting);
    if (s->has_policy && s->policy.elastic)
        run_assume(&s->report, "a job that has lost all replicas waits for all of their nodes, although the policy is elastic");
    s->options.failover = &s->failover;
    return STATUS_OK;
}

/* Is a node (FAULT_STRAGGLER), or a link, slow for a while? */
static bool has_slow(const struct run_session *s, enum fault_kind kind)
{
    for (size_t i = 0; i < s->trace.n_items; i++)
        if (s->trace.items[i].kind == kind)
            return true;
    for (int i = 0; s->has_model && i < s->model.slow.n; i++)
        if ((s->model.slow.items[i].kind == SLOW_LINK) == (kind == FAULT_LINK))
            return true;
    return false;
}

static enum status set_degraded(struct invocation *call, struct run_session *s)
{
    int how = option_choice(call, "degraded");
    bool link = has_slow(s, FAULT_LINK);
    bool asked = s->has_policy || s->has_model || s->options.failover || link || has_slow(s, FAULT_STRAGGLER);
    if (how == DEGRADED_AUTO && option_given(call, "step-time") && link)
        run_assume(&s->report,
                   "a slow link slows the whole step, because --step-time does not say how much of it is communication");
    if (how == DEGRADED_STEP && (!s->has_layout || option_given(call, "step-time")))
        diag_note(&call->diags, PLACE_NONE, "--degraded step has no effect with --step-time, because no step is simulated");
    if (how == DEGRADED_FACTOR || (how == DEGRADED_AUTO && !asked) || !s->has_layout || option_given(call, "step-time"))
        return STATUS_OK;
    s->setting = experiment_setting(&s->experiment);
    s->degraded = degraded_create(&s->layout, &s->setting, &call->diags);
    if (!s->degraded)
        return STATUS_BAD_INPUT;
    s->degraded_speed = degraded_speed_of(s->degraded);
    s->options.degraded = &s->degraded_speed;
    return STATUS_OK;
}

enum status run_set_recovery(struct invocation *call, struct run_session *s)
{
    enum status status = set_checkpoint(call, s);
    assume_storage(call, s);
    if (status == STATUS_OK)
        status = set_policy(call, s);
    if (status == STATUS_OK)
        status = set_failover(call, s);
    return status == STATUS_OK ? set_degraded(call, s) : status;
}
