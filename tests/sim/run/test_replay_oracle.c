/*
 * The simulator against the nanosecond-by-nanosecond oracle, on random small traces whose events often fall together.
 */
#include <check.h>
#include <stdlib.h>

#include "case.h"
#include "model/base/random.h"
#include "oracle.h"
#include "tests/suite.h"

static int64_t draw(struct random_stream *random, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(random, (uint64_t)(high - low + 1));
}

/* Times on a grid: the coarser, the more ties. */
static int64_t draw_time(struct random_stream *random, int64_t grid, int64_t high)
{
    return grid * draw(random, 0, high / grid);
}

static struct run_options draw_options(struct random_stream *random, int64_t grid)
{
    struct run_options options = {
        .nodes = (int32_t)draw(random, 1, 6),
        .horizon = 1 + draw_time(random, grid, 700),
        .checkpoint = {.interval = 1 + draw_time(random, 1, 120), .block = draw(random, 0, 1) * draw_time(random, grid, 20)},
        .recovery = {.detect = draw(random, 0, 1) * draw_time(random, grid, 20), .restart = draw_time(random, grid, 30)},
    };
    if (draw(random, 0, 1) && options.checkpoint.interval > grid)
        options.checkpoint.interval -= options.checkpoint.interval % grid;
    if (draw(random, 0, 9) == 0)
        options.checkpoint.interval += options.horizon;
    options.recovery.spares = (int)draw(random, 0, options.nodes + 1);
    options.bin = draw(random, 0, 1) * draw(random, 1, 900);
    return options;
}

static struct fault draw_fault(struct random_stream *random, const struct run_options *options, int64_t grid, bool slow)
{
    struct fault fault = {
        .time = draw_time(random, grid, options->horizon + 10),
        .down = draw(random, 0, 3) ? draw_time(random, grid, 80) : 0,
        .node = (int32_t)draw(random, 0, options->nodes - 1),
        .speed = FULL_SPEED,
        .kind = FAULT_NODE,
    };
    if (slow && draw(random, 0, 1)) {
        fault.kind = draw(random, 0, 1) ? FAULT_STRAGGLER : FAULT_LINK;
        fault.speed = (int32_t)draw(random, 1, FULL_SPEED);
    }
    return fault;
}

static void check_against_oracle(const struct run_options *options, const struct fault_trace *trace, int seed)
{
    struct run_result result = case_run(options, trace);
    struct oracle_answer answer = oracle_replay(options, trace);
    ck_assert_msg(result.interruptions == answer.interruptions, "case %d: interruptions %ld, oracle %ld", seed,
                  (long)result.interruptions, (long)answer.interruptions);
    ck_assert_msg(result.use[USE_TRAINING] == answer.training, "case %d: training", seed);
    ck_assert_msg(result.use[USE_DEGRADED] == answer.slow, "case %d: degraded", seed);
    ck_assert_msg(result.use[USE_CHECKPOINT] == answer.checkpoint, "case %d: checkpoint", seed);
    ck_assert_msg(result.use[USE_LOST] == answer.lost, "case %d: lost", seed);
    ck_assert_msg(result.use[USE_DETECTION] + result.use[USE_WAITING] + result.use[USE_RESTART] == answer.idle, "case %d: idle",
                  seed);
    ck_assert_msg(result.checkpoints == answer.checkpoints, "case %d: checkpoints", seed);
    run_result_free(&result);
}

static void check_random_cases(int first, int n, bool slow)
{
    static const int64_t grids[] = {1, 2, 10, 30};
    for (int seed = first; seed < first + n; seed++) {
        struct random_stream random = random_stream_named((uint64_t)seed, 0, 0);
        int64_t grid = grids[seed % 4];
        struct run_options options = draw_options(&random, grid);
        struct fault_trace trace = {0};
        for (int64_t faults = draw(&random, 0, 25); faults > 0; faults--)
            fault_trace_add(&trace, draw_fault(&random, &options, grid, slow), NULL);
        fault_trace_sort(&trace);
        check_against_oracle(&options, &trace, seed);
        fault_trace_free(&trace);
    }
}

START_TEST(test_outages)
{
    check_random_cases(0, 1500, false);
}
END_TEST

START_TEST(test_outages_and_slow_nodes)
{
    check_random_cases(1500, 1500, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay oracle");
    TCase *cases = tcase_create("random");
    tcase_add_test(cases, test_outages);
    tcase_add_test(cases, test_outages_and_slow_nodes);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
