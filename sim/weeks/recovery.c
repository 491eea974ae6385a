#include "sim/weeks/recovery.h"

static void set_ready(struct recovery *recovery, nanos ready)
{
    recovery->ready = ready;
    recovery->resumes = nanos_after(ready, recovery->plan.restart);
}

struct recovery_plan recovery_plain_plan(const struct recovery_policy *policy)
{
    return (struct recovery_plan){.detect = policy->detect, .restart = policy->restart};
}

void recovery_begin(struct recovery *recovery, nanos now, int n_down, const struct recovery_plan *plan)
{
    bool was_short = recovery->active && recovery->ready == NEVER;
    bool searched = recovery->active && now >= recovery->saved; /* an earlier fault, not a save under way */
    struct recovery earlier = {.noticed = now, .diagnosed = now, .found = now};
    if (searched) /* the search for the earlier fault continues */
        earlier = *recovery;
    recovery->active = true;
    recovery->plan = *plan;
    recovery->saved = nanos_after(now, plan->save);
    nanos noticed = nanos_after(recovery->saved, plan->detect), diagnosed = nanos_after(noticed, plan->diagnose);
    recovery->noticed = nanos_later(earlier.noticed, noticed);
    recovery->diagnosed = nanos_later(earlier.diagnosed, diagnosed);
    recovery->found = nanos_later(earlier.found, nanos_after(diagnosed, plan->human));
    set_ready(recovery, n_down <= recovery->policy.spares ? recovery->found : NEVER);
    if (!was_short)
        recovery->short_since = recovery->found;
}

void recovery_node_leaves(struct recovery *recovery, nanos now, int n_down)
{
    bool lacking = n_down > recovery->policy.spares;
    if (recovery->ready == NEVER || (!lacking && now <= recovery->ready))
        return;
    recovery->short_since = nanos_later(now, recovery->found);
    set_ready(recovery, lacking ? NEVER : now);
}

void recovery_node_back(struct recovery *recovery, nanos now, int n_down)
{
    if (recovery->active && recovery->ready == NEVER && n_down <= recovery->policy.spares)
        set_ready(recovery, nanos_later(now, recovery->found));
}

static void book_until(struct ledger *ledger, enum time_use use, nanos until)
{
    while (ledger->now < until)
        ledger_book(ledger, use, nanos_earlier(until, ledger_edge(ledger)) - ledger->now);
}

void recovery_advance(struct recovery *recovery, struct ledger *ledger, nanos until)
{
    book_until(ledger, USE_CHECKPOINT, nanos_earlier(until, recovery->saved));
    book_until(ledger, USE_DETECTION, nanos_earlier(until, recovery->noticed));
    book_until(ledger, USE_DIAGNOSIS, nanos_earlier(until, recovery->diagnosed));
    book_until(ledger, USE_HUMAN, nanos_earlier(until, recovery->found));
    book_until(ledger, USE_WAITING, nanos_earlier(until, recovery->ready));
    book_until(ledger, USE_RESTART, nanos_earlier(until, recovery->resumes));
    if (recovery->resumes <= until)
        recovery->active = false;
}
