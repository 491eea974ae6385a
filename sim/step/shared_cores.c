/* shared_cores.c - one step of ranks that share the CPU cores of a machine. */
#include "sim/step/shared_cores.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/units.h"
#include "sim/network/network_analytic.h"
#include "sim/step/rank_alone.h"
#include "sim/step/step_tables.h"

static const nanos NEVER = INT64_MAX;

/* Stage of the operation at the head of a stream. */
enum stage {
    STAGE_WAITS,   /* for what comes before it, or its partners */
    STAGE_WAKES,   /* until `awake` */
    STAGE_WORKS,   /* `left` to do */
    STAGE_FINISHED /* its part is done, perhaps not that of its partners */
};

struct head {
    uint32_t op; /* NO_OP: the stream is at its end */
    enum stage stage;
    nanos start, awake;
    double left; /* nanoseconds on a core */
};

struct queue {
    struct head heads[N_STREAMS];
    nanos *start, *end; /* [n_ops]; end NEVER: has not ended */
};

struct sharing {
    const struct program *program;
    struct step_tables tables;
    struct queue *queues;          /* [n_ranks] */
    const struct core_span *cores; /* [n_ranks] */
    int n_cores;
    int *busy;   /* [n_cores] operations under way on the span of cores that begins here */
    nanos now;   /* everything that ends until then has ended */
    nanos *work; /* [n_ops of the program] the part of its duration that needs a core */
};

static const struct step_script *script_of(const struct sharing *s, int rank)
{
    return &s->tables.scripts[s->program->ranks[rank].script];
}

static const struct step_op *op_of(const struct sharing *s, int rank, uint32_t i)
{
    return &script_of(s, rank)->ops[i];
}

/* --- what can begin */

/* Whether the head of a stream waits for nothing of its own rank any more. */
static bool is_ready(const struct sharing *s, int rank, int stream)
{
    const struct queue *q = &s->queues[rank];
    const struct head *head = &q->heads[stream];
    if (head->op == NO_OP || head->stage != STAGE_WAITS)
        return false;
    const struct step_op *op = op_of(s, rank, head->op);
    for (int d = 0; d < OP_DEPS && op->deps[d] != NO_OP; d++)
        if (q->end[op->deps[d]] == NEVER)
            return false;
    return true;
}

static const struct rank_group *group_of(const struct sharing *s, int rank, const struct step_op *op)
{
    return &s->program->groups[s->program->ranks[rank].groups[op->role]];
}

/* The head that is the same collective on another member; NULL: its stream has not come to it. */
static struct head *partner(const struct sharing *s, int member, const struct step_op *op)
{
    uint32_t same = script_of(s, member)->collectives[op->role][op->ordinal];
    struct head *head = &s->queues[member].heads[op_of(s, member, same)->stream];
    return head->op == same ? head : NULL;
}

/* Whether all members of a collective are as far as `stage` and, in STAGE_WAITS, ready. */
static bool all_members(const struct sharing *s, int rank, const struct step_op *op, enum stage stage)
{
    const struct rank_group *group = group_of(s, rank, op);
    for (int i = 0; i < group->n_members; i++) {
        int member = s->program->members[group->first_member + i];
        const struct head *head = partner(s, member, op);
        if (!head || head->stage != stage)
            return false;
        if (stage == STAGE_WAITS && !is_ready(s, member, op_of(s, member, head->op)->stream))
            return false;
    }
    return true;
}

/* The send that a receive gets. */
static uint32_t sent_by(const struct sharing *s, int rank, uint32_t receive, const struct queue **sender)
{
    const struct neighbourhood *near = &s->tables.neighbourhoods[s->tables.rank_neighbourhood[rank]];
    *sender = &s->queues[s->program->ranks[rank].peers[op_of(s, rank, receive)->role]];
    return near->match[receive];
}

static bool is_under_way(const struct sharing *s, int rank, uint32_t receive)
{
    const struct queue *sender;
    uint32_t send = sent_by(s, rank, receive, &sender);
    return sender->start[send] != NEVER;
}

/* Exchanges wake threads before they move bytes. */
static void begin(struct sharing *s, struct queue *q, struct head *head, const struct step_op *op)
{
    nanos work = s->work[op - s->tables.ops];
    *head = (struct head){
        .op = head->op, .stage = STAGE_WAKES, .start = s->now, .awake = s->now + op->duration - work, .left = (double)work};
    q->start[head->op] = s->now;
}

static void begin_collective(struct sharing *s, int rank, const struct step_op *op)
{
    const struct rank_group *group = group_of(s, rank, op);
    for (int i = 0; i < group->n_members; i++) {
        int member = s->program->members[group->first_member + i];
        struct head *head = partner(s, member, op);
        begin(s, &s->queues[member], head, op_of(s, member, head->op));
    }
}

/* --- what has ended */

static void finish(struct sharing *s, int rank, struct head *head)
{
    struct queue *q = &s->queues[rank];
    q->end[head->op] = s->now;
    *head = (struct head){.op = op_of(s, rank, head->op)->next};
}

static void finish_collective(struct sharing *s, int rank, const struct step_op *op)
{
    const struct rank_group *group = group_of(s, rank, op);
    for (int i = 0; i < group->n_members; i++) {
        int member = s->program->members[group->first_member + i];
        finish(s, member, partner(s, member, op));
    }
}

static bool has_arrived(const struct sharing *s, int rank, uint32_t receive)
{
    const struct queue *sender;
    uint32_t send = sent_by(s, rank, receive, &sender);
    return sender->end[send] != NEVER;
}

/* --- one instant */

/* Does what the head of a stream can do at this instant. False: nothing. */
static bool step_head(struct sharing *s, int rank, int stream)
{
    struct queue *q = &s->queues[rank];
    struct head *head = &q->heads[stream];
    if (head->op == NO_OP)
        return false;
    const struct step_op *op = op_of(s, rank, head->op);
    bool collective = op->kind == OP_COLLECTIVE;
    if (head->stage == STAGE_WAITS) {
        bool begins = is_ready(s, rank, stream) && (!collective || all_members(s, rank, op, STAGE_WAITS)) &&
                      (op->kind != OP_RECV || is_under_way(s, rank, head->op));
        if (begins && collective)
            begin_collective(s, rank, op);
        else if (begins)
            begin(s, q, head, op);
        return begins;
    }
    if (head->stage == STAGE_WAKES && head->awake <= s->now) {
        head->stage = STAGE_WORKS;
        return true;
    }
    if (head->stage == STAGE_WORKS && head->left < 0.5) {
        head->stage = STAGE_FINISHED;
        return true;
    }
    bool ends = head->stage == STAGE_FINISHED && (!collective || all_members(s, rank, op, STAGE_FINISHED)) &&
                (op->kind != OP_RECV || has_arrived(s, rank, head->op));
    if (ends && collective)
        finish_collective(s, rank, op);
    else if (ends)
        finish(s, rank, head);
    return ends;
}

static void settle(struct sharing *s)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int r = 0; r < s->program->n_ranks; r++)
            for (int k = 0; k < N_STREAMS; k++)
                while (step_head(s, r, k))
                    changed = true;
    }
}

/* --- from one instant to the next */

/* The share of full speed that an operation on the cores of a rank has. */
static double speed(const struct sharing *s, int rank)
{
    const struct core_span *span = &s->cores[rank];
    int busy = s->busy[span->first];
    return busy > span->n ? (double)span->n / busy : 1;
}

static void count_busy(struct sharing *s)
{
    for (int c = 0; c < s->n_cores; c++)
        s->busy[c] = 0;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (int k = 0; k < N_STREAMS; k++)
            s->busy[s->cores[r].first] += s->queues[r].heads[k].stage == STAGE_WORKS;
}

/* The next end of a waking, or of work at the speeds that now are; NEVER: there is none. */
static nanos next_instant(const struct sharing *s)
{
    nanos next = NEVER;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (int k = 0; k < N_STREAMS; k++) {
            const struct head *head = &s->queues[r].heads[k];
            nanos at = head->stage == STAGE_WAKES   ? head->awake
                       : head->stage == STAGE_WORKS ? s->now + (nanos)ceil(head->left / speed(s, r))
                                                    : NEVER;
            next = at < next ? at : next;
        }
    return next;
}

/* False when nothing is under way any more. */
static bool advance(struct sharing *s)
{
    settle(s);
    count_busy(s);
    nanos next = next_instant(s);
    if (next == NEVER)
        return false;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (int k = 0; k < N_STREAMS; k++) {
            struct head *head = &s->queues[r].heads[k];
            if (head->stage == STAGE_WORKS)
                head->left -= (double)(next - s->now) * speed(s, r);
        }
    s->now = next;
    return true;
}

/* --- all of it */

static void queues_open(struct sharing *s)
{
    s->queues = memory_new((size_t)s->program->n_ranks, sizeof *s->queues);
    s->busy = memory_new((size_t)s->n_cores, sizeof *s->busy);
    for (int r = 0; r < s->program->n_ranks; r++) {
        const struct step_script *script = script_of(s, r);
        struct queue *q = &s->queues[r];
        q->start = memory_new(script->n_ops, sizeof *q->start);
        q->end = memory_new(script->n_ops, sizeof *q->end);
        for (uint32_t i = 0; i < script->n_ops; i++)
            q->start[i] = q->end[i] = NEVER;
        for (int k = 0; k < N_STREAMS; k++)
            q->heads[k] = (struct head){.op = script->first[k]};
    }
}

static void queues_close(struct sharing *s)
{
    for (int r = 0; r < s->program->n_ranks; r++) {
        free(s->queues[r].start);
        free(s->queues[r].end);
    }
    free(s->queues);
    free(s->busy);
}

/* Spans, the part of them in which operations had a core, and the part in which they had none. */
static void record(const struct sharing *s, struct shared_cores_prediction *prediction, struct timeline *timeline)
{
    nanos last = 0;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (uint32_t i = 0; i < script_of(s, r)->n_ops; i++) {
            const struct queue *q = &s->queues[r];
            const struct step_op *op = op_of(s, r, i);
            double work = (double)s->work[op - s->tables.ops] * 1e-9, span = (double)(q->end[i] - q->start[i]) * 1e-9;
            struct core_waiting *waiting = &prediction->waiting;
            timeline_record(timeline, (struct span){.rank = r, .op = i, .start = q->start[i], .end = q->end[i]});
            prediction->work_s[op->class] += work;
            *(op->kind == OP_COMPUTE ? &waiting->computations : &waiting->exchanges) += span - work;
            last = nanos_later(last, q->end[i]);
        }
    timeline_close(timeline);
    prediction->step_s = (double)last * 1e-9;
}

static nanos without_interference(const struct step_costs *costs, const struct op *op)
{
    nanos all = 0;
    for (int c = 0; c < N_WORK_CLASSES; c++)
        all += costs->works[op->work].ns[c];
    return all;
}

/* A computation needs a core for all of its time, less what interferes it (step_costs.h) where it shares a core with exchanges:
 * these have that core themselves here for as long as they work. An exchange needs one for all but its waking; one that overlaps
 * a computation, for what it would take alone, which is less than the pair does. */
static void find_work_of(const struct program *program, const struct script *script, bool share, nanos waking,
                         struct step_costs *costs, nanos *work)
{
    for (uint32_t i = script->first_op; i < script->first_op + script->n_ops; i++) {
        const struct op *op = &program->ops[i];
        bool computes = op->kind == OP_COMPUTE;
        if (computes && work[i] >= 0)
            costs->ops[i] = work[i];
        else if (computes && share && op->work >= 0)
            costs->ops[i] = without_interference(costs, op);
        nanos most = computes ? costs->ops[i] : nanos_later(0, costs->ops[i] - waking);
        work[i] = work[i] < 0 || work[i] > most ? most : work[i];
    }
}

/* Some of the ranks with the same script may have one core more than the others. */
static void find_work(const struct sharing *s, nanos waking, struct step_costs *costs)
{
    const struct program *program = s->program;
    for (int32_t i = 0; i < program->n_scripts; i++) {
        bool share = false;
        for (int r = 0; r < program->n_ranks; r++)
            share |= program->ranks[r].script == i && s->cores[r].n < 2;
        find_work_of(program, &program->scripts[i], share, waking, costs, s->work);
    }
}

static int cores_used(const struct core_span *cores, int n_ranks)
{
    int most = 0;
    for (int r = 0; r < n_ranks; r++)
        most = cores[r].first + cores[r].n > most ? cores[r].first + cores[r].n : most;
    return most;
}

enum status shared_cores_predict(const struct program *program, const struct machine *machine, const struct core_span *cores,
                                 double waking_s, struct shared_cores_prediction *prediction, struct timeline *timeline,
                                 struct diags *diags)
{
    struct network network = network_analytic(machine);
    struct step_costs costs;
    struct sharing s = {.program = program,
                        .cores = cores,
                        .n_cores = cores_used(cores, program->n_ranks),
                        .work = memory_new(program->n_ops, sizeof *s.work)};
    *prediction = (struct shared_cores_prediction){0};
    step_costs_create(program, machine, &network, &costs);
    overlapped_pair_times(program, machine, waking_s, s.work);
    find_work(&s, nanos_from_seconds(waking_s), &costs);
    enum status status = step_tables_create(program, costs.ops, &s.tables, diags);
    if (status == STATUS_OK) {
        queues_open(&s);
        while (advance(&s))
            ;
        record(&s, prediction, timeline);
        queues_close(&s);
        step_tables_free(&s.tables);
    }
    step_costs_free(&costs);
    free(s.work);
    return status;
}
