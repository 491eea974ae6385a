/* cuda_trial.c - compares kernels for one architecture with the portable ones before a run uses them. */
#include <cuda_runtime_api.h>

#include "kernels/cuda_launch.h"
#include "model/base/clock.h"
#include "runtime/cuda/cuda_device.h"

enum { TRIAL_SECONDS = 20 };

static enum status give_up(void *context, nanos waited, struct diags *diags)
{
    if (waited < TRIAL_SECONDS * NANOS_PER_SECOND)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "rank %d: attention made for this GPU's architecture does not end",
               ((struct device *)context)->rank);
    return STATUS_FAILED;
}

/* One case; *difference is 0 where there is nothing to compare. */
static enum status try_attention(struct device_stream *stream, int head_dim, bool windowed, float *difference,
                                 struct diags *diags)
{
    const struct device *device = stream->device;
    const struct cuda_launch launch = cuda_device_launch(stream);
    const float *result = NULL;
    *difference = 0;
    const int error = attention_trial_cuda(&launch, head_dim, windowed, &result);
    if (error == cudaErrorNotSupported)
        return STATUS_OK;
    if (error != cudaSuccess)
        return cuda_device_report(device, "attention", error, diags);
    const enum status status = device->api->stream_synchronise(stream, diags);
    return status == STATUS_OK ? device->api->copy_out(stream, difference, result, sizeof *difference, diags) : status;
}

enum status cuda_device_try_kernels(struct device *device, bool *portable, struct diags *diags)
{
    struct device_stream *stream = NULL;
    float worst = 0;
    *portable = false;
    if (cuda_device_is_portable(device))
        return STATUS_OK;
    enum status status = device->api->stream_new(device, false, &stream, diags);
    if (status != STATUS_OK)
        return status;
    cuda_device_set_watch(device, (struct cuda_device_watch){.look = give_up, .context = device});
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        float difference = 0;
        status = try_attention(stream, 64 << i, i == 0, &difference, diags);
        worst = difference > worst ? difference : worst;
    }
    cuda_device_set_watch(device, (struct cuda_device_watch){0});
    if (status != STATUS_OK) { /* the stream stays: freeing it would wait for what may not end */
        diag_note(diags, PLACE_NONE,
                  "attention made for this GPU's architecture was tried; MSIM_PORTABLE_KERNELS=1 does without");
        return status;
    }
    device->api->stream_free(stream);
    *portable = worst > ATTENTION_TRIAL_TOLERANCE;
    if (*portable)
        diag_warning(diags, PLACE_NONE,
                     "rank %d: attention made for this GPU's architecture is off by %.2g of the largest number; the portable "
                     "kernels take its place",
                     device->rank, (double)worst);
    return STATUS_OK;
}
