#include "sim/weeks/checkpoint.h"

#include "traces/fault/fault_trace.h"

__extension__ typedef __int128 wide;

const char *checkpoint_kind_name(enum checkpoint_kind kind)
{
    static const char *const names[N_CHECKPOINT_KINDS] = {"blocking", "two-stage", "memory"};
    return names[kind];
}

void training_init(struct training *training, struct checkpoint_policy policy)
{
    policy.interval = nanos_earlier(policy.interval, CHECKPOINT_MAX_NANOS);
    policy.block = nanos_earlier(policy.block, CHECKPOINT_MAX_NANOS);
    policy.persist = nanos_earlier(policy.persist, CHECKPOINT_MAX_NANOS);
    policy.write = nanos_earlier(policy.write, CHECKPOINT_MAX_NANOS);
    *training = (struct training){.policy = policy, .speed = FULL_SPEED};
}

nanos checkpoint_lag(const struct checkpoint_policy *policy)
{
    return policy->kind == CHECKPOINT_BLOCKING ? 0 : policy->persist;
}

/* --- from snapshot to safe --- */

static void begin_write(struct training *training, struct ledger *ledger)
{
    training->held = 0;
    ledger_promote(ledger, LEVEL_HELD, LEVEL_WRITING);
    training->write_left = training->policy.write;
    if (training->write_left == 0)
        ledger_commit_level(ledger, LEVEL_WRITING);
}

/* The copy has arrived at its storage or neighbour. */
static void persisted(struct training *training, struct ledger *ledger)
{
    training->n_written++;
    if (training->policy.kind != CHECKPOINT_MEMORY) {
        ledger_commit_level(ledger, LEVEL_STAGED);
        return;
    }
    ledger_promote(ledger, LEVEL_STAGED, LEVEL_HELD);
    training->held++;
    if (training->policy.storage_every > 0 && training->held >= training->policy.storage_every && training->write_left == 0)
        begin_write(training, ledger);
}

static void snapshot_taken(struct training *training, struct ledger *ledger)
{
    training->work = 0;
    training->carry = 0;
    ledger_promote(ledger, LEVEL_FRESH, LEVEL_STAGED);
    training->persist_left = checkpoint_lag(&training->policy);
    if (training->persist_left == 0)
        persisted(training, ledger);
}

/* Writes in the background advance by `duration` of clock time. */
static void background(struct training *training, struct ledger *ledger, nanos duration)
{
    if (training->write_left > 0 && (training->write_left -= nanos_earlier(duration, training->write_left)) == 0)
        ledger_commit_level(ledger, LEVEL_WRITING);
    if (training->persist_left > 0 && (training->persist_left -= nanos_earlier(duration, training->persist_left)) == 0)
        persisted(training, ledger);
}

/* Time until a write in the background ends, at most `limit`. */
static nanos until_background(const struct training *training, nanos limit)
{
    if (training->persist_left > 0)
        limit = nanos_earlier(limit, training->persist_left);
    if (training->write_left > 0)
        limit = nanos_earlier(limit, training->write_left);
    return limit;
}

/* --- the foreground --- */

static void write_checkpoint(struct training *training, struct ledger *ledger, nanos until)
{
    nanos duration = nanos_earlier(until_background(training, until - ledger->now), training->block_left);
    ledger_book(ledger, USE_CHECKPOINT, duration);
    training->block_left -= duration;
    background(training, ledger, duration);
    if (training->block_left == 0)
        snapshot_taken(training, ledger);
}

/* Clock time needed for `work`. */
static nanos clock_time(const struct training *training, nanos work)
{
    if (training->speed == FULL_SPEED && training->carry == 0)
        return work;
    wide needed = (wide)work * FULL_SPEED - training->carry;
    wide duration = (needed + training->speed - 1) / training->speed;
    return duration > CHECKPOINT_MAX_NANOS ? CHECKPOINT_MAX_NANOS : (nanos)duration;
}

/* Work done in `duration`. A remainder below one nanosecond is carried. */
static nanos work_in(struct training *training, nanos duration)
{
    if (training->speed == FULL_SPEED)
        return duration;
    wide done = (wide)duration * training->speed + training->carry;
    training->carry = (int64_t)(done % FULL_SPEED);
    return (nanos)(done / FULL_SPEED);
}

/* Work left until the goal. */
static nanos work_left(const struct training *training, const struct ledger *ledger)
{
    return training->goal > 0 ? training->goal - ledger->work : INT64_MAX;
}

bool training_is_done(const struct training *training, const struct ledger *ledger)
{
    return work_left(training, ledger) <= 0;
}

static void work_towards_checkpoint(struct training *training, struct ledger *ledger, nanos until)
{
    nanos left = nanos_earlier(training->policy.interval - training->work, work_left(training, ledger));
    nanos needed = clock_time(training, left);
    nanos duration = nanos_earlier(until_background(training, until - ledger->now), needed);
    nanos work = duration == needed ? left : work_in(training, duration);
    ledger_train(ledger, work, duration - work);
    training->work += work;
    background(training, ledger, duration);
}

/* The interval is over. */
static void begin_checkpoint(struct training *training, struct ledger *ledger, nanos until)
{
    if (training->persist_left > 0) { /* the previous copy is still on its way */
        nanos duration = nanos_earlier(until - ledger->now, until_background(training, training->persist_left));
        ledger_book(ledger, USE_CHECKPOINT, duration);
        background(training, ledger, duration);
        return;
    }
    training->block_left = training->policy.block;
    if (training->block_left == 0)
        snapshot_taken(training, ledger);
}

/*
 * Whole intervals at full speed need no stepping: a month of them is one multiplication per bin of the ledger. With a checkpoint
 * on its way the last one is stepped through: those before it are safe by then, as nothing fails before `until`.
 */
static nanos whole_intervals(const struct training *training, const struct ledger *ledger, nanos until)
{
    const struct checkpoint_policy *policy = &training->policy;
    if (training->work > 0 || training->carry > 0 || training->speed != FULL_SPEED)
        return 0;
    nanos n = nanos_earlier((until - ledger->now) / (policy->interval + policy->block),
                            (work_left(training, ledger) - 1) / policy->interval); /* the last one ends without a checkpoint */
    if (policy->kind == CHECKPOINT_BLOCKING)
        return n;
    bool steady = policy->kind == CHECKPOINT_TWO_STAGE && policy->persist <= policy->interval;
    return steady && n > 1 ? n - 1 : 0;
}

void training_advance(struct training *training, struct ledger *ledger, nanos until)
{
    while (ledger->now < until && !training_is_done(training, ledger)) {
        nanos stop = nanos_earlier(until, ledger_edge(ledger));
        nanos n = 0;
        if (training->block_left > 0) {
            write_checkpoint(training, ledger, stop);
        } else if ((n = whole_intervals(training, ledger, stop)) > 0) {
            ledger_commit(ledger);
            training->n_written += n + (training->persist_left > 0);
            training->persist_left = 0;
            ledger_train_intervals(ledger, n, training->policy.interval, training->policy.block);
        } else if (training->work >= training->policy.interval) {
            begin_checkpoint(training, ledger, stop);
        } else {
            work_towards_checkpoint(training, ledger, stop);
        }
        if (training->work >= training->policy.interval && training->block_left == 0 && training->persist_left == 0)
            begin_checkpoint(training, ledger, stop);
    }
}

/* Drops all work and copies in progress. */
static void forget(struct training *training)
{
    training->work = 0;
    training->carry = 0;
    training->block_left = 0;
    training->persist_left = 0;
    training->write_left = 0;
}

nanos training_fail(struct training *training, struct ledger *ledger, bool memory)
{
    forget(training);
    if (!memory || training->policy.kind != CHECKPOINT_MEMORY) {
        training->held = 0;
        return ledger_lose(ledger);
    }
    ledger_promote(ledger, LEVEL_WRITING, LEVEL_HELD);
    return ledger_lose_level(ledger, LEVEL_FRESH) + ledger_lose_level(ledger, LEVEL_STAGED);
}

nanos training_lose_step(struct training *training, struct ledger *ledger, nanos step)
{
    bool between =
        training->block_left > 0 || training->work >= training->policy.interval; /* a checkpoint: no step is under way */
    if (step <= 0 || between)
        return 0;
    nanos work = training->work % step;
    wide slow = (wide)work * (FULL_SPEED - training->speed) / training->speed;
    training->work -= work;
    return ledger_lose_recent(ledger, work, slow > CHECKPOINT_MAX_NANOS ? CHECKPOINT_MAX_NANOS : (nanos)slow);
}

nanos checkpoint_save_time(const struct checkpoint_policy *policy)
{
    switch (policy->kind) {
    case CHECKPOINT_TWO_STAGE: return policy->block + policy->persist;
    case CHECKPOINT_MEMORY: return policy->block + policy->write;
    default: return policy->block;
    }
}

void training_saved(struct training *training, struct ledger *ledger)
{
    forget(training);
    training->held = 0;
    training->n_written++;
    ledger_commit(ledger);
}

void training_finish(struct training *training, struct ledger *ledger)
{
    forget(training);
    ledger_commit(ledger);
}
