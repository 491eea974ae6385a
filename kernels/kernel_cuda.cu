/*
 * kernel_cuda.cu - which launcher does which operation, and errors in words.
 */
#include "kernels/vector.cuh"

extern "C" {
#include "kernels/gemm_library.h"
}

static cudaError_t zero_cuda(const struct cuda_launch *launch, const struct zero_call *call)
{
    return cudaMemsetAsync(call->at, 0, call->bytes, launch->stream);
}

static cudaError_t copy_cuda(const struct cuda_launch *launch, const struct copy_call *call)
{
    return cudaMemcpyAsync(call->to, call->from, call->bytes, cudaMemcpyDeviceToDevice, launch->stream);
}

static int launch_operation(const struct cuda_launch *launch, const struct kernel_call *call)
{
    switch (call->kernel) {
    case KERNEL_NORM_FORWARD: return norm_forward_cuda(launch, &call->norm_forward);
    case KERNEL_NORM_BACKWARD: return norm_backward_cuda(launch, &call->norm_backward);
    case KERNEL_ROTARY: return rotary_cuda(launch, &call->rotary);
    case KERNEL_ATTENTION_FORWARD: return attention_forward_cuda(launch, &call->attention);
    case KERNEL_ATTENTION_BACKWARD: return attention_backward_cuda(launch, &call->attention);
    case KERNEL_ACTIVATION_FORWARD: return activation_forward_cuda(launch, &call->activation);
    case KERNEL_ACTIVATION_BACKWARD: return activation_backward_cuda(launch, &call->activation);
    case KERNEL_ADD: return add_cuda(launch, &call->add);
    case KERNEL_DROPOUT_FORWARD: return dropout_forward_cuda(launch, &call->dropout);
    case KERNEL_DROPOUT_BACKWARD: return dropout_backward_cuda(launch, &call->dropout);
    case KERNEL_COLUMN_SUM: return column_sum_cuda(launch, &call->column_sum);
    case KERNEL_LARGEST: return largest_cuda(launch, &call->largest);
    case KERNEL_QUANTISE: return quantise_cuda(launch, &call->quantise);
    case KERNEL_QUANTISE_BLOCKS: return quantise_blocks_cuda(launch, &call->quantise_blocks);
    case KERNEL_EMBEDDING_FORWARD: return embedding_forward_cuda(launch, &call->embedding);
    case KERNEL_EMBEDDING_BACKWARD: return embedding_backward_cuda(launch, &call->embedding);
    case KERNEL_LOGITS_MAX: return logits_max_cuda(launch, &call->logits);
    case KERNEL_LOGITS_SUM: return logits_sum_cuda(launch, &call->logits);
    case KERNEL_LOGITS_LOSS: return logits_loss_cuda(launch, &call->logits);
    case KERNEL_LOGITS_BACKWARD: return logits_backward_cuda(launch, &call->logits);
    case KERNEL_SQUARE_SUM: return square_sum_cuda(launch, &call->square_sum);
    case KERNEL_ADAM: return adam_cuda(launch, &call->adam);
    case KERNEL_LAMB: return lamb_cuda(launch, &call->lamb);
    case KERNEL_ZERO: return zero_cuda(launch, &call->zero);
    case KERNEL_COPY: return copy_cuda(launch, &call->copy);
    case KERNEL_CAST: return cast_cuda(launch, &call->cast);
    case KERNEL_ROWS: return rows_cuda(launch, &call->rows);
    case KERNEL_ROUTE_FORWARD: return route_forward_cuda(launch, &call->route);
    case KERNEL_ROUTE_BACKWARD: return route_backward_cuda(launch, &call->route);
    case KERNEL_EXPERT_SORT: return expert_sort_cuda(launch, &call->expert_sort);
    case KERNEL_EXPERT_ARRIVALS: return expert_arrivals_cuda(launch, &call->expert_arrivals);
    case KERNEL_COMBINE_FORWARD: return combine_forward_cuda(launch, &call->combine);
    case KERNEL_COMBINE_BACKWARD: return combine_backward_cuda(launch, &call->combine);
    case KERNEL_GROUPED_FORWARD:
    case KERNEL_GROUPED_BACKWARD_INPUT:
    case KERNEL_GROUPED_BACKWARD_WEIGHT: return grouped_narrow_cuda(launch, call->kernel, &call->grouped);
    case KERNEL_STRETCH_FORWARD: return stretch_forward_cuda(launch, &call->stretch);
    case KERNEL_STRETCH_BACKWARD: return stretch_backward_cuda(launch, &call->stretch);
    case KERNEL_HEAD_NORM_FORWARD: return head_norm_forward_cuda(launch, &call->head_norm);
    case KERNEL_HEAD_NORM_BACKWARD: return head_norm_backward_cuda(launch, &call->head_norm);
    case KERNEL_LAMB_UPDATE: return lamb_update_cuda(launch, &call->lamb_part);
    case KERNEL_LAMB_APPLY: return lamb_apply_cuda(launch, &call->lamb_part);
    case KERNEL_SGD: return sgd_cuda(launch, &call->sgd);
    case KERNEL_MUON_UPDATE: return muon_update_cuda(launch, &call->muon);
    case KERNEL_MUON_COMBINE: return muon_combine_cuda(launch, &call->muon);
    case KERNEL_MUON_APPLY: return muon_apply_cuda(launch, &call->muon);
    case KERNEL_CONVOLUTION_FORWARD: return convolution_forward_cuda(launch, &call->convolution);
    case KERNEL_CONVOLUTION_BACKWARD: return convolution_backward_cuda(launch, &call->convolution);
    case KERNEL_GATES_FORWARD: return gates_forward_cuda(launch, &call->gates);
    case KERNEL_GATES_BACKWARD: return gates_backward_cuda(launch, &call->gates);
    case KERNEL_UNIT_FORWARD: return unit_forward_cuda(launch, &call->unit);
    case KERNEL_UNIT_BACKWARD: return unit_backward_cuda(launch, &call->unit);
    case KERNEL_GATED_NORM_FORWARD: return gated_norm_forward_cuda(launch, &call->gated_norm);
    case KERNEL_GATED_NORM_BACKWARD: return gated_norm_backward_cuda(launch, &call->gated_norm);
    case KERNEL_SCAN_FORWARD: return scan_forward_cuda(launch, &call->scan);
    case KERNEL_SCAN_BACKWARD: return scan_backward_cuda(launch, &call->scan);
    default: return cudaErrorInvalidValue;
    }
}

enum status kernel_cuda_launch(const struct cuda_launch *launch, const struct kernel_call *call, struct diags *diags)
{
    const struct place nowhere = {};
    if (call->kernel == KERNEL_LINEAR_FORWARD || call->kernel == KERNEL_LINEAR_BACKWARD_INPUT ||
        call->kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        return call->linear.x_as.format || call->linear.dy_as.format
                   ? linear_narrow_cuda(launch, call->kernel, &call->linear, diags)
                   : linear_cuda(launch, call->kernel, &call->linear, diags);
    const cudaError_t error = (cudaError_t)launch_operation(launch, call);
    if (error == cudaSuccess)
        return STATUS_OK;
    (void)cudaGetLastError();
    if (error == cudaErrorInvalidValue)
        diag_error(diags, nowhere, "%s: this shape or alignment cannot be done on a CUDA device", kernel_name(call->kernel));
    else
        diag_error(diags, nowhere, "%s: %s (CUDA error %d)", kernel_name(call->kernel), cudaGetErrorString(error), (int)error);
    return STATUS_FAILED;
}
