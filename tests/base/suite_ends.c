/* suite_ends.c WAY - a suite with a case that ends its process or replaces it: by exit, _exit or exec, or not at all. */
#include "tests/suite.h"

static const char *way = "";

START_TEST(a_case_that_ends_the_process)
{
    char program[] = "true";
    char *const arguments[] = {program, NULL};
    if (strcmp(way, "exit") == 0)
        exit(EXIT_SUCCESS);
    if (strcmp(way, "_exit") == 0)
        _exit(EXIT_SUCCESS);
    if (strcmp(way, "exec") == 0)
        execvp(program, arguments);
}
END_TEST

START_TEST(a_case_behind_it)
{
    ck_assert_str_ne(way, "fail");
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("suite ends");
    TCase *tcase = tcase_create("ends");
    way = argc > 1 ? argv[1] : "";
    tcase_add_test(tcase, a_case_that_ends_the_process);
    tcase_add_test(tcase, a_case_behind_it);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
