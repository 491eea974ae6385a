/*
 * muon.h - what a step of Muon does: MomentUm Orthogonalised by Newton-Schulz (K. Jordan and others, 2024), in the form that
 * Moonlight scaled (Liu and others, arXiv:2502.16982).
 *
 * Of a matrix W [r, c] with gradient G it keeps one momentum M, and none of Adam's second moments:
 *
 *     M = mu M + G;  U = G + mu M (Nesterov);  O = NS(U);  W -= rate (0.2 sqrt(max(r, c)) O + decay W)
 *
 * NS brings the singular values of U near 1: with a = min(r, c), b = max(r, c) and X = U / |U| as [a, b], five times
 *
 *     A = X X^T;  B = 3.4445... A + ... A A;  X = ... X + B X                               4 a^2 b + 2 a^3 FLOPs
 *
 * in bf16; the sums are epilogues of the products (they read what they add to). The matrices are those of the layers as the
 * model has them (queries, keys, values, gate and up apart), routers among them; tables, the output matrix, norms and biases have
 * Adam.
 *
 * Who computes. A matrix has to be whole. Where ZeRO divides the states (as Adam's are divided, whatever the stage), the ranks
 * that divide them deal the matrices of a stage among them in turn, largest first; each sends what it has of the updates U to
 * their owners, in bf16, the owners compute, and what each needs of O comes back: two all-to-all exchanges, as long as that of
 * the owner that has most (as FSDP2's Muon in Microsoft's dion does it; Moonlight's Distributed Muon gathers to every rank that
 * has a part of a matrix, and all of these compute it, which costs more the more ranks there are). Experts over the ranks that
 * hold copies of them. Under ZeRO-0 each rank computes all it holds, as its copies do.
 *
 * Layer-wise (job.muon_shard; Megatron-Core's LayerWiseDistributedOptimizer). All parameters, Adam's too, are dealt whole, the
 * largest first, in rounds of which every second goes backward; an owner has all states of a parameter and gets its whole
 * gradient, as every replica does: gradients are all-reduced. No update travels. When all owners are done each brings its weights
 * into one buffer, one all-gather of the dense ones and one of the experts' goes round, and what comes is copied to where weights
 * are; no pass covers it. Matrices and tables are dealt one by one here; norms and biases, which are small, count as evenly
 * dealt.
 *
 * Tensor parallelism. Blockwise, a rank's block is a matrix of its own: no exchange, and another update than without tensor
 * parallelism (Megatron-LM's default). Duplicated: the owners of a matrix's blocks gather them, and each computes the whole.
 *
 * Validity: Newton-Schulz is GEMMs of the GEMM model, experts' batched, one layer's at a time. Its efficiency is not validated by
 * a measured run.
 */
#ifndef MSIM_MODEL_COST_WORK_MUON_H
#define MSIM_MODEL_COST_WORK_MUON_H

#include "model/cost/work/work.h"

/* Of the quintic (Jordan's), of each iteration; momentum; Moonlight's scale of an update, section 2.2. */
enum { MUON_ITERATIONS = 5 };
#define MUON_A        3.4445
#define MUON_B        (-4.7750)
#define MUON_C        2.0315
#define MUON_MOMENTUM 0.95
#define MUON_SCALE    0.2

/* Matrices of one shape on a rank. */
struct muon_kind {
    const char *label;
    int64_t rows, cols;   /* as they are made orthogonal: a block, or the whole */
    double held;          /* parameters of one on a rank */
    int64_t count, batch; /* matrices; that are computed together */
    double gathered;      /* elements of all blocks that the tensor-parallel group brings together; 0: none */
    bool experts;
};

enum { MUON_KINDS_MAX = 20 };
struct muon_matrices {
    struct muon_kind items[MUON_KINDS_MAX];
    int n;
    struct muon_kind tables[2]; /* token tables and output matrix; positions: Adam's, of no matter where elements are divided */
};

/* Add those of a virtual stage, as work_stage_parameters counts its parameters. Nothing for another optimizer. */
void muon_matrices_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                       struct layer_range range, bool head);
/* The tables among the parameters of that stage. */
void muon_tables_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting, bool embedding,
                     bool head);
/* Those of a whole model on one rank. */
struct muon_matrices muon_matrices_of_model(const struct setting *setting);
/* Their parameters on one rank, before ZeRO. */
struct stage_parameters muon_parameters(const struct muon_matrices *matrices);

/* What an owner has to compute: of each kind, by index, of the owner for whom it takes most FLOPs. */
struct muon_share {
    int64_t counts[MUON_KINDS_MAX];
};
struct muon_share muon_share_of(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job);

/* Of a stage's parameters those that a rank updates; of these the matrices'. Layer-wise it is the owner who keeps most states. */
struct muon_updated {
    double all, matrices;
};
struct muon_updated muon_updated_of(const struct muon_matrices *matrices, const struct layout *layout,
                                    const struct setting *setting, struct stage_parameters all);
/* Bytes that the optimizer keeps of them. */
double muon_state_bytes(const struct setting *setting, struct muon_updated updated);

/* Bytes of an all-to-all of updates, dense (GROUP_DP) or of experts (GROUP_EXPERT_DP); 0: there is nobody to exchange with, or
 * nothing, as owners have whole parameters. */
double muon_exchange_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                           enum group_kind group);
/* Layer-wise: of a stage's parameters those whose weights are gathered, dense ones and experts'; of them the owner's own. Else 0.
 */
struct muon_gather {
    double dense, experts, own;
};
struct muon_gather muon_gather_of(const struct muon_matrices *matrices, const struct layout *layout,
                                  const struct setting *setting, struct stage_parameters all);
enum { MUON_WEIGHT_BYTES = 2 };

/* Bytes that an owner needs beside the states: updates that it sends and receives; and while a batch is computed, X twice, two
 * Gram matrices, and the blocks that it is put together from. Layer-wise a batch's, and when those are gone what is gathered of
 * the stage's parameters: the owner's weights and, dense ones or experts', all owners'. */
double muon_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                          struct stage_parameters all);
/* The same in the runtime, which computes one matrix at a time, keeps the largest buffer of each use, and has a matrix in fp32
 * for its norm and for X^T X. */
double muon_executed_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout,
                                   const struct setting *setting);

/* The three parts of the step: momenta and updates, with Adam of the rest, of a rank's share of `updated` parameters of which
 * `muon` are matrices'; Newton-Schulz on those that it owns (-1: there are no matrices; FLOPs are the mean over owners); the
 * weights, and casts (work_add_optimizer). */
int32_t work_add_muon_update(struct work_table *table, const struct setting *setting, double updated, double muon);
int32_t work_add_newton_schulz(struct work_table *table, const struct layout *layout, const struct setting *setting,
                               const struct muon_matrices *matrices);
int32_t work_add_muon_apply(struct work_table *table, const struct setting *setting, double muon, double cast);
/* Layer-wise: n weights into the buffer that is gathered, or out of it; read and written in bf16. */
int32_t work_add_muon_copy(struct work_table *table, const char *label, double parameters);

#endif
