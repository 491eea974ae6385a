/* profile_account.c - divides the time of a profile's steps among classes: a sweep over the spans of all streams. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "traces/profile/profile.h"

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

/* In order of time; the caller frees them. */
static struct edge *edges_of(const struct profile *profile, size_t *n_edges)
{
    struct edge *edges = memory_new(2 * profile->n_spans, sizeof *edges);
    size_t n = 0;
    for (size_t i = 0; i < profile->n_spans; i++) {
        const struct profile_span *span = &profile->spans[i];
        if (!(span->start_s < span->end_s))
            continue;
        edges[n++] = (struct edge){span->start_s, 1, span->kind};
        edges[n++] = (struct edge){span->end_s, -1, span->kind};
    }
    qsort(edges, n, n ? sizeof *edges : 1, compare_edges);
    *n_edges = n;
    return edges;
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

/* The sweep over all edges, as far as it has come. */
struct sweep {
    const struct edge *next, *end;
    int64_t busy[N_PROFILE_KINDS];
};

static void take_edge(struct sweep *sweep)
{
    sweep->busy[sweep->next->kind] += sweep->next->change;
    sweep->next++;
}

/* Steps are in order and none overlaps another, so every edge is taken once. */
static void account_step(struct sweep *sweep, struct profile_step step, struct profile_account *account)
{
    double at = step.start_s;
    while (sweep->next < sweep->end && sweep->next->at_s <= step.start_s)
        take_edge(sweep);
    for (; sweep->next < sweep->end && sweep->next->at_s < step.end_s; take_edge(sweep)) {
        attribute(sweep->busy, sweep->next->at_s - at, account);
        at = sweep->next->at_s;
    }
    attribute(sweep->busy, step.end_s - at, account);
    account->step_s += step.end_s - step.start_s;
}

struct profile_account profile_account_of(const struct profile *profile)
{
    struct profile_account account = {0};
    size_t n_edges;
    struct edge *edges = edges_of(profile, &n_edges);
    struct sweep sweep = {.next = edges, .end = edges + n_edges};
    for (size_t i = 0; i < profile->n_steps; i++)
        account_step(&sweep, profile->steps[i], &account);
    free(edges);
    double n = (double)profile->n_steps * profile->steps_each;
    account.step_s /= n;
    for (int kind = 0; kind < N_PROFILE_KINDS; kind++) {
        account.exposed_s[kind] /= n;
        account.hidden_s[kind] /= n;
    }
    return account;
}
