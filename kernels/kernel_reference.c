#include <string.h>

#include "kernels/reference.h"

static void zero_reference(const struct zero_call *call)
{
    memset(call->at, 0, call->bytes);
}

static void copy_reference(const struct copy_call *call)
{
    memmove(call->to, call->from, call->bytes);
}

void kernel_reference_run(const struct kernel_call *call)
{
    switch (call->kernel) {
    case KERNEL_NORM_FORWARD: norm_forward_reference(&call->norm_forward); break;
    case KERNEL_NORM_BACKWARD: norm_backward_reference(&call->norm_backward); break;
    case KERNEL_LINEAR_FORWARD: linear_forward_reference(&call->linear); break;
    case KERNEL_LINEAR_BACKWARD_INPUT: linear_backward_input_reference(&call->linear); break;
    case KERNEL_LINEAR_BACKWARD_WEIGHT: linear_backward_weight_reference(&call->linear); break;
    case KERNEL_ROTARY: rotary_reference(&call->rotary); break;
    case KERNEL_ATTENTION_FORWARD: attention_forward_reference(&call->attention); break;
    case KERNEL_ATTENTION_BACKWARD: attention_backward_reference(&call->attention); break;
    case KERNEL_ACTIVATION_FORWARD: activation_forward_reference(&call->activation); break;
    case KERNEL_ACTIVATION_BACKWARD: activation_backward_reference(&call->activation); break;
    case KERNEL_ADD: add_reference(&call->add); break;
    case KERNEL_DROPOUT_FORWARD: dropout_forward_reference(&call->dropout); break;
    case KERNEL_DROPOUT_BACKWARD: dropout_backward_reference(&call->dropout); break;
    case KERNEL_COLUMN_SUM: column_sum_reference(&call->column_sum); break;
    case KERNEL_LARGEST: largest_reference(&call->largest); break;
    case KERNEL_QUANTISE: quantise_reference(&call->quantise); break;
    case KERNEL_QUANTISE_BLOCKS: quantise_blocks_reference(&call->quantise_blocks); break;
    case KERNEL_EMBEDDING_FORWARD: embedding_forward_reference(&call->embedding); break;
    case KERNEL_EMBEDDING_BACKWARD: embedding_backward_reference(&call->embedding); break;
    case KERNEL_LOGITS_MAX: logits_max_reference(&call->logits); break;
    case KERNEL_LOGITS_SUM: logits_sum_reference(&call->logits); break;
    case KERNEL_LOGITS_LOSS: logits_loss_reference(&call->logits); break;
    case KERNEL_LOGITS_BACKWARD: logits_backward_reference(&call->logits); break;
    case KERNEL_SQUARE_SUM: square_sum_reference(&call->square_sum); break;
    case KERNEL_ADAM: adam_reference(&call->adam); break;
    case KERNEL_LAMB: lamb_reference(&call->lamb); break;
    case KERNEL_ZERO: zero_reference(&call->zero); break;
    case KERNEL_COPY: copy_reference(&call->copy); break;
    case KERNEL_CAST: cast_reference(&call->cast); break;
    case KERNEL_ROWS: rows_reference(&call->rows); break;
    case KERNEL_ROUTE_FORWARD: route_forward_reference(&call->route); break;
    case KERNEL_ROUTE_BACKWARD: route_backward_reference(&call->route); break;
    case KERNEL_EXPERT_SORT: expert_sort_reference(&call->expert_sort); break;
    case KERNEL_EXPERT_ARRIVALS: expert_arrivals_reference(&call->expert_arrivals); break;
    case KERNEL_COMBINE_FORWARD: combine_forward_reference(&call->combine); break;
    case KERNEL_COMBINE_BACKWARD: combine_backward_reference(&call->combine); break;
    case KERNEL_GROUPED_FORWARD: grouped_forward_reference(&call->grouped); break;
    case KERNEL_GROUPED_BACKWARD_INPUT: grouped_backward_input_reference(&call->grouped); break;
    case KERNEL_GROUPED_BACKWARD_WEIGHT: grouped_backward_weight_reference(&call->grouped); break;
    case KERNEL_STRETCH_FORWARD: stretch_forward_reference(&call->stretch); break;
    case KERNEL_STRETCH_BACKWARD: stretch_backward_reference(&call->stretch); break;
    case KERNEL_HEAD_NORM_FORWARD: head_norm_forward_reference(&call->head_norm); break;
    case KERNEL_HEAD_NORM_BACKWARD: head_norm_backward_reference(&call->head_norm); break;
    case KERNEL_LAMB_UPDATE: lamb_update_reference(&call->lamb_part); break;
    case KERNEL_LAMB_APPLY: lamb_apply_reference(&call->lamb_part); break;
    case KERNEL_SGD: sgd_reference(&call->sgd); break;
    case KERNEL_MUON_UPDATE: muon_update_reference(&call->muon); break;
    case KERNEL_MUON_COMBINE: muon_combine_reference(&call->muon); break;
    case KERNEL_MUON_APPLY: muon_apply_reference(&call->muon); break;
    case KERNEL_CONVOLUTION_FORWARD: convolution_forward_reference(&call->convolution); break;
    case KERNEL_CONVOLUTION_BACKWARD: convolution_backward_reference(&call->convolution); break;
    case KERNEL_GATES_FORWARD: gates_forward_reference(&call->gates); break;
    case KERNEL_GATES_BACKWARD: gates_backward_reference(&call->gates); break;
    case KERNEL_UNIT_FORWARD: unit_forward_reference(&call->unit); break;
    case KERNEL_UNIT_BACKWARD: unit_backward_reference(&call->unit); break;
    case KERNEL_SCAN_FORWARD: scan_forward_reference(&call->scan); break;
    case KERNEL_SCAN_BACKWARD: scan_backward_reference(&call->scan); break;
    case KERNEL_GATED_NORM_FORWARD: gated_norm_forward_reference(&call->gated_norm); break;
    case KERNEL_GATED_NORM_BACKWARD: gated_norm_backward_reference(&call->gated_norm); break;
    case N_KERNELS: break;
    }
}
