/*
 * attention.h - time of softmax(Q K^T) V, forward and backward.
 *
 * Fused kernels (FlashAttention and its kin) keep scores on chip. A thread block takes a tile of M = 128 queries of one head and
 * walks over the keys in blocks of M, leaving out those that the mask hides whole. Per score of a block it does two products
 * forward, 2 (head_dim + value_dim) FLOPs, and five backward, 2.5 times as many, on the tensor cores, and one exponential on the
 * special-function units. The two run side by side in different warps, but what a block needs in turn is not all hidden. With d =
 * (head_dim + value_dim) / 2, P the dense peak, E the exponentials per second and h = `exposed`, a score takes
 *
 *     c(d)  = max(m(d), 1/E) + h min(m(d), 1/E),     m(d) = 4 d / P forward, 10 d / P backward
 *     score = SMs m(128) / fraction * c(d) / c(128)  seconds on one SM
 *
 * so that `fraction` is the part of the peak reached in long loops at head dimension 128, and 1/E, which is small beside m on
 * A100, most of it on Blackwell, says what other dimensions and precisions cost. A tile of b blocks takes b M^2 score + overhead.
 * Masks leave b = span / M + half a block for each edge that cuts blocks: one of a causal mask, two of a sliding window; span =
 * pairs / queries. From x tiles on an SM (n = batch heads ceil(queries / M) tiles in all)
 *
 *     total    = n (mean b M^2 score + overhead) / SMs
 *     longest  = largest b M^2 score + overhead
 *     makespan = max(total, longest) + quantisation min(total, longest)
 *     time     = fixed + (makespan^3 + memory^3)^(1/3),  memory = bytes of Q, K, V and O / (HBM bandwidth bandwidth_fraction)
 *
 * quantisation is 0 where tiles are handed out longest first (FlashAttention-3's persistent kernel) and near 1 where the last
 * wave is left to chance. Below 0.8 tiles per SM the library divides the keys of a tile among idle SMs, and a second kernel adds
 * up the parts (FlashAttention's heuristic for the number of splits). The backward kernel's tiles are of keys, overhead is 2.5
 * times as long; what it walks over are the same blocks. Of ranks that share a sequence and gather its keys each has edges on its
 * own tiles of queries, n b blocks in all, however many tiles of keys they are spread over; a ring of k steps has as many in all
 * of them (only the first has a diagonal), so that a step has the k-th part.
 *
 * Masks between documents: tiles begin anew with every document, as in the kernels that take many sequences of different lengths
 * in one call (flash_attn_varlen_func, cuDNN's ragged layout), so the last tile of a piece is not full and its block on the
 * diagonal is computed whole. A sequence of s tokens whose pieces (documents.h) number p(j) of more than j tokens has
 *
 *     tiles  = sum over k of p(k M),    blocks = sum over k of p(k M) min(k + 1, 1 + ceil((window - 1) / M))
 *
 * of a head, and the longest tile is that of the piece which half of all calls exceed. Of ranks that share sequences each has
 * its part of the tiles of queries; backward those of all keys that it is given, in a step of a ring of that step's. There every
 * tile has its share of the blocks: kernels that find nothing to do for a tile still start it.
 *
 * Sources: FlashAttention-2 (Dao 2023, arXiv:2307.08691), -3 (Shah et al. 2024, arXiv:2407.08608: products hide under softmax of
 * the other warpgroup, 3.9 TFLOPS of exponentials against 989 of products on H100). Generations of kernels differ by their
 * published speeds: a GPU's parameters are of the fastest kernel it has. The second FlashAttention does not know Hopper's
 * asynchronous tensor cores: the third is 1.5 to 2 times as fast there (Shah et al. 2024), `flash_attention2` = 0.57. The first
 * reached about 0.45 of the second (Dao 2023, figures 4-6).
 *
 * Biases of distance (ALiBi) were no part of these kernels until FlashAttention 2.4 (January 2024); models trained with them used
 * slower ones. What is left of the speed, 0.65, is that of 139 FSDP runs of MPT models on A100 (llm-foundry's tables).
 *
 * Validity: long loops; heads of 64 to 256. Which order tiles run in is the library's, so times between 1 and 3 tiles per SM are
 * uncertain by 10 to 20 %. Grouped queries share K and V in cache, which changes only the traffic. Scores of fp8 operands need
 * conversions that `fraction` has swallowed. Unfused attention is built from GEMM and memory-bound works (work_attention.c).
 */
#ifndef MSIM_MODEL_COST_KERNEL_ATTENTION_H
#define MSIM_MODEL_COST_KERNEL_ATTENTION_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

struct documents_memo;

struct cost attention_cost(const struct gpu *gpu, const struct work_attention *attention, bool backward);
/* The same, with what is known of documents kept from call to call (documents.h). */
struct cost attention_cost_kept(const struct gpu *gpu, const struct work_attention *attention, bool backward,
                                struct documents_memo *memo);

#endif
