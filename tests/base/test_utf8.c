/* Texts that may not be UTF-8: which bytes count as a character, and what replaces the others. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/utf8.h"
#include "tests/suite.h"

#define UNKNOWN "\xef\xbf\xbd"

START_TEST(characters_have_lengths)
{
    static const struct {
        const char *text;
        size_t length;
    } cases[] = {{"a", 1},
                 {"\t", 1},
                 {"\x7f", 0},
                 {"\x1b", 0},
                 {"\xc3\xa4", 2},
                 {"\xe2\x82\xac", 3},
                 {"\xf0\x9f\x98\x80", 4},
                 {"\xf4\x8f\xbf\xbf", 4},
                 {"\xf4\x90\x80\x80", 0},
                 {"\xed\xa0\x80", 0},
                 {"\xc0\xaf", 0},
                 {"\xe0\x80\xaf", 0},
                 {"\xf0\x80\x80\xaf", 0},
                 {"\xf5\x80\x80\x80", 0},
                 {"\x80", 0},
                 {"\xc3", 0},
                 {"\xe2\x82", 0},
                 {"\xe2\x82y", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(utf8_length(cases[i].text, strlen(cases[i].text)) == cases[i].length, "%zu", i);
        ck_assert_int_eq(utf8_is_text(cases[i].text), cases[i].length > 0);
    }
    ck_assert_uint_eq(utf8_length("\xc3\xa4", 1), 0);
    ck_assert(utf8_is_text(""));
}
END_TEST

START_TEST(what_is_no_character_becomes_one)
{
    static const struct {
        const char *text, *copy;
    } cases[] = {{"", ""},
                 {"n1 \xc3\xa4\xe2\x82\xac", "n1 \xc3\xa4\xe2\x82\xac"},
                 {"\xff", UNKNOWN},
                 {"b\xff\xe9.csv", "b" UNKNOWN UNKNOWN ".csv"},
                 {"\xe2\x82", UNKNOWN UNKNOWN},
                 {"a\x1b[0m", "a" UNKNOWN "[0m"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *copy = utf8_copy(cases[i].text);
        ck_assert_str_eq(copy, cases[i].copy);
        ck_assert(utf8_is_text(copy));
        free(copy);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("utf8");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, characters_have_lengths);
    tcase_add_test(tests, what_is_no_character_becomes_one);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
