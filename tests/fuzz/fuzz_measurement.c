/* Measurement tables: whatever is accepted has usable shapes. */
#include "tests/fuzz/fuzz.h"
#include "traces/table/measurement.h"

static void expect_usable(const struct measurement *row)
{
    fuzz_expect(row->gpus >= 1 && row->model.layers >= 1 && row->model.hidden >= 1 && row->model.heads >= 1, "a shape");
    fuzz_expect(row->job.global_batch >= 1 && row->job.seq_len >= 1, "a job");
    fuzz_expect(row->step_s >= 0 && row->mfu >= 0, "no negative results");
    struct setting setting = measurement_setting(row);
    (void)layout_check(&row->layout, &setting, NULL, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct measurement_table table;
    struct fuzz_file file = fuzz_file_open(data, size);
    if (measurement_table_read(file.path, &table, &diags) == STATUS_OK) {
        for (size_t i = 0; i < table.n_items; i++)
            expect_usable(&table.items[i]);
        measurement_table_free(&table);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    fuzz_file_close(&file);
    diags_free(&diags);
    return 0;
}
