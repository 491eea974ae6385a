#include "cli/world.h"

#include <string.h>

#ifdef MSIM_MPI

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Set by Open MPI's mpirun, by MPICH's, and by srun. */
static int launched_size(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text)
            return (int)strtol(text, NULL, 10);
    }
    return 1;
}

static int joined(void)
{
    int flag = 0, done = 0;
    MPI_Initialized(&flag);
    MPI_Finalized(&done);
    return flag && !done;
}

void world_open(void)
{
    if (launched_size() < 2 || MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return;
    if (world_rank() > 0 && (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)))
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
}

void world_close(enum status status)
{
    if (!joined())
        return;
    if (status == STATUS_FAILED && world_size() > 1)
        MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
}

int world_rank(void)
{
    int rank = 0;
    if (joined())
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int world_size(void)
{
    int size = 1;
    if (joined())
        MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/* MPI's own waiting spins. Looking now and then, ever less often up to a millisecond, costs a late rank nothing that counts. */
static void wait_for(MPI_Request *request)
{
    struct timespec pause = {.tv_nsec = 10000};
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < 500000 ? 2 * pause.tv_nsec : 1000000;
    }
}

void world_sum(int64_t *words, size_t n)
{
    enum { AT_ONCE = 1 << 24 };
    for (size_t i = 0; joined() && i < n; i += AT_ONCE) {
        MPI_Request request;
        int count = (int)(n - i < AT_ONCE ? n - i : AT_ONCE);
        MPI_Iallreduce(MPI_IN_PLACE, words + i, count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
        wait_for(&request);
    }
}

void world_gather(const void *mine, size_t bytes, void *all)
{
    MPI_Request request;
    if (!joined()) {
        memcpy(all, mine, bytes);
        return;
    }
    MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD, &request);
    wait_for(&request);
}

#else

void world_open(void)
{
}

void world_close(enum status status)
{
    (void)status;
}

int world_rank(void)
{
    return 0;
}

int world_size(void)
{
    return 1;
}

void world_sum(int64_t *words, size_t n)
{
    (void)words, (void)n;
}

void world_gather(const void *mine, size_t bytes, void *all)
{
    memcpy(all, mine, bytes);
}

#endif
