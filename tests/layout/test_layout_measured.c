/* Every measured run of the shared tables is a legal layout: rules that real runs break would be wrong rules. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "model/layout/layout.h"
#include "traces/csv.h"

enum { N_MEASURED_ROWS = 1656 };

static int64_t number(const struct csv_table *table, size_t row, const char *name, int64_t otherwise)
{
    const char *cell = csv_cell(table, row, csv_table_column(table, name));
    return *cell ? strtoll(cell, NULL, 10) : otherwise;
}

static int whole(const struct csv_table *table, size_t row, const char *name)
{
    return (int)number(table, row, name, 1);
}

static feature_set features_of(const char *cell)
{
    feature_set set = 0;
    while (*cell) {
        char name[64] = "";
        size_t n = strcspn(cell, ";");
        ck_assert_uint_lt(n, sizeof name);
        memcpy(name, cell, n);
        ck_assert_msg(!*name || feature_parse(name) >= 0, "feature '%s'", name);
        set |= *name ? (feature_set)1 << feature_parse(name) : 0;
        cell += n + (cell[n] == ';');
    }
    return set;
}

static struct transformer model_of(const struct csv_table *table, size_t row)
{
    struct transformer model = {
        .layers = whole(table, row, "layers"),
        .hidden = number(table, row, "hidden", 0),
        .ffn_hidden = number(table, row, "ffn_hidden", 0),
        .heads = whole(table, row, "heads"),
        .kv_heads = whole(table, row, "kv_heads"),
        .vocab = number(table, row, "vocab", 0),
        .window = 1024,
    };
    if (whole(table, row, "ep") > 1)
        model.moe = (struct mixture){.experts = 256, .top_k = 8, .expert_ffn = 1536, .every = 1};
    if (strcmp(csv_cell(table, row, csv_table_column(table, "model")), "deepseek-v3") == 0)
        model.attention = ATTENTION_LATENT;
    return model;
}

static void check_row(const struct csv_table *table, size_t row)
{
    struct transformer model = model_of(table, row);
    struct layout layout = {
        .tp = whole(table, row, "tp"),
        .cp = whole(table, row, "cp"),
        .pp = whole(table, row, "pp"),
        .vpp = whole(table, row, "vpp"),
        .dp = whole(table, row, "dp"),
        .ep = whole(table, row, "ep"),
        .zero = (int)number(table, row, "zero", 0),
        .sequence_parallel = number(table, row, "sequence_parallel", 0) != 0,
        .micro_batch = whole(table, row, "micro_batch"),
        .recompute = (enum recompute)recompute_parse(csv_cell(table, row, csv_table_column(table, "recompute"))),
        .schedule = (enum schedule)schedule_parse(csv_cell(table, row, csv_table_column(table, "schedule"))),
        .features = features_of(csv_cell(table, row, csv_table_column(table, "features"))),
    };
    struct job job = {.global_batch = number(table, row, "global_batch", 0),
                      .seq_len = number(table, row, "seq_len", 0),
                      .precision = (enum precision)precision_parse(csv_cell(table, row, csv_table_column(table, "precision"))),
                      .features = layout.features};
    struct cluster cluster = {0};
    for (int i = 0; i < N_PRECISIONS; i++)
        cluster.gpu.peak_flops[i] = 1;
    struct setting setting = {&model, &cluster, &job, whole(table, row, "gpus")};
    char why[256];
    enum layout_reason reason = layout_check(&layout, &setting, why, sizeof why);
    ck_assert_msg(reason == LAYOUT_LEGAL, "%s: %s", csv_cell(table, row, csv_table_column(table, "case")), why);
}

static size_t check_table(const char *path)
{
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_read(path, &table, &diags), STATUS_OK);
    size_t n = table.n_rows;
    for (size_t row = 0; row < n; row++)
        check_row(&table, row);
    csv_table_free(&table);
    diags_free(&diags);
    return n;
}

START_TEST(all_rows_are_legal)
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
    Suite *suite = suite_create("layout_measured");
    TCase *tcase = tcase_create("measured");
    tcase_add_test(tcase, all_rows_are_legal);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
