#include "sim/step/step_tables.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/network/lockstep.h"

/* A program has no file to point at. */

/* Waiting for ranks of another stage is the pipeline's bubble; ranks of the same stage are late by their own jitter, which
 * belongs to the exchange. */
static uint8_t op_wait_class(const struct op *op)
{
    if (op->kind == OP_RECV)
        return CLASS_BUBBLE;
    if (op->kind == OP_COLLECTIVE && (op->role == GROUP_PP || op->role == GROUP_EMBEDDING || op->role == GROUP_MODEL))
        return CLASS_BUBBLE;
    return op->class;
}

static bool op_in_range(const struct program *program, const struct op *op, uint32_t index)
{
    if (op->kind >= N_OP_KINDS || op->stream >= N_STREAMS || op->class >= N_WORK_CLASSES || op->work >= program->works.n_items)
        return false;
    if ((op->kind == OP_SEND || op->kind == OP_RECV) && op->role >= N_PEERS)
        return false;
    if (op->kind == OP_COLLECTIVE && op->role >= N_GROUP_KINDS)
        return false;
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] != NO_OP && op->deps[d] >= index)
            return false;
    return true;
}

/* Dependencies on the own stream are redundant: its order implies them. */
static void step_op_depend(struct step_op *ops, uint32_t index, const uint32_t *deps)
{
    int n = 0;

    for (int d = 0; d < OP_DEPS; d++)
        ops[index].deps[d] = NO_OP;
    for (int d = 0; d < OP_DEPS; d++) {
        if (deps[d] == NO_OP || ops[deps[d]].stream == ops[index].stream)
            continue;
        ops[index].deps[n++] = deps[d];
        ops[deps[d]].dependents |= (uint8_t)(1u << ops[index].stream);
    }
}

static enum message_side side_of(uint8_t kind)
{
    return kind == OP_SEND ? SIDE_SEND : SIDE_RECEIVE;
}

static bool script_prepare(const struct program *program, const nanos *op_nanos, struct step_tables *tables, int32_t s,
                           struct diags *diags)
{
    const struct script *script = &program->scripts[s];
    struct step_script *out = &tables->scripts[s];
    struct step_op *ops = &tables->ops[script->first_op];

    *out = (struct step_script){.ops = ops, .source = &program->ops[script->first_op], .n_ops = script->n_ops};
    for (int stream = 0; stream < N_STREAMS; stream++)
        out->first[stream] = out->last[stream] = NO_OP;
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &out->source[i];
        if (!op_in_range(program, op, i)) {
            diag_error(diags, PLACE_NONE, "program: operation %u of script %d has an index out of range", i, s);
            return false;
        }
        ops[i] = (struct step_op){.duration = op_nanos != NULL ? op_nanos[script->first_op + i] : 0,
                                  .previous = out->last[op->stream],
                                  .next = NO_OP,
                                  .ordinal = op->kind == OP_COLLECTIVE ? out->n_collectives[op->role]++ : 0,
                                  .kind = op->kind,
                                  .stream = op->stream,
                                  .role = op->role,
                                  .class = op->class,
                                  .wait_class = op_wait_class(op),
                                  .together = lockstep_op(op)};
        if (op->kind == OP_SEND || op->kind == OP_RECV)
            out->n_messages[side_of(op->kind)]++;
        step_op_depend(ops, i, op->deps);
        if (out->last[op->stream] == NO_OP)
            out->first[op->stream] = i;
        else
            ops[out->last[op->stream]].next = i;
        out->last[op->stream] = i;
    }
    return true;
}

/* Of each kind all collectives are on one stream, so a group has no more than one that its members have not ended. */
static bool streams_check(const struct step_script *script, int32_t s, struct diags *diags)
{
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        for (uint32_t k = 1; k < script->n_collectives[kind]; k++)
            if (script->ops[script->collectives[kind][k]].stream != script->ops[script->collectives[kind][0]].stream) {
                diag_error(diags, PLACE_NONE, "program: script %d has collectives of %s groups on two streams", s,
                           group_kind_name((enum group_kind)kind));
                return false;
            }
    return true;
}

static size_t listed_operations(const struct step_script *script)
{
    size_t n = 0;

    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        n += script->n_collectives[kind];
    for (int side = 0; side < N_MESSAGE_SIDES; side++)
        n += script->n_messages[side];
    return n;
}

/* The operation of each collective, by group kind and ordinal, and of each message; storage is carved from one array. */
static void scripts_list(const struct program *program, struct step_tables *tables)
{
    uint32_t *free_slot = tables->lists;

    for (int32_t s = 0; s < program->n_scripts; s++) {
        struct step_script *script = &tables->scripts[s];
        uint32_t *collectives[N_GROUP_KINDS], *messages[N_MESSAGE_SIDES];
        for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
            script->collectives[kind] = collectives[kind] = free_slot;
            free_slot += script->n_collectives[kind];
        }
        for (int side = 0; side < N_MESSAGE_SIDES; side++) {
            script->messages[side] = messages[side] = free_slot;
            free_slot += script->n_messages[side];
        }
        for (uint32_t i = 0; i < script->n_ops; i++) {
            const struct step_op *op = &script->ops[i];
            if (op->kind == OP_COLLECTIVE)
                collectives[op->role][op->ordinal] = i;
            else if (op->kind == OP_SEND || op->kind == OP_RECV)
                *messages[side_of(op->kind)]++ = i;
        }
    }
}

static bool scripts_prepare(const struct program *program, const nanos *op_nanos, struct step_tables *tables, struct diags *diags)
{
    size_t n_listed = 0;

    tables->ops = memory_new(program->n_ops, sizeof *tables->ops);
    tables->scripts = memory_new((size_t)program->n_scripts, sizeof *tables->scripts);
    for (int32_t s = 0; s < program->n_scripts; s++) {
        const struct script *script = &program->scripts[s];
        if (script->first_op > program->n_ops || script->n_ops > program->n_ops - script->first_op) {
            diag_error(diags, PLACE_NONE, "program: script %d lies outside the operations", s);
            return false;
        }
        if (!script_prepare(program, op_nanos, tables, s, diags))
            return false;
        n_listed += listed_operations(&tables->scripts[s]);
    }
    tables->lists = memory_new(n_listed, sizeof *tables->lists);
    scripts_list(program, tables);
    for (int32_t s = 0; s < program->n_scripts; s++)
        if (!streams_check(&tables->scripts[s], s, diags))
            return false;
    return true;
}

static bool rank_in_range(const struct program *program, const struct program_rank *rank)
{
    if (rank->script < 0 || rank->script >= program->n_scripts)
        return false;
    for (int p = 0; p < N_PEERS; p++)
        if (rank->peers[p] < -1 || rank->peers[p] >= program->n_ranks)
            return false;
    for (int kind = 0; kind < N_GROUP_KINDS; kind++)
        if (rank->groups[kind] < -1 || rank->groups[kind] >= program->n_groups)
            return false;
    return true;
}

/* Checks that all members of a group enter the same number of collectives. */
static bool groups_check(const struct program *program, const struct step_tables *tables, struct diags *diags)
{
    for (int32_t g = 0; g < program->n_groups; g++) {
        const struct rank_group *group = &program->groups[g];
        uint32_t n = 0;
        if (group->kind >= N_GROUP_KINDS || group->first_member < 0 || group->n_members < 0 ||
            group->n_members > program->n_members - group->first_member) {
            diag_error(diags, PLACE_NONE, "program: group %d lies outside the list of members", g);
            return false;
        }
        for (int32_t m = 0; m < group->n_members; m++) {
            int32_t rank = program->members[group->first_member + m];
            if (rank < 0 || rank >= program->n_ranks || program->ranks[rank].groups[group->kind] != g) {
                diag_error(diags, PLACE_NONE, "program: rank %d is listed in group %d but does not name it", rank, g);
                return false;
            }
            uint32_t entered = tables->scripts[program->ranks[rank].script].n_collectives[group->kind];
            if (m > 0 && entered != n) {
                diag_error(diags, PLACE_NONE, "program: members of %s group %d enter %u and %u collectives",
                           group_kind_name(group->kind), g, n, entered);
                return false;
            }
            n = entered;
        }
    }
    return true;
}

static bool ranks_check(const struct program *program, const struct step_tables *tables, struct diags *diags)
{
    for (int32_t r = 0; r < program->n_ranks; r++) {
        const struct program_rank *rank = &program->ranks[r];
        if (!rank_in_range(program, rank)) {
            diag_error(diags, PLACE_NONE, "program: rank %d has an index out of range", r);
            return false;
        }
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            if (rank->groups[kind] < 0 && tables->scripts[rank->script].n_collectives[kind] > 0) {
                diag_error(diags, PLACE_NONE, "program: rank %d enters a collective of a %s group but is in none", r,
                           group_kind_name(kind));
                return false;
            }
    }
    return true;
}

/* ---- messages */

/* An operation of a message. */
struct message_end {
    uint32_t tag, op;
};

/* Room for the messages of two scripts, and to sort them. */
struct message_room {
    struct message_end *here, *there, *spare;
};

static struct message_room message_room_of(const struct program *program, const struct step_tables *tables)
{
    size_t most = 0;

    for (int32_t s = 0; s < program->n_scripts; s++)
        most = tables->scripts[s].n_ops > most ? tables->scripts[s].n_ops : most;
    return (struct message_room){memory_new(most, sizeof(struct message_end)), memory_new(most, sizeof(struct message_end)),
                                 memory_new(most, sizeof(struct message_end))};
}

static void message_room_free(struct message_room *room)
{
    free(room->here);
    free(room->there);
    free(room->spare);
}

/* By tag, those of one tag as they stand: by the tags' bytes, the lowest first. Tags count boundaries of stages, so that is
 * mostly one pass. `ends` and `spare` change places as often as there are bytes. */
static void message_ends_sort(struct message_end **ends, struct message_end **spare, size_t n, uint32_t largest_tag)
{
    for (int shift = 0; shift < 32 && largest_tag >> shift > 0; shift += 8) {
        size_t starts[257] = {0};
        for (size_t i = 0; i < n; i++)
            starts[((*ends)[i].tag >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++)
            starts[byte + 1] += starts[byte];
        for (size_t i = 0; i < n; i++)
            (*spare)[starts[(*ends)[i].tag >> shift & 255]++] = (*ends)[i];
        struct message_end *sorted = *spare;
        *spare = *ends;
        *ends = sorted;
    }
}

/* In matching order: by tag, then in the order of the script. */
static size_t message_ends(const struct step_script *script, enum message_side side, unsigned roles, struct message_end **ends,
                           struct message_end **spare)
{
    size_t n = 0;
    uint32_t largest_tag = 0;

    for (uint32_t k = 0; k < script->n_messages[side]; k++) {
        uint32_t i = script->messages[side][k], tag = script->source[i].tag;
        if (!(roles >> script->source[i].role & 1u))
            continue;
        (*ends)[n++] = (struct message_end){tag, i};
        largest_tag = tag > largest_tag ? tag : largest_tag;
    }
    message_ends_sort(ends, spare, n, largest_tag);
    return n;
}

/* The k-th send with a tag completes the k-th receive with that tag: those of one side here, their partners there. False: they
 * do not pair up. */
static bool peer_match(const struct step_tables *tables, const struct neighbourhood *at, const struct neighbour *peer,
                       enum message_side side, struct message_room *room)
{
    const struct step_script *own = &tables->scripts[at->script], *its = &tables->scripts[peer->script];
    enum message_side other = side == SIDE_SEND ? SIDE_RECEIVE : SIDE_SEND;
    size_t n = message_ends(own, side, peer->my_roles, &room->here, &room->spare);
    bool paired = n == message_ends(its, other, peer->its_roles, &room->there, &room->spare);

    for (size_t k = 0; paired && k < n; k++) {
        struct message_end here = room->here[k], there = room->there[k];
        paired = here.tag == there.tag && own->source[here.op].bytes == its->source[there.op].bytes;
        at->match[here.op] = there.op;
    }
    return paired;
}

static bool neighbourhood_match(const struct step_tables *tables, struct neighbourhood *at, int32_t rank,
                                struct message_room *room, struct diags *diags)
{
    const struct step_script *script = &tables->scripts[at->script];

    at->match = memory_new(script->n_ops, sizeof *at->match);
    for (uint32_t i = 0; i < script->n_ops; i++)
        at->match[i] = NO_OP;
    for (int p = 0; p < N_PEERS; p++) {
        /* Two roles may name one rank; its messages are then matched together, once. */
        if (at->peers[p].script >= 0 && __builtin_ctz(at->peers[p].my_roles) == p &&
            (!peer_match(tables, at, &at->peers[p], SIDE_SEND, room) ||
             !peer_match(tables, at, &at->peers[p], SIDE_RECEIVE, room))) {
            diag_error(diags, PLACE_NONE, "program: sends of rank %d and receives of its peer do not match", rank);
            return false;
        }
    }
    for (uint32_t i = 0; i < script->n_ops; i++)
        if (script->ops[i].kind == OP_SEND && at->match[i] == NO_OP) {
            diag_error(diags, PLACE_NONE, "program: operation %u of rank %d sends to nobody", i, rank);
            return false;
        }
    return true;
}

static struct neighbourhood neighbourhood_of(const struct program *program, int32_t rank)
{
    const struct program_rank *me = &program->ranks[rank];
    struct neighbourhood at = {.script = me->script};

    for (int p = 0; p < N_PEERS; p++) {
        struct neighbour *peer = &at.peers[p];
        int32_t other = me->peers[p];
        *peer = (struct neighbour){.script = other < 0 ? -1 : program->ranks[other].script};
        for (int q = 0; other >= 0 && q < N_PEERS; q++) {
            peer->my_roles |= (uint8_t)((me->peers[q] == other) << q);
            peer->its_roles |= (uint8_t)((program->ranks[other].peers[q] == rank) << q);
        }
    }
    return at;
}

static bool neighbourhood_same(const struct neighbourhood *a, const struct neighbourhood *b)
{
    if (a->script != b->script)
        return false;
    for (int p = 0; p < N_PEERS; p++)
        if (a->peers[p].script != b->peers[p].script || a->peers[p].my_roles != b->peers[p].my_roles ||
            a->peers[p].its_roles != b->peers[p].its_roles)
            return false;
    return true;
}

/* The neighbourhood of this kind, its messages matched if it is the first one; -1: they do not match. `like`: one that is
 * probably it, as neighbouring ranks are mostly alike. */
static int32_t neighbourhood_find(const struct program *program, struct step_tables *tables, int32_t rank, int32_t like,
                                  struct message_room *room, struct diags *diags)
{
    struct neighbourhood at = neighbourhood_of(program, rank);
    size_t known = (size_t)like;

    if (known < tables->n_neighbourhoods && neighbourhood_same(&tables->neighbourhoods[known], &at))
        return like;
    for (known = 0; known < tables->n_neighbourhoods; known++)
        if (neighbourhood_same(&tables->neighbourhoods[known], &at))
            return (int32_t)known;
    tables->neighbourhoods = memory_grow(tables->neighbourhoods, &tables->neighbourhood_capacity, tables->n_neighbourhoods + 1,
                                         sizeof *tables->neighbourhoods);
    tables->neighbourhoods[tables->n_neighbourhoods++] = at;
    return neighbourhood_match(tables, &tables->neighbourhoods[known], rank, room, diags) ? (int32_t)known : -1;
}

static bool neighbourhoods_prepare(const struct program *program, struct step_tables *tables, struct diags *diags)
{
    struct message_room room = message_room_of(program, tables);
    int32_t found = 0;

    tables->rank_neighbourhood = memory_new((size_t)program->n_ranks, sizeof *tables->rank_neighbourhood);
    for (int32_t r = 0; found >= 0 && r < program->n_ranks; r++) {
        found = neighbourhood_find(program, tables, r, found, &room, diags);
        tables->rank_neighbourhood[r] = found;
    }
    message_room_free(&room);
    return found >= 0;
}

/* Whether no time of a step can pass what its type holds: all durations, one after the other, stay below 2^62 ns. */
static bool durations_fit(const struct step_tables *tables, const struct program *program, struct diags *diags)
{
    double *scripts = memory_new((size_t)program->n_scripts, sizeof *scripts), total = 0;
    for (int32_t s = 0; s < program->n_scripts; s++)
        for (uint32_t i = 0; i < tables->scripts[s].n_ops; i++)
            scripts[s] += (double)tables->scripts[s].ops[i].duration;
    for (int32_t r = 0; r < program->n_ranks; r++)
        total += scripts[program->ranks[r].script];
    free(scripts);
    if (total < 0x1p62)
        return true;
    diag_error(
        diags, PLACE_NONE,
        "the operations of all ranks take %.3g years one after the other, of which 146 can be timed: take a smaller batch or "
        "shorter sequences, or correct a rate of the GPU or of a link that is far too low",
        total * 1e-9 / (365.25 * 86400));
    return false;
}

enum status step_tables_create(const struct program *program, const nanos *op_nanos, struct step_tables *tables,
                               struct diags *diags)
{
    *tables = (struct step_tables){0};
    if (scripts_prepare(program, op_nanos, tables, diags) && ranks_check(program, tables, diags) &&
        groups_check(program, tables, diags) && neighbourhoods_prepare(program, tables, diags) &&
        (op_nanos == NULL || durations_fit(tables, program, diags)))
        return STATUS_OK;
    step_tables_free(tables);
    return STATUS_BAD_INPUT;
}

enum status step_tables_time(struct step_tables *tables, const struct program *program, const nanos *op_nanos,
                             const uint32_t *like, struct diags *diags)
{
    for (uint32_t i = 0; i < program->n_ops; i++)
        tables->ops[i].duration = op_nanos[like != NULL ? like[i] : i];
    return durations_fit(tables, program, diags) ? STATUS_OK : STATUS_BAD_INPUT;
}

static bool end_is_read(const struct step_op *op)
{
    return op->stream != STREAM_COMPUTE || (op->kind != OP_COMPUTE && op->kind != OP_JOIN) || op->dependents != 0;
}

void step_tables_slots(struct step_tables *tables, const struct program *program)
{
    for (int32_t s = 0; s < program->n_scripts; s++) {
        struct step_script *script = &tables->scripts[s];
        struct step_op *ops = &tables->ops[program->scripts[s].first_op];
        script->n_slots = 0;
        for (uint32_t i = 0; i < script->n_ops; i++)
            ops[i].slot = end_is_read(&ops[i]) ? script->n_slots++ : NO_OP;
    }
}

static bool scripts_agree(const struct step_script *a, const struct step_script *b, enum group_kind kind)
{
    for (uint32_t k = 0; k < a->n_collectives[kind]; k++)
        if (a->ops[a->collectives[kind][k]].duration != b->ops[b->collectives[kind][k]].duration)
            return false;
    return true;
}

bool step_tables_agree(const struct step_tables *tables, const struct program *program)
{
    for (int32_t g = 0; g < program->n_groups; g++) {
        const struct rank_group *group = &program->groups[g];
        for (int32_t m = 1; m < group->n_members; m++) {
            const int32_t *members = &program->members[group->first_member];
            int32_t one = program->ranks[members[m - 1]].script, other = program->ranks[members[m]].script;
            if (one != other && !scripts_agree(&tables->scripts[one], &tables->scripts[other], group->kind))
                return false;
        }
    }
    return true;
}

void step_tables_free(struct step_tables *tables)
{
    for (size_t i = 0; i < tables->n_neighbourhoods; i++)
        free(tables->neighbourhoods[i].match);
    free(tables->neighbourhoods);
    free(tables->ops);
    free(tables->scripts);
    free(tables->lists);
    free(tables->rank_neighbourhood);
    *tables = (struct step_tables){0};
}
