/* Tables: what is read, and where a mistake is said to be. Expectations are positions counted by hand in the texts below. */
#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "model/base/memory.h"
#include "tests/suite.h"
#include "traces/table/csv.h"

static enum status parse(const char *text, struct csv_table *table, struct diags *diags)
{
    return csv_table_parse("t.csv", text, strlen(text), table, diags);
}

static void expect_diag(const struct diags *diags, size_t index, int line, int column, const char *part)
{
    ck_assert_uint_lt(index, diags->n_items);
    ck_assert_str_eq(diags->items[index].file, "t.csv");
    ck_assert_int_eq(diags->items[index].line, line);
    ck_assert_int_eq(diags->items[index].column, column);
    ck_assert_msg(strstr(diags->items[index].text, part) != NULL, "'%s' has no '%s'", diags->items[index].text, part);
}

/* The whole text is refused, for one reason, at one place. */
static void expect_refused(const char *text, size_t n, int line, int column, const char *part)
{
    struct csv_table table = {0};
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_parse("t.csv", text, n, &table, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    expect_diag(&diags, 0, line, column, part);
    ck_assert_ptr_null(table.cells);
    diags_free(&diags);
}

START_TEST(plain_table)
{
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(parse("a,b,c\n1, two ,3.5\n,\"x, \"\"y\"\"\",\n", &table, &diags), STATUS_OK);
    ck_assert_int_eq(table.n_columns, 3);
    ck_assert_uint_eq(table.n_rows, 2);
    ck_assert_str_eq(table.header[2], "c");
    ck_assert_str_eq(csv_cell(&table, 0, 1), "two");
    ck_assert_str_eq(csv_cell(&table, 1, 0), "");
    ck_assert_str_eq(csv_cell(&table, 1, 1), "x, \"y\"");
    ck_assert_str_eq(csv_cell(&table, 1, 2), "");
    ck_assert_str_eq(csv_cell(&table, 1, -1), "");
    ck_assert_int_eq(csv_table_column(&table, "b"), 1);
    ck_assert_int_eq(csv_table_column(&table, "B"), -1);
    ck_assert_uint_eq(diags.n_items, 0);
    csv_table_free(&table);
}
END_TEST

/* The same table whatever the line ends, with a byte-order mark, blank lines, rows of empty cells, and no end of the last line.
 */
START_TEST(line_ends)
{
    static const char *const texts[] = {"a,b\n1,2\n3,4\n",
                                        "a,b\r\n1,2\r\n3,4\r\n",
                                        "a,b\r1,2\r3,4",
                                        ("\xEF\xBB\xBF"
                                         "a,b\n1,2\n3,4"),
                                        "\n\na,b\n\n1,2\n  \n3,4\n\n",
                                        ",\n\na,b\n,\n1,2\n , ,\n3,4\n,\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct csv_table table;
        struct diags diags = {0};
        ck_assert_int_eq(parse(texts[i], &table, &diags), STATUS_OK);
        ck_assert_str_eq(table.header[0], "a");
        ck_assert_uint_eq(table.n_rows, 2);
        ck_assert_str_eq(csv_cell(&table, 1, 1), "4");
        ck_assert_int_eq(csv_place(&table, 1, 1).line, i >= 4 ? 7 : 3);
        ck_assert_int_eq(csv_place(&table, 1, 1).column, 3);
        csv_table_free(&table);
    }
}
END_TEST

/* Semicolons or tabs where the header has no comma; comments between records only. */
START_TEST(other_separators)
{
    static const char *const texts[] = {"# of ours, in May\na;b\n1,5;\"#2;\"\n#3;4\n", "a\tb\n1,5\t#2;\n",
                                        "\"a;b\",b\n\"1,5\",#2;\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct csv_table table;
        struct diags diags = {0};
        ck_assert_int_eq(parse(texts[i], &table, &diags), STATUS_OK);
        ck_assert_int_eq(table.n_columns, 2);
        ck_assert_uint_eq(table.n_rows, 1);
        ck_assert_str_eq(csv_cell(&table, 0, 0), "1,5");
        ck_assert_str_eq(csv_cell(&table, 0, 1), "#2;");
        ck_assert_int_eq(csv_place(&table, 0, 1).line, i == 0 ? 3 : 2);
        ck_assert_int_eq(csv_place(&table, 0, 1).column, i == 2 ? 7 : 5);
        csv_table_free(&table);
    }
}
END_TEST

/* Line breaks in quoted cells count as lines; columns count characters (not bytes) from the start of the cell's own line. */
START_TEST(places)
{
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(parse("name,x,y\n\"one\ntwo\",  7,\"\xC3\xA9\xC3\xA9\"\nlast,\"8\",9\n", &table, &diags), STATUS_OK);
    struct {
        size_t row;
        int column, at_line, at_column;
    } const cases[] = {{0, 0, 2, 1}, {0, 1, 3, 8}, {0, 2, 3, 10}, {1, 0, 4, 1}, {1, 1, 4, 6}, {1, 2, 4, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct place at = csv_place(&table, cases[i].row, cases[i].column);
        ck_assert_str_eq(at.file, "t.csv");
        ck_assert_int_eq(at.line, cases[i].at_line);
        ck_assert_int_eq(at.column, cases[i].at_column);
    }
    ck_assert_int_eq(csv_place(&table, 1, -1).line, 4);
    ck_assert_int_eq(csv_place(&table, 1, -1).column, 0);
    ck_assert_int_eq(csv_header_place(&table, 2).line, 1);
    ck_assert_int_eq(csv_header_place(&table, 2).column, 8);
    csv_table_free(&table);

    ck_assert_int_eq(parse("a,b\n\"\xC3\xA9\xC3\xA9\",z\n", &table, &diags), STATUS_OK);
    ck_assert_int_eq(csv_place(&table, 0, 1).column, 6); /* "éé", is five characters and seven bytes */
    csv_table_free(&table);
}
END_TEST

START_TEST(ragged_rows)
{
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(parse("a,b\n1\n1,2\n1,2,3\n", &table, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 2);
    expect_diag(&diags, 0, 2, 0, "this row has 1 cell where the header has 2");
    expect_diag(&diags, 1, 4, 0, "this row has 3 cells where the header has 2");
    diags_free(&diags);
}
END_TEST

START_TEST(broken_texts)
{
    expect_refused("", 0, 0, 0, "is empty");
    expect_refused("\n \n", 3, 0, 0, "is empty");
    expect_refused("a,b\n1,\"2\n3,4\n", 13, 2, 3, "never closed");
    expect_refused("a,b\n1,2\"2\n", 10, 2, 3, "quote inside");
    expect_refused("a,b\n1,\"2\"2\n", 11, 2, 3, "quote inside");
    expect_refused("a,b\n1,\0\n", 8, 2, 3, "byte 0x00 is not UTF-8 text");
    expect_refused("a,b\n\xC3\xA9,\xFF\n", 8, 2, 3, "byte 0xFF is not UTF-8 text");
    expect_refused("a,\xC0\xAF\n", 5, 1, 3, "byte 0xC0");     /* overlong */
    expect_refused("a,\xED\xA0\x80\n", 6, 1, 3, "byte 0xED"); /* surrogate */
    expect_refused("a,\xE2\x82", 4, 1, 3, "byte 0xE2");       /* cut off */
    expect_refused("a,b,a\n", 6, 1, 5, "'a' is there twice");
}
END_TEST

START_TEST(column_lookup)
{
    static const struct csv_column expected[] = {{"layers", true}, {"hidden", true}, {"seq_len", true}, {"note", false}};
    struct csv_table table;
    struct diags diags = {0};
    int columns[4];
    ck_assert_int_eq(parse("hiden,seq_len,extra\n1,2,3\n", &table, &diags), STATUS_OK);
    ck_assert_int_eq(csv_table_columns(&table, expected, 4, columns, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    expect_diag(&diags, 0, 1, 1, "missing columns 'layers', 'hidden' (did you mean 'hiden'?)");
    csv_table_note_unknown_columns(&table, expected, 4, &diags);
    expect_diag(&diags, 1, 1, 1, "unknown columns 'hiden' (did you mean 'hidden'?), 'extra' ignored");
    csv_table_free(&table);
    diags_free(&diags);

    ck_assert_int_eq(parse("seq_len,hidden,layers\n1,2,3\n", &table, &diags), STATUS_OK);
    ck_assert_int_eq(csv_table_columns(&table, expected, 4, columns, &diags), STATUS_OK);
    ck_assert_int_eq(columns[0], 2);
    ck_assert_int_eq(columns[1], 1);
    ck_assert_int_eq(columns[2], 0);
    ck_assert_int_eq(columns[3], -1);
    csv_table_note_unknown_columns(&table, expected, 4, &diags);
    ck_assert_uint_eq(diags.n_items, 0);
    csv_table_free(&table);
}
END_TEST

START_TEST(typed_cells)
{
    struct csv_table table;
    struct diags diags = {0};
    int64_t whole = -1;
    double number = -1;
    ck_assert_int_eq(parse("n,x\n12,1.5e3\n1.5,abc\n,\"\"\n99999999999999999999,inf\n0,-2\n", &table, &diags), STATUS_OK);
    ck_assert_int_eq(csv_cell_integer(&table, 0, 0, 1, 100, &whole, &diags), STATUS_OK);
    ck_assert_int_eq(csv_cell_number(&table, 0, 1, 0, 1e9, &number, &diags), STATUS_OK);
    ck_assert_int_eq(whole, 12);
    ck_assert_double_eq(number, 1500);
    ck_assert_uint_eq(diags.n_items, 0);
    for (size_t row = 1; row < 5; row++) {
        ck_assert_int_eq(csv_cell_integer(&table, row, 0, 1, INT_MAX, &whole, &diags), STATUS_BAD_INPUT);
        ck_assert_int_eq(csv_cell_number(&table, row, 1, 0, 1e9, &number, &diags), STATUS_BAD_INPUT);
    }
    expect_diag(&diags, 0, 3, 1, "n '1.5' is not a whole number");
    expect_diag(&diags, 1, 3, 5, "x 'abc' is not a number");
    expect_diag(&diags, 2, 4, 1, "n is empty; a whole number is needed here");
    expect_diag(&diags, 3, 4, 2, "x is empty");
    expect_diag(&diags, 4, 5, 1, "is not a whole number of at least 1");
    expect_diag(&diags, 5, 5, 22, "x 'inf' is not a number");
    expect_diag(&diags, 6, 6, 1, "n '0' is not a whole number of at least 1");
    expect_diag(&diags, 7, 6, 3, "x '-2' is not a number from 0 to 1e+09");
    ck_assert_int_eq(whole, 12); /* untouched */
    ck_assert_double_eq(number, 1500);
    csv_table_free(&table);
    diags_free(&diags);
}
END_TEST

START_TEST(compressed_file)
{
    char path[] = "/tmp/msim-csv-XXXXXX.gz";
    int fd = mkstemps(path, 3);
    ck_assert_int_ge(fd, 0);
    gzFile file = gzdopen(fd, "wb");
    ck_assert_int_gt(gzputs(file, "a,b\n1,2\n"), 0);
    ck_assert_int_eq(gzclose(file), Z_OK);
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_read(path, &table, &diags), STATUS_OK);
    unlink(path);
    ck_assert_str_eq(table.name, path);
    ck_assert_str_eq(csv_cell(&table, 0, 1), "2");
    csv_table_free(&table);

    ck_assert_int_eq(csv_table_read("/nonexistent/t.csv", &table, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    diags_free(&diags);
}
END_TEST

/* What is written reads back as the same cells. */
START_TEST(round_trip)
{
    static const char *const cells[] = {"plain", "", "a,b", "say \"x\"", "two\nlines", " edge ", "\xC3\xA9"};
    enum { N = sizeof cells / sizeof *cells };
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    csv_write_row(out, (const char *const[]){"0", "1", "2", "3", "4", "5", "6"}, N);
    csv_write_row(out, cells, N);
    csv_write_number(out, true, 0.1);
    csv_write_number(out, false, 1.0 / 3);
    csv_write_number(out, false, 2566120);
    csv_write_number(out, false, (double)0 / 0.0 * 0);
    csv_write_integer(out, false, -5);
    fputs(",,\n", out);
    fclose(out);
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_parse("t.csv", text, n, &table, &diags), STATUS_OK);
    for (int i = 0; i < N; i++)
        ck_assert_str_eq(csv_cell(&table, 0, i), cells[i]);
    ck_assert_str_eq(csv_cell(&table, 1, 0), "0.1");
    ck_assert_double_eq(strtod(csv_cell(&table, 1, 1), NULL), 1.0 / 3);
    ck_assert_str_eq(csv_cell(&table, 1, 2), "2566120");
    ck_assert_str_eq(csv_cell(&table, 1, 3), "");
    ck_assert_str_eq(csv_cell(&table, 1, 4), "-5");
    csv_table_free(&table);
    free(text);
}
END_TEST

/* One cell a row, with what would separate cells where no comma does. */
START_TEST(round_trip_of_one_column)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    csv_write_row(out, (const char *const[]){"a;b"}, 1);
    csv_write_row(out, (const char *const[]){"c\td"}, 1);
    fclose(out);
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_parse("t.csv", text, n, &table, &diags), STATUS_OK);
    ck_assert_int_eq(table.n_columns, 1);
    ck_assert_str_eq(table.header[0], "a;b");
    ck_assert_str_eq(csv_cell(&table, 0, 0), "c\td");
    csv_table_free(&table);
    free(text);
}
END_TEST

/* UTF-16 is named in the message. */
START_TEST(wide_text)
{
    static const char text[] = "\xFF\xFE"
                               "a\0,\0b";
    struct csv_table table;
    struct diags diags = {0};
    ck_assert_int_eq(csv_table_parse("t.csv", text, sizeof text, &table, &diags), STATUS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "UTF-16 text; save it as UTF-8"));
    diags_free(&diags);
}
END_TEST

/* Every table of real data at hand is read whole. */
START_TEST(shared_tables)
{
    const char *shared = getenv("MSIM_SHARED");
    static const struct {
        const char *path;
        size_t rows;
    } files[] = {{"traces/lanl_replay_1536.csv.gz", 4424},  {"traces/g5k_unavailability.csv.gz", 294145},
                 {"traces/bgl_ras_failures.csv.gz", 63951}, {"traces/bytedance_ops_AR.csv.gz", 116512},
                 {"measured/hagemann_layouts.csv", 603},    {"measured/vtrain_single.csv", 720}};
    for (size_t i = 0; shared && i < sizeof files / sizeof *files; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", shared, files[i].path);
        if (access(path, R_OK) != 0) {
            printf("skipped: no %s\n", path);
            continue;
        }
        struct csv_table table;
        struct diags diags = {0};
        enum status status = csv_table_read(path, &table, &diags);
        diags_print(&diags, stdout, false);
        ck_assert_int_eq(status, STATUS_OK);
        ck_assert_uint_eq(table.n_rows, files[i].rows);
        csv_table_free(&table);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("csv");
    TCase *reading = tcase_create("reading");
    tcase_add_test(reading, other_separators);
    tcase_add_test(reading, plain_table);
    tcase_add_test(reading, line_ends);
    tcase_add_test(reading, places);
    tcase_add_test(reading, ragged_rows);
    tcase_add_test(reading, broken_texts);
    tcase_add_test(reading, column_lookup);
    tcase_add_test(reading, typed_cells);
    tcase_add_test(reading, compressed_file);
    tcase_add_test(reading, round_trip);
    tcase_add_test(reading, round_trip_of_one_column);
    tcase_add_test(reading, wide_text);
    tcase_add_test(reading, shared_tables);
    suite_add_tcase(suite, reading);
    return suite_run(suite);
}
