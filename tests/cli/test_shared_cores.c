/* Ranks that share cores, predicted: with cores for all of them what the simulator says; with one, all work one after the other;
 * never slower for one core more. Cores divided among ranks. What ranks need of memory is what they then take. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/validate/validating.h"
#include "model/cost/kernel/machine.h"
#include "model/spec/catalog.h"
#include "runtime/base/cores.h"
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

struct prediction {
    struct job_setup setup;
    struct validation v;
    struct toy toy;
};

static void predict(struct prediction *p, int i, int n_cores)
{
    struct diags diags = {0};
    *p = (struct prediction){.v = {.setup = &p->setup}};
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

/* The most pieces that a product and its exchange take; 0: there is no such pair. */
static int most_pieces(const struct prediction *p)
{
    struct machine machine = machine_of(&p->setup.layout, &p->setup.setting);
    int most = 0;
    for (int i = 0; i < p->v.program.works.n_items; i++)
        if (p->v.program.works.items[i].kind == WORK_OVERLAPPED) {
            int pieces = work_parts_of(&machine, &p->v.program.works, i).pieces;
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
    ck_assert_msg(llabs(nanos_from_seconds(p.v.predicted_s) - step) <= 1, "%s: %.9g s, simulated %.9g", cases[_i].layout,
                  p.v.predicted_s, (double)step * 1e-9);
    prediction_free(&p);
}
END_TEST

/* One core does nothing twice as fast because two want it. Spans are work and waiting. */
START_TEST(one_core_does_all_work)
{
    struct prediction p;
    predict(&p, _i, 1);
    const struct timeline *t = &p.v.predicted;
    double work = 0, spans = 0, before = p.v.predicted_s;
    for (size_t i = 0; i < t->n_spans; i++)
        spans += (double)(t->spans[i].end - t->spans[i].start) * 1e-9;
    for (int c = 0; c < N_WORK_CLASSES; c++)
        work += p.v.predicted_work_s[c];
    ck_assert_double_ge(p.v.predicted_s, work * (1 - 1e-9));
    ck_assert_double_eq_tol(spans, work + p.v.predicted_waiting.computations + p.v.predicted_waiting.exchanges, 1e-9 * spans);
    prediction_free(&p);
    for (int cores = 2; cores <= 8; cores *= 2) {
        predict(&p, _i, cores);
        ck_assert_double_le(p.v.predicted_s, before);
        before = p.v.predicted_s;
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
        ck_assert_double_eq_tol(sharded.v.predicted_work_s[alike[c]], whole.v.predicted_work_s[alike[c]],
                                1e-9 * whole.v.predicted_work_s[alike[c]]);
    ck_assert_double_gt(sharded.v.predicted_work_s[CLASS_DP_COMM], whole.v.predicted_work_s[CLASS_DP_COMM]);
    prediction_free(&sharded);
    prediction_free(&whole);
}
END_TEST

/* Ranks that are more than cores have one each in turn, others parts of equal size that no two have. */
START_TEST(cores_are_divided)
{
    for (int n_cores = 1; n_cores <= 9; n_cores++)
        for (int n_ranks = 1; n_ranks <= 20; n_ranks++) {
            int owners[9] = {0};
            for (int r = 0; r < n_ranks; r++) {
                struct core_range range = cores_of_rank(r, n_ranks, n_cores);
                ck_assert_int_ge(range.n, n_cores > n_ranks ? n_cores / n_ranks : 1);
                for (int c = range.first; c < range.first + range.n; c++)
                    owners[c]++;
            }
            for (int c = 0; c < n_cores; c++) {
                ck_assert_int_ge(owners[c], n_ranks / n_cores > 1 ? n_ranks / n_cores : 1);
                ck_assert_int_le(owners[c], (n_ranks + n_cores - 1) / n_cores);
            }
        }
}
END_TEST

/* Processes that a launcher bound to cores of their own have all of these together. */
START_TEST(cores_of_processes_are_united)
{
    unsigned char sets[3][CORE_SET_BYTES] = {{1}, {2}, {2 | 64}};
    ck_assert_int_eq(cores_of_sets(sets[0], 1), 1);
    ck_assert_int_eq(cores_of_sets(sets[0], 2), 2);
    ck_assert_int_eq(cores_of_sets(sets[0], 3), 3);
    cores_allowed(sets[0]);
    ck_assert_int_eq(cores_of_sets(sets[0], 1), cores_here());
    memset(sets, 0, sizeof sets);
    ck_assert_int_ge(cores_of_sets(sets[0], 3), 1);
}
END_TEST

/* --- quotas, of files as a system shows them */

static void write_file(const char *root, const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", root, path);
    for (char *at = strchr(name + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        ck_assert(mkdir(name, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static const struct {
    int cores;
    struct {
        const char *path, *text;
    } files[4];
} quotas[] = {
    {INT_MAX, {{"/proc/self/cgroup", "0::/\n"}}},
    {INT_MAX, {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}}},
    {2, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}}}, /* a container's own root */
    {1, {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "40000 100000\n"}}},
    {3, /* of the groups around it the least */
     {{"/proc/self/cgroup", "0::/a/b\n"},
      {"/sys/fs/cgroup/a/cpu.max", "300000 100000\n"},
      {"/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n"}}},
    {4, /* version 1 */
     {{"/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/a\n3:cpuset:/\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}},
    {INT_MAX,
     {{"/proc/self/cgroup", "4:cpu:/a\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
      {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}},
    {2, /* a container that is told its place outside and has its files at the root */
     {{"/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"},
      {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}},
    {INT_MAX, {{"/proc/self/mounts", ""}}},
};

static int remove_one(const char *path, const struct stat *what, int kind, struct FTW *at)
{
    (void)what, (void)kind, (void)at;
    return remove(path);
}

START_TEST(a_quota_counts_whole_cores)
{
    char root[] = "/tmp/msim-quota-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(root));
    for (size_t f = 0; f < COUNT(quotas[_i].files) && quotas[_i].files[f].path; f++)
        write_file(root, quotas[_i].files[f].path, quotas[_i].files[f].text);
    ck_assert_int_eq(cores_quota(root), quotas[_i].cores);
    ck_assert_int_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
END_TEST

/* In fp32, after the steps that it takes until all tensors are there. */
START_TEST(memory_is_what_it_takes)
{
    static const char *const divided[] = {"dp=4",
                                          "dp=4,zero=1",
                                          "dp=2,zero=2",
                                          "dp=2,zero=3",
                                          "dp=4,zero=3",
                                          "tp=2,dp=2,zero=3",
                                          "tp=2",
                                          "dp=1",
                                          "pp=2,schedule=zb-1p,recompute=full",
                                          "pp=2,schedule=zb-2p,recompute=full",
                                          "pp=2,vpp=2,schedule=zb-v,recompute=full",
                                          "cp=2,pp=2,vpp=2,schedule=zb-v,recompute=full"};
    struct job_setup setup = {0};
    struct validation v = {.setup = &setup, .devices.alone = -1};
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    double taken = 0;
    toy_make(&toy, TOY_GPT);
    toy_lay_out(&toy, divided[_i], 0);
    toy.job.precision = PRECISION_FP32;
    toy.job.gradient_precision = PRECISION_BF16;
    setup.layout = toy.layout;
    setup.setting = toy.setting;
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_KERNEL, false, &v.program, &diags) == STATUS_OK);
    struct thread_run_options how = {.steps = 4, .rate = 1e-3f};
    ck_assert(run_on_threads(&v.program, &toy.setting, &how, &run, &diags) == STATUS_OK);
    for (int r = 0; r < run.n_ranks; r++)
        taken += (double)run.memory_peak[r];
    /* the pieces of the ring of context parallelism are buffers that the prediction does not count */
    double bound = toy.layout.cp > 1 ? 0.12 : 0.1;
    ck_assert_msg(fabs(validate_memory_of_all(&v) / taken - 1) < bound, "%s: %.0f bytes, predicted %.0f", divided[_i], taken,
                  validate_memory_of_all(&v));
    program_free(&v.program);
    thread_run_free(&run);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{cores_for_all_are_the_simulators, COUNT(cases)},
                                     {one_core_does_all_work, COUNT(cases)},
                                     {exchanges_leave_work_alone, 1},
                                     {cores_are_divided, 1},
                                     {cores_of_processes_are_united, 1},
                                     {a_quota_counts_whole_cores, COUNT(quotas)},
                                     {memory_is_what_it_takes, 12}};
    return toy_suite("ranks that share cores", tests, COUNT(tests));
}
