/*
 * muon.h - the step of the Muon optimizer: momentum orthogonalised by Newton-Schulz (K. Jordan and others, 2024), in the form
 * that Moonlight scaled (Liu and others, arXiv:2502.16982).
 *
 * Example: a matrix of 4096 x 4096; a = b = 4096.
 *
 *     states      one momentum: 4 bytes per parameter instead of Adam's 8
 *     FLOPs       5 iterations of 4 a^2 b + 2 a^3 = 5 * 6 * 4096^3 = 2.1e12: 3 ms at 700 TFLOP/s
 *
 * A matrix W [r, c] with gradient G has one momentum M and none of Adam's second moments:
 *
 *     M = mu M + G;  U = G + mu M (Nesterov);  O = NS(U);  W -= rate (0.2 sqrt(max(r, c)) O + decay W)
 *
 * NS brings the singular values of U near 1: with a = min(r, c), b = max(r, c) and X = U / |U| as [a, b], five times
 *
 *     A = X X^T;  B = 3.4445... A + ... A A;  X = ... X + B X                               4 a^2 b + 2 a^3 FLOPs
 *
 * in bf16; the sums are epilogues of the products (they read the matrix that they add to). The matrices are those of the layers
 * as in the model (queries, keys, values, gate and up separately), with routers. Tables, the output matrix, norms and biases
 * use Adam.
 *
 * Distribution. Newton-Schulz needs a whole matrix. Where ZeRO divides the states (as it divides Adam's, at any stage), the
 * ranks that divide them deal the matrices of a stage among them in turn, the largest first. Each rank sends its part of the
 * updates U to their owners, in bf16; the owners compute, and each rank receives its part of O. These are two all-to-all
 * exchanges, each as long as that of the owner with the most (as in FSDP2's Muon in Microsoft's dion. Moonlight's Distributed
 * Muon gathers to every rank that has a part of a matrix, and all of these compute it, which costs more with more ranks).
 * Experts are dealt over the ranks that hold copies of them. Under ZeRO-0 each rank computes all matrices it holds, as its
 * copies do.
 *
 * Layer-wise (job.muon_shard; Megatron-Core's LayerWiseDistributedOptimizer). All parameters, Adam's too, are dealt whole, the
 * largest first, in rounds of which every second goes backward. An owner has all states of a parameter and gets its whole
 * gradient, as every replica does: gradients are all-reduced. No update travels. When all owners are done, each copies its
 * weights into one buffer. One all-gather of the dense weights and one of the experts' follow, and the received weights are
 * copied to their places; no pass hides this. Matrices and tables are dealt one by one here; norms and biases, which are small,
 * count as evenly dealt.
 *
 * Tensor parallelism. Blockwise: a rank's block is a matrix of its own, with no exchange, and the update differs from that
 * without tensor parallelism (Megatron-LM's default). Duplicated: the owners of a matrix's blocks gather them, and each
 * computes the whole.
 *
 * Validity: Newton-Schulz is GEMMs of the GEMM model, experts' batched, one layer at a time. No measured run validates its
 * efficiency.
 */
#ifndef MSIM_MODEL_COST_WORK_MUON_H
#define MSIM_MODEL_COST_WORK_MUON_H

#include "model/cost/work/work.h"

/* Constants: iterations and coefficients of the quintic (Jordan); momentum; scale of an update (Moonlight, section 2.2). */
enum { MUON_ITERATIONS = 5 };
#define MUON_A        3.4445
#define MUON_B        (-4.7750)
#define MUON_C        2.0315
#define MUON_MOMENTUM 0.95
#define MUON_SCALE    0.2

/* Matrices of one shape on a rank. */
struct muon_kind {
    const char *label;
    int64_t rows, cols;   /* shape in Newton-Schulz: of a block, or of the whole matrix */
    double held;          /* parameters of one on a rank */
    int64_t count, batch; /* matrices in all; matrices computed together */
    double gathered;      /* elements of all blocks that the tensor-parallel group gathers; 0: none */
    bool experts;
};

enum { MUON_KINDS_MAX = 20 };
struct muon_matrices {
    struct muon_kind items[MUON_KINDS_MAX];
    int n;
    struct muon_kind tables[2]; /* token tables and output matrix; positions: Adam's, irrelevant where elements are divided */
};

/* Adds the matrices of a virtual stage, in the way work_stage_parameters counts its parameters. Adds nothing for other
 * optimizers. */
void muon_matrices_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                       struct layer_range range, bool head);
/* Adds the tables among the parameters of that stage. */
void muon_tables_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting, bool embedding,
                     bool head);
/* The matrices of a whole model on one rank. */
struct muon_matrices muon_matrices_of_model(const struct setting *setting);
/* Their parameters on one rank, before ZeRO. */
struct stage_parameters muon_parameters(const struct muon_matrices *matrices);

/* The matrices of the owner with the most FLOPs: number by kind, by index. */
struct muon_share {
    int64_t counts[MUON_KINDS_MAX];
};
struct muon_share muon_share_of(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job);

/* Parameters of a stage that a rank updates: all, and those of matrices. Layer-wise: of the owner with the most states. */
struct muon_updated {
    double all, matrices;
};
struct muon_updated muon_updated_of(const struct muon_matrices *matrices, const struct layout *layout,
                                    const struct setting *setting, struct stage_parameters all);
/* Bytes of their optimizer states. */
double muon_state_bytes(const struct setting *setting, struct muon_updated updated);

/* Bytes of an all-to-all of updates, dense (GROUP_DP) or of experts (GROUP_EXPERT_DP). 0: there are no other ranks, or nothing
 * to exchange because owners have whole parameters. */
double muon_exchange_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                           enum group_kind group);
/* Layer-wise: parameters of a stage whose weights are gathered, dense and experts'; and the owner's part of them. 0 in other
 * modes. */
struct muon_gather {
    double dense, experts, own;
};
struct muon_gather muon_gather_of(const struct muon_matrices *matrices, const struct layout *layout,
                                  const struct setting *setting, struct stage_parameters all);
enum { MUON_WEIGHT_BYTES = 2 };

/* Bytes that an owner needs besides the states: updates that it sends and receives; and for the computation of a batch, X
 * twice, two Gram matrices, and the blocks from which it is assembled. Layer-wise: those of a batch; after it, the gathered
 * parameters of the stage, which are the owner's weights and (dense or experts') those of all owners. */
double muon_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                          struct stage_parameters all);
/* The same for the runtime, which computes one matrix at a time, keeps the largest buffer of each use, and holds a matrix in
 * fp32 for its norm and for X^T X. */
double muon_executed_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout,
                                   const struct setting *setting);

/* Add the three parts of the step. Update: momenta and updates, with Adam for the rest, of a rank's share of `updated`
 * parameters, `muon` of which are in matrices. Newton-Schulz on the matrices that the rank owns (-1: there are no matrices;
 * FLOPs are the mean over owners). Apply: the weights and casts (work_add_optimizer). */
int32_t work_add_muon_update(struct work_table *table, const struct setting *setting, double updated, double muon);
int32_t work_add_newton_schulz(struct work_table *table, const struct layout *layout, const struct setting *setting,
                               const struct muon_matrices *matrices);
int32_t work_add_muon_apply(struct work_table *table, const struct setting *setting, double muon, double cast);
/* Layer-wise: adds the copy of `parameters` weights into the gathered buffer, or out of it; read and written in bf16. */
int32_t work_add_muon_copy(struct work_table *table, const char *label, double parameters);

#endif
