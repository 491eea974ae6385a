#include "sim/checkpoint.h"

#include "traces/fault_trace.h"

__extension__ typedef __int128 wide;

static nanos min_nanos(nanos a, nanos b)
{
    return a < b ? a : b;
}

void training_init(struct training *training, struct checkpoint_policy policy)
{
    policy.interval = min_nanos(policy.interval, CHECKPOINT_MAX_NANOS);
    policy.block = min_nanos(policy.block, CHECKPOINT_MAX_NANOS);
    *training = (struct training){.policy = policy, .speed = FULL_SPEED};
}

static void make_safe(struct training *training, struct ledger *ledger)
{
    ledger_commit(ledger);
    training->work = 0;
    training->carry = 0;
    training->n_written++;
}

static void write_checkpoint(struct training *training, struct ledger *ledger, nanos until)
{
    nanos duration = min_nanos(until - ledger->now, training->block_left);
    ledger_book(ledger, USE_CHECKPOINT, duration);
    training->block_left -= duration;
    if (training->block_left == 0)
        make_safe(training, ledger);
}

/* The clock time that `work` still takes. */
static nanos clock_time(const struct training *training, nanos work)
{
    if (training->speed == FULL_SPEED && training->carry == 0)
        return work;
    wide needed = (wide)work * FULL_SPEED - training->carry;
    wide duration = (needed + training->speed - 1) / training->speed;
    return duration > CHECKPOINT_MAX_NANOS ? CHECKPOINT_MAX_NANOS : (nanos)duration;
}

/* The work done in `duration`; what does not make a whole nanosecond is carried. */
static nanos work_in(struct training *training, nanos duration)
{
    if (training->speed == FULL_SPEED)
        return duration;
    wide done = (wide)duration * training->speed + training->carry;
    training->carry = (int64_t)(done % FULL_SPEED);
    return (nanos)(done / FULL_SPEED);
}

static void work_towards_checkpoint(struct training *training, struct ledger *ledger, nanos until)
{
    nanos left = training->policy.interval - training->work;
    nanos needed = clock_time(training, left);
    nanos duration = min_nanos(until - ledger->now, needed);
    nanos work = duration == needed ? left : work_in(training, duration);
    ledger_train(ledger, work, duration - work);
    training->work += work;
    if (training->work < training->policy.interval)
        return;
    training->block_left = training->policy.block;
    if (training->block_left == 0)
        make_safe(training, ledger);
}

/* Whole intervals at full speed need no stepping: a month of them is one multiplication per bin of the ledger. */
static nanos whole_intervals(const struct training *training, const struct ledger *ledger, nanos until)
{
    if (training->work > 0 || training->carry > 0 || training->speed != FULL_SPEED)
        return 0;
    return (until - ledger->now) / (training->policy.interval + training->policy.block);
}

void training_advance(struct training *training, struct ledger *ledger, nanos until)
{
    while (ledger->now < until) {
        nanos stop = min_nanos(until, ledger_edge(ledger));
        nanos n = 0;
        if (training->block_left > 0) {
            write_checkpoint(training, ledger, stop);
        } else if ((n = whole_intervals(training, ledger, stop)) > 0) {
            ledger_train_intervals(ledger, n, training->policy.interval, training->policy.block);
            training->n_written += n;
        } else {
            work_towards_checkpoint(training, ledger, stop);
        }
    }
}

nanos training_fail(struct training *training, struct ledger *ledger)
{
    training->work = 0;
    training->carry = 0;
    training->block_left = 0;
    return ledger_lose(ledger);
}

void training_finish(struct training *training, struct ledger *ledger)
{
    training->work = 0;
    training->carry = 0;
    training->block_left = 0;
    ledger_commit(ledger);
}
