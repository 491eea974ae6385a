/*
 * program.h - a training step as plain data: for each rank an ordered list of operations on named streams.
 *
 * Example: two stages, two micro-batches, 1F1B, blocking messages. program_dump prints the first rank's operations:
 *
 *     0 compute compute forward chunk=0 mb=0 layer=0 work=forward
 *     1 send send forward chunk=0 mb=0 to=1 tag=0 bytes=1048576 after=0
 *     2 compute compute forward chunk=0 mb=1 layer=0 work=forward after=1
 *     ...
 *     8 dp collective all_reduce group=model bytes=4 after=7
 *     9 compute compute work=optimizer after=8
 *
 * All ranks of one pipeline stage run the same list, so they share one *script*. An operation names its peer and its group by
 * role (previous stage, next stage, tensor-parallel group, ...), and each rank resolves the role to rank numbers. 12,288 ranks
 * with pp = 8 need eight scripts.
 *
 * Order. Operations on one stream run one after the other in list order. An operation also waits for up to OP_DEPS operations
 * of its own rank on other streams (`deps`, indices within the script, each smaller than its own). A send completes the
 * matching receive:
 * the k-th send from rank a to rank b with tag t matches the k-th receive at b from a with tag t. A send does not wait for its
 * receiver; a receive waits for its send. A collective starts when every member of the group has entered it. Members enter the
 * collectives of one group in one order, and a script has all its collectives of one kind of group on one stream.
 *
 * Detail. An operation is
 *
 *     chunk    a pass of a model chunk; its cost includes the exchanges inside it
 *     layer    a pass of a layer
 *     kernel   a kernel, on the compute stream, or an exchange of a layer, on the stream of such exchanges
 *
 * Within a pass the host runs ahead of the device. Where the host is the limit, each layer gets its share of the pass, so a
 * step takes the same time at layer detail as at chunk detail. At kernel detail the host never limits, so the step is shorter.
 * A pass that overlaps with exchanges of weights or gradients is cut into runs of layers at any detail, with ZeRO-3 into single
 * layers.
 *
 * Pairs. DualPipe, and interleaved 1F1B with ep_overlap, overlap a forward and a backward pass of different micro-batches. A
 * pair is two operations, one after the other, with WORK_PART works: each takes its share of the pair's time. At kernel detail
 * a pair is two plain passes.
 *
 * Messages. Without pp_overlap a stage's sends and receives block it: between two passes it sends the output of the first and
 * receives the input of the second (interleaved: once per pair of a forward and a backward pass). With pp_overlap, and always
 * in zero-bubble and bidirectional schedules, messages overlap with computation, and receives are posted one pass ahead. A pair
 * begins when the inputs of both passes have arrived, and sends when both passes are done.
 *
 * Data. Without async_data the stages that hold the embedding or the head load the step's batch (host stream) before their
 * first forward pass.
 *
 * Offloading. Copies to the host's memory and back are computations with copy works on one stream per direction, and overlap
 * with the passes. host.h explains them, and which operations wait for them. Work of the host's cores is on the host's stream.
 *
 * Streams: compute; tensor, context and expert exchanges; pipeline sends; pipeline receives; data-parallel exchanges; host;
 * copies down to the host's memory; copies up from there.
 */
#ifndef MSIM_MODEL_PROGRAM_PROGRAM_H
#define MSIM_MODEL_PROGRAM_PROGRAM_H

#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/work/work.h"

enum op_kind { OP_COMPUTE, OP_SEND, OP_RECV, OP_COLLECTIVE, OP_JOIN /* no time; joins dependencies */, N_OP_KINDS };
enum stream { STREAM_COMPUTE, STREAM_TP, STREAM_SEND, STREAM_RECV, STREAM_DP, STREAM_HOST, STREAM_DOWN, STREAM_UP, N_STREAMS };
enum peer { PEER_PREVIOUS, PEER_NEXT, N_PEERS }; /* stage - 1 and stage + 1, around the ring */
/* What a copy to or from the host's memory carries. */
enum copied { COPIED_ACTIVATIONS, COPIED_GRADIENTS, COPIED_WEIGHTS, N_COPIED };
enum { OP_DEPS = 4 };
#define NO_OP UINT32_MAX

struct op {
    uint8_t kind;        /* enum op_kind */
    uint8_t stream;      /* enum stream */
    uint8_t pass;        /* enum pass, or N_PASSES: optimizer, exchange of parameters, ... */
    uint8_t class;       /* enum work_class of the time while this operation is waited for */
    int16_t chunk;       /* model chunk on this stage, -1 none */
    uint8_t collective;  /* enum collective */
    uint8_t role;        /* send, receive: enum peer; collective: enum group_kind; on a stream of copies: enum copied */
    int32_t micro_batch; /* -1 none */
    int32_t layer;       /* first layer concerned, -1 none */
    /* Index in program.works, -1 none. Of a computation: its work. Of an exchange that overlaps with a computation: the
     * WORK_OVERLAPPED pair; the exchange delays later operations until the time of the pair, from its start, is over. Of a
     * dispatch of token copies: the WORK_COLLECTIVE, which has properties that `bytes` lacks. */
    int32_t work;
    uint32_t tag;           /* send, receive: pairs a send with its receive */
    double bytes;           /* sent or received; collective: of the full buffer */
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
    bool rolling; /* stages begin the next step without waiting for each other (zb-2p and zb-v with post-validation of the
                     optimizer step). The step time is then the longest time of one rank from its first pass to its optimizer, not
                     the time to the end of the last rank */
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

/* Builds the program of a legal layout; an illegal one is refused with the reason. `folded`: one rank per stage stands for all
 * its tensor-, context- and data-parallel peers (n_ranks = pp; groups keep one member per stage, and their cost is still that
 * of the whole group). If not folded, every rank is in the program. 12,288 ranks at chunk detail cost a few milliseconds.
 * *program is written only on success; free it with program_free. */
MUST_CHECK enum status program_build(const struct layout *layout, const struct setting *setting, enum detail detail, bool folded,
                                     struct program *program, struct diags *diags);
void program_free(struct program *program);

/* The program that program_build would build folded: one rank per stage. Its operations are shared with `program`; its ranks
 * and groups are its own. Free it with program_fold_free, before `program`. */
void program_fold(const struct program *program, struct program *folded);
void program_fold_free(struct program *folded);

/* Checks a program: sends match receives with equal bytes; all members of a group enter its collectives in one order with equal
 * bytes; dependencies point backwards; nothing waits in a circle; indices are in range. O(operations of all ranks). Reports
 * mistakes to `diags`. */
MUST_CHECK enum status program_verify(const struct program *program, struct diags *diags);

/* Prints one line per operation of one rank, as in the example above. */
void program_dump(const struct program *program, int rank, FILE *out);

/* Describes an operation in a message: "op 12 (send of forward 3, chunk 1)". Returns buffer. */
enum { OP_TEXT_SIZE = 96 };
char *op_text(const struct op *op, uint32_t index, char buffer[OP_TEXT_SIZE]);

#endif
