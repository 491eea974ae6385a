/*
 * rank.h - the state of one rank of a run: device, communicators, weights, and the tensors of micro-batches (private to the
 * runtime).
 *
 * Example: one step of a layer.
 *
 *     struct tensor *y = tensor_new(rank, bytes);          a free buffer, or new device memory
 *     rank_launch(rank, stream, &call);                    a kernel that writes y
 *     tensor_drop(rank, &y, stream);                       y is NULL; a later step may get this buffer
 *
 * One thread enqueues all work of a rank (executor.c) and never waits for the device. So a buffer that a step gives back may
 * still be in use by the device when a later step gets it. That is safe for two reasons:
 *
 *   ordinary tensors     are used by the compute stream, and by exchanges for which the next computation waits. A buffer is
 *                        reused only after the next computation begins.
 *   travelling tensors   (messages, gathered weights, gradients in exchanges) are used by other streams too. Giving one back
 *                        records an event on the stream that used it last, and its next user waits for that event.
 *
 * Errors: after the first, `status` is set, diags has its message, and all functions here do nothing.
 */
#ifndef MSIM_RUNTIME_BASE_RANK_H
#define MSIM_RUNTIME_BASE_RANK_H

#include "runtime/base/comm.h"
#include "runtime/base/steps.h"

/* The travelling tensors that were given back last are not reused at once, so that their next user seldom waits. */
enum { TRAVELLING_SPARE = 2 };

struct tensor {
    void *data;
    size_t bytes;
    int references;
    bool travels;
    enum narrow_format format; /* 8-bit numbers [rows, cols] (casts.c); NARROW_NONE: other elements */
    bool in_blocks;
    int64_t rows, cols;
    struct device_event *released; /* travelling: recorded when it was given back; NULL: never */
    struct tensor *next;           /* in a list of free ones */
};

/* How operands of products are rounded to 8 bits; NARROW_NONE: they are not. */
struct narrow_recipe {
    enum narrow_format activations, gradients; /* weights as activations */
    bool in_blocks;
};

/* Tensors of latent attention, whose queries, keys and values come from several matrices. d_*: gradients. */
struct latent_state {
    struct tensor *q_down, *q_latent, *q, *kv_down, *kv_latent, *kv_up, *k, *v;
    struct tensor *q_raw, *k_raw; /* before the norms of heads */
    struct tensor *d_q, *d_k, *d_v, *d_q_latent, *d_kv_latent, *d_kv_up, *d_kv_down;
};

/* Tensors of a mixture of experts: [n] rows of copies that this rank sends, [most] rows of copies that its experts compute. */
struct mixture_state {
    struct tensor *logits, *gate, *plan; /* plan: integers, see layer_mixture.h */
    struct tensor *rows;                 /* copies in an exchange, to the experts or back, in both passes */
    struct tensor *x, *up, *act;         /* in the order of experts */
    struct tensor *returned;             /* [n] results that came back */
    struct tensor *shared_up, *shared_act, *shared;
    struct tensor *d_gate, *d_y, *d_act, *d_up;
    struct tensor *d_shared_up, *d_shared;
};

/* Tensors of a mixer with a state (layer_mixer.c). Decays and the gate may come from two narrow products. */
enum mixer_ranked { RANKED_DECAYS, RANKED_GATE, N_RANKED };
struct mixer_state {
    struct tensor *in, *down[N_RANKED], *up[N_RANKED], *mixed, *unit, *decay, *strength, *y, *normed;
    struct tensor *d_normed, *d_y, *d_mixed, *d_unit, *d_decay, *d_strength, *d_in;
    struct tensor *d_up[N_RANKED], *d_down_of[N_RANKED], *d_down;
};

/* Products whose results may be kept when the rest of a layer is recomputed. */
enum layer_product {
    LAYER_QKV, /* queries, keys and values; or only queries, with the next two */
    LAYER_KEYS,
    LAYER_VALUES,
    LAYER_Q_DOWN,
    LAYER_Q_UP,
    LAYER_KV_DOWN,
    LAYER_KV_UP,
    LAYER_MIXER_IN,
    LAYER_MIXER_DOWN,
    LAYER_MIXER_DECAYS,
    LAYER_MIXER_GATE,
    LAYER_PROJECTION, /* the reduced sum of all mixers */
    LAYER_GATE,       /* if it has a matrix of its own */
    LAYER_UP,
    N_LAYER_PRODUCTS
};
enum { PARTS_MAX = 3 }; /* queries, keys, values */

/* Tensors of one layer and micro-batch: those of the forward pass that the backward pass reads, and those of the backward pass
 * that its weight gradients read. NULL: not there now. */
struct layer_state {
    struct tensor *x, *mean1, *rstd1, *n1, *n1_full, *qkv_raw, *qkv, *kv, *context, *log_sum_exp;
    struct tensor *context_cast; /* context in 8 bits: the projection reads this one, attention's backward pass the other */
    struct tensor *x2, *mean2, *rstd2, *n2, *n2_full, *up, *act;
    struct tensor *apart[PARTS_MAX]; /* queries, keys, values before they are packed in qkv */
    struct tensor *gate;             /* apart from up; NULL: its first half */
    struct tensor *kept[N_LAYER_PRODUCTS];
    struct tensor *kv_own, *kv_all; /* keys and values in their exchange, until attention has read the last piece */
    struct tensor *d_kv, *d_kv_all; /* gradients of all keys and values; the same in the order of ranks */
    struct tensor *sent, *arrived;  /* heads sent to other ranks, and received from them */
    struct tensor *branch;          /* output of a branch: partial sums, then reduced */
    /* backward */
    struct tensor *d, *d_full; /* gradient of the layer's output; gathered: gradient of the second branch's output */
    struct tensor *d_branch;   /* gradient of a branch's output, which dropout makes different from that of the sum */
    struct tensor *d_act, *d_up, *d_n2, *d_x2, *context_again;
    struct tensor *d2, *d2_full, *d_context, *d_qkv, *d_n1;
    struct tensor *d_apart[PARTS_MAX], *d_gate; /* gradients of apart and gate */
    struct tensor *d_parts[PARTS_MAX];          /* each separate matrix's part of the gradient of their input */
    struct latent_state latent;
    struct mixer_state mixer;
    struct mixture_state mixture;
};

/* own: tensors of this rank's tokens. swapped: when context parallelism exchanges heads, attention's tensors of the tokens of
 * several ranks (queries, keys, values, output, and their gradients). */
struct layer_states {
    struct layer_state own, swapped;
};

struct head_state {
    struct tensor *x, *mean, *rstd, *n, *n_full, *logits, *max, *sums, *d_n;
    struct tensor *d_w; /* fp32, if the loss computes it: gradient of the output matrix of this micro-batch */
};

/* Tensors of a prediction module around its layer: [0] the embedding of a later token, [1] the state of the depth before. */
struct prediction_state {
    struct tensor *x[2], *mean[2], *rstd[2];
    struct tensor *n, *n_full; /* results of both norms, concatenated in each row */
    struct tensor *columns;    /* this rank's columns of the product; backward: their gradient */
    struct tensor *d_full, *d_n;
    struct tensor *d; /* gradient of the embedding */
    struct head_state head;
};

/* One micro-batch in one model chunk. */
struct pass_state {
    struct tensor *x;       /* input of the next layer; at the end, the message to the next stage */
    struct tensor *d;       /* the same in the backward pass */
    struct tensor *d_state; /* gradient of the state that a depth passes to the next prediction module */
    struct layer_states *layers;
    struct head_state head;
    struct prediction_state *predictions; /* [modules of this chunk] */
    struct tensor *fresh;                 /* a weight gradient in fp32 that will be added to fresh_to */
    float *fresh_to;
};

enum { GATHERED_MAX = 64 };

/*
 * The part of a unit that is in the memory of the host (host_states.c): the optimizer states of the first `n` elements that this
 * rank updates, and the weights of the first `fetched` of those, which are copied to the device for each gather. The rest stays
 * on the device.
 */
struct host_share {
    int64_t n, fetched;
    float *master, *m, *v, *gradients; /* [n] in host memory */
    void *weights;                     /* [n] in the device's precision, copied to the device; if that is fp32, master itself */
    bool has_sum;                      /* `gradients` has those of this step, complete after `left` */
    struct device_event *left;
    struct tensor *sum;                   /* [n] on the device: gradients that were copied up to add more */
    struct tensor *arrived[GATHERED_MAX]; /* fetched slices that wait for their gathers, first in first out */
    int n_arrived;
};

/* One unit of weights on this rank. This rank updates `owned` elements from `first` on: all, or its slice. The last owned -
 * host.n of them have their states on the device. Weights or gradients are "gathered" if they are on the device only while a pass
 * uses them (ZeRO, offloading). */
struct unit_state {
    const struct unit *unit;
    int64_t first, owned;
    void *weights; /* whole unit in the device's precision; gathered: while they are there */
    void *shard;   /* gathered weights: owned elements from host.fetched on, in the device's precision; else inside weights */
    float *master, *m, *v;  /* owned elements from host.n on; master may be the weights themselves (fp32) */
    float *gradients;       /* whole unit; gathered: while a pass computes them */
    float *owned_gradients; /* owned elements; only those from host.n on, if gradients leave with every backward pass */
    struct host_share host;
    /* for gathered weights or gradients */
    struct tensor *gathered[GATHERED_MAX]; /* gathered in advance, first in first out */
    int n_gathered;
    struct tensor *weights_tensor, *gradients_tensor;
    struct tensor *casts[UNIT_PARAMETERS_MAX]; /* of weights in 8 bits; under ZeRO-3 while gathered */
    int64_t steps_cast;                        /* number of steps whose casts have been made */
};

struct chunk_state {
    int virtual_stage;
    struct layer_range range;
    bool embedding, head;
    int predictions; /* modules, behind the head */
    struct stage_units units;
    struct unit_state *states;  /* [units.n_items] */
    struct pass_state **passes; /* [micro-batches] */
};

struct rank_timing {
    nanos *start, *end; /* [n_ops] */
    nanos *pieces;      /* [n_ops] time of its pieces, without pauses between them; end - start without pieces */
    nanos *work;        /* [n_ops] processor time in that (device.h, event_work) */
};

/* Events at the start and end of each piece of an operation; n 0: no pieces. */
struct piece_marks {
    int n;
    struct device_event **begin, **end; /* [n] */
};

/*
 * Pieces. The tensor-parallel group divides a sequence of T tokens into `slices` equal slices. Rank r of n has a part of each
 * slice:
 *
 *     whole  [slices][n][T / (slices n)]      of rank r: [slices][T / (slices n)]
 *
 * Then a piece (one or several slices of all ranks) is a contiguous range of the whole. One exchange can then fill the range
 * that one product reads, or send the range that one product wrote. Without pieces there is one slice.
 */
struct pipeline {
    int slices;
    /* Of the most pieces of any pair: by computations, recorded on the compute stream; by exchanges, on theirs. */
    struct device_event *made[WORK_RING_PIECES_MAX], *arrived[WORK_RING_PIECES_MAX];
    struct device_event *fork, *join;
    struct piece_marks *marks; /* [n_ops] */
};

struct rank {
    const struct program *program;
    const struct setting *setting;
    const struct layout *layout;
    int rank, stage;
    struct shape shape, core; /* core: as attention sees it, behind an exchange of heads */
    struct narrow_recipe recipe;
    struct tensor *scratch; /* of products (casts.h) */
    struct device *device;
    struct world *world;
    struct device_stream *streams[N_STREAMS];
    struct communicator *groups[N_GROUP_KINDS];
    struct communicator *side[N_GROUP_KINDS]; /* for small exchanges inside computations and at the end of the step */
    struct communicator **sends, **receives;  /* [n_tags]; NULL: this rank does not send or receive with this tag */
    int n_tags;
    struct binding binding;
    struct device_event **begin, **end; /* [n_ops] */
    struct pipeline pipeline;
    struct chunk_state *chunks; /* [vpp] */
    int64_t micro_batches;
    int32_t *tokens; /* device, [2 + predictions][micro_batches][tokens]: inputs, and the tokens 1, 2, ... positions later */
    double *loss;    /* device */
    float *norm;     /* device: squared gradient norm */
    float *partial;  /* device, [n_partial]: gradients that are summed over the tensor-parallel group */
    int64_t n_partial;
    bool gradients_finished, norm_settled;
    struct device_event *finished; /* recorded when this step's gradients are complete */
    float rate;                    /* learning rate */
    float clip, dropout;
    uint64_t seed;
    int64_t step;
    /* device, context parallelism: `order` has the place of each row of whole sequences among the gathered keys and values;
     * `heads_order` the place of each row that attention reads after an exchange of heads */
    int32_t *order, *heads_order;
    float *slopes;          /* device, [heads in attention]: ALiBi */
    float *constant_decays; /* device, [heads of a mixer with a state]: decays that are the same for all tokens */
    float *update, *norms;  /* device, LAMB: an update, lengths of tensors */
    int64_t n_update, n_norms;
    struct muon *muon;       /* update_muon.c; NULL: not yet */
    bool norm_over_replicas; /* the program sums the norm over data-parallel replicas */

    struct host_copies *host;  /* NULL: no activations are offloaded */
    float *host_norm;          /* host memory: squared gradient norm */
    float *gathered_gradients; /* device: the owned gradients of a unit, for the norm */
    int64_t n_gathered_gradients;
    struct tensor *ordinary, *travelling, *quarantine; /* lists of free tensors */
    struct tensor **all;
    size_t n_all, capacity;

    enum status status;
    struct diags diags;
};

/* --- tensors.c */
struct tensor *tensor_new(struct rank *rank, size_t bytes);
/* A travelling tensor, whose next use is on `stream`. */
struct tensor *tensor_new_travelling(struct rank *rank, size_t bytes, struct device_stream *stream);
struct tensor *tensor_share(struct tensor *tensor);
struct tensor *tensor_take(struct tensor **tensor); /* *tensor becomes NULL */
/* Gives up a reference to a tensor whose last use is on `stream`; *tensor becomes NULL and may be NULL before. */
void tensor_drop(struct rank *rank, struct tensor **tensor, struct device_stream *stream);
void tensors_settle(struct rank *rank); /* a computation begins: tensors that were given back before it may be reused */
void tensors_free(struct rank *rank);
void *rank_memory(struct rank *rank, size_t bytes); /* device memory for the whole run; NULL after a failure */

static inline void *tensor_data(struct tensor *tensor)
{
    return tensor ? tensor->data : NULL;
}

/* --- enqueueing; these do nothing after a failure */
void rank_launch(struct rank *rank, struct device_stream *stream, const struct kernel_call *call);
void rank_exchange(struct rank *rank, struct communicator *communicator, struct device_stream *stream,
                   const struct exchange_call *call);
void rank_wait(struct rank *rank, struct device_event *event, struct device_stream *stream);
void rank_record(struct rank *rank, struct device_event *event, struct device_stream *stream);
enum element rank_element(const struct rank *rank); /* of activations */

/* --- host_copies.c: activations in the memory of the host; these do nothing if none are offloaded */
void host_copies_open(struct rank *rank);
void host_copies_close(struct rank *rank);
void host_copies_begin(struct rank *rank); /* at the beginning of a step */
/* Enqueues operation i, which is a copy. */
void host_copies_enqueue(struct rank *rank, uint32_t i, struct device_stream *stream);
/* Call when an operation's stream waits for its dependencies: frees the device copies of activations that have left by then. */
void host_copies_awaited(struct rank *rank, const struct op *op);

/* --- host_states.c: optimizer states, gradients and weights in the memory of the host; these do nothing if none are offloaded */
bool rank_offloads(const struct rank *rank);                                            /* whether anything is offloaded */
bool rank_gradients_leave(const struct rank *rank);                                     /* with every backward pass */
void host_states_plan(struct rank *rank, struct unit_state *unit);                      /* sets host.n and host.fetched */
void host_states_new(struct rank *rank, struct unit_state *unit, const float *initial); /* [owned] */
void host_states_free(struct rank *rank, struct unit_state *unit);
void host_states_begin(struct rank *rank); /* at the beginning of a step */
void host_states_copy(struct rank *rank, const struct op *op, struct device_stream *stream);
/* This rank's slice of the weights, the input of a gather. The caller drops it on the stream of the gather. */
struct tensor *host_states_arrived(struct rank *rank, struct unit_state *unit);
/* Copies elements [first, first + n) of a unit's owned gradients to `device`, wherever they are; or, with `back`, from there. */
void host_states_gradients(struct rank *rank, const struct unit_state *unit, int64_t first, int64_t n, float *device, bool back,
                           struct device_stream *stream);
void *rank_host_memory(struct rank *rank, size_t bytes); /* zeroed, for the whole run; NULL after a failure */
void rank_copy(struct rank *rank, struct device_stream *stream, void *to, const void *from, size_t bytes);

/* --- communicators.c, constants.c: parts of rank_open and rank_close */
void rank_open_communicators(struct rank *rank);
void rank_close_communicators(struct rank *rank);
void rank_open_constants(struct rank *rank);
void rank_close_constants(struct rank *rank);
/* Copies to device memory and waits until it is there. */
void rank_upload(struct rank *rank, void *to, const void *from, size_t bytes);

/* --- weights.c */
void chunk_open(struct rank *rank, struct chunk_state *chunk, uint64_t seed);
void chunk_close(struct rank *rank, struct chunk_state *chunk);
struct unit_state *chunk_layer_unit(struct chunk_state *chunk, int layer);
struct unit_state *chunk_experts_unit(struct chunk_state *chunk, int layer); /* NULL: the layer has none */
/* Whether a unit also gets gradients from the head: the table that the head reads, and prediction modules. */
bool chunk_shares_table(const struct rank *rank, const struct chunk_state *chunk, int unit);
struct unit_state *rank_table(struct rank *rank); /* the token table of this rank */
/* Whether the device has a unit's weights only while they are used (ZeRO-3 with several ranks, or weights in the memory of the
 * host), and its gradients only while a pass computes them. */
bool unit_weights_travel(const struct rank *rank, const struct unit_state *unit);
bool unit_gradients_travel(const struct rank *rank, const struct unit_state *unit);
void *unit_kept_weights(const struct rank *rank, const struct unit_state *unit); /* weights whose states the device has */
/* A parameter's weights and gradients; NULL: the unit has no such parameter. */
void *unit_weights(const struct rank *rank, const struct unit_state *unit, enum parameter_kind kind);
float *unit_gradients(const struct unit_state *unit, enum parameter_kind kind);
/* Before a pass uses a unit: takes the gathered weights, and with `backward` allocates gradients. After it: frees the weights.
 * These do nothing for weights and gradients that stay on the device. */
void unit_enter(struct rank *rank, struct unit_state *unit, bool backward, struct device_stream *stream);
void unit_leave(struct rank *rank, struct unit_state *unit, struct device_stream *stream);

/* --- shards.c, shards_units.c: exchanges of weights and gradients among replicas */
void shards_exchange(struct rank *rank, const struct op *op, struct device_stream *stream);
/* Calls `visit` for each unit that a copy to or from the host, or an update on the host, concerns. */
typedef void visit_unit(struct rank *rank, const struct op *op, struct unit_state *unit, struct device_stream *stream);
void shards_visit(struct rank *rank, const struct op *op, visit_unit *visit, struct device_stream *stream);

/* --- the end of the step (update*.c) */

/* The exchange of the gradient norm that operation `op` stands for. */
void update_exchange_norm(struct rank *rank, const struct op *op, struct device_stream *stream);
/* Call before the update. In rolling programs (program.rolling) stages update without waiting for the norm; when the norm, known
 * during the next step, requires clipping, they undo and repeat the update. The runtime's steps do not overlap, so it exchanges
 * the norm first, outside the time of the operation. Does nothing for other programs. */
void update_settle_norm(struct rank *rank, struct device_stream *stream);
/* Enqueues an operation of the optimizer: all of it, or only the norm, the device's update, the host's update, or the casts. */
void update_enqueue(struct rank *rank, const struct op *op, struct device_stream *stream);
/* A range of a unit's owned elements, counted from the first owned one. */
struct element_range {
    int64_t first, n;
};
/* The owned elements among elements [first, first + n) of the whole unit. */
struct element_range owned_range(const struct unit_state *unit, int64_t first, int64_t n);
struct clipping update_clipping(const struct rank *rank);
/* Adam on the device, for a range whose second moments begin at v[second_moment]. */
void update_adam(struct rank *rank, const struct unit_state *unit, struct element_range range, int64_t second_moment,
                 struct device_stream *stream);
void update_close(struct rank *rank);

/* --- the transformer (step_enqueue.c, layer_*.c, prediction.c, ends.c) */
struct step_context {
    struct rank *rank;
    struct chunk_state *chunk;
    struct pass_state *pass;
    struct device_stream *stream;
    int64_t micro_batch;
    int forgets; /* set of enum recompute_what: modules that the backward pass recomputes, so their tensors are freed.
                  * RECOMPUTE_FULL: tensors that belong to no module */
    const struct step *step;
    const struct piece_marks *marks; /* events for the step's pieces; NULL: no times are recorded */
};
void step_enqueue(struct step_context *context, const struct step *step);
void layer_forward_step(struct step_context *context, const struct step *step);
void layer_backward_step(struct step_context *context, const struct step *step);
void ends_step(struct step_context *context, const struct step *step);
/* The gradient of a linear layer's weights. The product itself adds it to the sum, or a separate step (gradient_sum) does. */
void weight_gradient(struct step_context *context, struct linear_call call);
void gradient_sum_step(struct step_context *context);

/* --- pipelined.c: steps in pieces */
void pipeline_open(struct rank *rank);
void pipeline_close(struct rank *rank);
/* Around a step. pipeline_enter returns the stream for it: an exchange in pieces has its own stream, other steps that of their
 * operation. */
struct device_stream *pipeline_enter(struct step_context *context, const struct step *step);
void pipeline_leave(struct step_context *context, const struct step *step);
/* Launches the product or the exchange of the current step in pieces; `call` describes the whole. pipeline_exchange is for the
 * all-gather or reduce-scatter of the tensor-parallel group's sequence. */
void pipeline_launch(struct step_context *context, const struct kernel_call *call);
/* Around one piece, for steps that divide their work themselves. */
void pipeline_piece_begin(const struct step_context *context, int piece);
void pipeline_piece_end(const struct step_context *context, int piece);
void pipeline_exchange(struct step_context *context, const struct exchange_call *call);
/* The first row, in the micro-batch, of the k-th of `slices` ranges of this rank's tokens. */
int64_t pipeline_row(const struct rank *rank, int k);

/* All-gather over the tensor-parallel group, of rows of hidden elements (tp_gather_rows: `width`). */
void tp_gather(struct step_context *context, struct tensor *in, struct tensor **out, const char *what);
/* For operands of 8 bits with blocks: the casts that products will read. The forward pass and the input's gradient read blocks
 * along rows, the weights' gradient blocks along columns. */
enum gathered { GATHERED_ROWS, GATHERED_COLUMNS, GATHERED_BOTH };
void tp_gather_rows(struct step_context *context, struct tensor *in, struct tensor **out, int64_t width, enum gathered read,
                    const char *what);
/* Sum over the group: *tensor becomes the sum, or with sequence parallelism this rank's rows of it. */
void tp_reduce(struct step_context *context, struct tensor **tensor, const char *what);
void tp_reduce_rows(struct step_context *context, struct tensor **tensor, int64_t width, const char *what);
/* A norm over this rank's tokens; step_norm_forward allocates the results. */
struct norm_tensors {
    enum parameter_kind gain;
    struct tensor *x, **mean, **rstd, **y;
};
void step_norm_forward(struct step_context *c, const struct unit_state *unit, struct norm_tensors n);
struct norm_gradients {
    enum parameter_kind gain;
    struct tensor *dy, *x, *mean, *rstd, *add, *dx; /* add: another gradient of x that is added to dx; NULL: none */
};
void step_norm_backward(struct step_context *c, const struct unit_state *unit, struct norm_gradients n);
/* A tensor for the output of a layer. If it is the output of a chunk and is sent to another stage, it is a travelling tensor. */
struct tensor *output_new(struct step_context *context, bool forward, bool last_of_chunk);

#endif
