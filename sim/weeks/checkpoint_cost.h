/*
 * checkpoint_cost.h - how large checkpoints are, how long taking one stops training, and how long loading one takes.
 *
 * Example: a 175B model in bf16 with Adam is 175e9 * 14 = 2.45 TB. At 10 GB/s of storage it is written in 245 s.
 *
 *     checkpoint_cost_of(&layout, &setting, 10e9, &cost);  ... cost.total_bytes, cost.storage_s ...
 *     checkpoint_cost_apply(&cost, &policy);               fills block, persist and write
 *
 * Size. A checkpoint holds weights and optimizer state. For P parameters with b bytes per weight that is P (b + 12) bytes,
 * stored once. b is 2 in narrow precisions, whose casts are not saved; 12 is Adam's fp32 master copy and two moments. (BLOOM,
 * 176 billion: 2.46 TB; 2.3 TB were measured.) Narrower moments need less, 8 in place of 12 in bf16. A rank holds the share that
 * the memory model gives it: weights + optimizer of its footprint. When adapters are trained, only these are saved; the frozen
 * weights are read from storage again at every restart.
 *
 * Taking one, by kind (sim/weeks/checkpoint.h):
 *
 *   blocking   everything at once: max(snapshot, storage)
 *   two-stage  block = snapshot = bytes of a rank / PCIe rate (two GPUs share a switch), or the rate of a coherent link to the
 *              host; persist = unique bytes / min(storage rate, NICs of all nodes)
 *   memory     block = snapshot; persist = bytes of a node / its NICs (all nodes send to a neighbour and receive at once)
 *
 * Copies that data parallelism keeps are written once. Loading:
 *
 *   LOAD_ALL        every rank reads what it needs, replicas included: bytes of all ranks / storage rate
 *   LOAD_BROADCAST  one reader per group that shares a state reads and broadcasts it: unique bytes / storage rate, then the bytes
 *                   of a node through its NICs (pipelined ring broadcast)
 *
 * and then over PCIe or the coherent link. From memory, only the lost node's part is read, from its neighbour.
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_COST_H
#define MSIM_SIM_WEEKS_CHECKPOINT_COST_H

#include "model/layout/layout.h"
#include "sim/weeks/checkpoint.h"

enum load_kind { LOAD_ALL, LOAD_BROADCAST };

struct checkpoint_cost {
    double total_bytes; /* each state once */
    double base_bytes;  /* frozen weights, each once; read at a restart, not saved */
    double base_s;      /* to load them: one reader, broadcast, copy to the device */
    double rank_bytes;  /* weights and optimizer state of the fullest rank */
    double snapshot_s;  /* device to host */
    double storage_s;   /* unique bytes to storage */
    double neighbour_s; /* a node's bytes to its neighbour */
    double load_all_s, load_broadcast_s, load_memory_s;
};

/* Storage rate in B/s if none is given. Assumption. */
#define UNKNOWN_STORAGE 10e9

/* storage_rate: B/s; 0: the cluster's, or UNKNOWN_STORAGE if it has none. */
void checkpoint_cost_of(const struct layout *layout, const struct setting *trained, double storage_rate,
                        struct checkpoint_cost *cost);

/* Fills block, persist and write of a policy, by its kind. */
void checkpoint_cost_apply(const struct checkpoint_cost *cost, struct checkpoint_policy *policy);

#endif
