/*
 * gemm.h - time of a matrix multiplication C[m,n] = A[m,k] B[k,n] on one GPU.
 *
 * Theory. The library cuts C into tiles of tm x tn, gives one to each streaming multiprocessor (SM), and works through the waves
 * of tiles. With x = ceil(m/tm) ceil(n/tn) split / SMs and q the quantisation,
 *
 *     waves      = max(1, q ceil(x) + (1 - q) x)
 *     arithmetic = min over tiles and splits of
 *                  waves (2 tm tn ceil(k / split) / (peak / SMs * f(tile)) + overhead tm tn / (256 * 128)) + reduction(split)
 *     reduction  = 0 for split 1, else split_s + 4 m n split / (HBM bandwidth * memory_fraction)
 *     memory     = ((mk + kn) element bytes + mn output bytes) / (HBM bandwidth * memory_fraction)
 *     time       = fixed + (arithmetic'^p + memory^p)^(1/p),  p = 1 / (1 - overlap)
 *
 * Tiles go from 256 x 128 and 128 x 256 down to 64 x 64, on Blackwell's tensor cores from 128 x 256 down to 128 x 32 in steps of
 * 32 and either way up; splits are 1, 2, 3, 4, 6, 8, 12, 16. A tile's overhead is mostly its epilogue, which converts and stores
 * C: it follows the area. A split divides k among SMs when m n is too small to fill them; split_s is its second kernel or
 * barrier, and large where a library does not split at all (narrow formats on Blackwell). arithmetic' is slowed by up to `droop`
 * as a kernel gets long (clocks fall under power), by half of it at droop_time. The p-norm rounds the roofline's corner, where
 * neither limit is perfectly hidden behind the other: the sum of both at overlap 0, the longer one at 1.
 *
 * Of multiplications launched apart, four run side by side; the largest of them (work_gemm.largest), where they are not equal,
 * bounds the time of all from below.
 *
 * Where k is a sequence whose products need one another (work_gemm.serial) nothing is split.
 *
 * An entry with one SM is of a device that msim probe measured as a whole, a CPU's cores among them: it has a rate and no tiles.
 *
 * What is left: the library's choice of a kernel is not always the best one (its heuristic switches at odd sizes), which spreads
 * measured times of neighbouring shapes by 5 to 10 % without a rule.
 *
 * Parameters are fitted per GPU and precision to measured GEMMs; each catalog entry says how well. Validity: dense, row-major, m,
 * n, k >= 64; fp8 and narrower formats exclude the casts, which are memory-bound works of their own.
 */
#ifndef MSIM_MODEL_COST_KERNEL_GEMM_H
#define MSIM_MODEL_COST_KERNEL_GEMM_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

/* `count` equal multiplications in one grouped launch share the SMs. */
struct cost gemm_cost(const struct gpu *gpu, const struct work_gemm *gemm);

#endif
