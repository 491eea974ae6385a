/*
 * energy.h - what a job draws and takes at most.
 *
 *     power  = GPUs * p * PUE                            p = node_power / gpus_per_node where the cluster says it,
 *     energy = power * time                                  (or GPUs of the job, where it fills no node), the GPU's board
 *                                                            power (TDP, TBP) otherwise
 *
 * W, J, s. An upper bound of what is counted, by numbers that makers publish for those who lay cables and cooling, and no
 * prediction: what a GPU draws follows its clocks, its kernels and its temperature. Every GPU is counted at its board power all
 * the time, computing, waiting, idle or down. So 30.84 million GPU-hours at 700 W are 21.6 GWh (Llama 3.1 405B, by its model
 * card), and 1,082,990 at 400 W 433 MWh (BLOOM: Luccioni et al. 2022, arXiv:2211.02001; both from memory).
 *
 * What is not counted: with board power alone hosts, NICs and fans; with either the network's switches and storage. PUE, the
 * power of a site over that of its computers, is 1 where the cluster does not say (assumption): nothing for cooling and
 * distribution. A lower bound would take idle power, which most makers do not publish.
 */
#ifndef MSIM_MODEL_COST_STEP_ENERGY_H
#define MSIM_MODEL_COST_STEP_ENERGY_H

#include "model/spec/cluster.h"

/* What is counted of a cluster. In order: a later one counts more. */
enum power_count { POWER_UNKNOWN, POWER_BOARDS, POWER_NODES };

struct power_bound {
    enum power_count count;
    double each_w; /* of a board or a node, without PUE; 0: unknown */
    double gpu_w;  /* of a GPU of the job with its share of what is counted, times PUE; 0: unknown */
    double pue;
    bool pue_assumed; /* 1, as the cluster does not say */
};

/* The most that is published of a cluster. */
enum power_count power_published(const struct cluster *cluster);
/* Of a job of n GPUs: where it fills no node, it is the whole node that is counted. By `count`, of which no more than that
 * is published; POWER_UNKNOWN, and no watts, where less is. */
struct power_bound power_bound_of(const struct cluster *cluster, int gpus, enum power_count count);
/* By the most that is published. */
struct power_bound power_bound_published(const struct cluster *cluster, int gpus);
/* J of that many GPU-hours. */
double power_bound_energy(const struct power_bound *bound, double gpu_hours);

#endif
