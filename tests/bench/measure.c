/*
 * measure [-c] [-n RUNS] LABEL COMMAND... - run a command several times, its output thrown away; one line:
 *
 *     label  best and median wall time in ms  largest resident memory in MiB
 *
 * Wall time includes starting the process. -c: processor time (user and system) instead, in s, for busy machines. The command's
 * own exit status is passed on.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS_MAX = 1000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void run_child(char **command)
{
    int null = open("/dev/null", O_WRONLY);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* Wall time of one run in ms, or its processor time in s; *status its exit status, *rss_kib raised to its largest resident
 * memory. */
static double run_once(char **command, bool processor, int *status, long *rss_kib)
{
    struct rusage usage;
    double start = now_ms();
    pid_t child = fork();
    if (child == 0)
        run_child(command);
    if (child < 0 || wait4(child, status, 0, &usage) < 0) {
        perror("measure");
        exit(1);
    }
    double wall = now_ms() - start;
    if (usage.ru_maxrss > *rss_kib)
        *rss_kib = usage.ru_maxrss;
    return processor ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : wall;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int at = 1;
    long runs = 5;
    bool processor = argc > 1 && strcmp(argv[1], "-c") == 0;
    at += processor;
    if (argc > at + 2 && strcmp(argv[at], "-n") == 0) {
        runs = strtol(argv[at + 1], NULL, 10);
        at += 2;
    }
    if (argc < at + 2 || runs < 1 || runs > RUNS_MAX) {
        fputs("usage: measure [-c] [-n RUNS] LABEL COMMAND...\n", stderr);
        return 2;
    }
    double walls[RUNS_MAX];
    long rss_kib = 0;
    for (long i = 0; i < runs; i++) {
        int status = 0;
        walls[i] = run_once(argv + at + 1, processor, &status, &rss_kib);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "%s: the command failed\n", argv[at]);
            return 1;
        }
    }
    qsort(walls, (size_t)runs, sizeof walls[0], ascending);
    int digits = processor ? 3 : 1;
    printf("%-44s %10.*f %10.*f %10.1f\n", argv[at], digits, walls[0], digits, walls[runs / 2], (double)rss_kib / 1024);
    return 0;
}
