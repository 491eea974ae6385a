/*
 * checkpoint_cost.h - how large checkpoints are, and how long they take to leave a device and to come back.
 *
 * Size. What has to be kept is weights and optimizer state. Of P parameters it is P (b + 12) bytes once, b the bytes of a weight
 * (2 in narrow precisions, whose casts are not saved; Adam: fp32 master and two moments; BLOOM's 176 billion: 2.46 TB, 2.3 TB
 * measured), and less where moments are narrower (8 in place of 12 in bf16). A rank holds the share that the memory model gives
 * it: weights + optimizer of its footprint. Where adapters are trained, these alone; frozen weights are read from storage again
 * with every restart.
 *
 * Taking one, per kind (sim/weeks/checkpoint.h):
 *
 *   blocking   everything at once: max(snapshot, storage)
 *   two-stage  block = snapshot = bytes of a rank / PCIe rate (two GPUs share a switch), or the rate of a coherent link to the
 *              host; persist = unique bytes / min(storage rate, all nodes' NICs)
 *   memory     block = snapshot; persist = bytes of a node / its NICs (every node sends to its neighbour at once, and receives)
 *
 * The copies that data parallelism keeps are written once. Loading:
 *
 *   LOAD_ALL        every rank reads what it needs, replicas included: bytes of all ranks / storage rate
 *   LOAD_BROADCAST  one reader per group that shares a state reads it and broadcasts: unique bytes / storage rate, then the bytes
 *                   of a node through its NICs (pipelined ring broadcast)
 *
 * then over PCIe or that link. From memory nothing is read but the lost node's part from its neighbour.
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_COST_H
#define MSIM_SIM_WEEKS_CHECKPOINT_COST_H

#include "model/layout/layout.h"
#include "sim/weeks/checkpoint.h"

enum load_kind { LOAD_ALL, LOAD_BROADCAST };

struct checkpoint_cost {
    double total_bytes; /* once */
    double base_bytes;  /* once, of frozen weights, which are read and not saved */
    double base_s;      /* until they are in place: read by one, passed on, copied to the device */
    double rank_bytes;  /* weights and optimizer of the fullest rank */
    double snapshot_s;  /* device to host */
    double storage_s;   /* unique bytes to storage */
    double neighbour_s; /* a node's bytes to its neighbour */
    double load_all_s, load_broadcast_s, load_memory_s;
};

/* B/s of a store of which nothing is said: an assumption. */
#define UNKNOWN_STORAGE 10e9

/* storage_rate: B/s of the store; 0: the cluster's, or UNKNOWN_STORAGE when it does not say. */
void checkpoint_cost_of(const struct layout *layout, const struct setting *trained, double storage_rate,
                        struct checkpoint_cost *cost);

/* Fills block, persist and write of a policy of this kind. */
void checkpoint_cost_apply(const struct checkpoint_cost *cost, struct checkpoint_policy *policy);

#endif
