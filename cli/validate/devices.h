/*
 * devices.h - the devices that execute a validation or a probe: threads on this CPU, processes that mpirun or srun started, one
 * GPU per process, or one rank alone on one device.
 *
 *   threads     one process, all ranks on its CPU                      no launcher, --device cpu
 *   processes   one rank per process, on CPUs, exchanging by MPI       mpirun -n 4 msim ... --device cpu
 *   gpus        one rank per process, on GPUs, exchanging by NCCL      mpirun or srun, or set MSIM_RANK and MSIM_RANKS
 *   alone       one rank; the messages of the others are copies        --alone RANK, on a CPU or a GPU
 *
 * All processes read the same command line and make the same calls in the same order. Each gets every result.
 */
#ifndef MSIM_CLI_VALIDATE_DEVICES_H
#define MSIM_CLI_VALIDATE_DEVICES_H

#include "cli/options/command.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/probe/probe.h"
#include "runtime/run/thread_run.h"

enum device_kind { DEVICE_CPU, DEVICE_CUDA };

enum { DEVICES_PATH = 384 };
struct devices {
    enum device_kind kind;
    int rank, n_processes;          /* of the processes of this job; 0 of 1 without a launcher */
    int n_local;                    /* of them on this machine */
    int n_cores;                    /* that those may use, all of them together */
    int alone;                      /* the rank that runs without the others, -1 none */
    int gpu;                        /* of this process */
    bool shared_gpu;                /* with other ranks */
    bool own_folder;                /* made here, removed in the end */
    char folder[DEVICES_PATH];      /* where processes with GPUs meet */
    int n_worlds;                   /* made so far: each meets in a folder of its own */
    nanos timeout;                  /* of any wait for another rank */
    size_t memory_limit;            /* bytes of a rank; 0 none */
    struct cuda_device_facts facts; /* of the GPU */
    bool portable;                  /* kernels only, since those made for the GPU compute something else */
};

/* Rows of --device, --ranks-per-gpu and --meet, for the option tables of commands. */
#define DEVICE_GROUP "Devices"
#define DEVICE_OPTION_ROWS                                                                                                       \
    {.name = "device",                                                                                                           \
     CHOICE_FIELDS("KIND", device_choices),                                                                                      \
     .group = DEVICE_GROUP,                                                                                                      \
     .initial = "auto",                                                                                                          \
     .help = "choose the device; auto: GPUs if there are any, else the CPU"},                                                    \
        {.name = "ranks-per-gpu",                                                                                                \
         COUNT_FIELDS,                                                                                                           \
         .low = 1,                                                                                                               \
         .high = 64,                                                                                                             \
         .group = DEVICE_GROUP,                                                                                                  \
         .initial = "1",                                                                                                         \
         .help = "allow N processes per GPU (correct but slow)"},                                                                \
    {                                                                                                                            \
        .name = "meet", TEXT_FIELDS("FOLDER"), .group = DEVICE_GROUP,                                                            \
        .help = "let processes with GPUs find each other through this shared, empty folder instead of MPI"                       \
    }
extern const char *const device_choices[];

/* Reads the options and asks the machine. STATUS_MISSING with a sentence where it lacks what is asked for: CUDA, a GPU, as many
 * as there are processes. Free with devices_close. */
MUST_CHECK enum status devices_open(struct invocation *call, struct devices *devices);
void devices_close(struct devices *devices);

/* "4 ranks as threads on the CPU" */
char *devices_text(const struct devices *devices, int n_ranks, char *buffer, size_t size);
const char *devices_kind_name(const struct devices *devices); /* "cpu", "cuda" */
const char *devices_comm_name(const struct devices *devices); /* "threads", "mpi", "nccl", "alone" */

/* Execute a program on them (thread_run.h, process_run.h). */
MUST_CHECK enum status devices_run(struct invocation *call, struct devices *devices, const struct program *program,
                                   const struct setting *setting, const struct thread_run_options *options,
                                   struct thread_run *result);
/* Probe them and make an entry for `n_ranks`. `options->ranks` are for threads; processes all take part, one alone is one. */
MUST_CHECK enum status devices_probe(struct invocation *call, struct devices *devices, struct probe_options *options, int n_ranks,
                                     struct probe_result *result, struct cluster *cluster);

#endif
