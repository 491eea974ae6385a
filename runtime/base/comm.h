/*
 * comm.h - what the executor needs of a network: exchanges among ranks, enqueued on device streams. One table per backend.
 *
 * A world is all ranks of a program, one device each, and one clock. Communicators are made from it before the step begins, by
 * all ranks in the same order, and belong to one list of ranks; a rank that is not in the list takes part in the making and gets
 * NULL. Exchanges on one communicator are matched in the order of enqueueing, so every member enqueues them in one order. A
 * channel for messages is a communicator of two ranks used in one direction.
 *
 * Semantics. An exchange runs on its stream when the stream gets there. A send does not wait for its receiver beyond what the
 * backend can buffer; a receive waits for its send; a collective ends when all members have brought their part. In and out may be
 * the same buffer for all-reduce and broadcast; for all-gather the own part may stand in its place in the result; for
 * reduce-scatter the result may be the own part of the input.
 *
 * Sums are taken in an order that depends on nothing but the ranks' order in the list: two runs give the same bits on the CPU
 * backend; on NCCL when its algorithm is pinned.
 *
 * Failure. Every wait is bounded by the world's timeout. When it passes, or a rank is known to be gone, everything pending on
 * this rank ends and stream_synchronise returns STATUS_FAILED with a sentence that names this rank, the operation and the ranks
 * that did not come: "rank 2: all_gather dp: rank 3 did not arrive within 10 s".
 */
#ifndef MSIM_RUNTIME_BASE_COMM_H
#define MSIM_RUNTIME_BASE_COMM_H

#include "runtime/base/device.h"

struct world;
struct communicator;

enum exchange {
    EXCHANGE_SEND,
    EXCHANGE_RECV,
    EXCHANGE_ALL_REDUCE,     /* count elements in and out */
    EXCHANGE_ALL_GATHER,     /* count elements in, n * count out */
    EXCHANGE_REDUCE_SCATTER, /* n * count in, count out */
    EXCHANGE_ALL_TO_ALL,     /* n * count in and out: part j goes to member j */
    EXCHANGE_BROADCAST,      /* count, from member `peer` */
    N_EXCHANGES
};
const char *exchange_name(enum exchange exchange);

enum element { ELEMENT_FP32, ELEMENT_BF16, ELEMENT_FP64, ELEMENT_INT32, N_ELEMENTS };
static inline size_t element_bytes(enum element element)
{
    return element == ELEMENT_FP64 ? 8 : element == ELEMENT_BF16 ? 2 : 4;
}
enum reduction { REDUCTION_SUM, REDUCTION_MAX };

/* Parts of different sizes: an exchange whose members bring and get as many rows of `count` elements as numbers in device memory
 * say. Parts stand one after the other in the order of members.
 *   all-to-all       sent[n] rows to and received[n] rows from each member
 *   all-gather       received[n] rows of each member, the own ones among them
 *   reduce-scatter   sent[n] rows of each member's part
 * NULL where all parts are equal. On NCCL, which must be told sizes by the host, the host waits for the numbers. `even`: rows
 * that a member brings when all bring as many, for who has nobody to exchange with (comm_alone.h). */
struct ragged {
    const int32_t *sent, *received;
    int64_t even;
};

/*
 * Blocks. What a member has of an all-gather's result, or of a reduce-scatter's input, may stand there in several equal blocks
 * instead of one piece: block b of member m is the (b n + m)-th of the whole, [blocks][n][count / blocks], and the b-th of what
 * the member has. Several all-gathers of one block each give the same; on NCCL that is what they are, launched together. Then
 * neither may lie inside the other.
 */
struct exchange_call {
    enum exchange exchange;
    enum element element;
    enum reduction reduction; /* of all-reduce and reduce-scatter */
    const void *in;
    void *out;
    int64_t count; /* elements, see above */
    struct ragged parts;
    int blocks;       /* of all-gather and reduce-scatter, dividing count; 0 or 1: one */
    int peer;         /* member index: of a send, receive, broadcast */
    const char *what; /* static text for error messages: "gather", "gradients" */
};
static inline int exchange_blocks(const struct exchange_call *call)
{
    return call->blocks > 1 ? call->blocks : 1;
}

struct comm_api {
    const char *name; /* "threads", "nccl" */
    /* Leave the world; pending exchanges must have ended. Communicators go with it. */
    void (*close)(struct world *world);
    /* `members` in group order, the same on all ranks. *communicator is NULL on ranks outside. */
    enum status (*communicator_new)(struct world *world, const int *members, int n, struct communicator **communicator,
                                    struct diags *diags);
    enum status (*enqueue)(struct communicator *communicator, struct device_stream *stream, const struct exchange_call *call,
                           struct diags *diags);
    /* Exchanges enqueued between the two start together (ncclGroupStart/End); may be no-ops. */
    enum status (*group_begin)(struct world *world, struct diags *diags);
    enum status (*group_end)(struct world *world, struct diags *diags);
    /* All ranks meet on the host; also sets the epoch when `clock`. */
    enum status (*barrier)(struct world *world, bool clock, struct diags *diags);
    /* Tell everybody that this rank is going: their waits for it end at once. */
    void (*abandon)(struct world *world, const char *why);
};

/* One rank's view. Backends embed these as their first members. */
struct world {
    const struct comm_api *api;
    int rank, n_ranks;
    nanos timeout; /* of any wait for another rank */
};
struct communicator {
    struct world *world;
    int n, me; /* members, own index */
};

#endif
