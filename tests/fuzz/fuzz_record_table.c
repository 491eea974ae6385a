/* Tables of records: what is accepted has cells, the nodes of lists in them have names, and every wrong time is reported. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/table/job_table.h"
#include "traces/table/node_list.h"

static void check_list(const char *text)
{
    char name[NODE_NAME_SIZE];
    int64_t n = node_list_count(text);
    fuzz_expect(n >= 0 && n <= NODE_LIST_MOST, "a list has a number of nodes");
    fuzz_expect(!node_list_name(text, n, name), "none behind the last");
    if (n > 0 && node_list_name(text, n - 1, name))
        fuzz_expect(name[0] != '\0', "a node has a name");
}

static void check_row(struct record_table *records, const struct job_columns *columns, size_t row)
{
    nanos end;
    size_t errors = records->diags->n_errors;
    for (int i = 0; i < records->table.n_columns; i++)
        check_list(csv_cell(&records->table, row, i));
    (void)job_ending_of(csv_cell(&records->table, row, columns->state));
    (void)job_is_step(&records->table, columns, row);
    fuzz_expect(job_gpus(&records->table, columns, row) >= -1, "GPUs are a number, or unknown");
    if (!job_end(records, columns, row, INT64_C(86400000000000) * 36600, &end))
        fuzz_expect(records->diags->n_errors > errors, "a refusal says why");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct record_table records;
    struct job_columns columns;
    char *text = fuzz_text(data, size);
    if (record_table_parse(&records, "table", text, size, &diags) == STATUS_OK) {
        job_columns_find(&records.table, &columns);
        for (size_t row = 0; row < records.table.n_rows; row++)
            check_row(&records, &columns, row);
        record_table_close(&records);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    free(text);
    diags_free(&diags);
    return 0;
}
