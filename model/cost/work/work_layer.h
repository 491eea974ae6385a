/*
 * work_layer.h - the kernels and exchanges of one transformer layer, of the embedding and of the loss head; for work_pass.c only.
 *
 * Counting. T tokens per rank = micro_batch * seq_len / cp; with sequence parallelism norms, dropout and residuals see T / tp of
 * them. A memory-bound kernel is counted by the bytes it must move (bf16 activations: 2 B an element and pass); "fused" kernels
 * move the minimum, unfused ones pay one read and write per step that an eager framework launches. Sources: Korthikanti et al.
 * (arXiv:2205.05198) section 4 for what a layer holds, Megatron-LM's layers for the order of exchanges: with sequence parallelism
 * an all-gather before and a reduce-scatter after each of attention and MLP, in the backward pass the gather of the saved input
 * runs beside the input gradient's GEMM and the exchange of the input gradient beside the weight gradient's (Megatron's
 * asynchronous linear layer).
 *
 * Context parallelism. Of cp = h k ranks (layout_cp_heads, layout_cp_keys), h neighbours exchange heads for tokens and among k
 * keys and values travel; with n heads, g key/value heads (max(g, h) as they are sent) and head dimensions d, v on a rank of T
 * tokens, bf16:
 *
 *   h > 1   all-to-all of 2 T (n d + max(g, h) (d + v)) bytes and of 2 T n v, both ways; a rank keeps 1/h of it. Each is packed
 *           before and put in place behind (a pass of memory; Transformer Engine, flash_attn_a2a_communicate), nothing hides it
 *   k > 1   attention over h T tokens of n / h heads. A ring: k steps with balanced causal halves, each beside the next block's
 *           journey, and what merges their results; backward the gradients travel too. Gathered: one exchange before attention,
 *           again in the backward pass, whose gradients a reduce-scatter brings home; nothing hides them
 *
 * What the queries of a rank attend to is balanced by chunks, whichever of these it is.
 */
#ifndef MSIM_MODEL_COST_WORK_WORK_LAYER_H
#define MSIM_MODEL_COST_WORK_WORK_LAYER_H

#include "model/cost/work/work.h"

enum { LAYER_WORKS_MAX = 1024 }; /* a layer takes about 80 recomputed and backward; the head adds as many per prediction layer */

struct layer_builder {
    struct work_table *table;
    const struct layout *layout;
    const struct transformer *model;
    const struct job *job;
    const struct cluster *cluster; /* where groups lie; nothing else of it is asked */
    double tokens;                 /* T */
    double local_tokens;           /* T / tp with sequence parallelism, T otherwise */
    bool frozen;                   /* adapters are trained, not the model's own weights: these have no gradients */
    bool recomputing;              /* compute belongs to CLASS_RECOMPUTE */
    bool stops_early;              /* recomputing: ends with what the down-projection reads */
    bool keeps_products;           /* recomputing: attention and every second product were kept */
    int products;                  /* recomputing: met so far */
    int32_t ids[LAYER_WORKS_MAX];
    int32_t n;
};

struct layer_builder layer_builder_of(struct work_table *table, const struct layout *layout, const struct setting *setting);

/* See work_is_current. */
bool builder_is_current(const struct layer_builder *b);

/* Append the works of one layer's pass to the builder's list. */
void layer_forward(struct layer_builder *b, struct layer_kind kind);
void layer_backward(struct layer_builder *b, struct layer_kind kind, bool input, bool weight);
/* Modules (a set) of its forward pass alone, each from what it reads. */
void layer_modules(struct layer_builder *b, struct layer_kind kind, enum recompute_what modules);
/* Parts, shared by them. */
void mixture_forward(struct layer_builder *b);
void mixture_modules(struct layer_builder *b, enum recompute_what modules);
void mixture_backward(struct layer_builder *b, bool input, bool weight);
void attention_core(struct layer_builder *b, bool windowed, bool backward);
/* Features keep them in fewer bits (work_kept.c): what an activation that gives `elements` reads, on the way there or back, and
 * what attention gives. */
void kept_activation_input(struct layer_builder *b, enum work_class class, double elements);
void kept_attention_output(struct layer_builder *b, bool backward);
/* A mixer with a state: `gather` and `reduce` (or -1) are exchanged before and behind it; `ends`: without the output projection.
 * Backward, whether it gathers the output's gradient, and exchanges the input's. */
void mixer_forward(struct layer_builder *b, int32_t gather, int32_t reduce, bool ends);
void mixer_backward(struct layer_builder *b, bool gathers, bool exchanges, bool input, bool weight);

void embedding_works(struct layer_builder *b, bool backward);
void head_works(struct layer_builder *b, bool backward, bool input, bool weight);
/* What a module of multi-token prediction puts before its layer. */
void prediction_forward(struct layer_builder *b);
void prediction_backward(struct layer_builder *b, bool input, bool weight);

/* --- linear layers */

enum linear_split { LINEAR_COLUMNS, LINEAR_ROWS, LINEAR_WHOLE }; /* by its outputs, by its inputs, or each rank has it */

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
 * Column-parallel layers that read the same input. Megatron's line keeps them in one matrix; LLaMA-style code has wq, wk, wv and
 * the gate and up matrices apart. Queries, keys and values are one exchange (of one module); the gate and the up matrix of eager
 * stacks are two column-parallel layers, each of which exchanges its input gradient for itself.
 */
struct linear_group {
    struct linear items[4];
    int n;
    bool apart;          /* not columns of one matrix: what they give for the input's gradient is added up */
    bool each_exchanges; /* its own part of it */
};

/* Forward of column-parallel layers, whose input is gathered first unless it was (gather -1), and of a row-parallel one, whose
 * output is reduced. Backward, `exchanges`: the input is gathered again and its gradient exchanged; the gradient of the output is
 * gathered. */
void group_forward(struct layer_builder *b, const struct linear_group *g, int32_t gather);
void group_backward(struct layer_builder *b, const struct linear_group *g, bool exchanges, bool input, bool weight);
void row_forward(struct layer_builder *b, struct linear l, int32_t reduce);
void row_backward(struct layer_builder *b, struct linear l, bool exchanges, bool input, bool weight);

/* --- adapters (work_adapter.c) */

/* The linear layers of a transformer layer that have one; how many. */
enum { ADAPTED_MAX = 8 };
int layer_adapted(const struct layer_builder *b, struct layer_kind kind, struct linear adapted[ADAPTED_MAX]);
/* Behind the product of its linear layer. `needs`: up to what the backward pass reads, A's product, without what B gives. */
void adapter_forward(struct layer_builder *b, const struct linear *l, bool needs);
/* Behind the input gradient of its linear layer, to which it adds; and the gradients of A and B, beside the first of which an
 * exchange (or -1) may run. */
void adapter_backward_input(struct layer_builder *b, const struct linear *l);
void adapter_backward_weights(struct layer_builder *b, const struct linear *l, int32_t exchange);

/* --- building blocks */
void builder_memory(struct layer_builder *b, enum work_class class, enum memory_kernel kernel, const char *label, double bytes,
                    int kernels);
/* The product behind a linear layer y[tokens, out] = x[tokens, in] in one pass. */
struct work_gemm builder_gemm(const struct layer_builder *b, int64_t tokens, int64_t in, int64_t out, enum pass pass,
                              enum precision precision);
/* Linear layer y[T, out] = x[T, in]; forward, input gradient, weight gradient. Returns the work without appending it. */
int32_t builder_linear(struct layer_builder *b, enum work_class class, const char *label, double tokens, int64_t in, int64_t out,
                       enum pass pass);
int32_t builder_exchange(struct layer_builder *b, enum work_class class, const char *label, enum collective collective,
                         enum group_kind group, double bytes);
/* The exchange that gathers a sharded sequence (all-gather) or reduces partial sums (reduce-scatter, or all-reduce without
 * sequence parallelism); -1 where there is nothing to exchange. */
int32_t builder_tp_gather(struct layer_builder *b, const char *label);
/* The same of what a product reads, as builder_cast_operand left it; `both` the input's and the weights' gradient do, or a
 * forward pass and the backward pass behind it: casts in blocks are two then, as Transformer Engine gathers them. */
int32_t builder_tp_gather_operand(struct layer_builder *b, const char *label, bool both);
int32_t builder_tp_reduce(struct layer_builder *b, const char *label);
void builder_append(struct layer_builder *b, int32_t work);
/* A GEMM whose input or output must be exchanged: one after the other, or in pieces beside one another when tp_overlap is used.
 */
void builder_pipelined(struct layer_builder *b, int32_t gemm, int32_t exchange, bool exchange_first);
/* Append a weight gradient's GEMM, an exchange (or -1) that may run beside it, and what adds the gradient of in x out elements
 * up. */
void builder_weight_gradient(struct layer_builder *b, int32_t gemm, int32_t exchange, double elements);
void builder_side_by_side(struct layer_builder *b, int32_t gemm, int32_t exchange);
/* A gradient of n elements in half precision, added to that of the micro-batches before where there are any. */
void builder_gradient_sum(struct layer_builder *b, double elements);
/* fp8 and narrower: the cast of an operand of `elements`. */
void builder_cast(struct layer_builder *b, const char *label, double elements);
/* The same of `elements` in n tensors, a kernel each. */
void builder_casts(struct layer_builder *b, const char *label, double elements, int32_t tensors);
/* Of an operand that tensor parallelism gathers, so wide: each rank casts its own part of the sequence, and fewer bytes travel; a
 * tensor with one scale is transposed when it is whole (Transformer Engine: layernorm_fwd_fp8, gather_along_first_dim; torchao's
 * Float8ColwiseParallel). */
void builder_cast_operand(struct layer_builder *b, const char *label, int64_t width);
bool builder_has(const struct layer_builder *b, feature_set any_of);

#endif
