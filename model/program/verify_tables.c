/* verify_tables.c - indices are in range, dependencies point backwards, groups and ranks name one another. */
#include <inttypes.h>
#include <math.h>

#include "model/program/verify.h"

static bool verify_op_fields(struct verifier *v, int32_t s, uint32_t i, const struct op *op)
{
    const struct program *program = v->program;
    const char *wrong = NULL;
    if (op->kind >= N_OP_KINDS)
        wrong = "kind";
    else if (op->stream >= N_STREAMS)
        wrong = "stream";
    else if (op->pass > N_PASSES)
        wrong = "pass";
    else if (op->class >= N_WORK_CLASSES)
        wrong = "class";
    else if (op->work < -1 || op->work >= program->works.n_items)
        wrong = "work";
    else if ((op->kind == OP_SEND || op->kind == OP_RECV) && op->role >= N_PEERS)
        wrong = "peer";
    else if (op->kind == OP_COLLECTIVE && (op->role >= N_GROUP_KINDS || op->collective >= N_COLLECTIVES))
        wrong = "collective or group";
    else if ((op->stream == STREAM_DOWN || op->stream == STREAM_UP) && op->role >= N_COPIED)
        wrong = "thing copied";
    else if (!isfinite(op->bytes) || op->bytes < 0)
        wrong = "number of bytes";
    if (wrong)
        VERIFY_ERROR(v, "program: script %" PRId32 ", op %" PRIu32 ": the %s is out of range", s, i, wrong);
    return !wrong;
}

static bool verify_op_deps(struct verifier *v, int32_t s, uint32_t i, const struct op *op)
{
    for (int d = 0; d < OP_DEPS; d++) {
        if (op->deps[d] == NO_OP || op->deps[d] < i)
            continue;
        VERIFY_ERROR(v, "program: script %" PRId32 ", op %" PRIu32 ": waits for op %" PRIu32 ", which does not come before it", s,
                     i, op->deps[d]);
        return false;
    }
    return true;
}

static bool verify_scripts(struct verifier *v)
{
    const struct program *program = v->program;
    int wrong = 0;
    for (int32_t s = 0; s < program->n_scripts; s++) {
        const struct script *script = &program->scripts[s];
        if (script->first_op > program->n_ops || script->n_ops > program->n_ops - script->first_op) {
            VERIFY_ERROR(v, "program: script %" PRId32 " lies outside the operations", s);
            return false;
        }
        for (uint32_t i = 0; i < script->n_ops && wrong < REPORTS_MAX; i++) {
            const struct op *op = &program->ops[script->first_op + i];
            wrong += !verify_op_fields(v, s, i, op) || !verify_op_deps(v, s, i, op);
        }
    }
    return wrong == 0;
}

static bool verify_rank_indices(struct verifier *v, int32_t r)
{
    const struct program_rank *rank = &v->program->ranks[r];
    if (rank->script < 0 || rank->script >= v->program->n_scripts) {
        VERIFY_ERROR(v, "program: rank %" PRId32 ": there is no script %" PRId32, r, rank->script);
        return false;
    }
    for (int p = 0; p < N_PEERS; p++) {
        if (rank->peers[p] < -1 || rank->peers[p] >= v->program->n_ranks) {
            VERIFY_ERROR(v, "program: rank %" PRId32 ": its peer %" PRId32 " is out of range", r, rank->peers[p]);
            return false;
        }
    }
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        int32_t group = rank->groups[kind];
        if (group < -1 || group >= v->program->n_groups || (group >= 0 && (int)v->program->groups[group].kind != kind)) {
            VERIFY_ERROR(v, "program: rank %" PRId32 ": group %" PRId32 " is not one of kind %s", r, group,
                         group_kind_name((enum group_kind)kind));
            return false;
        }
    }
    return true;
}

static bool verify_ranks(struct verifier *v)
{
    int wrong = 0;
    for (int32_t r = 0; r < v->program->n_ranks && wrong < REPORTS_MAX; r++)
        wrong += !verify_rank_indices(v, r);
    return wrong == 0;
}

/* Every member names the group, members ascend (so none is there twice), and nobody else names it. */
static bool verify_group(struct verifier *v, int32_t g, int64_t *n_named)
{
    const struct program *program = v->program;
    const struct rank_group *group = &program->groups[g];
    if (group->kind >= N_GROUP_KINDS || group->first_member < 0 || group->n_members < 1 ||
        group->n_members > program->n_members - group->first_member) {
        VERIFY_ERROR(v, "program: group %" PRId32 " has no valid kind or list of members", g);
        return false;
    }
    const int32_t *members = &program->members[group->first_member];
    for (int32_t m = 0; m < group->n_members; m++) {
        bool ascends = members[m] >= 0 && members[m] < program->n_ranks && (m == 0 || members[m] > members[m - 1]);
        if (!ascends || program->ranks[members[m]].groups[group->kind] != g) {
            VERIFY_ERROR(v, "program: group %" PRId32 " (%s) lists rank %" PRId32 ", which is out of order or does not name it",
                         g, group_kind_name(group->kind), members[m]);
            return false;
        }
    }
    *n_named += group->n_members;
    return true;
}

static bool verify_groups(struct verifier *v)
{
    int wrong = 0;
    int64_t listed = 0, named = 0;
    for (int32_t g = 0; g < v->program->n_groups && wrong < REPORTS_MAX; g++)
        wrong += !verify_group(v, g, &listed);
    if (wrong)
        return false;
    for (int32_t r = 0; r < v->program->n_ranks; r++)
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            named += v->program->ranks[r].groups[kind] >= 0;
    if (named != listed)
        VERIFY_ERROR(v, "program: %" PRId64 " ranks name a group that does not list them", named - listed);
    return named == listed;
}

bool verify_tables(struct verifier *v)
{
    bool scripts = verify_scripts(v); /* report both before giving up */
    return verify_ranks(v) && scripts && verify_groups(v);
}
