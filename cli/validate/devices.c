#include "cli/validate/devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/world/world.h"
#include "model/base/memory.h"
#include "runtime/base/cores.h"
#include "runtime/comm/comm_alone.h"
#include "runtime/comm/comm_processes.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/device/device_cpu.h"
#include "runtime/run/process_run.h"

const char *const device_choices[] = {"auto", "cpu", "cuda", NULL};
enum { CHOICE_AUTO, CHOICE_CPU, CHOICE_CUDA };
enum { PROBE_TIMEOUT_S = 60 };

/* --- choosing */

/* Whether this process is one of several that a launcher started. */
static bool has_companions(const struct devices *devices)
{
    return devices->n_processes > 1;
}

static enum status choose_gpu(struct invocation *call, const struct cuda_place *place, struct devices *devices)
{
    int gpus = cuda_device_count(), per_gpu = (int)option_count(call, "ranks-per-gpu");
    struct device *device;
    /* Slurm shows each process its own GPU only (--gpus-per-task); NCCL refuses two ranks on one that nobody asked for. */
    const bool own = per_gpu == 1 && gpus == 1 && getenv("CUDA_VISIBLE_DEVICES");
    if (gpus > 0 && !own && place->n_local > gpus * per_gpu) {
        diag_error(&call->diags, PLACE_NONE,
                   "%d ranks on this machine exceed its %d GPU%s; start fewer, or let ranks share GPUs with --ranks-per-gpu %d",
                   place->n_local, gpus, gpus == 1 ? "" : "s", (place->n_local + gpus - 1) / gpus);
        return STATUS_MISSING;
    }
    devices->gpu = gpus > 0 ? place->local % gpus : 0;
    devices->shared_gpu = gpus > 0 && !own && place->n_local > gpus;
    enum status status = cuda_device_open(place->rank, devices->gpu, 0, &device, &call->diags); /* says what is missing */
    if (status != STATUS_OK)
        return status;
    status = cuda_device_facts(device, &devices->facts, &call->diags);
    if (status == STATUS_OK)
        status = cuda_device_try_kernels(device, &devices->portable, &call->diags);
    if (status == STATUS_OK) /* else closing might wait for what does not end */
        device->api->close(device);
    return status;
}

/* A folder of this job alone, known to all its processes. */
static enum status choose_folder(struct invocation *call, struct devices *devices)
{
    const char *given = option_text(call, "meet"), *temporary = getenv("TMPDIR");
    if (!has_companions(devices) || devices->kind != DEVICE_CUDA)
        return STATUS_OK;
    if (given) {
        snprintf(devices->folder, sizeof devices->folder, "%s", given);
        return STATUS_OK;
    }
    if (world_size() != devices->n_processes) {
        diag_error(&call->diags, PLACE_NONE,
                   "%d processes without MPI need an empty folder that all of them see; specify --meet FOLDER",
                   devices->n_processes);
        return STATUS_USAGE;
    }
    snprintf(devices->folder, sizeof devices->folder, "%s/msim-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (world_rank() == 0 && !mkdtemp(devices->folder))
        devices->folder[0] = '\0';
    world_broadcast(devices->folder, sizeof devices->folder);
    devices->own_folder = true;
    if (devices->folder[0] && (mkdir(devices->folder, 0700) == 0 || errno == EEXIST))
        return STATUS_OK;
    diag_error(&call->diags, PLACE_NONE, "cannot create a folder for --meet under %s: %s",
               temporary && *temporary ? temporary : "/tmp", strerror(errno));
    return STATUS_FAILED;
}

/* A launcher may have bound each process to cores of its own. */
static int cores_together(const struct devices *devices)
{
    if (devices->n_processes == 1 || devices->n_local != devices->n_processes || world_size() != devices->n_processes)
        return cores_here();
    unsigned char mine[CORE_SET_BYTES], *all = memory_new((size_t)devices->n_processes, sizeof mine);
    cores_allowed(mine);
    world_gather(mine, sizeof mine, all);
    int cores = cores_of_sets(all, devices->n_processes);
    free(all);
    return cores;
}

enum status devices_open(struct invocation *call, struct devices *devices)
{
    struct cuda_place place;
    int choice = option_choice(call, "device");
    *devices = (struct devices){.alone = -1, .timeout = PROBE_TIMEOUT_S * NANOS_PER_SECOND};
    enum status status = cuda_place_read(&place, &call->diags);
    if (status != STATUS_OK)
        return status;
    bool cuda = choice == CHOICE_CUDA || (choice == CHOICE_AUTO && cuda_device_count() > 0);
    devices->kind = cuda ? DEVICE_CUDA : DEVICE_CPU;
    devices->rank = cuda ? place.rank : world_rank();
    devices->n_processes = cuda ? place.n_ranks : world_size();
    devices->n_local = devices->n_processes == 1 ? 1 : place.n_local;
    devices->n_cores = cores_together(devices);
    if (cuda)
        status = choose_gpu(call, &place, devices);
    return status == STATUS_OK ? choose_folder(call, devices) : status;
}

static void remove_world(const struct devices *devices, int world)
{
    char path[DEVICES_PATH + 64];
    static const char *const names[] = {"id", "abandoned"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%d/%s", devices->folder, world, names[i]);
        (void)unlink(path);
    }
    for (int rank = 0; rank < devices->n_processes; rank++) {
        snprintf(path, sizeof path, "%s/%d/rank.%d", devices->folder, world, rank);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "%s/%d", devices->folder, world);
    (void)rmdir(path);
}

void devices_close(struct devices *devices)
{
    for (int world = 0; devices->own_folder && devices->rank == 0 && world < devices->n_worlds; world++)
        remove_world(devices, world);
    if (devices->own_folder && devices->rank == 0)
        (void)rmdir(devices->folder);
}

/* --- words */

const char *devices_kind_name(const struct devices *devices)
{
    return devices->kind == DEVICE_CUDA ? "cuda" : "cpu";
}

const char *devices_comm_name(const struct devices *devices)
{
    if (devices->alone >= 0)
        return "alone";
    if (devices->kind == DEVICE_CUDA)
        return "nccl";
    return has_companions(devices) ? "mpi" : "threads";
}

char *devices_text(const struct devices *devices, int n_ranks, char *buffer, size_t size)
{
    const char *where = devices->kind == DEVICE_CUDA ? devices->facts.name : "the CPU";
    if (devices->alone >= 0)
        snprintf(buffer, size, "rank %d of %d alone on %s; messages of other ranks become copies", devices->alone, n_ranks,
                 where);
    else if (devices->kind == DEVICE_CUDA)
        snprintf(buffer, size, "%d rank%s on %s%s, NCCL", n_ranks, n_ranks == 1 ? "" : "s", where,
                 devices->shared_gpu ? ", several per GPU" : "");
    else
        snprintf(buffer, size, "%d ranks as %s on the CPU", n_ranks, has_companions(devices) ? "processes" : "threads");
    return buffer;
}

/* --- devices and worlds of this process */

/* `place` is the process on the first machine whose device it is; closes nothing on failure. */
static enum status open_cpu(struct devices *devices, int rank, struct device **device, struct world **world, struct diags *diags)
{
    const nanos *epoch = NULL;
    if (devices->alone < 0) {
        enum status status = comm_processes_open(devices->timeout, world, diags);
        if (status != STATUS_OK)
            return status;
        epoch = comm_processes_epoch(*world);
    }
    enum status status = device_cpu_open(rank, epoch, devices->memory_limit, device, diags);
    if (status != STATUS_OK && *world)
        (*world)->api->close(*world);
    return status;
}

/* CUDA keeps the process: nothing that waits for it may be called. */
static void end_process(const char *text)
{
    fprintf(stderr, "error: %s\n", text);
    _exit(STATUS_FAILED);
}

static enum status open_cuda(struct devices *devices, int rank, struct device **device, struct world **world, struct diags *diags)
{
    char folder[DEVICES_PATH + 16];
    enum status status = cuda_device_open(rank, devices->gpu, devices->memory_limit, device, diags);
    if (status == STATUS_OK && devices->portable)
        cuda_device_use_portable(*device);
    if (status != STATUS_OK || devices->alone >= 0)
        return status;
    snprintf(folder, sizeof folder, "%s/%d", devices->folder, devices->n_worlds++);
    if (has_companions(devices) && mkdir(folder, 0700) != 0 && errno != EEXIST) {
        diag_error(diags, PLACE_NONE, "rank %d: cannot create %s for --meet: %s", rank, folder, strerror(errno));
        status = STATUS_FAILED;
    }
    struct cuda_comm_options options = {.rank = devices->rank,
                                        .n_ranks = devices->n_processes,
                                        .shared_gpu = devices->shared_gpu,
                                        .folder = folder,
                                        .share = world_size() == devices->n_processes ? world_broadcast : NULL,
                                        .timeout = devices->timeout,
                                        .end = end_process};
    if (status == STATUS_OK)
        status = cuda_comm_open(&options, *device, world, diags);
    if (status != STATUS_OK)
        (*device)->api->close(*device);
    return status;
}

/* Alone: no world, the run makes its own. */
static enum status open_own(struct devices *devices, struct device **device, struct world **world, struct diags *diags)
{
    int rank = devices->alone >= 0 ? devices->alone : devices->rank;
    *world = NULL;
    return devices->kind == DEVICE_CUDA ? open_cuda(devices, rank, device, world, diags)
                                        : open_cpu(devices, rank, device, world, diags);
}

/* --- running and probing */

static bool are_threads(const struct devices *devices)
{
    return devices->kind == DEVICE_CPU && devices->alone < 0 && !has_companions(devices);
}

enum status devices_run(struct invocation *call, struct devices *devices, const struct program *program,
                        const struct setting *setting, const struct thread_run_options *options, struct thread_run *result)
{
    struct device *device;
    struct world *world;
    if (are_threads(devices))
        return run_on_threads(program, setting, options, result, &call->diags);
    devices->timeout = options->timeout ? options->timeout : devices->timeout;
    devices->memory_limit = options->memory_limit;
    enum status status = open_own(devices, &device, &world, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (devices->alone >= 0)
        return run_alone(program, setting, options, devices->alone, device, result, &call->diags);
    return run_as_rank(program, setting, options, device, world, result, &call->diags);
}

static enum status probe_own(struct invocation *call, struct devices *devices, struct probe_options *options,
                             struct probe_result *result)
{
    struct device *device;
    struct world *world;
    options->ranks = devices->alone >= 0 ? 1 : devices->n_processes;
    options->flush_bytes = devices->kind == DEVICE_CUDA ? 2 * devices->facts.l2_bytes : 0;
    enum status status = open_own(devices, &device, &world, &call->diags);
    if (status == STATUS_OK && !world) {
        status = comm_alone_open(0, 1, device, &world, &call->diags);
        if (status != STATUS_OK)
            device->api->close(device);
    }
    return status == STATUS_OK ? probe_rank(options, device, world, result, &call->diags) : status;
}

enum status devices_probe(struct invocation *call, struct devices *devices, struct probe_options *options, int n_ranks,
                          struct probe_result *result, struct cluster *cluster)
{
    struct probe_device what = probe_this_cpu(n_ranks);
    options->cores = devices->n_cores;
    enum status status =
        are_threads(devices) ? probe_cpu(options, result, &call->diags) : probe_own(call, devices, options, result);
    if (status != STATUS_OK)
        return status;
    if (devices->kind == DEVICE_CUDA)
        what = (struct probe_device){.name = devices->facts.name, .memory_bytes = (double)devices->facts.memory_bytes};
    probe_fit(options, result, &what, n_ranks, cluster);
    return STATUS_OK;
}
