/*
 * placement.h - which GPU of a fabric each rank of a job sits on.
 *
 * Ranks move host by host, in blocks of as many ranks as a host has GPUs, so tensor-parallel groups stay where NVLink is. Rank
 * order is MegaScale's: tp fastest, then cp, dp, and pp slowest.
 *
 *   data_first      rank r on GPU r: the data-parallel peers of a stage on neighbouring hosts, under one set of ToRs as far as it
 *                   reaches (MegaScale section 3.6)
 *   pipeline_first  the stages of a replica on neighbouring hosts, so that data-parallel rings span the fabric
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

/* gpus[ranks of the layout]; the ranks must fit on the fabric. */
void placement_fill(enum placement placement, const struct layout *layout, const struct fabric *fabric, uint64_t seed, int *gpus);

#endif
