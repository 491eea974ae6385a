/* Folding on a fabric: the times of one of each class of ranks are those of every rank, to the nanosecond; what cannot be folded
 * is not. And lockstep: ranks that share a pass share its start. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network/fold.h"
#include "sim/network/placement.h"
#include "sim/step/step.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

struct fold_case {
    const char *layout;
    int nodes, batch;
    const char *fabric; /* NULL: the cluster's */
    enum placement placement;
    enum routing routing;
    int queue_pairs;
    bool slow_nic, flap;
    const char *model;
    bool must_fold;
};

static const struct fold_case cases[] = {
    {.layout = "tp=8,pp=4,dp=4,mb=1", .nodes = 16, .batch = 16, .routing = ROUTING_STATIC, .must_fold = true},
    {.layout = "tp=8,pp=4,vpp=2,dp=4,mb=1", .nodes = 16, .batch = 32, .routing = ROUTING_STATIC, .must_fold = true},
    {.layout = "tp=8,pp=2,dp=8,mb=1", .nodes = 16, .batch = 32, .routing = ROUTING_STATIC, .must_fold = true},
    {.layout = "tp=4,cp=2,pp=2,dp=8,mb=1", .nodes = 16, .batch = 32, .routing = ROUTING_STATIC, .must_fold = true},
    {.layout = "tp=8,pp=1,dp=16,mb=1", .nodes = 16, .batch = 32, .routing = ROUTING_STATIC, .must_fold = true},
    {.layout = "tp=2,pp=4,dp=16,mb=1", .nodes = 16, .batch = 64, .routing = ROUTING_STATIC},
    {.layout = "tp=8,pp=4,dp=8,mb=1", .nodes = 32, .batch = 32, .routing = ROUTING_STATIC, .queue_pairs = 2, .must_fold = true},
    {.layout = "tp=8,pp=4,dp=8,mb=1", .nodes = 32, .batch = 32, .routing = ROUTING_STATIC, .slow_nic = true},
    {.layout = "tp=8,pp=4,dp=8,mb=1", .nodes = 32, .batch = 32, .routing = ROUTING_STATIC, .flap = true},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_STATIC,
     .placement = PLACEMENT_PIPELINE_FIRST,
     .must_fold = true},
    {.layout = "tp=8,pp=4,dp=8,mb=1", .nodes = 32, .batch = 32, .routing = ROUTING_STATIC, .placement = PLACEMENT_RANDOM},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_STATIC,
     .fabric = "clos hosts:32 gpus:8 nics:8x200G tors:8 tor:8x200G/2x200G agg:16x200G/4x200G core:64x200G nvlink:8x270GB/s"},
    {.layout = "tp=8,pp=4,dp=4,mb=1", .nodes = 16, .batch = 16, .routing = ROUTING_ECMP, .queue_pairs = 4, .must_fold = true},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_ECMP,
     .queue_pairs = 16,
     .fabric = "clos hosts:32 gpus:8 nics:8x200G tor:16x200G/16x200G agg:16x200G nvlink:8x270GB/s"},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_STATIC,
     .queue_pairs = 2,
     .must_fold = true,
     .fabric = "clos hosts:32 gpus:8 nics:16x100G ports:2 tors:32 tor:8x50G/8x50G agg:128x50G nvlink:8x270GB/s"},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_ECMP,
     .fabric = "clos hosts:32 gpus:8 nics:8x200G tors:8 tor:8x200G/8x200G agg:32x200G nvlink:8x270GB/s"},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_STATIC,
     .must_fold = true,
     .fabric = "dragonfly hosts:32 gpus:8 nics:8x200G rails:8 group:64 switch:4x200G nvlink:8x270GB/s"},
    {.layout = "tp=8,pp=4,dp=8,mb=1",
     .nodes = 32,
     .batch = 32,
     .routing = ROUTING_VALIANT,
     .fabric = "dragonfly hosts:32 gpus:8 nics:8x200G rails:8 group:16 switch:4x200G pair:8 nvlink:8x270GB/s"},
};

/* A job on its hosts, with its faults. */
struct placed_job {
    struct job_case job;
    int *gpus;
    struct link_event events[2];
    struct network_flow_options options; /* points into this struct */
};

static void placed_create(struct placed_job *c, const struct fold_case *of)
{
    const feature_set overlapping = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP);
    struct fabric *fabric = &c->job.fabric;
    job_create(&c->job, "gpt-22b", overlapping, of->nodes, of->batch, of->layout, of->fabric);
    c->gpus = memory_new((size_t)c->job.setting.gpus, sizeof *c->gpus);
    placement_fill(of->placement, &c->job.layout, fabric, 1, c->gpus);
    if (of->slow_nic)
        fabric_set_speed(fabric, fabric->first[LAYER_NIC_UP] + 80, 0.3);
    c->events[0] = (struct link_event){NANOS_PER_SECOND / 4, fabric->first[LAYER_NIC_UP] + 70, 0};
    c->events[1] = (struct link_event){NANOS_PER_SECOND / 2, fabric->first[LAYER_NIC_UP] + 70, 1};
    c->options = (struct network_flow_options){.fabric = fabric,
                                               .routing = of->routing,
                                               .queue_pairs = of->queue_pairs,
                                               .seed = 1,
                                               .placement = c->gpus,
                                               .events = c->events,
                                               .n_events = of->flap ? 2 : 0};
}

static void placed_free(struct placed_job *c)
{
    fabric_free(&c->job.fabric);
    free(c->gpus);
}

/* ---- folded against whole */

struct run {
    struct step_result result;
    struct timeline timeline;
    struct link_usage *usage;
    uint32_t n_links;
};

static void usage_keep(void *context, struct network_flow *network, const struct step_result *result)
{
    struct run *run = context;
    (void)result;
    run->usage = memory_new(run->n_links, sizeof *run->usage);
    network_flow_usage(network, run->usage);
}

static struct run run_of(struct placed_job *c, bool fold)
{
    struct diags diags = {0};
    struct run run = {.n_links = fabric_links(&c->job.fabric)};
    struct step_options how = {
        .all_ranks = true, .n_trace_ranks = -1, .flow = &c->options, .fold_flow = fold, .seen = usage_keep, .seen_context = &run};
    enum status status = step_simulate(&c->job.layout, &c->job.setting, &how, &run.result, &run.timeline, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return run;
}

static void run_free(struct run *run)
{
    timeline_free(&run->timeline);
    free(run->usage);
}

static void assert_same(const struct run *folded, const struct run *whole)
{
    ck_assert_int_eq(folded->result.step, whole->result.step);
    ck_assert_mem_eq(&folded->result.breakdown, &whole->result.breakdown, sizeof whole->result.breakdown);
    ck_assert_uint_eq(folded->timeline.n_spans, whole->timeline.n_spans);
    for (size_t i = 0; i < whole->timeline.n_spans; i++) {
        const struct span *a = &folded->timeline.spans[i], *b = &whole->timeline.spans[i];
        ck_assert_msg(a->rank == b->rank && a->op == b->op && a->start == b->start && a->end == b->end,
                      "rank %d, operation %u: %lld to %lld folded, %lld to %lld of all", b->rank, b->op, (long long)a->start,
                      (long long)a->end, (long long)b->start, (long long)b->end);
    }
    for (uint32_t l = 0; l < whole->n_links; l++) {
        ck_assert_double_eq_tol(folded->usage[l].carried, whole->usage[l].carried, whole->usage[l].carried * 1e-9 + 1e-3);
        ck_assert_int_eq(folded->usage[l].contended, whole->usage[l].contended);
        ck_assert(folded->usage[l].most == whole->usage[l].most || folded->usage[l].most == 0);
    }
}

START_TEST(folded_is_whole)
{
    const struct fold_case *of = &cases[_i];
    struct placed_job c;
    placed_create(&c, of);
    struct run folded = run_of(&c, true), whole = run_of(&c, false);
    ck_assert_int_eq(whole.result.actors, c.job.setting.gpus);
    if (of->must_fold)
        ck_assert_int_le(folded.result.actors, c.job.setting.gpus / 2);
    assert_same(&folded, &whole);
    run_free(&folded);
    run_free(&whole);
    placed_free(&c);
}
END_TEST

/* What the fold itself says: classes cover all ranks, links that never fill are left out, hashes do not fold across sets. */
START_TEST(classes_cover_all)
{
    struct placed_job c;
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    placed_create(&c, &cases[0]);
    ck_assert_int_eq(program_build(&c.job.layout, &c.job.setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c.job.layout, &c.job.setting);
    ck_assert_int_eq(network_flow_create(&machine, &program, &c.options, &flow, &diags), STATUS_OK);
    const struct fold *fold = network_flow_fold(flow);
    ck_assert_ptr_nonnull(fold);
    int64_t ranks = 0;
    for (int32_t r = 0; r < fold->program.n_ranks; r++) {
        ranks += fold->rank_count[r];
        ck_assert_int_eq(fold->rank_class[fold->rank_of[r]], r);
    }
    ck_assert_int_eq(ranks, program.n_ranks);
    ck_assert_int_lt(fold->n_link_classes, (int)fabric_links(&c.job.fabric) / 4);
    network_flow_destroy(flow);
    c.options.routing = ROUTING_ADAPTIVE;
    ck_assert_int_eq(network_flow_create(&machine, &program, &c.options, &flow, &diags), STATUS_OK);
    ck_assert_ptr_null(network_flow_fold(flow));
    network_flow_destroy(flow);
    program_free(&program);
    placed_free(&c);
}
END_TEST

START_TEST(hashes_do_not_fold)
{
    struct placed_job c;
    placed_create(&c, &cases[sizeof cases / sizeof *cases - 1]);
    struct run run = run_of(&c, true);
    ck_assert_int_eq(run.result.actors, c.job.setting.gpus);
    run_free(&run);
    placed_free(&c);
}
END_TEST

/* ---- lockstep */

/* One slow NIC among the eight of a tensor-parallel group: all eight begin and end each pass together. */
START_TEST(a_block_goes_together)
{
    struct placed_job c;
    placed_create(&c, &cases[7]);
    struct diags diags = {0};
    struct program program;
    struct timeline timeline;
    struct step_result result;
    struct step_options how = {.all_ranks = true, .n_trace_ranks = -1, .flow = &c.options};
    ck_assert_int_eq(step_simulate(&c.job.layout, &c.job.setting, &how, &result, &timeline, &program, &diags), STATUS_OK);
    int passes = 0, receives_apart = 0;
    for (size_t i = 0; i < timeline.n_spans; i++) {
        const struct span *at = &timeline.spans[i];
        const struct op *op = &program.ops[program.scripts[program.ranks[at->rank].script].first_op + at->op];
        if (at->rank % 8 != 0)
            continue;
        for (size_t k = 0; k < timeline.n_spans; k++) {
            const struct span *peer = &timeline.spans[k];
            if (peer->op != at->op || peer->rank / 8 != at->rank / 8)
                continue;
            if (lockstep_op(op)) {
                ck_assert_int_eq(peer->start, at->start);
                ck_assert_int_eq(peer->end, at->end);
                passes++;
            } else if (op->kind == OP_RECV) {
                receives_apart += peer->end != at->end;
            }
        }
    }
    ck_assert_int_gt(passes, 8 * 100);
    ck_assert_int_gt(receives_apart, 0);
    timeline_free(&timeline);
    program_free(&program);
    placed_free(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fold");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, folded_is_whole, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(all, classes_cover_all);
    tcase_add_test(all, hashes_do_not_fold);
    tcase_add_test(all, a_block_goes_together);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
