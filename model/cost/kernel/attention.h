/*
 * attention.h - the time of softmax(Q K^T) V on one GPU, forward and backward.
 *
 * Example: llama2-7b on H100, 1 sequence of 4,096 tokens, 32 heads of 128, causal, FlashAttention-2.
 *
 *     attention_cost(gpu, &attention, false)     315 us: 6.7 launch, 307.5 compute, 0.6 memory; 437 TFLOP/s
 *     attention_cost(gpu, &attention, true)      948 us
 *
 * Theory. Fused kernels (FlashAttention and its relatives) keep scores on chip. A thread block takes a tile of M = 128 queries
 * of one head. It walks over the keys in blocks of M and skips blocks that the mask hides completely. Per score of a block it
 * does two products forward, 2 (head_dim + value_dim) FLOPs, and five backward, 2.5 times as much, on the tensor cores. It also
 * does one exponential on the special-function units. The two overlap in different warps, but a part h = `exposed` of the
 * shorter one stays visible. With d = (head_dim + value_dim) / 2, P the dense peak and E the exponentials per second, a score
 * takes
 *
 *     c(d)  = max(m(d), 1/E) + h min(m(d), 1/E),     m(d) = 4 d / P forward, 10 d / P backward
 *     score = SMs m(128) / fraction * c(d) / c(128)  seconds on one SM
 *
 * So `fraction` is the part of the peak reached in long loops at head dimension 128. 1/E decides the cost of other dimensions
 * and precisions; it is small next to m on A100 and most of m on Blackwell. A tile of b blocks takes b M^2 score + overhead. A
 * mask leaves b = span / M + half a block per edge that cuts blocks: one edge of a causal mask, two of a sliding window; span =
 * pairs / queries. From x tiles on an SM, with n = batch heads ceil(queries / M) tiles in all,
 *
 *     total    = n (mean b M^2 score + overhead) / SMs
 *     longest  = largest b M^2 score + overhead
 *     makespan = max(total, longest) + quantisation min(total, longest)
 *     time     = fixed + (makespan^3 + memory^3)^(1/3),  memory = bytes of Q, K, V and O / (HBM bandwidth bandwidth_fraction)
 *
 * quantisation is 0 where tiles are handed out longest first (FlashAttention-3's persistent kernel) and near 1 where the last
 * wave is left to chance. Below 0.8 tiles per SM the library divides the keys of a tile among idle SMs, and a second kernel
 * adds up the parts (FlashAttention's heuristic for the number of splits). The backward kernel has tiles of keys and 2.5 times
 * the overhead; it walks over the same blocks. Among ranks that share a sequence and gather its keys, each has edges on its own
 * tiles of queries: n b blocks in all, however many tiles of keys hold them. A ring of k steps has the same number of blocks in
 * all steps together (only the first step has a diagonal), so one step has the k-th part.
 *
 * Masks between documents. Tiles start anew with every document, as in the kernels that take many sequences of different
 * lengths in one call (flash_attn_varlen_func, cuDNN's ragged layout). So the last tile of a piece is not full, and its block
 * on the diagonal is computed whole. Let p(j) be the number of pieces of more than j tokens in a sequence of s tokens
 * (documents.h). Per head
 *
 *     tiles  = sum over k of p(k M),    blocks = sum over k of p(k M) min(k + 1, 1 + ceil((window - 1) / M))
 *
 * and the longest tile is that of the piece that half of all calls exceed. Each of several ranks that share sequences has its
 * part of the tiles of queries. Backward it has the tiles of all keys that it receives, or in a step of a ring of the keys of
 * that step. Each tile then has its share of the blocks, because kernels also start tiles that have nothing to do.
 *
 * Sources: FlashAttention-2 (Dao 2023, arXiv:2307.08691), -3 (Shah et al. 2024, arXiv:2407.08608: products hide under softmax
 * of the other warpgroup, 3.9 TFLOPS of exponentials against 989 of products on H100). A GPU's parameters describe its fastest
 * kernel; older kernels differ by their published speeds. FlashAttention-2 does not use Hopper's asynchronous tensor cores.
 * FlashAttention-3 is 1.5 to 2 times as fast there (Shah et al. 2024), so `flash_attention2` = 0.57. The first version reached
 * about 0.45 of the second (Dao 2023, figures 4-6).
 *
 * Distance biases (ALiBi) came to these kernels with FlashAttention 2.4 (January 2024); models trained with them earlier used
 * slower kernels. The remaining speed, 0.65, was fitted to 139 FSDP runs of MPT models on A100 (llm-foundry's tables).
 *
 * Validity: long loops; heads of 64 to 256. The library decides the order of tiles, so times between 1 and 3 tiles per SM are
 * uncertain by 10 to 20 %. Grouped queries share K and V in cache, which changes only the traffic. Scores of fp8 operands need
 * conversions, whose cost is part of `fraction`. Unfused attention is built from GEMM and memory-bound works
 * (work_attention.c).
 */
#ifndef MSIM_MODEL_COST_KERNEL_ATTENTION_H
#define MSIM_MODEL_COST_KERNEL_ATTENTION_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

struct documents_memo;

/* The cost of one call, in seconds. `attention`: batch, heads, queries, keys and mask (work.h). */
struct cost attention_cost(const struct gpu *gpu, const struct work_attention *attention, bool backward);
/* The same; `memo` keeps results about documents from call to call (documents.h). */
struct cost attention_cost_kept(const struct gpu *gpu, const struct work_attention *attention, bool backward,
                                struct documents_memo *memo);

#endif
