#include "runtime/cores.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHORTEST_TURN_NS = 100 * 1000 }; /* that is accepted */

_Static_assert(sizeof(cpu_set_t) == CORE_SET_BYTES, "a set of cores is the C library's");

void cores_allowed(unsigned char set[CORE_SET_BYTES])
{
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) != 0)
        CPU_ZERO(&own);
    memcpy(set, &own, sizeof own);
}

int cores_of_sets(const unsigned char *sets, int n)
{
    cpu_set_t any, one;
    CPU_ZERO(&any);
    for (int i = 0; i < n; i++) {
        memcpy(&one, sets + (size_t)i * CORE_SET_BYTES, sizeof one);
        CPU_OR(&any, &any, &one);
    }
    int cores = CPU_COUNT(&any) ? CPU_COUNT(&any) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 ? cores : 1;
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
    struct core_range range = cores_of_rank(rank, n_ranks, CPU_COUNT(&all));
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
