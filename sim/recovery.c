#include "sim/recovery.h"

static nanos min_nanos(nanos a, nanos b)
{
    return a < b ? a : b;
}

static nanos max_nanos(nanos a, nanos b)
{
    return a > b ? a : b;
}

/* A sum that stays NEVER instead of wrapping. */
static nanos later(nanos time, nanos duration)
{
    return time > NEVER - duration ? NEVER : time + duration;
}

static void set_ready(struct recovery *recovery, nanos ready)
{
    recovery->ready = ready;
    recovery->resumes = later(ready, recovery->plan.restart);
}

struct recovery_plan recovery_plain_plan(const struct recovery_policy *policy)
{
    return (struct recovery_plan){.detect = policy->detect, .restart = policy->restart};
}

void recovery_begin(struct recovery *recovery, nanos now, int n_down, const struct recovery_plan *plan)
{
    bool was_short = recovery->active && recovery->ready == NEVER;
    nanos earlier = recovery->active ? recovery->found : now; /* another fault is still being looked for until then */
    recovery->active = true;
    recovery->plan = *plan;
    recovery->noticed = later(now, plan->detect);
    recovery->diagnosed = later(recovery->noticed, plan->diagnose);
    recovery->found = max_nanos(earlier, later(recovery->diagnosed, plan->human));
    set_ready(recovery, n_down <= recovery->policy.spares ? recovery->found : NEVER);
    if (!was_short)
        recovery->short_since = recovery->found;
}

void recovery_node_back(struct recovery *recovery, nanos now, int n_down)
{
    if (recovery->active && recovery->ready == NEVER && n_down <= recovery->policy.spares)
        set_ready(recovery, max_nanos(now, recovery->found));
}

static void book_until(struct ledger *ledger, enum time_use use, nanos until)
{
    while (ledger->now < until)
        ledger_book(ledger, use, min_nanos(until, ledger_edge(ledger)) - ledger->now);
}

void recovery_advance(struct recovery *recovery, struct ledger *ledger, nanos until)
{
    book_until(ledger, USE_DETECTION, min_nanos(until, recovery->noticed));
    book_until(ledger, USE_DIAGNOSIS, min_nanos(until, recovery->diagnosed));
    book_until(ledger, USE_HUMAN, min_nanos(until, recovery->found));
    book_until(ledger, USE_WAITING, min_nanos(until, recovery->ready));
    book_until(ledger, USE_RESTART, min_nanos(until, recovery->resumes));
    if (recovery->resumes <= until)
        recovery->active = false;
}
