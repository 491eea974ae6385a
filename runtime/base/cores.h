/*
 * cores.h - the cores of this machine, divided among ranks that are threads of one process.
 *
 * Example: eight cores.
 *
 *     cores_of_rank(2, 4, 8)         four ranks: rank 2 gets cores 4 and 5
 *     cores_of_rank(10, 16, 8)       sixteen ranks: rank 10 shares core 2 with rank 2
 *     cores_keep(2, 4);              the calling thread stays on the cores of rank 2
 *
 * Why threads are pinned: Linux balances threads only a few hundred times a second, and operations are much shorter. An unpinned
 * thread often waits on a busy core while another core is idle. With pinning, the duration of a step does not depend on where
 * Linux placed its threads. Neighbouring ranks, which exchange most, get different cores.
 */
#ifndef MSIM_RUNTIME_BASE_CORES_H
#define MSIM_RUNTIME_BASE_CORES_H

enum { CORE_SET_BYTES = 128 };
/* The cores that this process may use, one bit each; all 0 if the system does not report them. */
void cores_allowed(unsigned char set[CORE_SET_BYTES]);
/* Number of cores in the union of n sets, [n][CORE_SET_BYTES]: the cores of several processes on one machine, which are assumed
 * to share this process's quota. At least 1. */
int cores_of_sets(const unsigned char *sets, int n);
/* The smallest CPU quota of the control groups around this process, in whole cores (cgroup v2 cpu.max; v1 cpu.cfs_quota_us /
 * cpu.cfs_period_us). At least 1; INT_MAX: no quota. Rounded down: if the ranks used more than the quota, Linux would stop all of
 * them at once until the end of its period. `root`: prefix of /proc and /sys, "" except in tests. */
int cores_quota(const char *root);
/* Number of cores that this process may use, at least 1. */
int cores_here(void);

struct core_range {
    int first, n;
};
/* The cores of a rank, as indices into the cores of this process: a range of its own, or one core that it shares if there are
 * more ranks than cores. */
struct core_range cores_of_rank(int rank, int n_ranks, int n_cores);

/* Pins the calling thread, and threads that it creates later, to the cores of a rank. Does nothing if the system refuses. */
void cores_keep(int rank, int n_ranks);
/* Declares that the calling thread runs briefly and that others wait for it, so Linux lets it preempt long-running threads when
 * it wakes (a short slice, since Linux 6.12; older kernels often do so for any thread that wakes). */
void cores_go_first(void);

#endif
