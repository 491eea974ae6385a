/* The programs of all measured runs are well formed. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "model/program/program.h"
#include "traces/measurement.h"

enum { N_MEASURED_ROWS = 1656, FULL_EVERY = 40 };

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

static size_t check_table(const char *path)
{
    struct measurement_table table;
    struct diags diags = {0};
    ck_assert_int_eq(measurement_table_read(path, &table, &diags), STATUS_OK);
    size_t n = table.n_items;
    for (size_t i = 0; i < n; i++) {
        check_program(&table.items[i], DETAIL_CHUNK, true);
        if (i % FULL_EVERY)
            continue;
        check_program(&table.items[i], DETAIL_KERNEL, true);
        check_program(&table.items[i], DETAIL_LAYER, false);
    }
    measurement_table_free(&table);
    diags_free(&diags);
    return n;
}

START_TEST(all_rows)
{
    char folder[512], path[1024];
    const char *shared = getenv("MSIM_SHARED");
    snprintf(folder, sizeof folder, "%s/measured", shared ? shared : "");
    DIR *dir = shared ? opendir(folder) : NULL;
    if (!dir) {
        printf("skipped: no measured tables (MSIM_SHARED is '%s')\n", shared ? shared : "");
        return;
    }
    size_t rows = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 4 || strcmp(entry->d_name + n - 4, ".csv") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        rows += check_table(path);
    }
    closedir(dir);
    ck_assert_uint_ge(rows, N_MEASURED_ROWS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_measured");
    TCase *tcase = tcase_create("measured");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, all_rows);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
