/*
 * cuda_comm.h - ranks as processes, one GPU each, that exchange through NCCL (comm.h).
 *
 * Meeting. Ranks find each other in a folder that all of them can write (a shared file system on a cluster): rank 0 leaves
 * NCCL's unique id there with the versions it runs, the others wait for it; every rank leaves its host and process. Nothing else
 * is needed of the launcher than a number for each process and how many there are (cuda_place_read: Open MPI, MPICH, Slurm, or
 * MSIM_RANK). Where there is MPI it carries the id, and a folder on each machine will do.
 *
 * Communicators are split off one of all ranks. NCCL connects members when a communicator is made and not at first use, so that
 * enqueueing never waits for another rank.
 *
 * Several ranks on one GPU. NCCL refuses that by default: NCCL_MULTI_RANK_GPU_ENABLE=1 from 2.30 on; before, every
 * process calls itself another host (NCCL_HOSTID) and exchanges over loopback sockets. That is right for checking programs and
 * useless for measuring bandwidth. Variables that the user has set stay.
 *
 * Failure. While a thread waits for a stream, communicators are asked for errors, the folder for a rank that gave up, and a clock
 * runs that is set back whenever an exchange completes. When it passes the timeout, all communicators are aborted, in one group
 * (one by one the first would wait for the kernels of the others), which ends the kernels that wait on the device, and the
 * sentence names the exchange and the processes known to be gone.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_COMM_H
#define MSIM_RUNTIME_CUDA_CUDA_COMM_H

#include "runtime/base/comm.h"

struct cuda_comm_options {
    int rank, n_ranks;
    bool shared_gpu;    /* another rank of this job uses the same GPU */
    const char *folder; /* for meeting; exists, and is this job's alone */
    /* Gives all ranks rank 0's bytes (MPI); NULL: by a file in the folder, which all ranks then must see. */
    void (*share)(void *bytes, size_t n);
    nanos timeout; /* of any wait for another rank; 0: a minute */
    /* Ends this process, called by another thread, when two timeouts after a rank gave up it is still here (cuda_meeting.h). */
    void (*end)(const char *text);
};

/* Joins the world; all ranks call it at the same time. `device` is a CUDA device (cuda_device.h) and outlives the world.
 * STATUS_MISSING where NCCL cannot be loaded; STATUS_FAILED with a sentence otherwise. */
MUST_CHECK enum status cuda_comm_open(const struct cuda_comm_options *options, struct device *device, struct world **world,
                                      struct diags *diags);

/* NCCL's variables for these options, for `version` as ncclGetVersion says it; before NCCL reads them. Those set already stay. */
void cuda_comm_variables(const struct cuda_comm_options *options, int version);

/* Where the launcher put this process. */
struct cuda_place {
    int rank, n_ranks;    /* 0 of 1 without a launcher */
    int local, n_local;   /* on this machine */
    const char *launcher; /* "mpirun", "mpiexec", "srun", "MSIM_RANK" or "none" */
};
/* From the environment. STATUS_BAD_INPUT when its numbers contradict each other. */
MUST_CHECK enum status cuda_place_read(struct cuda_place *place, struct diags *diags);

#endif
