#include "cli/world/world.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model/base/processors.h"
#include "runtime/cuda/cuda_comm.h"

/* The number that a launcher without MPI gave this process; 0 where it gave none. */
static int placed_rank(void)
{
    struct cuda_place place = {0};
    struct diags unread = {0}; /* who uses the place says what is wrong with it */
    if (cuda_place_read(&place, &unread) != STATUS_OK)
        place.rank = 0;
    diags_free(&unread);
    return place.rank;
}

static int fall_silent(void)
{
    return freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
}

static int environment_number(const char *const *names, size_t n, int otherwise)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = getenv(names[i]);
        if (text)
            return (int)strtol(text, NULL, 10);
    }
    return otherwise;
}

int world_processors(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}; /* Open MPI's, MPICH's */
    int ranks_here = world_size() > 1 ? environment_number(names, 2, world_size()) : 1;
    int own = processors_available();
    int share = (int)sysconf(_SC_NPROCESSORS_ONLN) / (ranks_here > 0 ? ranks_here : 1);
    int n = own < share ? own : share;
    return n < 1 ? 1 : n > 256 ? 256 : n;
}

#ifdef MSIM_MPI

#include <mpi.h>

/* Set by Open MPI's mpirun, by MPICH's, and by srun. */
static int launched_size(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS"};
    return environment_number(names, sizeof names / sizeof *names, 1);
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
    int level; /* comm_processes.h: what is asked for, which an MPI need not have for all else to work */
    if (launched_size() > 1)
        (void)!MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (!world_writes() && !fall_silent() && joined())
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
}

/* All ranks are here; a rank on its way out after a failure waits for that at most so long. */
static bool all_came(enum status status)
{
    enum { PATIENCE_NAPS = 300, NAP_NS = 10000000 };
    const struct timespec nap = {.tv_nsec = NAP_NS};
    MPI_Request request;
    bool fine = status == STATUS_OK || status == STATUS_CHECK;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int naps = 0; !done && (fine || naps < PATIENCE_NAPS); naps++) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            nanosleep(&nap, NULL);
    }
    return done;
}

void world_close(enum status status)
{
    if (!joined())
        return;
    if (!all_came(status) || (status == STATUS_FAILED && world_size() > 1))
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

bool world_writes(void)
{
    return (joined() ? world_rank() : placed_rank()) == 0;
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

static void sum(void *context, int64_t *words, size_t n)
{
    (void)context;
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

void world_broadcast(void *bytes, size_t n)
{
    MPI_Request request;
    if (!joined())
        return;
    MPI_Ibcast(bytes, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    wait_for(&request);
}

static void gather(void *context, const void *own, size_t bytes, void *all)
{
    (void)context;
    world_gather(own, bytes, all);
}

static void broadcast(void *context, void *bytes, size_t n)
{
    (void)context;
    world_broadcast(bytes, n);
}

struct processes world_processes(void)
{
    return (struct processes){.rank = world_rank(), .size = world_size(), .sum = sum, .gather = gather, .broadcast = broadcast};
}

#else

void world_open(void)
{
    if (!world_writes())
        (void)!fall_silent();
}

void world_close(enum status status)
{
    (void)status;
}

int world_rank(void)
{
    return 0;
}

bool world_writes(void)
{
    return placed_rank() == 0;
}

int world_size(void)
{
    return 1;
}

void world_gather(const void *mine, size_t bytes, void *all)
{
    memcpy(all, mine, bytes);
}

void world_broadcast(void *bytes, size_t n)
{
    (void)bytes, (void)n;
}

struct processes world_processes(void)
{
    return one_process;
}

#endif
