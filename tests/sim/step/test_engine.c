/*
 * The event engine against its definition: events leave in the order of (time, class, order of scheduling), whatever the
 * interleaving of scheduling and taking.
 */
#include <check.h>
#include <stdlib.h>

#include "model/base/random.h"
#include "sim/base/engine.h"
#include "tests/suite.h"

struct reference {
    nanos time;
    uint32_t priority;
    uint64_t sequence;
};

static int reference_compare(const void *a, const void *b)
{
    const struct reference *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Times from a range chosen so that ties are many, few, or none. */
START_TEST(leaves_as_a_stable_sort)
{
    static const uint64_t ranges[] = {1, 7, 1000, UINT64_C(1) << 40, UINT64_C(1) << 62};
    enum { N = 5000 };
    struct reference *expected = calloc(N, sizeof *expected);
    struct engine *engine = engine_create(N);
    struct random_stream random = {.key = (uint64_t)_i + 1};

    for (uint64_t k = 0; k < N; k++) {
        expected[k] = (struct reference){(nanos)(random_bits(&random) % ranges[_i]), random_bits(&random) % ENGINE_PRIORITIES, k};
        ck_assert(engine_schedule(engine, expected[k].time, expected[k].priority, k));
    }
    qsort(expected, N, sizeof *expected, reference_compare);
    for (int k = 0; k < N; k++) {
        struct event event;
        ck_assert_int_eq(engine_peek(engine), expected[k].time);
        ck_assert(engine_next(engine, &event));
        ck_assert_int_eq(event.time, expected[k].time);
        ck_assert_int_eq(event.priority, expected[k].priority);
        ck_assert_int_eq(event.payload, expected[k].sequence);
        ck_assert_int_eq(engine_now(engine), event.time);
    }
    struct event none;
    ck_assert_int_eq(engine_peek(engine), INT64_MAX);
    ck_assert(!engine_next(engine, &none));
    ck_assert_int_eq(engine_growths(engine), 0);
    engine_destroy(engine);
    free(expected);
}
END_TEST

/* Each taken event schedules others, at the present or later: the pending set is searched for its least by brute force. */
START_TEST(leaves_in_order_while_scheduling)
{
    enum { PENDING = 200, EVENTS = 20000 };
    struct reference pending[PENDING + 2];
    struct engine *engine = engine_create(PENDING + 2);
    struct random_stream random = {.key = 77};
    uint64_t sequence = 0;
    int n = 0;

    for (int taken = 0; taken < EVENTS; taken++) {
        int more = n == 0 ? 2 : n >= PENDING ? 0 : (int)(random_bits(&random) % 3);
        for (int k = 0; k < more; k++) {
            uint64_t ahead = random_bits(&random) % 4 == 0 ? 0 : random_bits(&random) >> (random_bits(&random) % 40 + 24);
            pending[n] =
                (struct reference){engine_now(engine) + (nanos)ahead, random_bits(&random) % ENGINE_PRIORITIES, sequence};
            ck_assert(engine_schedule(engine, pending[n].time, pending[n].priority, sequence++));
            n++;
        }
        int least = 0;
        for (int k = 1; k < n; k++)
            if (reference_compare(&pending[k], &pending[least]) < 0)
                least = k;
        struct event event;
        ck_assert_int_eq(engine_peek(engine), pending[least].time);
        ck_assert(engine_next(engine, &event));
        ck_assert_int_eq(event.payload, pending[least].sequence);
        pending[least] = pending[--n];
    }
    ck_assert_int_eq(engine_pending(engine), n);
    ck_assert_int_eq(engine_taken(engine), EVENTS);
    ck_assert_int_eq(engine_growths(engine), 0);
    engine_destroy(engine);
}
END_TEST

START_TEST(refuses_the_past_and_unknown_classes)
{
    struct engine *engine = engine_create(4);
    struct event event;

    ck_assert(engine_schedule(engine, 10, 0, 1));
    ck_assert(engine_next(engine, &event));
    ck_assert(!engine_schedule(engine, 9, 0, 2));
    ck_assert(!engine_schedule(engine, 11, ENGINE_PRIORITIES, 2));
    ck_assert(engine_schedule(engine, 10, 0, 3));
    ck_assert_int_eq(engine_pending(engine), 1);
    engine_destroy(engine);
    engine_destroy(NULL);
}
END_TEST

START_TEST(grows_beyond_its_room)
{
    struct engine *engine = engine_create(1);
    struct event event;

    for (int k = 0; k < 100; k++)
        ck_assert(engine_schedule(engine, 100 - k, 0, (uint64_t)k));
    ck_assert_int_gt(engine_growths(engine), 0);
    for (int k = 99; k >= 0; k--) {
        ck_assert(engine_next(engine, &event));
        ck_assert_int_eq(event.payload, k);
    }
    engine_destroy(engine);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine");
    TCase *order = tcase_create("order");

    tcase_add_loop_test(order, leaves_as_a_stable_sort, 0, 5);
    tcase_add_test(order, leaves_in_order_while_scheduling);
    tcase_add_test(order, refuses_the_past_and_unknown_classes);
    tcase_add_test(order, grows_beyond_its_room);
    suite_add_tcase(suite, order);
    return suite_run(suite);
}
