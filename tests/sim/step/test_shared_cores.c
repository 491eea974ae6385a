/* Ranks that share cores: with cores for all of them, the simulator's times; with one core, all work one after the other; never
 * slower with more cores. */
#include "sim/step/shared_cores.h"

#include <stdlib.h>

#include "model/spec/catalog.h"
#include "runtime/base/cores.h"
#include "sim/step/step.h"
#include "tests/runtime/toys.h"

/* Tokens of a sequence, and widths: large enough for pieces of products beside their exchanges. */
enum { USUAL = 0, LONG = 16384, WIDER = 64 };
enum { ZERO_0 = 2, ZERO_3 = 3 }; /* of the cases */
static const struct {
    const char *layout;
    int seq_len; /* LONG: with tp_overlap */
} cases[] = {{"tp=2,sp=1,pp=2,schedule=1f1b", USUAL},
             {"pp=4,schedule=zb-1p", USUAL},
             [ZERO_0] = {"dp=4", USUAL},
             [ZERO_3] = {"dp=4,zero=3", USUAL},
             {"pp=2,vpp=2,schedule=zb-v", USUAL},
             {"tp=2,dp=2,zero=1,pp=2,schedule=gpipe", USUAL},
             {"tp=2,sp=1", LONG},
             {"tp=2,sp=1,pp=2,schedule=1f1b", LONG},
             {"tp=4,sp=1,recompute=full", LONG}};

enum { RANKS_MAX = 64 };
struct prediction {
    struct toy toy;
    struct program program;
    struct machine machine;
    struct timeline timeline;
    struct shared_cores_prediction is;
};

static void predict(struct prediction *p, int i, int n_cores)
{
    struct diags diags = {0};
    struct core_span cores[RANKS_MAX];
    *p = (struct prediction){0};
    toy_make(&p->toy, TOY_LLAMA);
    p->toy.job.precision = PRECISION_BF16;
    ck_assert(catalog_cluster("megascale-a100", &p->toy.cluster, &diags) == STATUS_OK);
    if (cases[i].seq_len == LONG) {
        p->toy.job.seq_len = p->toy.model.max_seq_len = LONG;
        p->toy.model.hidden *= WIDER;
        p->toy.model.ffn_hidden *= WIDER;
        p->toy.model.head_dim *= WIDER;
    }
    toy_lay_out(&p->toy, cases[i].layout, cases[i].seq_len == LONG ? FEATURE_BIT(TP_OVERLAP) : 0);
    p->machine = machine_of(&p->toy.layout, &p->toy.setting);
    ck_assert(program_build(&p->toy.layout, &p->toy.setting, DETAIL_KERNEL, false, &p->program, &diags) == STATUS_OK);
    for (int r = 0; r < p->program.n_ranks; r++) {
        struct core_range range = cores_of_rank(r, p->program.n_ranks, n_cores);
        cores[r] = (struct core_span){.first = range.first, .n = range.n};
    }
    ck_assert(shared_cores_predict(&p->program, &p->machine, cores, 0, &p->is, &p->timeline, &diags) == STATUS_OK);
    diags_free(&diags);
}

static void prediction_free(struct prediction *p)
{
    program_free(&p->program);
    timeline_free(&p->timeline);
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

/* The most pieces that a product and its exchange take; 0: there is no such pair. */
static int most_pieces(const struct prediction *p)
{
    int most = 0;
    for (int i = 0; i < p->program.works.n_items; i++)
        if (p->program.works.items[i].kind == WORK_OVERLAPPED) {
            int pieces = work_parts_of(&p->machine, &p->program.works, i).pieces;
            most = pieces > most ? pieces : most;
        }
    return most;
}

START_TEST(cores_for_all_are_the_simulators)
{
    struct prediction p;
    predict(&p, _i, 64);
    ck_assert_int_eq(most_pieces(&p) > 1, cases[_i].seq_len == LONG);
    nanos step = simulated(&p.toy);
    ck_assert_msg(llabs(nanos_from_seconds(p.is.step_s) - step) <= 1, "%s: %.9g s, simulated %.9g", cases[_i].layout, p.is.step_s,
                  (double)step * 1e-9);
    prediction_free(&p);
}
END_TEST

/* One core does nothing twice as fast because two want it. Spans are work and waiting. */
START_TEST(one_core_does_all_work)
{
    struct prediction p;
    predict(&p, _i, 1);
    const struct timeline *t = &p.timeline;
    double work = 0, spans = 0, before = p.is.step_s;
    for (size_t i = 0; i < t->n_spans; i++)
        spans += (double)(t->spans[i].end - t->spans[i].start) * 1e-9;
    for (int c = 0; c < N_WORK_CLASSES; c++)
        work += p.is.work_s[c];
    ck_assert_double_ge(p.is.step_s, work * (1 - 1e-9));
    ck_assert_double_eq_tol(spans, work + p.is.waiting.computations + p.is.waiting.exchanges, 1e-9 * spans);
    prediction_free(&p);
    for (int cores = 2; cores <= 8; cores *= 2) {
        predict(&p, _i, cores);
        ck_assert_double_le(p.is.step_s, before);
        before = p.is.step_s;
        prediction_free(&p);
    }
}
END_TEST

/* On a core that ranks share, an exchange takes time and makes no kernel's work longer: ZeRO's exchanges leave all of it alone.
 */
START_TEST(exchanges_leave_work_alone)
{
    static const enum work_class alike[] = {CLASS_GEMM, CLASS_ATTENTION, CLASS_MEMORY_BOUND, CLASS_EMBEDDING, CLASS_HEAD};
    struct prediction sharded, whole;
    predict(&sharded, ZERO_3, 2);
    predict(&whole, ZERO_0, 2);
    for (size_t c = 0; c < COUNT(alike); c++)
        ck_assert_double_eq_tol(sharded.is.work_s[alike[c]], whole.is.work_s[alike[c]], 1e-9 * whole.is.work_s[alike[c]]);
    ck_assert_double_gt(sharded.is.work_s[CLASS_DP_COMM], whole.is.work_s[CLASS_DP_COMM]);
    prediction_free(&sharded);
    prediction_free(&whole);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{cores_for_all_are_the_simulators, COUNT(cases)},
                                     {one_core_does_all_work, COUNT(cases)},
                                     {exchanges_leave_work_alone, 1}};
    return toy_suite("ranks that share cores", tests, COUNT(tests));
}
