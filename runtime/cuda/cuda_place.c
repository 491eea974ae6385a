/* cuda_place.c - reads the rank of this process from the launcher's environment variables. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/cuda/cuda_comm.h"

enum { FIRST_SWITCHED = 23000 }; /* NCCL 2.30.0 as ncclGetVersion says it */

/* The variables of each launcher: set by hand, Open MPI, MPICH, Slurm's srun (a batch script has no step).
 * `per_node`, and which entry is this machine's: a list of counts instead of n_local. */
static const struct {
    const char *launcher, *rank, *n_ranks, *local, *n_local, *per_node, *node;
} launchers[] = {
    {"MSIM_RANK", "MSIM_RANK", "MSIM_RANKS", "MSIM_LOCAL_RANK", "MSIM_LOCAL_RANKS", NULL, NULL},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL,
     NULL},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID"},
};

/* A number of the environment, or `missing` when it is not set; -1 for what is no count. */
static int variable(const char *name, int missing)
{
    const char *text = getenv(name);
    if (!text)
        return missing;
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || end == text || *end || value < 0 || value > INT_MAX ? -1 : (int)value;
}

/* Entry `node` of Slurm's "8(x3),4": three times 8, then 4; -1 where it is no such list, or a shorter one. */
static int entry_of(const char *list, int node)
{
    while (node >= 0 && *list) {
        char *end;
        const long count = strtol(list, &end, 10);
        long times = 1;
        if (end == list || count < 1 || count > INT_MAX)
            return -1;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            end += *end == ')';
        }
        if (times < 1 || (*end && *end != ','))
            return -1;
        if (node < times)
            return (int)count;
        node -= (int)times;
        list = end + (*end == ',');
    }
    return -1;
}

/* Number of processes on this machine; all processes, if the launcher does not set it. */
static int count_local(size_t i, int n_ranks)
{
    if (!launchers[i].per_node)
        return variable(launchers[i].n_local, n_ranks);
    const char *list = getenv(launchers[i].per_node);
    return list ? entry_of(list, variable(launchers[i].node, 0)) : n_ranks;
}

enum status cuda_place_read(struct cuda_place *place, struct diags *diags)
{
    struct cuda_place read = {.rank = 0, .n_ranks = 1, .local = 0, .n_local = 1, .launcher = "none"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const bool by_hand = i == 0; /* all others say the place on the machine; PMI alone may be Slurm's */
        if (!getenv(launchers[i].rank) || !getenv(launchers[i].n_ranks) || (!by_hand && !getenv(launchers[i].local)))
            continue;
        read.launcher = launchers[i].launcher;
        read.rank = variable(launchers[i].rank, -1);
        read.n_ranks = variable(launchers[i].n_ranks, -1);
        read.local = variable(launchers[i].local, read.rank);
        read.n_local = count_local(i, read.n_ranks);
        break;
    }
    if (read.n_ranks < 1 || read.rank < 0 || read.rank >= read.n_ranks || read.local < 0 || read.n_local < 1) {
        diag_error(diags, PLACE_NONE, "%s's variables contradict each other: rank %d of %d, %d of %d on this machine",
                   read.launcher, read.rank, read.n_ranks, read.local, read.n_local);
        return STATUS_BAD_INPUT;
    }
    *place = read;
    return STATUS_OK;
}

/* NCCL reads its variables once, before its first communicator; what the user has set stays. */
void cuda_comm_variables(const struct cuda_comm_options *options, int version)
{
    char host[32];
    snprintf(host, sizeof host, "msim-rank-%d", options->rank);
    setenv("NCCL_RUNTIME_CONNECT", "0", 0); /* connect when a communicator is made */
    if (!options->shared_gpu)
        return;
    setenv("NCCL_MAX_CTAS", "2", 0); /* all ranks' kernels must fit the GPU together */
    if (version >= FIRST_SWITCHED) {
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
        return;
    }
    setenv("NCCL_HOSTID", host, 0);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    setenv("NCCL_IB_DISABLE", "1", 0);
    setenv("NCCL_MNNVL_ENABLE", "0", 0);
}
