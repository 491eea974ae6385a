/*
 * verify_collectives.c - all members of a group enter the same collectives in the same order.
 *
 * Scripts that agree on their collectives over a kind of group form a class, named by its first script; two members agree when
 * their scripts' classes do.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "model/program/verify.h"

static bool same_collective(const struct op *a, const struct op *b)
{
    return a->collective == b->collective && a->bytes == b->bytes;
}

/* Index of the first difference, or the number of collectives when both lists are equal. */
static uint32_t first_difference(const struct script_view *a, const struct script_view *b, int kind)
{
    uint32_t n = a->n_collectives[kind] < b->n_collectives[kind] ? a->n_collectives[kind] : b->n_collectives[kind];
    uint32_t i = 0;
    while (i < n && same_collective(&a->ops[a->collectives[kind][i]], &b->ops[b->collectives[kind][i]]))
        i++;
    return i;
}

static bool same_collectives(const struct script_view *a, const struct script_view *b, int kind)
{
    return a->n_collectives[kind] == b->n_collectives[kind] && first_difference(a, b, kind) == a->n_collectives[kind];
}

/* classes[s]: the first script with the same collectives of this kind. */
static void find_classes(const struct verifier *v, int kind, int32_t *classes)
{
    for (int32_t s = 0; s < v->program->n_scripts; s++) {
        classes[s] = s;
        for (int32_t c = 0; c < s && classes[s] == s; c++)
            if (classes[c] == c && same_collectives(&v->views[c], &v->views[s], kind))
                classes[s] = c;
    }
}

static void report_difference(struct verifier *v, const struct rank_group *group, int32_t g, int32_t a, int32_t b)
{
    const struct script_view *x = &v->views[v->program->ranks[a].script], *y = &v->views[v->program->ranks[b].script];
    int kind = (int)group->kind;
    uint32_t i = first_difference(x, y, kind);
    if (i >= x->n_collectives[kind] || i >= y->n_collectives[kind]) {
        VERIFY_ERROR(
            v, "program: %s group %" PRId32 ": rank %" PRId32 " enters %" PRIu32 " collectives, rank %" PRId32 " enters %" PRIu32,
            group_kind_name(group->kind), g, a, x->n_collectives[kind], b, y->n_collectives[kind]);
        return;
    }
    const struct op *p = &x->ops[x->collectives[kind][i]], *q = &y->ops[y->collectives[kind][i]];
    VERIFY_ERROR(v,
                 "program: %s group %" PRId32 ": as collective %" PRIu32 ", rank %" PRId32 " enters %s of %.0f bytes (op %" PRIu32
                 "), rank %" PRId32 " %s of %.0f bytes (op %" PRIu32 ")",
                 group_kind_name(group->kind), g, i, a, collective_name((enum collective)p->collective), p->bytes,
                 x->collectives[kind][i], b, collective_name((enum collective)q->collective), q->bytes, y->collectives[kind][i]);
}

static bool verify_group_agrees(struct verifier *v, int32_t g, const int32_t *classes)
{
    const struct rank_group *group = &v->program->groups[g];
    const int32_t *members = &v->program->members[group->first_member];
    for (int32_t m = 1; m < group->n_members; m++) {
        if (classes[v->program->ranks[members[m]].script] != classes[v->program->ranks[members[0]].script]) {
            report_difference(v, group, g, members[0], members[m]);
            return false;
        }
    }
    return true;
}

/* A script has all its collectives of one kind on one stream, else its order would not be the order of entering. */
static bool verify_one_stream(struct verifier *v, int32_t s, int kind)
{
    const struct script_view *view = &v->views[s];
    for (uint32_t i = 1; i < view->n_collectives[kind]; i++) {
        if (view->ops[view->collectives[kind][i]].stream != view->ops[view->collectives[kind][0]].stream) {
            VERIFY_ERROR(
                v, "program: script %" PRId32 ", op %" PRIu32 ": a collective over %s on another stream than those before it", s,
                view->collectives[kind][i], group_kind_name((enum group_kind)kind));
            return false;
        }
    }
    return true;
}

static bool verify_membership(struct verifier *v, int32_t r)
{
    const struct program_rank *rank = &v->program->ranks[r];
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        if (rank->groups[kind] < 0 && v->views[rank->script].n_collectives[kind]) {
            VERIFY_ERROR(v, "program: rank %" PRId32 ", op %" PRIu32 ": a collective over %s, but the rank is in no such group",
                         r, v->views[rank->script].collectives[kind][0], group_kind_name((enum group_kind)kind));
            return false;
        }
    }
    return true;
}

bool verify_collectives(struct verifier *v)
{
    const struct program *program = v->program;
    int wrong = 0;
    for (int32_t r = 0; r < program->n_ranks && wrong < REPORTS_MAX; r++)
        wrong += !verify_membership(v, r);
    int32_t *classes = memory_new((size_t)program->n_scripts, sizeof *classes);
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        for (int32_t s = 0; s < program->n_scripts && wrong < REPORTS_MAX; s++)
            wrong += !verify_one_stream(v, s, kind);
        find_classes(v, kind, classes);
        for (int32_t g = 0; g < program->n_groups && wrong < REPORTS_MAX; g++)
            if ((int)program->groups[g].kind == kind)
                wrong += !verify_group_agrees(v, g, classes);
    }
    free(classes);
    return wrong == 0;
}
