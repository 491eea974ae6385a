/* Ranks that share cores, predicted: with cores for all of them what the simulator says; with one, all work one after the other;
 * never slower for one core more. */
#include <stdlib.h>

#include "cli/validating.h"
#include "model/spec/catalog.h"
#include "tests/runtime/toys.h"

static const char *const layouts[] = {"tp=2,sp=1,pp=2,schedule=1f1b", "pp=4,schedule=zb-1p", "dp=4,zero=3",
                                      "pp=2,vpp=2,schedule=zb-v", "tp=2,dp=2,zero=1,pp=2,schedule=gpipe"};

struct prediction {
    struct job_setup setup;
    struct validation v;
    struct toy toy;
};

static void predict(struct prediction *p, const char *layout, int n_cores)
{
    struct diags diags = {0};
    *p = (struct prediction){.v = {.setup = &p->setup}};
    toy_make(&p->toy, TOY_LLAMA);
    p->toy.job.precision = PRECISION_BF16;
    ck_assert(catalog_cluster("megascale-a100", &p->toy.cluster, &diags) == STATUS_OK);
    ck_assert(layout_parse(layout, &p->toy.layout, &diags) == STATUS_OK);
    toy_complete(&p->toy);
    p->setup.layout = p->toy.layout;
    p->setup.setting = p->toy.setting;
    ck_assert(program_build(&p->toy.layout, &p->toy.setting, DETAIL_KERNEL, false, &p->v.program, &diags) == STATUS_OK);
    ck_assert(validate_predict_shared(&p->v, n_cores, &diags) == STATUS_OK);
    diags_free(&diags);
}

static void prediction_free(struct prediction *p)
{
    program_free(&p->v.program);
    timeline_free(&p->v.predicted);
}

static nanos simulated(struct toy *toy)
{
    struct diags diags = {0};
    struct step_result result;
    struct step_options how = {.all_ranks = true, .detail = DETAIL_KERNEL, .n_trace_ranks = -1};
    ck_assert(step_simulate(&toy->layout, &toy->setting, &how, &result, NULL, NULL, &diags) == STATUS_OK);
    diags_free(&diags);
    return result.step;
}

START_TEST(cores_for_all_are_the_simulators)
{
    struct prediction p;
    predict(&p, layouts[_i], 64);
    nanos step = simulated(&p.toy);
    ck_assert_msg(llabs(nanos_from_seconds(p.v.predicted_s) - step) <= 1, "%s: %.9g s, simulated %.9g", layouts[_i],
                  p.v.predicted_s, (double)step * 1e-9);
    prediction_free(&p);
}
END_TEST

/* What runs on one core is never beside anything, and the core never waits while something is ready. */
START_TEST(one_core_does_all_work)
{
    struct prediction p;
    predict(&p, layouts[_i], 1);
    const struct timeline *t = &p.v.predicted;
    double work = 0, before = p.v.predicted_s;
    for (size_t i = 0; i < t->n_spans; i++) {
        const struct op *op =
            &p.v.program.ops[p.v.program.scripts[p.v.program.ranks[t->spans[i].rank].script].first_op + t->spans[i].op];
        work += op->kind == OP_COMPUTE ? (double)(t->spans[i].end - t->spans[i].start) * 1e-9 : 0;
    }
    ck_assert_double_ge(p.v.predicted_s, work);
    prediction_free(&p);
    for (int cores = 2; cores <= 8; cores *= 2) {
        predict(&p, layouts[_i], cores);
        ck_assert_double_le(p.v.predicted_s, before);
        before = p.v.predicted_s;
        prediction_free(&p);
    }
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{cores_for_all_are_the_simulators, COUNT(layouts)},
                                     {one_core_does_all_work, COUNT(layouts)}};
    return toy_suite("ranks that share cores", tests, COUNT(tests));
}
