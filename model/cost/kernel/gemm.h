/*
 * gemm.h - the time of a matrix multiplication C[m,n] = A[m,k] B[k,n] on one GPU.
 *
 * Example: qkv of llama2-7b on H100: m = 4096 tokens, n = 12288, k = 4096, bf16.
 *
 *     gemm_cost(gpu, &gemm)     662 us: 2.3 launch, 659.3 compute, 0.1 memory; 2 m n k / 662 us = 623 TFLOP/s
 *
 * Theory. The library cuts C into tiles of tm x tn, gives each to one streaming multiprocessor (SM), and works through the
 * waves of tiles. With x = ceil(m/tm) ceil(n/tn) split / SMs and q the quantisation,
 *
 *     waves      = max(1, q ceil(x) + (1 - q) x)
 *     arithmetic = min over tiles and splits of
 *                  waves (2 tm tn ceil(k / split) / (peak / SMs * f(tile)) + overhead tm tn / (256 * 128)) + reduction(split)
 *     reduction  = 0 for split 1, else split_s + 4 m n split / (HBM bandwidth * memory_fraction)
 *     memory     = ((mk + kn) element bytes + mn output bytes) / (HBM bandwidth * memory_fraction)
 *     time       = fixed + (arithmetic'^p + memory^p)^(1/p),  p = 1 / (1 - overlap)
 *
 * Tiles: from 256 x 128 and 128 x 256 down to 64 x 64; on Blackwell's tensor cores from 128 x 256 down to 128 x 32 in steps of
 * 32, in both orientations. Splits: 1, 2, 3, 4, 6, 8, 12, 16.
 *
 * The overhead of a tile is mostly its epilogue, which converts and stores C, so it is proportional to the area. A split
 * divides k among SMs when m n is too small to fill them. split_s is its second kernel or barrier; it is large where a library
 * does not split at all (narrow formats on Blackwell). arithmetic' is arithmetic slowed by up to `droop` as a kernel gets long,
 * because clocks fall under power; it is slowed by half of `droop` at droop_time. The p-norm rounds the corner of the roofline,
 * where neither limit hides perfectly behind the other: the sum of both at overlap 0, the longer one at 1.
 *
 * Of separately launched multiplications, four run at the same time. Where they are not equal, the largest (work_gemm.largest)
 * bounds the time of all from below. Where k is a sequence whose products depend on one another (work_gemm.serial), nothing is
 * split.
 *
 * An entry with one SM describes a device that msim probe measured as a whole, such as a CPU with its cores: it has a rate and
 * no tiles.
 *
 * Not modelled: the library does not always choose the best kernel (its heuristic switches at odd sizes). So measured times of
 * neighbouring shapes scatter by 5 to 10 % without a rule.
 *
 * Source: parameters are fitted per GPU and precision to measured GEMMs; each catalog entry reports its errors. Validity:
 * dense, row-major, m, n, k >= 64. Times of fp8 and narrower formats exclude casts, which are memory-bound works of their own.
 */
#ifndef MSIM_MODEL_COST_KERNEL_GEMM_H
#define MSIM_MODEL_COST_KERNEL_GEMM_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

/* The cost in seconds of one work. `count` equal multiplications in one grouped launch share the SMs. */
struct cost gemm_cost(const struct gpu *gpu, const struct work_gemm *gemm);

#endif
