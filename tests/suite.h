/* suite.h - what the main function of a Check suite does. */
#ifndef MSIM_TESTS_SUITE_H
#define MSIM_TESTS_SUITE_H

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* In one process (CK_FORK=no), a case that ends the process or replaces it (exit, _exit, exec) would end the suite, perhaps with
 * status 0. So the suite runs in one child, which writes a byte when all cases have run. Returns in the child with the end of
 * the pipe to write to, and -1 in *status; in the parent with the status of the suite. */
static inline int suite_fork_once(int *status)
{
    int ends[2];
    char byte;
    *status = EXIT_FAILURE;
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        *status = -1;
        return ends[1];
    }
    close(ends[1]);
    const bool is_over = child > 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    int ended = 1;
    const bool is_known = child > 0 && waitpid(child, &ended, 0) == child;
    if (!is_over)
        fputs("a case ended the process before the suite was over\n", stderr);
    if (is_over && is_known && WIFEXITED(ended))
        *status = WEXITSTATUS(ended);
    return -1;
}

/* Execute the suites of a runner, and free it. CK_VERBOSITY, CK_RUN_CASE and the like in the environment choose; a choice of no
 * case at all fails. Returns main's status. */
static inline int suites_run(SRunner *runner)
{
    int status = -1, over = -1;
    const bool is_rank =
        getenv("OMPI_COMM_WORLD_RANK") || getenv("PMI_RANK"); /* MPI does not survive a fork; mpirun sees an end */
    if (srunner_fork_status(runner) == CK_NOFORK && !is_rank)
        over = suite_fork_once(&status);
    if (status == -1) {
        srunner_run_all(runner, CK_ENV);
        const bool chosen = getenv("CK_RUN_CASE") || getenv("CK_RUN_SUITE");
        const bool none = chosen && srunner_ntests_run(runner) == 0;
        if (none)
            fputs("CK_RUN_CASE or CK_RUN_SUITE names no case of this suite\n", stderr);
        status = srunner_ntests_failed(runner) || none ? EXIT_FAILURE : EXIT_SUCCESS;
        if (over >= 0 && write(over, "", 1) != 1)
            status = EXIT_FAILURE;
    }
    srunner_free(runner);
    return status;
}

static inline int suite_run(Suite *suite)
{
    return suites_run(srunner_create(suite));
}

#endif
