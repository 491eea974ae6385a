/*
 * cuda_comm.h - ranks as processes, one GPU each, that exchange through NCCL (interface: comm.h).
 *
 * Example: two processes that mpirun started, with a folder that both can write.
 *
 *     cuda_place_read(&place, &diags);                                        rank, number of ranks, launcher
 *     struct cuda_comm_options options = {.rank = place.rank, .n_ranks = place.n_ranks, .folder = "/shared/job17"};
 *     cuda_comm_open(&options, device, &world, &diags);
 *
 * Meeting. Ranks find each other in a folder that all of them can write (on a cluster, a shared file system). Rank 0 writes
 * NCCL's unique id and its versions there, and the others wait for it; every rank writes its host and process id. From the
 * launcher msim needs only a rank and the number of ranks (cuda_place_read: Open MPI, MPICH, Slurm, or MSIM_RANK). With MPI, MPI
 * transports the id, and a folder on each machine is enough.
 *
 * Communicators are split off one of all ranks. NCCL connects members when a communicator is made and not at its first use, so
 * enqueueing never waits for another rank.
 *
 * Several ranks on one GPU. NCCL refuses that by default. NCCL 2.30 and later accept NCCL_MULTI_RANK_GPU_ENABLE=1. With older
 * versions, every process claims to be on another host (NCCL_HOSTID) and exchanges over loopback sockets. That is correct, but
 * useless for measuring bandwidth. Variables that the user has set are not changed.
 *
 * Failure. While a thread waits for a stream, it asks communicators for errors and the folder for a rank that gave up, and it
 * measures the time since an exchange last completed. After the timeout, all communicators are aborted in one group (one by one,
 * the first would wait for the kernels of the others). That ends the kernels that wait on the device. The message names the
 * exchange and the processes known to be gone.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_COMM_H
#define MSIM_RUNTIME_CUDA_CUDA_COMM_H

#include "runtime/base/comm.h"

struct cuda_comm_options {
    int rank, n_ranks;
    bool shared_gpu;    /* another rank of this job uses the same GPU */
    const char *folder; /* for meeting; exists, and no other job uses it */
    /* Gives all ranks rank 0's bytes (MPI); NULL: a file in the folder does, which all ranks then must see. */
    void (*share)(void *bytes, size_t n);
    nanos timeout; /* of any wait for another rank; 0: a minute */
    /* Ends this process. Another thread calls it if the process is still here two timeouts after a rank gave up (cuda_meeting.h).
     */
    void (*end)(const char *text);
};

/* Joins the world; all ranks call it at the same time. `device` is a CUDA device (cuda_device.h) and outlives the world.
 * STATUS_MISSING if NCCL cannot be loaded; STATUS_FAILED with a message for other errors. */
MUST_CHECK enum status cuda_comm_open(const struct cuda_comm_options *options, struct device *device, struct world **world,
                                      struct diags *diags);

/* Sets NCCL's environment variables for these options, before NCCL reads them. `version` is that of ncclGetVersion. Variables
 * that are already set stay. */
void cuda_comm_variables(const struct cuda_comm_options *options, int version);

/* The place of this process in the job, as the launcher set it. */
struct cuda_place {
    int rank, n_ranks;    /* 0 of 1 without a launcher */
    int local, n_local;   /* on this machine */
    const char *launcher; /* "mpirun", "mpiexec", "srun", "MSIM_RANK" or "none" */
};
/* Reads it from the environment. STATUS_BAD_INPUT if its numbers contradict each other. */
MUST_CHECK enum status cuda_place_read(struct cuda_place *place, struct diags *diags);

#endif
