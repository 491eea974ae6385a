#include "tests/runtime/members.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/device/device_cpu.h"
#include "tests/runtime/toys.h"

void member_open(struct member *m, struct world *world, const nanos *epoch)
{
    *m = (struct member){.rank = world->rank, .world = world, .epoch = epoch};
    for (int i = 0; i < MEMBER_NUMBERS; i++)
        m->wide_in[i] = m->in[i] = (float)(100 * m->rank + i);
    m->status = device_cpu_open(m->rank, epoch, 0, &m->device, &m->diags);
    if (m->status == STATUS_OK)
        m->status = m->device->api->stream_new(m->device, false, &m->stream, &m->diags);
}

void member_close(struct member *m)
{
    if (m->diags.n_items)
        snprintf(m->text, sizeof m->text, "%s", m->diags.items[0].text);
    m->device->api->stream_free(m->stream);
    m->world->api->close(m->world);
    m->device->api->close(m->device);
    diags_free(&m->diags);
}

struct communicator *member_group(struct member *m, int first, int n)
{
    struct communicator *made = NULL;
    int ranks[MEMBERS_MOST];
    for (int i = 0; i < n; i++)
        ranks[i] = first + i;
    if (m->status == STATUS_OK)
        m->status = m->world->api->communicator_new(m->world, ranks, n, &made, &m->diags);
    return made;
}

void member_begin(struct member *m, struct communicator *among, struct exchange_call call)
{
    call.in = call.in ? call.in : m->in;
    call.out = call.out ? call.out : m->out;
    call.what = call.what ? call.what : "numbers";
    if (m->status == STATUS_OK && among)
        m->status = m->world->api->enqueue(among, m->stream, &call, &m->diags);
}

void member_finish(struct member *m)
{
    if (m->status == STATUS_OK)
        m->status = m->device->api->stream_synchronise(m->stream, &m->diags);
}

void member_says(const struct member *m, const char *part)
{
    ck_assert_msg(strstr(m->text, part) != NULL, "rank %d: '%s' does not say '%s'", m->rank, m->text, part);
}

void member_sleep(nanos duration)
{
    const struct timespec t = {.tv_sec = duration / NANOS_PER_SECOND, .tv_nsec = duration % NANOS_PER_SECOND};
    nanosleep(&t, NULL);
}

static void check_numbers(const struct member *m, const float *expected, int n)
{
    ck_assert_msg(m->status == STATUS_OK, "rank %d: %s", m->rank, m->text);
    for (int i = 0; i < n; i++)
        ck_assert_msg(m->out[i] == expected[i], "rank %d, number %d: %g is not %g", m->rank, i, m->out[i], expected[i]);
}

/* --- every kind */

static void exchange_all_kinds(struct member *m)
{
    struct communicator *all = member_group(m, 0, 3);
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    member_begin(
        m, all,
        (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .reduction = REDUCTION_MAX, .count = 4, .out = m->out + 4});
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_GATHER, .count = 2, .blocks = 2, .out = m->out + 8});
    member_begin(m, all,
                 (struct exchange_call){.exchange = EXCHANGE_REDUCE_SCATTER, .count = 2, .blocks = 2, .out = m->out + 14});
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_TO_ALL, .count = 1, .out = m->out + 16});
    member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_BROADCAST, .count = 2, .peer = 1, .out = m->out + 19});
    for (int max = 0; max < 2; max++)
        member_begin(m, all,
                     (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE,
                                            .element = ELEMENT_FP64,
                                            .reduction = max ? REDUCTION_MAX : REDUCTION_SUM,
                                            .count = 2,
                                            .in = m->wide_in,
                                            .out = m->wide_out + 2 * max});
    member_finish(m);
}

static void check_all_kinds(const struct member *m)
{
    const float me = (float)m->rank, expected[] = {300, 303,      306,      309, 200, 201, 202,          203,
                                                   0,   100,      200,      1,   101, 201, 300 + 3 * me, 300 + 3 * (me + 3),
                                                   me,  100 + me, 200 + me, 100, 101};
    const double wide[] = {300, 303, 200, 201};
    check_numbers(m, expected, COUNT(expected));
    ck_assert_mem_eq(m->wide_out, wide, sizeof wide);
}

/* --- in their own place */

static void exchange_in_place(struct member *m)
{
    struct communicator *all = member_group(m, 0, 3);
    float *gathered = m->out, *sum = m->out + 6, *said = m->out + 10, *scattered = m->out + 12;
    memcpy(gathered + 2 * m->rank, m->in, 2 * sizeof *m->in);
    memcpy(sum, m->in, 4 * sizeof *m->in);
    memcpy(said, m->in, 2 * sizeof *m->in);
    memcpy(scattered, m->in, 6 * sizeof *m->in);
    const struct exchange_call calls[] = {
        {.exchange = EXCHANGE_ALL_GATHER, .count = 2, .in = gathered + 2 * m->rank, .out = gathered},
        {.exchange = EXCHANGE_ALL_REDUCE, .count = 4, .in = sum, .out = sum},
        {.exchange = EXCHANGE_BROADCAST, .count = 2, .peer = 2, .in = said, .out = said},
        {.exchange = EXCHANGE_REDUCE_SCATTER, .count = 2, .in = scattered, .out = scattered + 2 * m->rank},
    };
    for (int i = 0; i < COUNT(calls); i++)
        member_begin(m, all, calls[i]);
    member_finish(m);
    memmove(scattered, scattered + 2 * m->rank, 2 * sizeof *scattered);
}

static void check_in_place(const struct member *m)
{
    const float first = 300 + 3 * 2 * (float)m->rank;
    const float expected[] = {0, 1, 100, 101, 200, 201, 300, 303, 306, 309, 200, 201, first, first + 3};
    check_numbers(m, expected, COUNT(expected));
}

/* --- parts of different sizes */

/* Rows of two numbers: to rank m from rank r (r + m) % 3 of them; of all-gather and reduce-scatter 1, 0 and 2 of the members. */
static void exchange_ragged_parts(struct member *m)
{
    static const int32_t rows[] = {1, 0, 2};
    struct communicator *all = member_group(m, 0, 3);
    int32_t given[3];
    for (int to = 0; to < 3; to++)
        given[to] = (m->rank + to) % 3;
    memset(m->out, 0, sizeof m->out);
    const struct exchange_call calls[] = {
        {.exchange = EXCHANGE_ALL_TO_ALL, .count = 2, .parts = {.sent = given, .received = given}},
        {.exchange = EXCHANGE_ALL_GATHER, .count = 2, .parts = {.received = rows}, .out = m->out + 6},
        {.exchange = EXCHANGE_REDUCE_SCATTER, .count = 2, .parts = {.sent = rows}, .out = m->out + 12},
    };
    for (int i = 0; i < COUNT(calls); i++)
        member_begin(m, all, calls[i]);
    member_finish(m);
}

/* What rank 0 sends to 0, 1, 2: nothing, its row 0, its rows 1 and 2; rank 1: row 0, rows 1 and 2, nothing; rank 2: rows 0 and 1,
 * nothing, row 2. */
static void check_ragged_parts(const struct member *m)
{
    static const float expected[3][16] = {
        {100, 101, 200, 201, 202, 203, 0, 1, 200, 201, 202, 203, 300, 303, 0, 0},
        {0, 1, 102, 103, 104, 105, 0, 1, 200, 201, 202, 203, 0, 0, 0, 0},
        {2, 3, 4, 5, 204, 205, 0, 1, 200, 201, 202, 203, 306, 309, 312, 315},
    };
    check_numbers(m, expected[m->rank], COUNT(expected[0]));
}

/* --- messages */

/* Three of different sizes, from rank 0 to rank 1. */
static void exchange_messages(struct member *m)
{
    struct communicator *pair = member_group(m, 0, 2);
    for (int i = 0; i < 3; i++)
        member_begin(m, pair,
                     (struct exchange_call){.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND,
                                            .count = i + 1,
                                            .peer = !m->rank,
                                            .in = m->in + 4 * i,
                                            .out = m->out + 4 * i});
    member_finish(m);
}

static void check_messages(const struct member *m)
{
    static const float expected[] = {0, 0, 0, 0, 4, 5, 0, 0, 8, 9, 10};
    ck_assert_msg(m->status == STATUS_OK, "rank %d: %s", m->rank, m->text);
    if (m->rank == 1)
        check_numbers(m, expected, COUNT(expected));
}

const struct exchange_by_hand exchanges_by_hand[N_EXCHANGES_BY_HAND] = {
    {exchange_all_kinds, check_all_kinds, 3},
    {exchange_in_place, check_in_place, 3},
    {exchange_ragged_parts, check_ragged_parts, 3},
    {exchange_messages, check_messages, 2},
};

/* --- who does not come */

void exchange_half(struct member *m)
{
    struct communicator *pair = member_group(m, 0, 2);
    struct exchange_call call = {.exchange = m->rank ? EXCHANGE_RECV : EXCHANGE_SEND, .count = 1, .peer = !m->rank};
    for (int i = 0; i < 1 + m->rank; i++)
        member_begin(m, pair, call);
    member_finish(m);
}

void exchange_and_fail(struct member *m)
{
    if (!m->rank)
        device_cpu_fail(m->device, "out of order");
    exchange_half(m);
}

void exchange_and_go(struct member *m)
{
    struct communicator *all = member_group(m, 0, 4), *pair = member_group(m, 1, 3);
    if (m->rank == 3) {
        member_sleep(NANOS_PER_SECOND / 5);
        m->world->api->abandon(m->world, "enough");
        m->world->api->abandon(m->world, "really");
    } else if (m->rank == 2) {
        m->status = m->world->api->barrier(m->world, false, &m->diags);
    } else if (m->rank == 1) {
        member_begin(m, pair, (struct exchange_call){.exchange = EXCHANGE_RECV, .count = 4, .peer = 2});
    } else {
        member_begin(m, all, (struct exchange_call){.exchange = EXCHANGE_ALL_REDUCE, .count = 4});
    }
    member_finish(m);
}
