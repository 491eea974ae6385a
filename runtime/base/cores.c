/* cores.c - finds the cores of this process and pins threads to them. */
#include "runtime/base/cores.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORTEST_TURN_NS = 100 * 1000 }; /* that is accepted */
enum { PATH_SIZE = 4096, NAME_SIZE = 32 };

_Static_assert(sizeof(cpu_set_t) == CORE_SET_BYTES, "a set of cores is the C library's");

void cores_allowed(unsigned char set[CORE_SET_BYTES])
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        CPU_ZERO(&own);
    memcpy(set, &own, sizeof own);
}

/* --- quotas */

/* "MAXIMUM PERIOD" of version 2, or the quota and the period of version 1, in files of their own; microseconds. */
static double quota_in(const char *folder, bool unified)
{
    char path[PATH_SIZE + NAME_SIZE];
    double quota = -1, period = 0;
    int read = 0;
    snprintf(path, sizeof path, "%s/%s", folder, unified ? "cpu.max" : "cpu.cfs_quota_us");
    FILE *file = fopen(path, "r");
    if (!file)
        return INFINITY;
    read = fscanf(file, unified ? "%lf %lf" : "%lf", &quota, &period); /* "max" is no number */
    fclose(file);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    file = unified || read < 1 ? NULL : fopen(path, "r");
    if (file) {
        read += fscanf(file, "%lf", &period);
        fclose(file);
    }
    return read == 2 && quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* Of a group and all around it: `group` begins with a slash. A container that sees its own group as the root has its files there,
 * and others are skipped. */
static double least_quota(const char *mount, char *group, bool unified)
{
    char folder[PATH_SIZE];
    double least = INFINITY;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        snprintf(folder, sizeof folder, "%s%s", mount, group);
        least = fmin(least, quota_in(folder, unified));
    }
    return least;
}

/* Whether "cpu" is among the controllers of a line of version 1: "cpu,cpuacct". */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0'))
            return true;
    }
    return false;
}

/* A line "ID:CONTROLLERS:PATH"; version 2 has no controllers. */
static double quota_of_line(const char *root, char *line)
{
    char mount[PATH_SIZE], *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return INFINITY;
    *controllers++ = *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    bool unified = *controllers == '\0';
    if (!unified && !has_cpu(controllers))
        return INFINITY;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, unified ? "" : "/cpu");
    return least_quota(mount, group, unified);
}

int cores_quota(const char *root)
{
    char path[PATH_SIZE], line[PATH_SIZE];
    double least = INFINITY;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        least = fmin(least, quota_of_line(root, line));
    if (file)
        fclose(file);
    return least >= INT_MAX ? INT_MAX : least < 1 ? 1 : (int)least;
}

/* --- sets */

static int limited(int cores)
{
    int quota = cores_quota("");
    return cores > quota ? quota : cores > 0 ? cores : 1;
}

int cores_of_sets(const unsigned char *sets, int n)
{
    cpu_set_t any, one;
    CPU_ZERO(&any);
    for (int i = 0; i < n; i++) {
        memcpy(&one, sets + (size_t)i * CORE_SET_BYTES, sizeof one);
        CPU_OR(&any, &any, &one);
    }
    return limited(CPU_COUNT(&any) ? CPU_COUNT(&any) : (int)sysconf(_SC_NPROCESSORS_ONLN));
}

int cores_here(void)
{
    unsigned char set[CORE_SET_BYTES];
    cores_allowed(set);
    return cores_of_sets(set, 1);
}

struct core_range cores_of_rank(int rank, int n_ranks, int n_cores)
{
    if (n_ranks > n_cores)
        return (struct core_range){rank % n_cores, 1};
    int first = rank * n_cores / n_ranks, end = (rank + 1) * n_cores / n_ranks;
    return (struct core_range){first, end - first};
}

void cores_keep(int rank, int n_ranks)
{
    cpu_set_t all, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    struct core_range range = cores_of_rank(rank, n_ranks, limited(CPU_COUNT(&all)));
    for (int core = 0, i = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &all))
            continue;
        if (i >= range.first && i < range.first + range.n)
            CPU_SET(core, &own);
        i++;
    }
    (void)!sched_setaffinity(0, sizeof own, &own);
}

/* As Linux has it; the C library does not, and the kernel's own header contradicts it. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn_ns, deadline_ns, period_ns;
};

void cores_go_first(void)
{
    struct scheduling attributes;
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0)
        return;
    attributes.turn_ns = SHORTEST_TURN_NS;
    (void)!syscall(SYS_sched_setattr, 0, &attributes, 0);
}
