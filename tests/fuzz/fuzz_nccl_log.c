/* Logs of nccl-tests: a table with usable rows, or a refusal that says why. */
#include <math.h>

#include "tests/fuzz/fuzz.h"
#include "traces/table/kernel_table.h"
#include "traces/table/nccl_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct csv_table csv;
    struct kernel_table table;
    (void)nccl_log_is((const char *)data, size);
    enum status status = nccl_log_parse("input", (const char *)data, size, &csv, &diags);
    if (status == STATUS_OK)
        status = kernel_table_build(&csv, &table, &diags);
    if (status == STATUS_OK) {
        fuzz_expect(table.n_items > 0, "a log without rows is refused");
        for (size_t i = 0; i < table.n_items; i++)
            fuzz_expect(isfinite(table.items[i].seconds) && table.items[i].seconds > 0 && table.items[i].collective.ranks >= 2,
                        "a row has a time and ranks");
        kernel_table_free(&table);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    return 0;
}
