#include "tests/traces/measured_tables.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MEASURED_ROWS = 1656 };

static size_t table_each(const char *path, void (*check)(const struct measurement *run, size_t index))
{
    struct measurement_table table;
    struct diags diags = {0};
    ck_assert_int_eq(measurement_table_read(path, &table, &diags), STATUS_OK);
    size_t n = table.n_items;
    for (size_t i = 0; i < n; i++)
        check(&table.items[i], i);
    measurement_table_free(&table);
    diags_free(&diags);
    return n;
}

void measured_tables_each(void (*check)(const struct measurement *run, size_t index))
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
        rows += table_each(path, check);
    }
    closedir(dir);
    ck_assert_uint_ge(rows, N_MEASURED_ROWS);
}
