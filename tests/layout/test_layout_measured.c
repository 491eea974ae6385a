/* Every measured run of the shared tables is a legal layout: rules that real runs break would be wrong rules. */
#include <check.h>

#include "tests/suite.h"
#include "tests/traces/measured_tables.h"

/* On a machine that has every precision: what a GPU can compute in is no rule of layouts. */
static void check_row(const struct measurement *run, size_t index)
{
    struct setting setting = measurement_setting(run);
    struct cluster cluster = run->cluster;
    char why[256];
    (void)index;
    for (int i = 0; i < N_PRECISIONS; i++)
        cluster.gpu.peak_flops[i] = 1;
    setting.cluster = &cluster;
    enum layout_reason reason = layout_check(&run->layout, &setting, why, sizeof why);
    ck_assert_msg(reason == LAYOUT_LEGAL, "%s: %s", run->name, why);
}

START_TEST(all_rows_are_legal)
{
    measured_tables_each(check_row);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layout_measured");
    TCase *tcase = tcase_create("measured");
    tcase_add_test(tcase, all_rows_are_legal);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
