/*
 * comm.h - exchanges among ranks on device streams: one table of functions per backend (threads, MPI, NCCL, alone).
 *
 * Example: ranks 0 and 2 of a world of four add up 1000 gradients.
 *
 *     world->api->communicator_new(world, (int[]){0, 2}, 2, &pair, &diags);        all four ranks call it; 1 and 3 get NULL
 *     struct exchange_call call = {
 *         .exchange = EXCHANGE_ALL_REDUCE, .in = g, .out = g, .count = 1000, .what = "gradients"};
 *     world->api->enqueue(pair, stream, &call, &diags);                            returns at once; g is the sum when the stream
 *                                                                                  has passed it
 *
 * A world is all ranks of a program, one device each, and one clock. All ranks make communicators in the same order, before the
 * first step. Exchanges on one communicator are matched in the order of enqueueing, so every member must enqueue them in the
 * same order. A channel for messages is a communicator of two ranks that is used in one direction.
 *
 * Semantics. An exchange runs when its stream reaches it. A send waits for its receiver only when the backend's buffers are
 * full; a receive waits for its send; a collective ends when all members have contributed. `in` and `out` may be the same buffer
 * for all-reduce and broadcast. In an all-gather, `in` may be this member's place in `out`; in a reduce-scatter, `out` may be
 * this member's part of `in`.
 *
 * Sums follow the order of ranks in the list. Two runs give the same bits on CPU backends, and on NCCL if its algorithm is
 * pinned.
 *
 * Failure. Every wait is bounded by the world's timeout. When it passes, or when a rank is known to be gone, all pending
 * exchanges of this rank end. stream_synchronise then returns STATUS_FAILED and names this rank, the exchange and the missing
 * ranks: "rank 2: all_gather dp: rank 3 did not arrive within 10 s".
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

/* Parts of different sizes, in rows of `count` elements. The numbers of rows are in device memory. Parts follow each other in the
 * order of members.
 *   all-to-all       sent[n] rows to and received[n] rows from each member
 *   all-gather       received[n] rows from each member, including this one
 *   reduce-scatter   sent[n] rows of each member's part
 * NULL: all parts are equal. NCCL needs the numbers on the host, so the host waits for them. `even`: rows of each member if all
 * bring the same number; a rank without partners uses it (comm_alone.h). */
struct ragged {
    const int32_t *sent, *received;
    int64_t even;
};

/*
 * Blocks. The part of a member in the result of an all-gather, or in the input of a reduce-scatter, may consist of several equal
 * blocks. The whole is then [blocks][n][count / blocks]: block b of member m is at index b n + m. The result equals that of one
 * all-gather per block, and NCCL executes it that way, as one group. With blocks, `in` and `out` may not overlap.
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

/* Groups of ranks that share no rank: sizes[n], and the members of each group after those of the group before. */
struct rank_sets {
    const int *members, *sizes;
    int n;
};

struct comm_api {
    const char *name; /* "threads", "nccl" */
    /* Leaves the world and frees its communicators; pending exchanges must have ended. */
    void (*close)(struct world *world);
    /* `members` in group order, the same on all ranks. *communicator is NULL on ranks that are not members. */
    enum status (*communicator_new)(struct world *world, const int *members, int n, struct communicator **communicator,
                                    struct diags *diags);
    /* The communicators of several groups at once; *communicator is the one of this rank's group, or NULL. A backend without this
     * function makes one after the other. */
    enum status (*communicators_new)(struct world *world, const struct rank_sets *sets, struct communicator **communicator,
                                     struct diags *diags);
    enum status (*enqueue)(struct communicator *communicator, struct device_stream *stream, const struct exchange_call *call,
                           struct diags *diags);
    /* Exchanges enqueued between the two start together (ncclGroupStart/End); may be no-ops. */
    enum status (*group_begin)(struct world *world, struct diags *diags);
    enum status (*group_end)(struct world *world, struct diags *diags);
    /* Waits on the host until all ranks have called it. `clock`: the world's clock starts again at 0. */
    enum status (*barrier)(struct world *world, bool clock, struct diags *diags);
    /* Tells all ranks that this one gives up: their waits end at once, with `why` in the message. */
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
