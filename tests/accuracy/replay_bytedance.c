/*
 * replay_bytedance.c - real 1F1B jobs replayed with their own compute times.
 *
 * Our 1F1B program for the job's dp, pp and micro-batches, every rank; every pass and optimizer step takes what it was measured
 * to take in that step on that rank; a message takes the median transfer time of its kind and stage over the trace, a collective
 * the median over the steps of the shortest time that a member of its group was in it (the last to enter waits for nobody). What
 * the executor then adds is waiting, and its step must be the measured one:
 *
 *   bare     without more. The authors' own simulation (sim_no_launch_delay_s) leaves out the same.
 *   delays   every operation also begins as late after its rank (a message: after both its ranks) was free as it did in the
 * trace: what the host was late.
 *
 * Waits: the time before a pass in which its rank computes nothing. Printed are how many of the measured waits above 1 % of the
 * step the bare replay has (at least half as long, before the same pass of the same rank), how many of its own such waits were
 * real, and in how many rank-steps the longest wait stands before the same pass.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "operation_trace.h"
#include "sim/step/step_executor.h"
#include "tests/program/fixtures.h"
#include "tests/suite.h"

enum { N_MESSAGE_KINDS = TRACED_BACKWARD_RECV - TRACED_FORWARD_SEND + 1, MAX_STAGES = 64, MAX_RANKS = 1024 };

struct replay {
    struct operation_trace trace;
    struct program program;                           /* one script per rank */
    int64_t message_us[N_MESSAGE_KINDS][MAX_STAGES];  /* medians, by stage */
    int64_t collective_us[N_TRACED_KINDS][MAX_RANKS]; /* of this step, by rank */
    int step;
    bool delays;
};

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void message_medians(struct replay *replay)
{
    const struct operation_trace *trace = &replay->trace;
    int64_t *all = memory_new((size_t)trace->n_steps * (size_t)trace->dp * (size_t)trace->micro_batches, sizeof *all);
    for (int kind = 0; kind < N_MESSAGE_KINDS; kind++)
        for (int pp = 0; pp < trace->pp; pp++) {
            size_t n = 0;
            for (int s = 0; s < trace->n_steps; s++)
                for (int dp = 0; dp < trace->dp; dp++) {
                    const struct traced_rank *rank = traced_rank_at(trace, s, dp, pp);
                    for (size_t i = 0; i < rank->n_ops; i++)
                        if (rank->ops[i].kind == (enum traced_kind)(TRACED_FORWARD_SEND + kind))
                            all[n++] = rank->ops[i].dur_us;
                }
            if (n)
                qsort(all, n, sizeof *all, compare_int64);
            replay->message_us[kind][pp] = n ? all[n / 2] : 0;
        }
    free(all);
}

/* Every rank its own copy of its script, so that durations can differ. */
static void own_scripts(struct program *program)
{
    uint32_t n = 0;
    for (int r = 0; r < program->n_ranks; r++)
        n += program->scripts[program->ranks[r].script].n_ops;
    struct op *ops = memory_new(n, sizeof *ops);
    struct script *scripts = memory_new((size_t)program->n_ranks, sizeof *scripts);
    n = 0;
    for (int r = 0; r < program->n_ranks; r++) {
        const struct script *script = &program->scripts[program->ranks[r].script];
        scripts[r] = (struct script){n, script->n_ops};
        memcpy(ops + n, program->ops + script->first_op, script->n_ops * sizeof *ops);
        n += script->n_ops;
        program->ranks[r].script = r;
    }
    free(program->ops);
    free(program->scripts);
    program->ops = ops;
    program->n_ops = n;
    program->scripts = scripts;
    program->n_scripts = program->n_ranks;
}

static void replay_build(struct replay *replay)
{
    const struct operation_trace *trace = &replay->trace;
    struct fixture f = fixture_pipeline(SCHEDULE_1F1B, trace->pp, 1, trace->micro_batches);
    f.layout.dp = trace->dp;
    f.layout.zero = 1;
    f.model.tied_embeddings = true;
    f.job.global_batch *= trace->dp;
    replay->program = fixture_build(&f, DETAIL_CHUNK, false);
    own_scripts(&replay->program);
}

/* --- durations */

static const struct traced_op *traced(const struct replay *replay, int dp, int pp, enum traced_kind kind, int32_t ordinal)
{
    const struct traced_op *op = traced_rank_find(traced_rank_at(&replay->trace, replay->step, dp, pp), kind, ordinal);
    ck_assert_msg(op != NULL, "step %lld, dp %d, pp %d has no operation %d of kind %d",
                  (long long)replay->trace.steps[replay->step], dp, pp, ordinal, kind);
    return op;
}

static int64_t busy_us(const struct replay *replay, const struct traced_op *op)
{
    return op->dur_us + (replay->delays ? op->idle_us : 0);
}

/* Both ranks of a message begin it together: the later of them decides how late. */
static int64_t message_us(const struct replay *replay, int dp, int pp, const struct op *op, int32_t ordinal)
{
    bool forward = op->pass == PASS_FORWARD, send = op->kind == OP_SEND;
    enum traced_kind kind =
        forward ? (send ? TRACED_FORWARD_SEND : TRACED_FORWARD_RECV) : (send ? TRACED_BACKWARD_SEND : TRACED_BACKWARD_RECV);
    enum traced_kind other =
        forward ? (send ? TRACED_FORWARD_RECV : TRACED_FORWARD_SEND) : (send ? TRACED_BACKWARD_RECV : TRACED_BACKWARD_SEND);
    int64_t us = replay->message_us[kind - TRACED_FORWARD_SEND][pp];
    if (!replay->delays)
        return us;
    int peer = pp + (op->role == PEER_NEXT ? 1 : -1);
    int64_t mine = traced(replay, dp, pp, kind, ordinal)->idle_us, its = traced(replay, dp, peer, other, ordinal)->idle_us;
    return us + (mine < its ? mine : its);
}

/* Of a collective in one step: what the member saw of it that waited least for the others, the last to enter. */
static int64_t shortest_us(const struct replay *replay, const struct rank_group *group, enum traced_kind kind, bool idle)
{
    int64_t shortest = INT64_MAX;
    for (int32_t m = 0; m < group->n_members; m++) {
        int rank = replay->program.members[group->first_member + m], dp = replay->trace.dp;
        const struct traced_op *op = traced(replay, rank % dp, rank / dp, kind, 0);
        int64_t us = idle ? op->idle_us : op->dur_us;
        shortest = us < shortest ? us : shortest;
    }
    return shortest;
}

static int64_t collective_kind_us(const struct replay *replay, int rank, enum group_kind role, enum traced_kind kind)
{
    const struct rank_group *group = &replay->program.groups[replay->program.ranks[rank].groups[role]];
    return replay->collective_us[kind][rank] + (replay->delays ? shortest_us(replay, group, kind, true) : 0);
}

static int64_t collective_us(const struct replay *replay, int rank, const struct op *op)
{
    switch (op->role) {
    case GROUP_EMBEDDING: return collective_kind_us(replay, rank, GROUP_EMBEDDING, TRACED_EMBEDDING_ALL_REDUCE);
    case GROUP_MODEL: return collective_kind_us(replay, rank, GROUP_MODEL, TRACED_CLIP);
    default: break;
    }
    if (op->class == CLASS_OPTIMIZER) /* the norm over replicas: part of the clipping */
        return 0;
    if (op->collective == COLLECTIVE_ALL_GATHER)
        return collective_kind_us(replay, rank, GROUP_DP, TRACED_PARAMS_ALL_GATHER);
    return collective_kind_us(replay, rank, GROUP_DP, TRACED_LAYERNORM_ALL_REDUCE) +
           collective_kind_us(replay, rank, GROUP_DP, TRACED_GRADS_REDUCE_SCATTER);
}

/* Over the groups of its kind in the same stages, which exchange as much. */
static void collective_medians(struct replay *replay, enum group_kind role, enum traced_kind kind)
{
    const struct program *program = &replay->program;
    int64_t *all = memory_new((size_t)program->n_groups, sizeof *all);
    for (int r = 0; r < program->n_ranks; r++) {
        int32_t mine = program->ranks[r].groups[role];
        size_t n = 0;
        for (int32_t g = 0; mine >= 0 && g < program->n_groups; g++) {
            int first = program->members[program->groups[g].first_member], dp = replay->trace.dp;
            if (program->groups[g].kind == role && first / dp == program->members[program->groups[mine].first_member] / dp)
                all[n++] = shortest_us(replay, &program->groups[g], kind, false);
        }
        if (n)
            qsort(all, n, sizeof *all, compare_int64);
        replay->collective_us[kind][r] = n ? all[(n - 1) / 2] : 0;
    }
    free(all);
}

static void step_medians(struct replay *replay)
{
    collective_medians(replay, GROUP_DP, TRACED_PARAMS_ALL_GATHER);
    collective_medians(replay, GROUP_DP, TRACED_LAYERNORM_ALL_REDUCE);
    collective_medians(replay, GROUP_DP, TRACED_GRADS_REDUCE_SCATTER);
    collective_medians(replay, GROUP_EMBEDDING, TRACED_EMBEDDING_ALL_REDUCE);
    collective_medians(replay, GROUP_MODEL, TRACED_CLIP);
}

static void rank_durations(const struct replay *replay, int rank, nanos *durations)
{
    const struct program *program = &replay->program;
    const struct script *script = &program->scripts[rank];
    int dp = rank % replay->trace.dp, pp = rank / replay->trace.dp;
    int32_t sent[2][2] = {{0}};
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &program->ops[script->first_op + i];
        int64_t us = 0;
        bool forward = op->pass == PASS_FORWARD;
        if (op->kind == OP_COMPUTE && op->pass < N_PASSES)
            us = busy_us(replay, traced(replay, dp, pp, forward ? TRACED_FORWARD : TRACED_BACKWARD, op->micro_batch));
        else if (op->kind == OP_COMPUTE)
            us = busy_us(replay, traced(replay, dp, pp, TRACED_OPTIMIZER, 0));
        else if (op->kind == OP_SEND || op->kind == OP_RECV)
            us = message_us(replay, dp, pp, op, sent[op->kind == OP_SEND][forward]++);
        else if (op->kind == OP_COLLECTIVE)
            us = collective_us(replay, rank, op);
        durations[script->first_op + i] = us * 1000;
    }
}

/* --- comparison */

struct score {
    int64_t measured_waits, found; /* above 1 % of the step; those the replay has */
    int64_t own_waits, real;       /* the replay's; those measured */
    int64_t ranks, same_longest, same_order;
};

struct pass_wait {
    double measured, predicted; /* seconds before the pass in which its rank computes nothing */
};

static const struct traced_op *next_pass(const struct traced_rank *rank, size_t *at)
{
    while (*at < rank->n_ops && rank->ops[*at].kind != TRACED_FORWARD && rank->ops[*at].kind != TRACED_BACKWARD)
        ++*at;
    return *at < rank->n_ops ? &rank->ops[(*at)++] : NULL;
}

static void score_rank(const struct replay *replay, const struct execution *execution, int rank, double step_s,
                       struct score *score)
{
    const struct script *script = &replay->program.scripts[rank];
    const struct traced_rank *real =
        traced_rank_at(&replay->trace, replay->step, rank % replay->trace.dp, rank / replay->trace.dp);
    double real_end = -1, end = -1;
    struct pass_wait longest = {0, 0};
    int longest_measured = -1, longest_predicted = -1, n = 0;
    bool ordered = true;
    size_t at = 0;
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &replay->program.ops[script->first_op + i];
        if (op->kind != OP_COMPUTE || op->pass >= N_PASSES)
            continue;
        const struct traced_op *pass = next_pass(real, &at);
        const struct op_time *time = execution_time(execution, rank, i);
        ck_assert_ptr_nonnull(pass);
        ordered = ordered && pass->micro_batch == op->micro_batch && (pass->kind == TRACED_FORWARD) == (op->pass == PASS_FORWARD);
        struct pass_wait wait = {end < 0 ? 0 : 1e-6 * (double)pass->start_us - real_end,
                                 end < 0 ? 0 : 1e-9 * (double)time->start - end};
        real_end = 1e-6 * (double)(pass->start_us + pass->dur_us);
        end = 1e-9 * (double)time->end;
        score->measured_waits += wait.measured > 0.01 * step_s;
        score->found += wait.measured > 0.01 * step_s && wait.predicted > 0.5 * wait.measured;
        score->own_waits += wait.predicted > 0.01 * step_s;
        score->real += wait.predicted > 0.01 * step_s && wait.measured > 0.5 * wait.predicted;
        longest_measured = wait.measured > longest.measured ? n : longest_measured;
        longest_predicted = wait.predicted > longest.predicted ? n : longest_predicted;
        longest.measured = fmax(longest.measured, wait.measured);
        longest.predicted = fmax(longest.predicted, wait.predicted);
        n++;
    }
    score->ranks++;
    score->same_order += ordered;
    score->same_longest += longest_measured == longest_predicted;
}

static double measured_step(const struct replay *replay)
{
    int64_t start = INT64_MAX, end = 0;
    for (int pp = 0; pp < replay->trace.pp; pp++)
        for (int dp = 0; dp < replay->trace.dp; dp++) {
            const struct traced_rank *rank = traced_rank_at(&replay->trace, replay->step, dp, pp);
            for (size_t i = 0; i < rank->n_ops; i++) {
                const struct traced_op *op = &rank->ops[i];
                start = op->start_us < start ? op->start_us : start;
                end = op->start_us + op->dur_us > end ? op->start_us + op->dur_us : end;
            }
        }
    return 1e-6 * (double)(end - start);
}

static double replay_step(struct replay *replay, bool delays, double step_s, struct score *score)
{
    const struct program *program = &replay->program;
    struct step_costs costs = {.ops = memory_new(program->n_ops, sizeof *costs.ops)};
    struct execution execution;
    struct diags diags = {0};
    replay->delays = delays;
    for (int r = 0; r < program->n_ranks; r++)
        rank_durations(replay, r, costs.ops);
    ck_assert_int_eq(program_execute(program, &costs, NULL, false, NULL, &execution, &diags), STATUS_OK);
    double seconds = 1e-9 * (double)execution.end;
    for (int r = 0; score != NULL && r < program->n_ranks; r++)
        score_rank(replay, &execution, r, step_s, score);
    execution_free(&execution);
    free(costs.ops);
    diags_free(&diags);
    return seconds;
}

static int compare_magnitude(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

static void print_errors(const char *what, const struct operation_trace *trace, double *errors)
{
    int n = trace->n_steps, worst = 0;
    double sum = 0, magnitude = 0;
    for (int i = 0; i < n; i++) {
        worst = fabs(errors[i]) > fabs(errors[worst]) ? i : worst;
        sum += errors[i];
        magnitude += fabs(errors[i]);
    }
    qsort(errors, (size_t)n, sizeof *errors, compare_magnitude);
    int within = 0;
    for (int i = 0; i < n; i++)
        within += fabs(errors[i]) <= 0.03;
    int64_t step = trace->steps[worst];
    printf(
        "  %-7s mean %+.2f %%; magnitude: mean %.2f %%, median %.2f %%, 90th percentile %.2f %%, largest %.2f %% (step %lld)\n",
        what, 100 * sum / n, 100 * magnitude / n, 100 * fabs(errors[n / 2]), 100 * fabs(errors[(n - 1) * 9 / 10]),
        100 * fabs(errors[n - 1]), (long long)step);
    printf("          %d of %d steps within 3 %%\n", within, n);
}

/* Returns false when there is no such trace. */
static bool replay_trace(const char *name)
{
    char path[1024];
    const char *shared = getenv("MSIM_SHARED");
    struct replay replay = {0};
    struct diags diags = {0};
    struct score score = {0};
    snprintf(path, sizeof path, "%s/traces/bytedance_ops_%s.csv.gz", shared ? shared : "", name);
    enum status status = operation_trace_read(path, &replay.trace, &diags);
    diags_free(&diags);
    if (status != STATUS_OK) {
        printf("skipped: no %s (MSIM_SHARED is '%s')\n", path, shared ? shared : "");
        return false;
    }
    ck_assert(replay.trace.pp <= MAX_STAGES && replay.trace.dp * replay.trace.pp <= MAX_RANKS);
    replay_build(&replay);
    message_medians(&replay);
    int n = replay.trace.n_steps;
    double *bare = memory_new((size_t)n, sizeof *bare), *delays = memory_new((size_t)n, sizeof *delays);
    for (int s = 0; s < n; s++) {
        replay.step = s;
        double measured = measured_step(&replay);
        step_medians(&replay);
        bare[s] = replay_step(&replay, false, measured, &score) / measured - 1;
        delays[s] = replay_step(&replay, true, measured, NULL) / measured - 1;
    }
    printf("%s: dp %d, pp %d, %d micro-batches, %d steps\n", name, replay.trace.dp, replay.trace.pp, replay.trace.micro_batches,
           n);
    print_errors("bare", &replay.trace, bare);
    print_errors("delays", &replay.trace, delays);
    printf("  waits: %lld of %lld measured ones found, %lld of %lld predicted ones real; longest before the same pass on %lld, "
           "passes "
           "in the same order on %lld of %lld rank-steps\n",
           (long long)score.found, (long long)score.measured_waits, (long long)score.real, (long long)score.own_waits,
           (long long)score.same_longest, (long long)score.same_order, (long long)score.ranks);
    ck_assert_double_le(fabs(bare[n - 1]), 0.03); /* the largest, sorted last */
    ck_assert_int_eq(score.same_order, score.ranks);
    ck_assert_int_ge(score.found, score.measured_waits * 99 / 100);
    ck_assert_int_ge(score.real, score.own_waits * 99 / 100);
    free(bare);
    free(delays);
    program_free(&replay.program);
    operation_trace_free(&replay.trace);
    return true;
}

START_TEST(traces)
{
    static const char *const names[] = {"AR", "SE", "ST"};
    replay_trace(names[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accuracy_replay");
    TCase *tcase = tcase_create("replay");
    tcase_add_loop_test(tcase, traces, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
