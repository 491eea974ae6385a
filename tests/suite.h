/* suite.h - what the main function of a Check suite does. */
#ifndef MSIM_TESTS_SUITE_H
#define MSIM_TESTS_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

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
    const int least = suite_is_long() || by < THINNED ? THINNED : by;
    return n / least > 0 ? n / least : 1;
}

/* The only time limit is one against hanging, whatever the machine does beside the tests. Check's own is 4 seconds for a case. */
__attribute__((constructor)) static void suite_limit_time(void)
{
    setenv("CK_DEFAULT_TIMEOUT", "600", 0);
}

/* Execute the suites of a runner, and free it. CK_VERBOSITY, CK_RUN_CASE and the like in the environment choose. Returns main's
 * status. */
static inline int suites_run(SRunner *runner)
{
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int suite_run(Suite *suite)
{
    return suites_run(srunner_create(suite));
}

#endif
