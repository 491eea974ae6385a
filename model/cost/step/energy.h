/*
 * energy.h - an upper bound of the power and energy of a job.
 *
 * Example: Llama 3.1 405B, by its model card, needed 30.84 million GPU-hours on GPUs of 700 W.
 *
 *     power_bound_energy(&bound, 30.84e6)     7.77e13 J = 21.6 GWh
 *
 *     power  = GPUs * p * PUE                            p = node_power / gpus_per_node where the cluster states node_power
 *     energy = power * time                                  (or GPUs of the job, where it does not fill a node), else the
 *                                                            board power of the GPU (TDP, TBP)
 *
 * Units: W, J, s. Makers publish these numbers for those who plan cables and cooling. The result is a bound and no prediction:
 * the power of a GPU follows its clocks, its kernels and its temperature. Every GPU counts at full board power all the time:
 * computing, waiting, idle or down. A second published case: BLOOM, 1,082,990 GPU-hours at 400 W, 433 MWh (Luccioni et al.
 * 2022, arXiv:2211.02001; both cases from memory).
 *
 * Not counted: hosts, NICs and fans where only board power is known; the switches of the network, and storage. PUE is the power
 * of a site over that of its computers. Where the cluster does not state it, it is 1 (assumption), so cooling and distribution
 * are not counted. A lower bound would need idle power, which most makers do not publish.
 */
#ifndef MSIM_MODEL_COST_STEP_ENERGY_H
#define MSIM_MODEL_COST_STEP_ENERGY_H

#include "model/spec/cluster.h"

/* The parts of a cluster that are counted. A later value counts more. */
enum power_count { POWER_UNKNOWN, POWER_BOARDS, POWER_NODES };

struct power_bound {
    enum power_count count;
    double each_w; /* of a board or a node, without PUE; 0: unknown */
    double gpu_w;  /* per GPU of the job, with its share of what is counted, times PUE; 0: unknown */
    double pue;
    bool pue_assumed; /* the cluster states no PUE; 1 is used */
};

/* The largest count for which the cluster has published numbers. */
enum power_count power_published(const struct cluster *cluster);
/* The bound for a job of `gpus` GPUs. A job that does not fill a node counts the whole node. `count` must be published for this
 * cluster; if not, the result is POWER_UNKNOWN and 0 W. */
struct power_bound power_bound_of(const struct cluster *cluster, int gpus, enum power_count count);
/* The bound by the largest published count. */
struct power_bound power_bound_published(const struct cluster *cluster, int gpus);
/* Energy in J of `gpu_hours` GPU-hours. */
double power_bound_energy(const struct power_bound *bound, double gpu_hours);

#endif
