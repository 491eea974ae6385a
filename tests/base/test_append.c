/* Texts put together in a buffer: what fits, and where it is cut. */
#include <check.h>
#include <string.h>

#include "model/base/append.h"
#include "tests/suite.h"

START_TEST(pieces_follow_one_another)
{
    char text[16] = "";
    ck_assert_ptr_eq(text_append(text, sizeof text, "%d", 12), text);
    text_append(text, sizeof text, "%s", "");
    text_append(text, sizeof text, ", %s", "tp");
    ck_assert_str_eq(text, "12, tp");
}
END_TEST

/* Of every size: the longest beginning that holds whole characters only, of one to four bytes. */
START_TEST(cuts_are_between_characters)
{
    static const char all[] = "a\xc3\xa4"
                              "b\xe2\x82\xac"
                              "c\xf0\x9f\x98\x80"
                              "d";
    static const size_t ends[] = {0, 1, 3, 4, 7, 8, 12, 13};
    for (size_t size = 1; size <= sizeof all; size++) {
        char text[sizeof all] = "";
        size_t longest = 0;
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            longest = ends[i] < size ? ends[i] : longest;
        text_append(text, size, "%s", all);
        ck_assert_uint_eq(strlen(text), longest);
        ck_assert_mem_eq(text, all, longest);
    }
}
END_TEST

START_TEST(what_was_there_stays_when_nothing_more_fits)
{
    char text[5] = "ab\xc3\xa4";
    text_append(text, sizeof text, "%s", "more");
    ck_assert_str_eq(text, "ab\xc3\xa4");
    char full[3] = "ab";
    text_append(full, sizeof full, "\xc3\xa4");
    ck_assert_str_eq(full, "ab");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("append");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, pieces_follow_one_another);
    tcase_add_test(tests, cuts_are_between_characters);
    tcase_add_test(tests, what_was_there_stays_when_nothing_more_fits);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
