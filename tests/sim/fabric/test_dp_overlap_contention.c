/* What messages and passes of a pipeline lose to replicas' exchanges beside them: by hand, and as flows share NICs. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network/network_analytic.h"
#include "sim/step/dp_overlap_contention.h"
#include "sim/step/step.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

static const feature_set OVERLAPPING = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP);

/* The step of a program whose operations take that long. */
static nanos executed(const struct program *program, struct step_costs *costs)
{
    struct diags diags = {0};
    struct execution execution;
    ck_assert_int_eq(program_execute(program, costs, NULL, EXECUTE_TOTALS, NULL, &execution, &diags), STATUS_OK);
    nanos end = execution.end;
    execution_free(&execution);
    return end;
}

/* Operations alone, and beside one another. */
struct both {
    struct program program;
    struct machine machine;
    struct step_costs costs;
    nanos *alone;
};

static void both_create(struct both *b, const struct job_case *c)
{
    struct diags diags = {0};
    ck_assert_int_eq(program_build(&c->layout, &c->setting, DETAIL_CHUNK, true, &b->program, &diags), STATUS_OK);
    b->machine = machine_of(&c->layout, &c->setting);
    struct network network = network_analytic(&b->machine);
    step_costs_create(&b->program, &b->machine, &network, &b->costs);
    b->alone = memory_new(b->program.n_ops, sizeof *b->alone);
    memcpy(b->alone, b->costs.ops, b->program.n_ops * sizeof *b->alone);
    ck_assert_int_eq(dp_overlap_contention_time(&b->program, &b->machine, b->costs.works, b->costs.ops, &diags), STATUS_OK);
}

static void both_free(struct both *b)
{
    free(b->alone);
    step_costs_free(&b->costs);
    program_free(&b->program);
}

static nanos step_alone(const struct both *b)
{
    struct step_costs costs = b->costs;
    costs.ops = b->alone;
    return executed(&b->program, &costs);
}

/*
 * Two stages of one layer, one micro-batch, gradients all-reduced: the last stage's gradient is on its way while it reduces,
 * which takes longer than the message twice. So the message's transmission takes twice as long, and so much longer does the step;
 * nothing is computed beside a stage's own exchange.
 */
START_TEST(a_message_gets_half_of_a_nic)
{
    struct job_case c;
    struct both b;
    job_create(&c, "gpt-22b", OVERLAPPING, 16, 64, "tp=1,pp=2,dp=64,mb=1,zero=0", NULL);
    c.model.layers = 2;
    both_create(&b, &c);
    ck_assert(has_dp_overlap_contention(&c.layout));
    struct cost message = p2p_cost(&b.machine, p2p_bytes(&c.layout, &c.setting));
    nanos transmission = nanos_from_seconds(message.bandwidth_s), longer = executed(&b.program, &b.costs) - step_alone(&b);
    ck_assert_int_gt(transmission, 100000);
    ck_assert_int_le(llabs(longer - transmission), 2);
    nanos passes = 0;
    for (uint32_t i = 0; i < b.program.n_ops; i++)
        passes += b.program.ops[i].kind == OP_COMPUTE ? b.costs.ops[i] - b.alone[i] : 0;
    ck_assert_int_eq(passes, 0);
    both_free(&b);
    fabric_free(&c.fabric);
}
END_TEST

/* A stage's passes lose no more than all of its exchanges crowd, and much of that: beside the first gather and the last reduction
 * there is nothing. */
START_TEST(passes_lose_what_crowds_them)
{
    struct job_case c;
    struct both b;
    job_create(&c, "gpt-22b", OVERLAPPING, 16, 256, "tp=8,pp=2,vpp=4,dp=8,mb=1,zero=1", NULL);
    both_create(&b, &c);
    for (int32_t s = 0; s < b.program.n_scripts; s++) {
        double lost = 0, interference = 0;
        for (uint32_t i = 0; i < b.program.scripts[s].n_ops; i++) {
            const struct op *op = &b.program.ops[b.program.scripts[s].first_op + i];
            uint32_t at = b.program.scripts[s].first_op + i;
            lost += op->kind == OP_COMPUTE ? (double)(b.costs.ops[at] - b.alone[at]) : 0;
            if (is_replica_exchange(op))
                interference += 1e9 * overlap_interference_s(&c.cluster, op->collective, b.machine.spans[op->role], op->bytes,
                                                             1e-9 * (double)b.alone[at]);
        }
        ck_assert_double_gt(lost, 0.4 * interference);
        ck_assert_double_lt(lost, 1.05 * interference);
    }
    both_free(&b);
    fabric_free(&c.fabric);
}
END_TEST

/* A switch that all hosts are on: only NICs are shared. Both networks have what is computed slowed alike. */
static const char *const layouts[] = {"tp=8,pp=4,vpp=6,dp=4,mb=1", "tp=8,pp=4,dp=4,mb=1", "tp=2,pp=8,vpp=2,dp=8,mb=1",
                                      "tp=4,pp=4,dp=8,mb=1,schedule=zb-1p", "tp=8,pp=2,vpp=8,dp=8,mb=1,zero=1"};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

START_TEST(nics_are_shared_as_flows_share_them)
{
    struct job_case c;
    struct both b;
    struct diags diags = {0};
    job_create(&c, "gpt-22b", OVERLAPPING, 16, 32, layouts[_i], NULL);
    fabric_free(&c.fabric);
    c.cluster.fabric_layers = 1;
    c.cluster.leaf_nodes = c.cluster.nodes;
    c.cluster.nic_rate /= 2; /* that it counts */
    ck_assert_int_eq(fabric_create(&c.cluster, &c.fabric, &diags), STATUS_OK);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
    both_create(&b, &c);
    double beside = (double)job_step(&c, NULL), flows = (double)job_step(&c, &options), alone = (double)step_alone(&b);
    printf("%s: alone %+.2f %%, beside one another %+.2f %% of flows' step\n", layouts[_i], 100 * (alone / flows - 1),
           100 * (beside / flows - 1));
    ck_assert_int_eq((nanos)beside, executed(&b.program, &b.costs)); /* one rank a stage */
    ck_assert_double_le(alone, beside);
    ck_assert_double_eq_tol(beside / flows, 1, 0.03);
    ck_assert_double_le(fabs(beside / flows - 1), fabs(alone / flows - 1) + 1e-3);
    both_free(&b);
    fabric_free(&c.fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dp_overlap_contention");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_message_gets_half_of_a_nic);
    tcase_add_test(all, passes_lose_what_crowds_them);
    tcase_add_loop_test(all, nics_are_shared_as_flows_share_them, 0, N_LAYOUTS);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
