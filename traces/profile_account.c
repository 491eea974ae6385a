/* Where the time of a profile's steps went: a sweep over the spans of all streams. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "traces/profile.h"

struct edge {
    double at_s;
    int change; /* +1 begins, -1 ends */
    enum profile_kind kind;
};

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    return (a->at_s > b->at_s) - (a->at_s < b->at_s);
}

static size_t edges_within(const struct profile *profile, struct profile_step step, struct edge *edges)
{
    size_t n = 0;
    for (size_t i = 0; i < profile->n_spans; i++) {
        const struct profile_span *span = &profile->spans[i];
        double from = span->start_s > step.start_s ? span->start_s : step.start_s;
        double to = span->end_s < step.end_s ? span->end_s : step.end_s;
        if (!(from < to))
            continue;
        edges[n++] = (struct edge){from, 1, span->kind};
        edges[n++] = (struct edge){to, -1, span->kind};
    }
    qsort(edges, n, n ? sizeof *edges : 1, compare_edges);
    return n;
}

/* `seconds` during which kinds are busy as counted. */
static void attribute(const int64_t busy[N_PROFILE_KINDS], double seconds, struct profile_account *account)
{
    bool taken = false;
    for (int kind = 0; kind < PROFILE_IDLE; kind++) {
        if (busy[kind] == 0)
            continue;
        *(taken ? &account->hidden_s[kind] : &account->exposed_s[kind]) += seconds;
        taken = true;
    }
    if (!taken)
        account->exposed_s[PROFILE_IDLE] += seconds;
}

static void account_step(const struct profile *profile, struct profile_step step, struct edge *edges,
                         struct profile_account *account)
{
    int64_t busy[N_PROFILE_KINDS] = {0};
    double at = step.start_s;
    size_t n = edges_within(profile, step, edges);
    for (size_t i = 0; i < n; i++) {
        attribute(busy, edges[i].at_s - at, account);
        busy[edges[i].kind] += edges[i].change;
        at = edges[i].at_s;
    }
    attribute(busy, step.end_s - at, account);
    account->step_s += step.end_s - step.start_s;
}

struct profile_account profile_account_of(const struct profile *profile)
{
    struct profile_account account = {0};
    struct edge *edges = memory_new(2 * profile->n_spans, sizeof *edges);
    for (size_t i = 0; i < profile->n_steps; i++)
        account_step(profile, profile->steps[i], edges, &account);
    free(edges);
    double n = (double)profile->n_steps * profile->steps_each;
    account.step_s /= n;
    for (int kind = 0; kind < N_PROFILE_KINDS; kind++) {
        account.exposed_s[kind] /= n;
        account.hidden_s[kind] /= n;
    }
    return account;
}
