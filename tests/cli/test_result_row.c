/* Rows of results: what JSON, CSV and text show of one value, and rows in another order. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/result_row.h"
#include "model/base/memory.h"
#include "tests/suite.h"

struct disk {
    const char *name;
    double bytes;
    bool known;
};

#define DISK_ROWS(ROW)                                                                                                           \
    ROW(disk, name, shown_as(as_text(s->name), "<%s>", s->name), "", JSON | CSV, "name", .show = "%s")                           \
    ROW(disk, size_b, in_json_if(s->bytes > 0, known_if(s->known, as_real(s->bytes))), "B", JSON | CSV, "size", TWELVE_DIGITS,   \
        .title = "size", .show = "%.1f")                                                                                         \
    ROW(disk, tags, shown_as(as_json(json_array()), "a b"), "", JSON | CSV, "list", .show = "%s", .view = VIEW_ALL)              \
    ROW(disk, rest, in_text_if(s->known, as_count(7)), "", CSV, "hidden from text where the size is unknown", .show = "%.0f")
RESULT_ROWS(disk_rows, DISK_ROWS)

static char *csv_of(const struct result_row *rows, const void *subject, bool heading)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (heading)
        rows_csv_heading(rows, subject, true, out);
    else
        rows_csv_cells(rows, subject, true, out);
    fclose(out);
    return text;
}

static void check_csv(const struct result_row *rows, const void *subject, bool heading, const char *expected)
{
    char *text = csv_of(rows, subject, heading);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(csv_has_a_cell_for_each_column)
{
    const struct disk full = {"a", 0.1 + 0.2, true}, unknown_size = {"b", 1, false};
    check_csv(disk_rows, &full, true, "name,size_b,tags,rest");
    check_csv(disk_rows, NULL, true, "name,size_b,tags,rest");
    check_csv(disk_rows, &full, false, "a,0.3,a b,7"); /* twelve digits; a text for JSON */
    check_csv(disk_rows, &unknown_size, false, "b,,a b,7");
    check_csv(disk_rows, NULL, false, ",,,");
}
END_TEST

START_TEST(json_leaves_out_what_has_no_key)
{
    const struct disk full = {"a", 2, true}, none = {"b", 0, true}, unknown_size = {"c", 1, false};
    json_t *json = rows_object(disk_rows, &full);
    ck_assert_str_eq(json_string_value(json_object_get(json, "name")), "a"); /* not what text shows */
    ck_assert_double_eq(json_real_value(json_object_get(json, "size_b")), 2);
    ck_assert(json_is_array(json_object_get(json, "tags")));
    ck_assert_ptr_null(json_object_get(json, "rest"));
    json_decref(json);
    json = rows_object(disk_rows, &none);
    ck_assert_ptr_null(json_object_get(json, "size_b"));
    json_decref(json);
    json = rows_object(disk_rows, &unknown_size);
    ck_assert(json_is_null(json_object_get(json, "size_b")));
    json_decref(json);
}
END_TEST

START_TEST(text_shows_picked_rows_in_their_order)
{
    static const char *const keys[] = {"tags", "", "size_b", "name", NULL};
    const struct disk full = {"a", 2, true}, unknown_size = {"c", 1, false};
    struct result_row picked[MAX_PICKED];
    struct table table = {0};
    rows_columns(rows_pick(disk_rows, keys, picked), NULL, &table);
    ck_assert_uint_eq(table.n_columns, 3);
    ck_assert_str_eq(table.columns[0].title, "tags");
    ck_assert_int_eq(table.columns[0].view, VIEW_ALL);
    ck_assert_str_eq(table.columns[1].title, "size");
    ck_assert_int_eq(table.columns[1].align, ALIGN_RIGHT);
    rows_cells(picked, &full, &table);
    rows_cells(picked, &unknown_size, &table);
    static const char *const expected[] = {"a b", "2.0", "<a>", "a b", "-", "<c>"};
    ck_assert_uint_eq(table.n_cells, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_str_eq(table.cells[i].text, expected[i]);
    table_free(&table);
    rows_cells(disk_rows, &unknown_size, &table); /* without `rest` */
    ck_assert_uint_eq(table.n_cells, 3);
    table_free(&table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("result_row");
    TCase *all = tcase_create("all");
    tcase_add_test(all, csv_has_a_cell_for_each_column);
    tcase_add_test(all, json_leaves_out_what_has_no_key);
    tcase_add_test(all, text_shows_picked_rows_in_their_order);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
