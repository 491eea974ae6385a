/*
 * gemm.h - time of a matrix multiplication C[m,n] = A[m,k] B[k,n] on one GPU.
 *
 * Theory. The library cuts C into tiles of tm x tn, gives one to each streaming multiprocessor (SM), and works through the waves
 * of tiles. With x = ceil(m/tm) ceil(n/tn) split / SMs and q the quantisation,
 *
 *     waves = max(1, q ceil(x) + (1 - q) x)
 *     arithmetic = min over tiles and splits of  waves (2 tm tn ceil(k/split) / (peak / SMs * f(tile)) + overhead) +
 * reduction(split) memory = (mk + kn) element bytes + mn output bytes, over HBM bandwidth * memory_fraction time = fixed +
 * (arithmetic' ^4 + memory ^4) ^(1/4)
 *
 * A split divides k among SMs when m n is too small to fill them and adds the traffic of its partial sums. arithmetic' is slowed
 * by up to `droop` as a kernel gets long (clocks fall under power). The fourth-power mean rounds the roofline's corner, where
 * neither limit is perfectly hidden behind the other.
 *
 * Parameters are fitted per GPU and precision to measured GEMMs; each catalog entry says how well. Validity: dense, row-major, m,
 * n, k >= 64; fp8 and narrower formats exclude the casts, which are memory-bound works of their own.
 */
#ifndef MSIM_MODEL_COST_GEMM_H
#define MSIM_MODEL_COST_GEMM_H

#include "model/cost/cost.h"
#include "model/cost/work.h"

/* `count` equal multiplications in one grouped launch share the SMs. */
struct cost gemm_cost(const struct gpu *gpu, const struct work_gemm *gemm);

#endif
