/* cuda_missing.c - the error messages of a build without CUDA. */
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_device.h"

static enum status missing(struct diags *diags)
{
    diag_error(diags, PLACE_NONE, "this msim was built without CUDA; build it where nvcc is found (cmake --preset cuda)");
    return STATUS_MISSING;
}

int cuda_device_count(void)
{
    return 0;
}

enum status cuda_device_open(int rank, int gpu, size_t limit, struct device **device, struct diags *diags)
{
    (void)rank, (void)gpu, (void)limit, (void)device;
    return missing(diags);
}

enum status cuda_device_facts(const struct device *device, struct cuda_device_facts *facts, struct diags *diags)
{
    (void)device, (void)facts;
    return missing(diags);
}

enum status cuda_device_try_kernels(struct device *device, bool *portable, struct diags *diags)
{
    (void)device, (void)portable;
    return missing(diags);
}

void cuda_device_use_portable(struct device *device)
{
    (void)device;
}

enum status cuda_comm_open(const struct cuda_comm_options *options, struct device *device, struct world **world,
                           struct diags *diags)
{
    (void)options, (void)device, (void)world;
    return missing(diags);
}
