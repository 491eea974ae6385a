/* Every small program on the simulator and on the CPU: both execute all of its operations, and in both what happened respects
 * what the program asks for - streams in order, dependencies, messages, collectives. */
#include <check.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "sim/step/step.h"
#include "tests/runtime/equivalence.h"

/* --- what any execution has to satisfy */

struct execution_view {
    const char *by; /* "simulator", "CPU" */
    const struct program *program;
    const struct timeline *timeline;
    size_t *first; /* [n_ranks] span of a rank's first operation */
};

static const struct script *script_of(const struct execution_view *view, int rank)
{
    return &view->program->scripts[view->program->ranks[rank].script];
}

static const struct op *op_of(const struct execution_view *view, int rank, uint32_t i)
{
    return &view->program->ops[script_of(view, rank)->first_op + i];
}

static const struct span *span_of(const struct execution_view *view, int rank, uint32_t i)
{
    return &view->timeline->spans[view->first[rank] + i];
}

static void view_open(struct execution_view *view)
{
    int n = view->program->n_ranks;
    size_t at = 0;
    view->first = memory_new((size_t)n, sizeof *view->first);
    for (int r = 0; r < n; r++) {
        view->first[r] = at;
        at += script_of(view, r)->n_ops;
    }
    ck_assert_msg(view->timeline->n_spans == at, "%s: %zu of %zu operations", view->by, view->timeline->n_spans, at);
}

static void check_rank(const struct execution_view *view, int rank)
{
    const struct span *last[N_STREAMS] = {0};
    for (uint32_t i = 0; i < script_of(view, rank)->n_ops; i++) {
        const struct op *op = op_of(view, rank, i);
        const struct span *span = span_of(view, rank, i);
        ck_assert_msg(span->rank == rank && span->op == i && span->start <= span->end, "%s: rank %d operation %u", view->by, rank,
                      i);
        for (int d = 0; d < OP_DEPS; d++)
            if (op->deps[d] != NO_OP)
                ck_assert_msg(span->start >= span_of(view, rank, op->deps[d])->end,
                              "%s: rank %d operation %u begins before %u ends", view->by, rank, i, op->deps[d]);
        ck_assert_msg(!last[op->stream] || span->start >= last[op->stream]->end,
                      "%s: rank %d operation %u overtakes on its stream", view->by, rank, i);
        last[op->stream] = span;
    }
}

/* The k-th operation of a kind with a tag or over a group; NO_OP: there are fewer. */
static uint32_t nth(const struct execution_view *view, int rank, enum op_kind kind, uint32_t key, uint32_t k)
{
    for (uint32_t i = 0; i < script_of(view, rank)->n_ops; i++) {
        const struct op *op = op_of(view, rank, i);
        if (op->kind == kind && (kind == OP_COLLECTIVE ? op->role : op->tag) == key && k-- == 0)
            return i;
    }
    return NO_OP;
}

/* Nothing is received before it is sent. */
static void check_messages(const struct execution_view *view, int rank)
{
    for (uint32_t i = 0; i < script_of(view, rank)->n_ops; i++) {
        const struct op *op = op_of(view, rank, i);
        if (op->kind != OP_RECV)
            continue;
        uint32_t before = 0;
        for (uint32_t j = 0; j < i; j++)
            before += op_of(view, rank, j)->kind == OP_RECV && op_of(view, rank, j)->tag == op->tag;
        int from = view->program->ranks[rank].peers[op->role];
        uint32_t send = nth(view, from, OP_SEND, op->tag, before);
        ck_assert(send != NO_OP);
        ck_assert_msg(span_of(view, rank, i)->end >= span_of(view, from, send)->start,
                      "%s: rank %d has received operation %u before rank %d sent it", view->by, rank, i, from);
    }
}

/* Nobody leaves a collective before everybody has entered. */
static void check_group(const struct execution_view *view, const struct rank_group *group)
{
    const int32_t *members = view->program->members + group->first_member;
    for (uint32_t k = 0, i; (i = nth(view, members[0], OP_COLLECTIVE, group->kind, k)) != NO_OP; k++) {
        nanos entered = 0, left = INT64_MAX;
        for (int m = 0; m < group->n_members; m++) {
            const struct span *span = span_of(view, members[m], nth(view, members[m], OP_COLLECTIVE, group->kind, k));
            entered = span->start > entered ? span->start : entered;
            left = span->end < left ? span->end : left;
        }
        ck_assert_msg(left >= entered, "%s: collective %u over %s is left before it is complete", view->by, k,
                      group_kind_name(group->kind));
    }
}

static void check_execution(const char *by, const struct program *program, const struct timeline *timeline)
{
    struct execution_view view = {by, program, timeline, NULL};
    view_open(&view);
    for (int r = 0; r < program->n_ranks; r++) {
        check_rank(&view, r);
        check_messages(&view, r);
    }
    for (int g = 0; g < program->n_groups; g++)
        check_group(&view, &program->groups[g]);
    free(view.first);
}

/* --- programs */

/* Any machine: what it is like decides no order. */
static void complete_cluster(struct cluster *cluster, struct diags *diags)
{
    double peak = cluster->gpu.peak_flops[PRECISION_FP32];
    ck_assert(catalog_cluster("megascale-a100", cluster, diags) == STATUS_OK);
    if (!(cluster->gpu.peak_flops[PRECISION_FP32] > 0))
        cluster->gpu.peak_flops[PRECISION_FP32] = peak;
}

static void conform(enum toy_model model, const struct variant *variant, enum detail detail)
{
    struct toy toy;
    struct program program;
    struct diags diags = {0};
    struct step_result result;
    struct timeline simulated = {0};
    struct thread_run run;
    struct step_options simulate = {.all_ranks = true, .detail = detail, .n_trace_ranks = -1, .verify = true};
    struct thread_run_options execute = {.steps = 2, .seed = 1};
    toy_make(&toy, model);
    toy_lay_out(&toy, variant->layout, variant->features);
    complete_cluster(&toy.cluster, &diags);
    ck_assert_msg(step_simulate(&toy.layout, &toy.setting, &simulate, &result, &simulated, &program, &diags) == STATUS_OK,
                  "%s: %s", variant->layout, diags.n_items ? diags.items[0].text : "");
    ck_assert_int_gt(result.step, 0);
    check_execution("simulator", &program, &simulated);
    ck_assert_msg(run_on_threads(&program, &toy.setting, &execute, &run, &diags) == STATUS_OK, "%s: %s", variant->layout,
                  diags.n_items ? diags.items[0].text : "");
    check_execution("CPU", &program, &run.timeline);
    thread_run_free(&run);
    timeline_free(&simulated);
    program_free(&program);
    diags_free(&diags);
}

static const struct variant variants[] = {
    {"mb=2", 0},
    {"tp=2,sp=1", TP},
    {"tp=2,sp=0,recompute=full", 0},
    {"cp=2,zero=1", 0},
    {"cp=2,tp=2,sp=1,pp=2,schedule=1f1b", TP | PP},
    {"cp=2,cp_comm=all_gather,zero=1", DP},
    {"cp=4,cp_comm=a2a:2+ring,recompute=full", 0},
    {"cp=2,cp_comm=a2a,tp=2,sp=1,pp=2,schedule=1f1b", TP | PP},
    {"dp=2,zero=3", 0},
    {"dp=4,zero=3,recompute=full", DP},
    {"dp=4,zero=3,shard=2", DP},
    {"dp=4,pp=2,zero=1,shard=2,schedule=1f1b", PP},
    {"dp=2,pp=2,zero=2,schedule=gpipe", 0},
    {"pp=4,schedule=1f1b,recompute=selective", PP},
    {"pp=2,vpp=2,schedule=interleaved", 0},
    {"pp=2,vpp=2,dp=2,zero=1,schedule=interleaved", PP | DP},
    {"pp=4,schedule=zb-1p", 0},
    {"pp=4,schedule=zb-2p", 0},
    {"pp=2,vpp=2,schedule=zb-v", 0},
    {"pp=2,vpp=2,dp=2,schedule=dualpipe-v,zero=1", DP},
    {"pp=4,vpp=2,schedule=dualpipe", 0},
    {"pp=2,vpp=2,tp=2,sp=1,schedule=dualpipe", DP},
};

START_TEST(both_conform)
{
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++)
        conform(TOY_GPT, &variants[_i], (enum detail)detail);
}
END_TEST

static const struct variant mixtures[] = {
    {"dp=2,ep=2,zero=1", DP},
    {"dp=2,ep=2,zero=3", DP},
    {"tp=2,sp=1,dp=2,ep=4", 0},
    {"tp=2,sp=1,dp=2,ep=2,etp=2,zero=2", TP},
    {"tp=2,sp=0,ep=2,pp=2,schedule=1f1b", PP},
    {"pp=2,vpp=2,dp=2,ep=2,schedule=dualpipe", DP},
};

START_TEST(both_conform_with_experts)
{
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
        conform(TOY_MIXTURE, &mixtures[_i], (enum detail)detail);
        conform(TOY_LATENT, &mixtures[_i], (enum detail)detail);
    }
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {both_conform, COUNT(variants)},
        {both_conform_with_experts, COUNT(mixtures)},
    };
    return toy_suite("conformance of simulator and runtime", tests, COUNT(tests));
}
