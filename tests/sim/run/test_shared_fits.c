/*
 * Statistics of real records beside an independent program's: fits.csv of the shared folder (MSIM_SHARED; skipped without it)
 * holds Weibull fits of the times between failures and lognormal fits of the repairs of every LANL system, to four digits.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/faults/fault_statistics.h"
#include "tests/suite.h"
#include "traces/fault/lanl_trace.h"
#include "traces/table/csv.h"

static double number(const struct csv_table *table, size_t row, const char *column)
{
    int at = csv_table_column(table, column);
    ck_assert_int_ge(at, 0);
    return strtod(csv_cell(table, row, at), NULL);
}

/* Four digits were kept. */
static void check_close(const char *what, int system, double found, double expected)
{
    ck_assert_msg(fabs(found - expected) <= 2e-3 * fabs(expected) + 1e-3, "system %d, %s: %g instead of %g", system, what, found,
                  expected);
}

static void check_gaps(int system, const struct weibull_fit *gaps, const struct csv_table *fits, size_t row)
{
    ck_assert_uint_eq(gaps->n, (size_t)number(fits, row, "n"));
    check_close("mean", system, gaps->mean_s / 3600, number(fits, row, "mean"));
    check_close("shape", system, gaps->shape, number(fits, row, "weibull_shape"));
    check_close("scale", system, gaps->scale_s / 3600, number(fits, row, "weibull_scale"));
    check_close("distance", system, gaps->ks, number(fits, row, "ks_weibull"));
    check_close("exponential's distance", system, gaps->ks_exponential, number(fits, row, "ks_exponential"));
}

static void check_repairs(int system, const struct repair_fit *repair, const struct csv_table *fits, size_t row)
{
    ck_assert_uint_eq(repair->n, (size_t)number(fits, row, "n"));
    check_close("repair", system, repair->mean_s / 3600, number(fits, row, "mean"));
    check_close("mu", system, repair->mu, number(fits, row, "lognormal_mu"));
    check_close("sigma", system, repair->sigma, number(fits, row, "lognormal_sigma"));
}

static void check_system(const char *records, int system, const char *quantity, const struct csv_table *fits, size_t row)
{
    const struct lanl_window window = {.systems = {system}, .n_systems = 1, .from = LANL_FIRST_DAY};
    struct diags diags = {0};
    struct fault_trace trace;
    struct fault_statistics statistics;
    ck_assert_int_eq(lanl_trace_read(records, &window, &trace, &diags), STATUS_OK);
    fault_statistics(&trace, fault_trace_nodes(&trace), fault_trace_horizon(&trace), &statistics);
    if (strcmp(quantity, "system TBF") == 0)
        check_gaps(system, &statistics.gaps, fits, row);
    else
        check_repairs(system, &statistics.repair, fits, row);
    fault_statistics_free(&statistics);
    fault_trace_free(&trace);
    diags_free(&diags);
}

START_TEST(lanl_systems_as_fitted_elsewhere)
{
    const char *shared = getenv("MSIM_SHARED");
    char records[512], path[512];
    snprintf(records, sizeof records, "%s/traces/lanl_failures.csv.gz", shared ? shared : "");
    snprintf(path, sizeof path, "%s/traces/fits.csv", shared ? shared : "");
    if (access(records, R_OK) != 0 || access(path, R_OK) != 0) {
        printf("skipped: no lanl_failures.csv.gz and fits.csv (MSIM_SHARED)\n");
        return;
    }
    struct csv_table fits;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_read(path, &fits, &diags), STATUS_OK);
    int checked = 0;
    for (size_t row = 0; row < fits.n_rows; row++) {
        int system;
        const char *dataset = csv_cell(&fits, row, csv_table_column(&fits, "dataset"));
        if (sscanf(dataset, "lanl_sys%d", &system) != 1 || (system < 18 || system > 20))
            continue;
        const char *quantity = csv_cell(&fits, row, csv_table_column(&fits, "quantity"));
        if (strcmp(quantity, "system TBF") != 0 && strcmp(quantity, "repair time") != 0)
            continue;
        check_system(records, system, quantity, &fits, row);
        checked++;
    }
    ck_assert_int_eq(checked, 6);
    csv_table_free(&fits);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared fits");
    TCase *all = tcase_create("shared fits");
    tcase_add_test(all, lanl_systems_as_fitted_elsewhere);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
