/*
 * placement.h - the GPU of a fabric on which each rank of a job runs.
 *
 * Example: placement_fill(PLACEMENT_DATA_FIRST, &layout, &fabric, seed, gpus) sets gpus[r] = r.
 *
 * Ranks move host by host, in blocks of one rank per GPU of a host, so tensor-parallel groups stay inside NVLink. The
 * order of ranks is MegaScale's: tp fastest, then cp, dp, and pp slowest. PLACEMENT.md compares the steps.
 *
 *   data_first      rank r on GPU r: the data-parallel peers of a stage are on neighbouring hosts, under one set of ToRs if they
 *                   fit (MegaScale section 3.6)
 *   pipeline_first  the stages of a replica are on neighbouring hosts, so data-parallel rings span the fabric
 *   random          hosts in random order
 *   fragmented      runs of FRAGMENT_HOSTS hosts scattered over the whole fabric, as other jobs leave them
 */
#ifndef MSIM_SIM_NETWORK_PLACEMENT_H
#define MSIM_SIM_NETWORK_PLACEMENT_H

#include "model/layout/layout.h"
#include "sim/fabric/fabric.h"

enum placement { PLACEMENT_DATA_FIRST, PLACEMENT_PIPELINE_FIRST, PLACEMENT_RANDOM, PLACEMENT_FRAGMENTED, N_PLACEMENTS };
const char *placement_name(enum placement placement);

enum { FRAGMENT_HOSTS = 4 };

/* Fills gpus[ranks of the layout]; the ranks must fit on the fabric. */
void placement_fill(enum placement placement, const struct layout *layout, const struct fabric *fabric, uint64_t seed, int *gpus);

#endif
