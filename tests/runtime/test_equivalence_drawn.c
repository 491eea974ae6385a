/* Layouts and features drawn at random: whatever is legal verifies, executes, and equals one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/drawn.h"
#include "tests/runtime/equivalence.h"
#include "tests/suite.h"

enum { DRAWS = 200 };

/* The k-th legal draw. */
START_TEST(equals_one_rank_drawn)
{
    static const enum detail details[] = {DETAIL_CHUNK, DETAIL_LAYER, DETAIL_KERNEL, DETAIL_KERNEL};
    struct toy toy;
    uint64_t number = (uint64_t)_i << 32;
    while (!draw_toy(number, &toy))
        number++;
    check_toy(&toy, details[_i % COUNT(details)]);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{equals_one_rank_drawn, suite_draws(DRAWS, 4)}};
    return toy_suite("runtime equivalence: drawn", tests, COUNT(tests));
}
