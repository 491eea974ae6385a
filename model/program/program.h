/*
 * program.h - a training step as plain data: for each rank an ordered list of operations on named streams.
 *
 * All ranks of one pipeline stage run the same list, so they share one *script*. An operation names its peer and its group by
 * role (previous stage, next stage, tensor-parallel group, ...), and each rank resolves the role to rank numbers. Example: 12,288
 * ranks with pp = 8 need eight scripts.
 *
 * Order. Operations on one stream run one after the other in list order. An operation also waits for up to OP_DEPS operations of
 * its own rank on other streams (`deps`, indices within the script, each smaller than its own). A send completes the matching
 * receive: the k-th send from rank a to rank b with tag t matches the k-th receive at b from a with tag t. A send does not wait
 * for its receiver; a receive waits for its send. A collective starts when every member of the group has entered it; members
 * enter the collectives of one group in one order, and a script has all its collectives of one kind of group on one stream.
 *
 * Detail, an operation per:
 *   chunk    pass of a model chunk; its cost includes the exchanges inside it
 *   layer    pass of a layer
 *   kernel   kernel, on the compute stream, and exchange of a layer, on the stream of such exchanges
 * Within a pass the host runs ahead of the device. Where the host is the limit, each layer gets its share of the pass, so a step
 * is as long at layer detail as at chunk detail. At kernel detail the host never limits, so such a step is shorter. A pass that
 * overlaps with exchanges of weights or gradients is cut into runs of layers at any detail, with ZeRO-3 into single layers.
 *
 * Pairs. DualPipe, and interleaved 1F1B with ep_overlap, run a forward and a backward pass of different micro-batches side by
 * side. They are two operations, one after the other, with WORK_PART works: each takes its share of what the pair does. At
 * kernel detail they are two plain passes.
 *
 * Messages. Without pp_overlap a stage's sends and receives block it: what a pass made is sent and what the next one needs is
 * received between the two (interleaved: once per pair of a forward and a backward pass). With pp_overlap, and always in
 * zero-bubble and bidirectional schedules, they run beside computation and receives are posted one pass ahead; pairs
 * begin with what both need and send when both are done.
 *
 * Data. Without async_data the stages that hold the embedding or the head load the step's batch (host stream) before their first
 * forward pass.
 *
 * Offloading. What goes to the host's memory and comes back are computations of copy works on a stream of either direction,
 * beside the passes; host.c says which, and what waits for them. What the host's cores do is on the host's stream.
 *
 * Streams: compute; tensor/context/expert exchanges; pipeline sends; pipeline receives; data-parallel exchanges; host; copies
 * down to the host's memory and up from there.
 */
#ifndef MSIM_MODEL_PROGRAM_PROGRAM_H
#define MSIM_MODEL_PROGRAM_PROGRAM_H

#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/work/work.h"

enum op_kind { OP_COMPUTE, OP_SEND, OP_RECV, OP_COLLECTIVE, OP_JOIN /* takes no time: gathers dependencies */, N_OP_KINDS };
enum stream { STREAM_COMPUTE, STREAM_TP, STREAM_SEND, STREAM_RECV, STREAM_DP, STREAM_HOST, STREAM_DOWN, STREAM_UP, N_STREAMS };
enum peer { PEER_PREVIOUS, PEER_NEXT, N_PEERS }; /* stage - 1 and + 1, around the ring */
/* Of copies to the host's memory and back. */
enum copied { COPIED_ACTIVATIONS, COPIED_GRADIENTS, COPIED_WEIGHTS, N_COPIED };
enum { OP_DEPS = 4 };
#define NO_OP UINT32_MAX

struct op {
    uint8_t kind;        /* enum op_kind */
    uint8_t stream;      /* enum stream */
    uint8_t pass;        /* enum pass, or N_PASSES: optimizer, exchange of parameters, ... */
    uint8_t class;       /* enum work_class, for the breakdown when this operation is what is waited for */
    int16_t chunk;       /* model chunk on this stage, -1 none */
    uint8_t collective;  /* enum collective */
    uint8_t role;        /* enum peer of a send or receive, enum group_kind of a collective, enum copied on a stream of copies */
    int32_t micro_batch; /* -1 none */
    int32_t layer;       /* first layer concerned, -1 none */
    int32_t work;        /* of a compute operation; of an exchange beside one, the WORK_OVERLAPPED pair: as long as the
                          * pair takes from its start, the exchange holds up what follows; of a dispatch of token copies
                          * the WORK_COLLECTIVE, which knows what its bytes alone do not say; -1 none */
    uint32_t tag;        /* of a send or receive: what matches what */
    double bytes;        /* sent, received, or of the full buffer of a collective */
    uint32_t deps[OP_DEPS]; /* NO_OP: none */
};

struct script {
    uint32_t first_op, n_ops; /* in program.ops */
};

struct program_rank {
    int32_t script;
    int32_t peers[N_PEERS];        /* ranks, -1 none */
    int32_t groups[N_GROUP_KINDS]; /* index in program.groups, -1 none */
};

struct rank_group {
    enum group_kind kind;
    int32_t first_member, n_members; /* in program.members */
};

enum detail { DETAIL_CHUNK, DETAIL_LAYER, DETAIL_KERNEL };

struct program {
    struct layout layout;
    enum detail detail;
    bool rolling; /* stages begin the next step without waiting for one another (zb-2p and zb-v with post-validation of the
                   * optimizer step): a step then takes as long as a rank is in it, from its first pass to its optimizer, not to
                   * the end of the last */
    struct op *ops;
    uint32_t n_ops;
    struct script *scripts;
    int32_t n_scripts;
    struct program_rank *ranks;
    int32_t n_ranks;
    struct rank_group *groups;
    int32_t n_groups;
    int32_t *members;
    int32_t n_members;
    struct work_table works;
};

/* Build the program of a legal layout (another one is refused with the reason). `folded`: one rank per stage stands for all its
 * tensor-, context- and data-parallel peers (n_ranks = pp; groups keep one member per stage, their cost still that of the whole
 * group); otherwise every rank is there. 12,288 ranks at chunk detail take a few milliseconds. *program is written only on
 * success; free it with program_free. */
MUST_CHECK enum status program_build(const struct layout *layout, const struct setting *setting, enum detail detail, bool folded,
                                     struct program *program, struct diags *diags);
void program_free(struct program *program);

/* The program of one rank a stage that program_build would fold this one to: what it does is shared with `program`, who does it
 * is its own. To be freed, before `program`, by program_fold_free. */
void program_fold(const struct program *program, struct program *folded);
void program_fold_free(struct program *folded);

/* Sends match receives with equal bytes, every collective is entered by all its group in one order with equal bytes, dependencies
 * point backwards, nothing waits in a circle, indices are in range. O(operations of all ranks). */
MUST_CHECK enum status program_verify(const struct program *program, struct diags *diags);

/* One line per operation of one rank, for people and golden tests. */
void program_dump(const struct program *program, int rank, FILE *out);

#endif
