/* suite.h - what the main function of a Check suite does. */
#ifndef MSIM_TESTS_SUITE_H
#define MSIM_TESTS_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sanitizers take one in THINNED of the random draws: they ask which code runs, not how often. */
#if defined(__has_feature)
#define SUITE_HAS(feature) __has_feature(feature)
#else
#define SUITE_HAS(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || SUITE_HAS(address_sanitizer) || SUITE_HAS(thread_sanitizer)
enum { THINNED = 5 };
#else
enum { THINNED = 1 };
#endif

/* Whether this is the long tier: ctest's label `long`, or MSIM_LONG_TESTS=1 before a suite started by hand. */
static inline bool suite_is_long(void)
{
    const char *tier = getenv("MSIM_LONG_TESTS");
    return tier && *tier;
}

/* How many of N random draws a run takes: all in the long tier, one in BY in the short tier; fewer under sanitizers. */
static inline int suite_draws(int n, int by)
{
    const int least = suite_is_long() ? THINNED : by * THINNED;
    return n / least > 0 ? n / least : 1;
}

/* Adds the rounds 0 to N - 1 of a test. Sanitizers take every third, from FIRST on: for rounds that reach the same code with
 * other numbers, or in another order. */
static inline void suite_add_rounds(TCase *tcase, const TTest *test, int n, int first)
{
    const int step = THINNED == 1 || n < 3 ? 1 : 3;
    for (int i = first % step; i < n; i += step)
        tcase_add_loop_test(tcase, test, i, i + 1);
}

/* The only time limit is one against hanging, whatever the machine does beside the tests. Check's own is 4 seconds for a case. */
__attribute__((constructor)) static void suite_limit_time(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "600", 0);
}

/* Under sanitizers a suite is one process: a copy of their memory for each case, and a search for leaks at its end, take longer
 * than most cases. Leaks are found at the end of the suite. */
__attribute__((constructor)) static void suite_keep_one_process(void)
{
    if (THINNED > 1)
        setenv("CK_FORK", "no", 0);
}

/* Whether all cases of this process's suite have been run. */
static inline bool *suite_is_over(void)
{
    static bool over;
    return &over;
}

/* In one process a case that ends it would end the suite, which then must not pass. */
static inline void suite_must_be_over(void)
{
    const char *forks = getenv("CK_FORK");
    if (forks && strcmp(forks, "no") == 0 && !*suite_is_over()) {
        fputs("a case ended the process before the suite was over\n", stderr);
        _exit(EXIT_FAILURE);
    }
}

/* Execute the suites of a runner, and free it. CK_VERBOSITY, CK_RUN_CASE and the like in the environment choose. Returns main's
 * status. */
static inline int suites_run(SRunner *runner)
{
    atexit(suite_must_be_over);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    *suite_is_over() = true;
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(Suite *suite)
{
    return suites_run(srunner_create(suite));
}

#endif
