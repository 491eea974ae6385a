/* Tables and progress: what they print, character by character. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/terminal.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "tests/suite.h"

static struct table sample(void)
{
    struct table table = {0};
    table_column(&table, "layout", NULL, ALIGN_LEFT);
    table_column(&table, "step time", "s", ALIGN_RIGHT);
    table_column(&table, "MFU", "%", ALIGN_RIGHT);
    table_cell(&table, "tp=8,pp=8");
    table_cell(&table, "%.2f", 6.34);
    table_cell(&table, "%.1f", 55.2);
    table_cell(&table, "größer");
    table_cell(&table, "%.2f", 16.0);
    table_tint(&table, TINT_BAD);
    table_cell(&table, "%.1f", 5.0);
    return table;
}

/* As on a terminal of `width` columns; 0: not on a terminal. */
static char *written_on(const struct table *table, enum format format, bool colour, int width)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct invocation call = {.out = out, .format = format, .colour = colour, .width = width};
    table_write(table, &call);
    fclose(out);
    return text;
}

static char *written(const struct table *table, enum format format, bool colour)
{
    return written_on(table, format, colour, 0);
}

START_TEST(ratios_have_no_exponent)
{
    static const struct {
        double ratio;
        const char *text;
    } cases[] = {{1, "1"}, {4 / 3.0, "1.33"}, {0.023, "0.023"}, {999, "999"}, {1000, "1000"}, {1e6, "1000000"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(ratio_text(cases[i].ratio, text, sizeof text), cases[i].text);
}
END_TEST

START_TEST(three_digits_keep_their_zeros)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {{19.95, "19.9"}, {19.96, "20.0"}, {1.1, "1.10"},    {31, "31.0"},      {0.031, "0.0310"}, {99.96, "100"},
                 {9.999, "10.0"}, {999.4, "999"},  {999.6, "1,000"}, {12288, "12,288"}, {0, "0"},          {-1.5, "-1.50"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(three_digits(cases[i].number, text, sizeof text), cases[i].text);
}
END_TEST

START_TEST(text_is_aligned)
{
    struct table table = sample();
    char *text = written(&table, FORMAT_TEXT, false);
    ck_assert_str_eq(text, "layout     step time [s]  MFU [%]\n"
                           "tp=8,pp=8           6.34     55.2\n"
                           "größer             16.00      5.0\n");
    free(text);
    table_free(&table);
}
END_TEST

static struct table wide_sample(void)
{
    struct table table = {0};
    table_column(&table, "rank", NULL, ALIGN_RIGHT);
    table_column(&table, "pp", NULL, ALIGN_RIGHT);
    table_column(&table, "closed form", "s", ALIGN_RIGHT);
    table_column(&table, "why", NULL, ALIGN_LEFT);
    static const char *const cells[] = {"1", "8", "6.1", "fits", "2", "8", "6.25", "too large by four GiB, or so"};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        table_cell(&table, "%s", cells[i]);
    return table;
}

/* Only as much is given up as the width asks for: first headings, then columns that say the same, then the longest texts. */
START_TEST(a_table_is_no_wider_than_the_terminal)
{
    static const struct {
        int width;
        const char *text;
    } views[] = {
        {60, "rank  pp  closed form [s]  why\n"
             "   1   8              6.1  fits\n"
             "   2   8             6.25  too large by four GiB, or so\n"},
        {50, "          closed\n"
             "            form\n"
             "rank  pp     [s]  why\n"
             "   1   8     6.1  fits\n"
             "   2   8    6.25  too large by four GiB, or so\n"},
        {44, "      closed\n"
             "        form\n"
             "rank     [s]  why\n"
             "   1     6.1  fits\n"
             "   2    6.25  too large by four GiB, or so\n"
             "in every row: pp 8\n"},
        {30, "      closed\n"
             "        form\n"
             "rank     [s]  why\n"
             "   1     6.1  fits\n"
             "   2    6.25  too large by\n"
             "              four GiB, or so\n"
             "in every row: pp 8\n"},
    };
    struct table table = wide_sample();
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        char *text = written_on(&table, FORMAT_TEXT, false, views[i].width);
        ck_assert_str_eq(text, views[i].text);
        free(text);
    }
    table_free(&table);
}
END_TEST

/* What cannot be narrower stays as it is; no width is too small. */
START_TEST(any_width_is_taken)
{
    struct table table = wide_sample(), bare = {0};
    for (int width = 1; width < 80; width++) {
        char *text = written_on(&table, FORMAT_TEXT, false, width);
        ck_assert_ptr_nonnull(strstr(text, "6.25"));
        free(text);
    }
    table_column(&bare, "unbreakable", NULL, ALIGN_LEFT);
    table_cell(&bare, "a-text-without-a-blank");
    char *text = written_on(&bare, FORMAT_TEXT, false, 10);
    ck_assert_str_eq(text, "unbreakable\na-text-without-a-blank\n");
    free(text);
    table_free(&table);
    table_free(&bare);
}
END_TEST

START_TEST(no_blanks_at_the_end_of_a_line)
{
    struct table table = {0};
    table_column(&table, "case", NULL, ALIGN_LEFT);
    table_column(&table, "time", "s", ALIGN_RIGHT);
    table_column(&table, "", NULL, ALIGN_LEFT);
    static const char *const cells[] = {"a", "1", "", "long name", "", "slow", "b", "", ""};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        table_cell(&table, "%s", cells[i]);
    char *text = written(&table, FORMAT_TEXT, false);
    ck_assert_str_eq(text, "case       time [s]\n"
                           "a                 1\n"
                           "long name            slow\n"
                           "b\n");
    free(text);
    table_free(&table);
}
END_TEST

START_TEST(csv_names_units_and_quotes)
{
    struct table table = sample();
    char *text = written(&table, FORMAT_CSV, false);
    ck_assert_str_eq(text, "layout,step_time_s,mfu_pct\n\"tp=8,pp=8\",6.34,55.2\ngrößer,16.00,5.0\n");
    free(text);
    table_free(&table);
}
END_TEST

START_TEST(colour_does_not_move_columns)
{
    struct table table = sample();
    char *text = written(&table, FORMAT_TEXT, true);
    ck_assert_ptr_nonnull(strstr(text, "    \033[31m5.0\033[0m\n"));
    free(text);
    table_free(&table);
}
END_TEST

START_TEST(an_empty_table_prints_nothing_or_its_heading)
{
    struct table table = {0};
    char *text = written(&table, FORMAT_TEXT, false);
    ck_assert_str_eq(text, "");
    free(text);
    table_column(&table, "a", NULL, ALIGN_LEFT);
    text = written(&table, FORMAT_TEXT, false);
    ck_assert_str_eq(text, "a\n");
    free(text);
    table_free(&table);
}
END_TEST

START_TEST(widths_count_characters)
{
    ck_assert_int_eq(text_width("abc"), 3);
    ck_assert_int_eq(text_width("größer"), 6);
    ck_assert_int_eq(text_width("日本"), 4);
    ck_assert_int_eq(text_width("e\xcc\x81"), 1); /* combining accent */
    ck_assert_int_eq(text_width("\xff\xc3"), 2);  /* malformed: one each, and no reading beyond the end */
}
END_TEST

START_TEST(progress_says_how_long)
{
    char line[80];
    ck_assert_str_eq(progress_text("layouts", 25, 100, 2, line, sizeof line), "layouts  25 %  6 s left");
    ck_assert_str_eq(progress_text("layouts", 0, 100, 2, line, sizeof line), "layouts  0 %");
    ck_assert_str_eq(progress_text("layouts", 3, 0, 2, line, sizeof line), "layouts  3"); /* of nobody knows how many */
    ck_assert_str_eq(progress_text("layouts", 100, 100, 2, line, sizeof line), "layouts  100 %");
    ck_assert_str_eq(progress_text("layouts", 1, 100, 2, line, sizeof line), "layouts  1 %  3 min left");
    ck_assert_str_eq(progress_text("layouts", 4, 1000, 2, line, sizeof line), "layouts  0 %");
    ck_assert_str_eq(progress_text("layouts", 1, 101, 100, line, sizeof line), "layouts  1 %  2.8 h left");
}
END_TEST

START_TEST(progress_is_silent_without_a_terminal)
{
    struct invocation call = {.progress = false};
    struct progress progress = progress_begin(&call, "layouts");
    progress.started_s -= 10;
    progress_update(&progress, 1, 2);
    ck_assert(!progress.visible);
    progress_end(&progress);
}
END_TEST

START_TEST(progress_shows_after_a_second_and_is_erased)
{
    struct invocation call = {.progress = true};
    char *text = NULL;
    size_t size = 0;
    struct progress progress = progress_begin(&call, "layouts");
    progress.stream = open_memstream(&text, &size);
    progress_update(&progress, 1, 2);
    ck_assert(!progress.visible);
    progress.started_s -= 10;
    progress_update(&progress, 1, 2);
    progress_update(&progress, 1, 2); /* too soon after the first */
    progress_end(&progress);
    fclose(progress.stream);
    ck_assert_str_eq(text, "\rlayouts  50 %  10 s left\033[K\r\033[K");
    free(text);
}
END_TEST

/* The second before the first picture counts from the beginning, the time left from the turn. */
START_TEST(progress_of_another_part_has_its_own_time_left)
{
    struct invocation call = {.progress = true};
    char *text = NULL;
    size_t size = 0;
    struct progress progress = progress_begin(&call, "reading");
    progress.stream = open_memstream(&text, &size);
    progress_update(&progress, 2, 2);
    progress.started_s -= 10;
    progress_turn(&progress, "counting");
    progress.turned_s -= 4;
    progress_turn(&progress, "counting"); /* is there already */
    progress_update(&progress, 1, 3);
    progress_end(&progress);
    fclose(progress.stream);
    ck_assert_str_eq(text, "\rcounting  33 %  8 s left\033[K\r\033[K");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *all = tcase_create("all");
    tcase_add_test(all, text_is_aligned);
    tcase_add_test(all, ratios_have_no_exponent);
    tcase_add_test(all, three_digits_keep_their_zeros);
    tcase_add_test(all, a_table_is_no_wider_than_the_terminal);
    tcase_add_test(all, any_width_is_taken);
    tcase_add_test(all, no_blanks_at_the_end_of_a_line);
    tcase_add_test(all, csv_names_units_and_quotes);
    tcase_add_test(all, colour_does_not_move_columns);
    tcase_add_test(all, an_empty_table_prints_nothing_or_its_heading);
    tcase_add_test(all, widths_count_characters);
    tcase_add_test(all, progress_says_how_long);
    tcase_add_test(all, progress_is_silent_without_a_terminal);
    tcase_add_test(all, progress_shows_after_a_second_and_is_erased);
    tcase_add_test(all, progress_of_another_part_has_its_own_time_left);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
