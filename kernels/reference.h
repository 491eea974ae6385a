/*
 * reference.h - one plain C function per operation of kernels.h, fp32 on host memory: the definition that CUDA is checked
 * against.
 *
 * Written to be read, not to be fast: sums over a row run in double, nothing is blocked or vectorised by hand. Matrix products
 * are the exception (CBLAS). Each operates on the struct of its operation; shapes stand there, beside the pointers. `void`
 * operands are float here.
 */
#ifndef MSIM_KERNELS_REFERENCE_H
#define MSIM_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

void norm_forward_reference(const struct norm_forward_call *call);
void norm_backward_reference(const struct norm_backward_call *call);
void linear_forward_reference(const struct linear_call *call);
void linear_backward_input_reference(const struct linear_call *call);
void linear_backward_weight_reference(const struct linear_call *call);
void rotary_reference(const struct rotary_call *call);
void attention_forward_reference(const struct attention_call *call);
void attention_backward_reference(const struct attention_call *call);
void activation_forward_reference(const struct activation_call *call);
void activation_backward_reference(const struct activation_call *call);
void add_reference(const struct add_call *call);
void dropout_forward_reference(const struct dropout_call *call);
void dropout_backward_reference(const struct dropout_call *call);
void column_sum_reference(const struct column_sum_call *call);
void largest_reference(const struct largest_call *call);
void quantise_reference(const struct quantise_call *call);
void quantise_blocks_reference(const struct quantise_blocks_call *call);
void embedding_forward_reference(const struct embedding_call *call);
void embedding_backward_reference(const struct embedding_call *call);
void logits_max_reference(const struct logits_call *call);
void logits_sum_reference(const struct logits_call *call);
void logits_loss_reference(const struct logits_call *call);
void logits_backward_reference(const struct logits_call *call);
void square_sum_reference(const struct square_sum_call *call);
void adam_reference(const struct adam_call *call);
void lamb_reference(const struct lamb_call *call);
void cast_reference(const struct cast_call *call);
void rows_reference(const struct rows_call *call);
void route_forward_reference(const struct route_call *call);
void route_backward_reference(const struct route_call *call);
void expert_sort_reference(const struct expert_sort_call *call);
void expert_arrivals_reference(const struct expert_arrivals_call *call);
void combine_forward_reference(const struct combine_call *call);
void combine_backward_reference(const struct combine_call *call);
void grouped_forward_reference(const struct grouped_call *call);
void grouped_backward_input_reference(const struct grouped_call *call);
void grouped_backward_weight_reference(const struct grouped_call *call);
void stretch_forward_reference(const struct stretch_call *call);
void stretch_backward_reference(const struct stretch_call *call);
void head_norm_forward_reference(const struct head_norm_call *call);
void head_norm_backward_reference(const struct head_norm_call *call);
void lamb_update_reference(const struct lamb_part_call *call);
void lamb_apply_reference(const struct lamb_part_call *call);
void sgd_reference(const struct sgd_call *call);
void muon_update_reference(const struct muon_call *call);
void muon_combine_reference(const struct muon_call *call);
void muon_apply_reference(const struct muon_call *call);
void convolution_forward_reference(const struct convolution_call *call);
void convolution_backward_reference(const struct convolution_call *call);
void gates_forward_reference(const struct gates_call *call);
void gates_backward_reference(const struct gates_call *call);
void unit_forward_reference(const struct unit_call *call);
void unit_backward_reference(const struct unit_call *call);
void scan_forward_reference(const struct scan_call *call);
void scan_backward_reference(const struct scan_call *call);
void gated_norm_forward_reference(const struct gated_norm_call *call);
void gated_norm_backward_reference(const struct gated_norm_call *call);

/* An operand [rows, cols] in fp32: itself, or its bytes' numbers in *scratch, which then moves on. */
const float *narrow_widened(const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols, float **scratch);

#endif
