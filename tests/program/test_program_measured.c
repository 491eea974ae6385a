/* The programs of all measured runs are well formed. */
#include <check.h>

#include "model/program/program.h"
#include "tests/suite.h"
#include "tests/traces/measured_tables.h"

enum { FULL_EVERY = 40 };

static void check_program(const struct measurement *run, enum detail detail, bool folded)
{
    struct setting setting = measurement_setting(run);
    struct diags diags = {0};
    struct program program;
    ck_assert_msg(program_build(&run->layout, &setting, detail, folded, &program, &diags) == STATUS_OK, "%s: %s", run->name,
                  diags.n_items ? diags.items[0].text : "");
    ck_assert_msg(program_verify(&program, &diags) == STATUS_OK, "%s: %s", run->name, diags.items[0].text);
    program_free(&program);
    diags_free(&diags);
}

static void check_row(const struct measurement *run, size_t index)
{
    check_program(run, DETAIL_CHUNK, true);
    if (index % FULL_EVERY)
        return;
    check_program(run, DETAIL_KERNEL, true);
    check_program(run, DETAIL_LAYER, false);
}

START_TEST(all_rows)
{
    measured_tables_each(check_row);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_measured");
    TCase *tcase = tcase_create("measured");
    tcase_add_test(tcase, all_rows);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
