/*
 * cores.h - the cores of this machine, divided among the ranks that are threads of one process.
 *
 * A system that places threads by itself leaves them where they are, even where one core has two that could go on and another has
 * none: a time-sharing system looks for such cores some hundred times a second, and operations are much shorter. So every rank
 * keeps to cores of its own, and the cores are shared evenly where ranks are more than they are; neighbours, who exchange most,
 * then have different ones. How long a step lasts depends no more on where the system happened to put whom.
 */
#ifndef MSIM_RUNTIME_BASE_CORES_H
#define MSIM_RUNTIME_BASE_CORES_H

enum { CORE_SET_BYTES = 128 };
/* The cores that this process may use, a bit each; none where the system does not say. */
void cores_allowed(unsigned char set[CORE_SET_BYTES]);
/* Cores in any of n such sets, [n][CORE_SET_BYTES]: those of processes on one machine together, which are taken to share this
 * one's quota. At least 1. */
int cores_of_sets(const unsigned char *sets, int n);
/* Whole cores that the least quota of a control group around this process (cgroup v2 cpu.max; v1 cpu.cfs_quota_us over
 * cpu.cfs_period_us) is worth, at least 1; INT_MAX: there is none. What it is worth beyond whole cores is left: ranks keep to
 * cores, and where these could use more than the quota the system stops all of them at once until its period is over. `root`:
 * the prefix of /proc and /sys: "" except in tests. */
int cores_quota(const char *root);
/* Cores that this process may use, at least 1. */
int cores_here(void);

struct core_range {
    int first, n;
};
/* The cores of a rank, of those this process may use: a stretch of them, or one in turn that other ranks have too. */
struct core_range cores_of_rank(int rank, int n_ranks, int n_cores);

/* The calling thread, and those that it makes from now on, keep to the cores of a rank. Where the system refuses they do not. */
void cores_keep(int rank, int n_ranks);
/* The calling thread works little at a time, others wait for it: when it wakes it gets a core at once, from who has one for long.
 * Linux has known such threads since 6.12; before it often did so with any that woke. */
void cores_go_first(void);

#endif
