/* CSV tables: every cell has a place inside the text, and what is written again is read as the same table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "traces/table/csv.h"

static void touch_cells(const struct csv_table *table, struct diags *diags)
{
    size_t n = table->n_rows < 64 ? table->n_rows : 64;
    for (size_t row = 0; row < n; row++) {
        for (int column = 0; column < table->n_columns; column++) {
            struct place at = csv_place(table, row, column);
            fuzz_expect(at.line >= 1 && at.column >= 1, "a cell has a place");
            double number;
            int64_t integer;
            (void)!csv_cell_number(table, row, column, -1e9, 1e9, &number, diags);
            (void)!csv_cell_integer(table, row, column, 0, 1000, &integer, diags);
        }
    }
}

static void expect_same(const struct csv_table *a, const struct csv_table *b)
{
    fuzz_expect(a->n_rows == b->n_rows && a->n_columns == b->n_columns, "the same shape");
    for (size_t i = 0; i < a->n_rows * (size_t)a->n_columns; i++)
        fuzz_expect(strcmp(a->cells[i], b->cells[i]) == 0, "the same cells");
}

static void round_trip(const struct csv_table *table, struct diags *diags)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    fuzz_expect(out != NULL, "a stream in memory");
    csv_write_row(out, table->header, (size_t)table->n_columns);
    for (size_t row = 0; row < table->n_rows; row++)
        csv_write_row(out, table->cells + row * (size_t)table->n_columns, (size_t)table->n_columns);
    fclose(out);
    struct csv_table again;
    fuzz_expect(csv_table_parse("again", text, size, &again, diags) == STATUS_OK, "a written table is read");
    expect_same(table, &again);
    csv_table_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct diags diags = {0};
    struct csv_table table;
    if (csv_table_parse("input", (const char *)data, size, &table, &diags) == STATUS_OK) {
        touch_cells(&table, &diags);
        if (strncmp(table.header[0], "\xef\xbb\xbf", 3) != 0) /* written first, it would be a byte-order mark */
            round_trip(&table, &diags);
        csv_table_free(&table);
    } else {
        fuzz_expect(diags.n_errors > 0, "a refusal says why");
    }
    diags_free(&diags);
    return 0;
}
