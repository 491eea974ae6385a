/*
 * work_layer.h - the kernels and exchanges of one transformer layer, of the embedding and of the loss head; for work_pass.c
 * only.
 *
 * Example: the forward pass of a layer with tp=8 and sequence parallelism.
 *
 *     norm (T / 8 tokens), all-gather + qkv, attention, projection + reduce-scatter, residual,
 *     norm, all-gather + mlp_up, activation, mlp_down + reduce-scatter, residual
 *
 * Counting. T tokens per rank = micro_batch * seq_len / cp; with sequence parallelism norms, dropout and residuals see T / tp
 * of them. A memory-bound kernel is counted by the bytes it must move (bf16 activations: 2 B per element and pass). Fused
 * kernels move the minimum; unfused ones pay one read and write per step that an eager framework launches.
 *
 * Sources: Korthikanti et al. (arXiv:2205.05198) section 4 for the memory of a layer; Megatron-LM's layers for the order of
 * exchanges. With sequence parallelism there is an all-gather before and a reduce-scatter after each of attention and MLP. In
 * the backward pass the gather of the saved input overlaps with the input gradient's GEMM, and the exchange of the input
 * gradient with the weight gradient's (Megatron's asynchronous linear layer).
 *
 * Context parallelism. Of cp = h k ranks (layout_cp_heads, layout_cp_keys), h neighbours exchange heads for tokens, and keys
 * and values travel among k. With n heads, g key/value heads (max(g, h) as they are sent) and head dimensions d, v on a rank of
 * T tokens, bf16:
 *
 *     h > 1   all-to-all of 2 T (n d + max(g, h) (d + v)) bytes and of 2 T n v, both ways; a rank keeps 1/h of it. Each is packed
 *             before and put in place after it (a pass of memory; Transformer Engine, flash_attn_a2a_communicate); nothing hides
 * it k > 1   attention over h T tokens of n / h heads. Ring: k steps with balanced causal halves, each of which overlaps with the
 *             transfer of the next block, and merges of their results; backward the gradients travel too. Gathered: one exchange
 *             before attention and one in the backward pass, and a reduce-scatter of the gradients; nothing hides them
 *
 * In all cases the chunks balance the number of keys that each rank's queries attend to.
 */
#ifndef MSIM_MODEL_COST_WORK_WORK_LAYER_H
#define MSIM_MODEL_COST_WORK_WORK_LAYER_H

#include "model/cost/work/work.h"

enum { LAYER_WORKS_MAX = 1024 }; /* a layer has about 80, recomputed and backward; the head adds that many per prediction layer */

struct layer_builder {
    struct work_table *table;
    const struct layout *layout;
    const struct transformer *model;
    const struct job *job;
    const struct cluster *cluster; /* only for the places of groups */
    double tokens;                 /* T */
    double local_tokens;           /* T / tp with sequence parallelism, else T */
    bool frozen;                   /* only adapters are trained: the model's own weights have no gradients */
    bool recomputing;              /* compute belongs to CLASS_RECOMPUTE */
    bool stops_early;              /* recomputing: ends with the input of the down-projection */
    bool keeps_products;           /* recomputing: attention and every second product were kept */
    int products;                  /* recomputing: number of products so far */
    int32_t ids[LAYER_WORKS_MAX];
    int32_t n;
};

struct layer_builder layer_builder_of(struct work_table *table, const struct layout *layout, const struct setting *setting);

/* See work_is_current. */
bool builder_is_current(const struct layer_builder *b);

/* Append the works of one layer's pass to the list of the builder. */
void layer_forward(struct layer_builder *b, struct layer_kind kind);
void layer_backward(struct layer_builder *b, struct layer_kind kind, bool input, bool weight);
/* The forward pass of some modules (a set) alone, each from its input. */
void layer_modules(struct layer_builder *b, struct layer_kind kind, enum recompute_what modules);
/* Parts that these functions share. */
void mixture_forward(struct layer_builder *b);
void mixture_modules(struct layer_builder *b, enum recompute_what modules);
void mixture_backward(struct layer_builder *b, bool input, bool weight);
void attention_core(struct layer_builder *b, bool windowed, bool backward);
/* Casts for features that keep tensors in fewer bits (work_kept.c): the input of an activation with `elements` outputs, in
 * either direction, and the output of attention. */
void kept_activation_input(struct layer_builder *b, enum work_class class, double elements);
void kept_attention_output(struct layer_builder *b, bool backward);
/* A mixer with a state: `gather` and `reduce` (or -1) are the exchanges before and after it; `ends`: without the output
 * projection. Backward: `gathers` the output's gradient, `exchanges` the input's. */
void mixer_forward(struct layer_builder *b, int32_t gather, int32_t reduce, bool ends);
void mixer_backward(struct layer_builder *b, bool gathers, bool exchanges, bool input, bool weight);

void embedding_works(struct layer_builder *b, bool backward);
void head_works(struct layer_builder *b, bool backward, bool input, bool weight);
/* The part of a module of multi-token prediction before its layer. */
void prediction_forward(struct layer_builder *b);
void prediction_backward(struct layer_builder *b, bool input, bool weight);

/* --- linear layers */

enum linear_split { LINEAR_COLUMNS, LINEAR_ROWS, LINEAR_WHOLE }; /* by outputs, by inputs, or whole on each rank */

struct linear {
    const char *label;
    int64_t in, out; /* per rank */
    enum linear_split split;
    bool adapted; /* has an adapter */
};

static inline struct linear linear_of(const char *label, int64_t in, int64_t out, enum linear_split split)
{
    return (struct linear){label, in, out, split, false};
}

/*
 * Column-parallel layers with the same input. Megatron keeps them in one matrix; LLaMA-style code has separate matrices wq, wk,
 * wv, gate and up. Queries, keys and values share one exchange (they are one module). The gate and the up matrix of eager
 * stacks are two column-parallel layers, and each exchanges its own input gradient.
 */
struct linear_group {
    struct linear items[4];
    int n;
    bool apart;          /* separate matrices: their parts of the input gradient are added up */
    bool each_exchanges; /* each exchanges its own input gradient */
};

/* Whether the stack keeps the gathered inputs of its products for the backward pass. */
static inline bool layer_keeps_gathered(const struct layer_builder *b)
{
    return layout_follows_llama(b->layout, b->model);
}

/* Forward: column-parallel layers, whose input is gathered first (gather -1: it already is), and a row-parallel one, whose
 * output is reduced. Backward with `exchanges`: the input is gathered again and its gradient exchanged; the gradient of the
 * output is gathered. */
void group_forward(struct layer_builder *b, const struct linear_group *g, int32_t gather);
void group_backward(struct layer_builder *b, const struct linear_group *g, bool exchanges, bool input, bool weight);
void row_forward(struct layer_builder *b, const struct linear *l, int32_t reduce);
/* The same, recomputed only as far as the backward pass needs it. */
void row_forward_needed(struct layer_builder *b, const struct linear *l, int32_t reduce);
void row_backward(struct layer_builder *b, const struct linear *l, bool exchanges, bool input, bool weight);

/* --- adapters (work_adapter.c) */

/* Fills in the linear layers of a transformer layer that have an adapter; returns their number. */
enum { ADAPTED_MAX = 8 };
int layer_adapted(const struct layer_builder *b, struct layer_kind kind, struct linear adapted[ADAPTED_MAX]);
/* After the product of its linear layer. `needs`: only the part that the backward pass needs, the product of A. */
void adapter_forward(struct layer_builder *b, const struct linear *l, bool needs);
/* After the input gradient of its linear layer, to which it adds; and the gradients of A and B, the first of which overlaps
 * with an exchange (-1: none). */
void adapter_backward_input(struct layer_builder *b, const struct linear *l);
void adapter_backward_weights(struct layer_builder *b, const struct linear *l, int32_t exchange);
/* Elements of A and B of its linear layer on a rank. */
double adapter_elements(const struct layer_builder *b, const struct linear *l);

/* --- building blocks */
void builder_memory(struct layer_builder *b, enum work_class class, enum memory_kernel kernel, const char *label, double bytes,
                    int kernels);
/* The product of a linear layer y[tokens, out] = x[tokens, in] in one pass. */
struct work_gemm builder_gemm(const struct layer_builder *b, int64_t tokens, int64_t in, int64_t out, enum pass pass,
                              enum precision precision);
/* A linear layer y[T, out] = x[T, in]: forward, input gradient or weight gradient. Returns the work without appending it. */
int32_t builder_linear(struct layer_builder *b, enum work_class class, const char *label, double tokens, int64_t in, int64_t out,
                       enum pass pass);
int32_t builder_exchange(struct layer_builder *b, enum work_class class, const char *label, enum collective collective,
                         enum group_kind group, double bytes);
/* The exchange that gathers a sharded sequence (all-gather) or reduces partial sums (reduce-scatter, or all-reduce without
 * sequence parallelism); -1 where there is nothing to exchange. */
int32_t builder_tp_gather(struct layer_builder *b, const char *label);
/* The same for the operand of a product after builder_cast_operand. `both`: two products read it (input and weight gradient, or
 * forward and backward pass); block-scaled casts are then two tensors, as Transformer Engine gathers them. */
int32_t builder_tp_gather_operand(struct layer_builder *b, const char *label, bool both);
int32_t builder_tp_reduce(struct layer_builder *b, const char *label);
void builder_append(struct layer_builder *b, int32_t work);
/* A GEMM and the exchange of its input or output: one after the other, or in overlapping pieces when tp_overlap is used. */
void builder_pipelined(struct layer_builder *b, int32_t gemm, int32_t exchange, bool exchange_first);
/* Appends the GEMM of a weight gradient, an exchange (or -1) that may overlap with it, and the addition of the gradient of
 * `elements` elements. */
void builder_weight_gradient(struct layer_builder *b, int32_t gemm, int32_t exchange, double elements);
void builder_side_by_side(struct layer_builder *b, int32_t gemm, int32_t exchange);
/* Adds a gradient of `elements` elements in half precision to that of earlier micro-batches, if there are any. */
void builder_gradient_sum(struct layer_builder *b, double elements);
/* fp8 and narrower: the cast of an operand of `elements` elements. */
void builder_cast(struct layer_builder *b, const char *label, double elements);
/* The same for `elements` elements in `tensors` tensors, one kernel each. */
void builder_casts(struct layer_builder *b, const char *label, double elements, int32_t tensors);
/* The cast of an operand of width `width` that tensor parallelism gathers: each rank casts its own part of the sequence, so
 * fewer bytes travel. A tensor with one scale is transposed when it is whole (Transformer Engine: layernorm_fwd_fp8,
 * gather_along_first_dim; torchao's Float8ColwiseParallel). */
void builder_cast_operand(struct layer_builder *b, const char *label, int64_t width);
bool builder_has(const struct layer_builder *b, feature_set any_of);

#endif
