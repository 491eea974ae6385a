/*
 * rank.h - one rank of a run: its device, communicators, weights, and the tensors of the micro-batches under way (private to the
 * runtime).
 *
 * One thread enqueues everything a rank does (executor.c); nothing here waits for the device. A buffer given back by one enqueued
 * step may be handed to a later one, which is safe for two reasons:
 *
 *   ordinary tensors   are touched by the compute stream, and by exchanges that the next computation waits for. What a step gives
 *                      back is reused only by steps after the next computation begins.
 *   travelling ones    (messages, gathered weights, gradients on their way) are touched by other streams too. When one is given
 *                      back, an event is recorded on the stream that used it last, and its next user waits for that event.
 *
 * Failures stick: after the first, `status` is set, its sentence is in diags, and everything here does nothing.
 */
#ifndef MSIM_RUNTIME_BASE_RANK_H
#define MSIM_RUNTIME_BASE_RANK_H

#include "runtime/base/comm.h"
#include "runtime/base/steps.h"

/* Travelling tensors given back more recently than this many others are left alone, so that their next user seldom waits. */
enum { TRAVELLING_SPARE = 2 };

struct tensor {
    void *data;
    size_t bytes;
    int references;
    bool travels;
    enum narrow_format format; /* of 8-bit numbers: [rows, cols] of them (casts.c); NARROW_NONE: elements of any kind */
    bool in_blocks;
    int64_t rows, cols;
    struct device_event *released; /* of a travelling one; NULL: never given back */
    struct tensor *next;           /* in a list of free ones */
};

/* How operands of products are rounded to 8 bits; NARROW_NONE: they are not. */
struct narrow_recipe {
    enum narrow_format activations, gradients; /* weights as activations */
    bool in_blocks;
};

/* Queries, keys and values that do not come from one matrix: latent attention. */
struct latent_state {
    struct tensor *q_down, *q_latent, *q, *kv_down, *kv_latent, *kv_up, *k, *v;
    struct tensor *q_raw, *k_raw; /* before the norms of heads */
    struct tensor *d_q, *d_k, *d_v, *d_q_latent, *d_kv_latent, *d_kv_up, *d_kv_down;
};

/* A mixture of experts: [n] rows of copies that this rank sends, [most] rows of copies that it works on. */
struct mixture_state {
    struct tensor *logits, *gate, *plan; /* plan: integers, see layer_mixture.h */
    struct tensor *rows;                 /* on their way to the experts or back, both passes */
    struct tensor *x, *up, *act;         /* in the order of experts */
    struct tensor *returned;             /* [n] results at home */
    struct tensor *shared_up, *shared_act, *shared;
    struct tensor *d_gate, *d_y, *d_act, *d_up;
    struct tensor *d_shared_up, *d_shared;
};

/* A mixer with a state; see layer_mixer.c. Two of its numbers may come by narrow products: decays and the gate. */
enum mixer_ranked { RANKED_DECAYS, RANKED_GATE, N_RANKED };
struct mixer_state {
    struct tensor *in, *down[N_RANKED], *up[N_RANKED], *mixed, *unit, *decay, *strength, *y, *normed;
    struct tensor *d_normed, *d_y, *d_mixed, *d_unit, *d_decay, *d_strength, *d_in;
    struct tensor *d_up[N_RANKED], *d_down_of[N_RANKED], *d_down;
};

/* Products whose results may be kept where the rest of a layer is recomputed. */
enum layer_product {
    LAYER_QKV, /* or queries alone, and the two behind it */
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
    LAYER_PROJECTION, /* reduced, of all mixers */
    LAYER_GATE,       /* where it is apart */
    LAYER_UP,
    N_LAYER_PRODUCTS
};
enum { PARTS_MAX = 3 }; /* queries, keys, values */

/* What the backward pass of a layer needs of its forward pass, and what its weight gradients need of the rest of the backward
 * pass. NULL: not there (yet, any more). */
struct layer_state {
    struct tensor *x, *mean1, *rstd1, *n1, *n1_full, *qkv_raw, *qkv, *kv, *context, *log_sum_exp;
    struct tensor *context_cast; /* context in 8 bits: the projection reads this one, attention's backward pass the other */
    struct tensor *x2, *mean2, *rstd2, *n2, *n2_full, *up, *act;
    struct tensor *apart[PARTS_MAX]; /* queries, keys, values before they are packed in qkv */
    struct tensor *gate;             /* apart from up; NULL: its first half */
    struct tensor *kept[N_LAYER_PRODUCTS];
    struct tensor *kv_own, *kv_all; /* on their way to kv, until attention has had the last piece */
    struct tensor *d_kv, *d_kv_all; /* gradients of all keys and values; in the order of ranks */
    struct tensor *sent, *arrived;  /* heads on their way to other ranks, and from them */
    struct tensor *branch;          /* partial sums of a branch before and after they are reduced */
    /* backward */
    struct tensor *d, *d_full; /* gradient of the layer's output; gathered, that of the second branch's */
    struct tensor *d_branch;   /* gradient of a branch's output where it is not that of the sum: behind dropout */
    struct tensor *d_act, *d_up, *d_n2, *d_x2, *context_again;
    struct tensor *d2, *d2_full, *d_context, *d_qkv, *d_n1;
    struct tensor *d_apart[PARTS_MAX], *d_gate; /* gradients of what is apart */
    struct tensor *d_parts[PARTS_MAX];          /* what matrices apart give for the gradient of their input */
    struct latent_state latent;
    struct mixer_state mixer;
    struct mixture_state mixture;
};

/* Of this rank's tokens; and, where context parallelism exchanges heads, what attention has of the tokens of several ranks:
 * queries, keys and values, what it gives, and their gradients. */
struct layer_states {
    struct layer_state own, swapped;
};

struct head_state {
    struct tensor *x, *mean, *rstd, *n, *n_full, *logits, *max, *sums, *d_n;
    struct tensor *d_w; /* fp32, where the loss makes it: the output matrix's gradient of this micro-batch */
};

/* A prediction module around its layer: [0] the embedding of a later token, [1] the state of the depth before. */
struct prediction_state {
    struct tensor *x[2], *mean[2], *rstd[2];
    struct tensor *n, *n_full; /* both norms' results side by side */
    struct tensor *columns;    /* of the product that this rank has; on the way back, their gradient */
    struct tensor *d_full, *d_n;
    struct tensor *d; /* gradient of the embedding */
    struct head_state head;
};

/* One micro-batch in one model chunk. */
struct pass_state {
    struct tensor *x;       /* what the next layer reads; at the end, what the next stage gets */
    struct tensor *d;       /* the same on the way back */
    struct tensor *d_state; /* gradient of what a depth hands to the next prediction module */
    struct layer_states *layers;
    struct head_state head;
    struct prediction_state *predictions; /* [modules of this chunk] */
    struct tensor *fresh;                 /* a weight gradient on its way to the others, fp32 */
    float *fresh_to;
};

enum { GATHERED_MAX = 64 };

/*
 * What the memory of the host has of a unit (host_states.c): the states of the first `n` of the elements that are updated here,
 * and the weights themselves of the first `fetched` of those, which come up for each gather. The rest stays on the device.
 */
struct host_share {
    int64_t n, fetched;
    float *master, *m, *v, *gradients; /* [n] in host memory */
    void *weights;                     /* [n] in the device's precision, what goes up; master itself in fp32 */
    bool has_sum;                      /* gradients of this step are there, behind `left` */
    struct device_event *left;
    struct tensor *sum;                   /* [n] on the device: they came up for more to be added */
    struct tensor *arrived[GATHERED_MAX]; /* own slices that were fetched and wait for their gathers, first in first out */
    int n_arrived;
};

/* One unit of weights on this rank. `owned` elements from `first` on are updated here: all of them, or this rank's slice. Of
 * those the last owned - host.n have their states on the device. */
struct unit_state {
    const struct unit *unit;
    int64_t first, owned;
    void *weights; /* device precision, whole unit; ZeRO-3: while gathered */
    void *shard;   /* owned elements in device precision, where weights come and go from host.fetched on; or inside weights */
    float *master, *m, *v;  /* owned elements from host.n on; master may be the weights themselves (fp32) */
    float *gradients;       /* whole unit; while a pass computes them where they come and go */
    float *owned_gradients; /* owned elements; those from host.n on where the others' leave with every pass */
    struct host_share host;
    /* where weights, or gradients, come and go */
    struct tensor *gathered[GATHERED_MAX]; /* fetched ahead, first in first out */
    int n_gathered;
    struct tensor *weights_tensor, *gradients_tensor;
    struct tensor *casts[UNIT_PARAMETERS_MAX]; /* of weights in 8 bits; under ZeRO-3 while gathered */
    int64_t steps_cast;                        /* up to and without this step */
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
    nanos *pieces;      /* [n_ops] of what lies between: what its pieces took, or all of it */
    nanos *work;        /* [n_ops] of that, what had a processor (device.h, event_work) */
};

/* The beginnings and ends of an operation's pieces; n 0: it has none. */
struct piece_marks {
    int n;
    struct device_event **begin, **end; /* [n] */
};

/*
 * Pieces. What the tensor-parallel group divides of a sequence of T tokens stands on rank r of n in `slices` equal ranges, one
 * of every T / slices tokens:
 *
 *     whole  [slices][n][T / (slices n)]      of rank r: [slices][T / (slices n)]
 *
 * so that a piece, one or several slices of all ranks, is a range of the whole: one exchange brings it where one product reads
 * it, or takes it from where one product wrote it. Without pieces there is one slice: r's tokens are one range.
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
    struct communicator *side[N_GROUP_KINDS]; /* small exchanges inside computations and at the end of the step */
    struct communicator **sends, **receives;  /* [n_tags]: NULL where this rank does not send or receive with a tag */
    int n_tags;
    struct binding binding;
    struct device_event **begin, **end; /* [n_ops] */
    struct pipeline pipeline;
    struct chunk_state *chunks; /* [vpp] */
    int64_t micro_batches;
    int32_t *tokens; /* device, [2 + predictions][micro_batches][tokens]: those read, and those 1, 2, ... places further */
    double *loss;    /* device */
    float *norm;     /* device: squared gradient norm */
    float *partial;  /* device: gradients to be added up over the tensor-parallel group */
    int64_t n_partial;
    bool gradients_finished, norm_settled;
    struct device_event *finished; /* of this step's gradients: nothing is added to them any more */
    float rate;                    /* learning rate */
    float clip, dropout;
    uint64_t seed;
    int64_t step;
    /* device, context parallelism: where a row of whole sequences stands after keys and values were gathered; where a row of
     * those that attention sees stands after an exchange of heads */
    int32_t *order, *heads_order;
    float *slopes;          /* device, [heads that attention sees]: ALiBi */
    float *constant_decays; /* device, [heads of a mixer with a state], where they are the same for all tokens */
    float *update, *norms;  /* device, LAMB: an update, lengths of tensors */
    int64_t n_update, n_norms;
    struct muon *muon;       /* update_muon.c; NULL: not yet */
    bool norm_over_replicas; /* the program adds the norm up over data-parallel replicas */

    struct host_copies *host;  /* NULL: all that layers keep stays on the device */
    float *host_norm;          /* memory of the host: squared gradient norm */
    float *gathered_gradients; /* device: owned ones of a unit, for their norm */
    int64_t n_gathered_gradients;
    struct tensor *ordinary, *travelling, *quarantine; /* free ones */
    struct tensor **all;
    size_t n_all, capacity;

    enum status status;
    struct diags diags;
};

/* --- tensors.c */
struct tensor *tensor_new(struct rank *rank, size_t bytes);
/* One that travels, to be used next on `stream`. */
struct tensor *tensor_new_travelling(struct rank *rank, size_t bytes, struct device_stream *stream);
struct tensor *tensor_share(struct tensor *tensor);
struct tensor *tensor_take(struct tensor **tensor); /* *tensor becomes NULL */
/* Give up a reference, used last on `stream`; *tensor becomes NULL. NULL is fine. */
void tensor_drop(struct rank *rank, struct tensor **tensor, struct device_stream *stream);
void tensors_settle(struct rank *rank); /* a computation begins: what was given back before may be reused */
void tensors_free(struct rank *rank);
void *rank_memory(struct rank *rank, size_t bytes); /* for the whole run; NULL after a failure */

static inline void *tensor_data(struct tensor *tensor)
{
    return tensor ? tensor->data : NULL;
}

/* --- enqueueing; no-ops after a failure */
void rank_launch(struct rank *rank, struct device_stream *stream, const struct kernel_call *call);
void rank_exchange(struct rank *rank, struct communicator *communicator, struct device_stream *stream,
                   const struct exchange_call *call);
void rank_wait(struct rank *rank, struct device_event *event, struct device_stream *stream);
void rank_record(struct rank *rank, struct device_event *event, struct device_stream *stream);
enum element rank_element(const struct rank *rank); /* of activations */

/* --- host_copies.c: what layers keep, in the memory of the host. Nothing where nothing is offloaded. */
void host_copies_open(struct rank *rank);
void host_copies_close(struct rank *rank);
void host_copies_begin(struct rank *rank); /* of a step */
/* Operation i, a copy. */
void host_copies_enqueue(struct rank *rank, uint32_t i, struct device_stream *stream);
/* An operation's stream waits for all that it depends on: what the compute stream knows to be gone is given up. */
void host_copies_awaited(struct rank *rank, const struct op *op);

/* --- host_states.c: optimizer states, gradients and weights there. Nothing where nothing of the kind is. */
bool rank_offloads(const struct rank *rank);                                            /* anything at all: there are copies */
bool rank_gradients_leave(const struct rank *rank);                                     /* with every backward pass */
void host_states_plan(struct rank *rank, struct unit_state *unit);                      /* how much of a unit */
void host_states_new(struct rank *rank, struct unit_state *unit, const float *initial); /* [owned] */
void host_states_free(struct rank *rank, struct unit_state *unit);
void host_states_begin(struct rank *rank); /* of a step */
void host_states_copy(struct rank *rank, const struct op *op, struct device_stream *stream);
/* What a gather takes: this rank's slice. To be dropped on the stream of the gather. */
struct tensor *host_states_arrived(struct rank *rank, struct unit_state *unit);
/* Elements [first, first + n) of a unit's gradients that are updated here, wherever they are, to device memory or `back`. */
void host_states_gradients(struct rank *rank, const struct unit_state *unit, int64_t first, int64_t n, float *device, bool back,
                           struct device_stream *stream);
void *rank_host_memory(struct rank *rank, size_t bytes); /* zeroed, for the whole run; NULL after a failure */
void rank_copy(struct rank *rank, struct device_stream *stream, void *to, const void *from, size_t bytes);

/* --- communicators.c, constants.c: parts of opening and closing */
void rank_open_communicators(struct rank *rank);
void rank_close_communicators(struct rank *rank);
void rank_open_constants(struct rank *rank);
void rank_close_constants(struct rank *rank);
/* To device memory, which has it when this returns. */
void rank_upload(struct rank *rank, void *to, const void *from, size_t bytes);

/* --- weights.c */
void chunk_open(struct rank *rank, struct chunk_state *chunk, uint64_t seed);
void chunk_close(struct rank *rank, struct chunk_state *chunk);
struct unit_state *chunk_layer_unit(struct chunk_state *chunk, int layer);
struct unit_state *chunk_experts_unit(struct chunk_state *chunk, int layer); /* NULL: the layer has none */
/* Whether a unit is a table that the head reads, or prediction modules: the backward pass gives it gradients with the head first.
 */
bool chunk_shares_table(const struct rank *rank, const struct chunk_state *chunk, int unit);
struct unit_state *rank_table(struct rank *rank); /* the token table that this rank holds */
/* Whether a unit's weights are there only while they are used: ZeRO-3, and others have parts of them or the host has; whether its
 * gradients are only while a pass computes them. */
bool unit_weights_travel(const struct rank *rank, const struct unit_state *unit);
bool unit_gradients_travel(const struct rank *rank, const struct unit_state *unit);
void *unit_kept_weights(const struct rank *rank, const struct unit_state *unit); /* those whose states the device has */
/* A parameter's weights and gradients; NULL where the unit has no such parameter. */
void *unit_weights(const struct rank *rank, const struct unit_state *unit, enum parameter_kind kind);
float *unit_gradients(const struct unit_state *unit, enum parameter_kind kind);
/* What was gathered becomes the weights; gradients get a buffer; the weights go. No-ops where they stay. */
void unit_enter(struct rank *rank, struct unit_state *unit, bool backward, struct device_stream *stream);
void unit_leave(struct rank *rank, struct unit_state *unit, struct device_stream *stream);

/* --- replicas of weights and gradients (shards.c): operations of the data-parallel stream */
void shards_exchange(struct rank *rank, const struct op *op, struct device_stream *stream);
/* Calls `visit` with each unit of a run of layers of a chunk: that of a copy, of an update, of an exchange of weights. */
typedef void visit_unit(struct rank *rank, const struct op *op, struct unit_state *unit, struct device_stream *stream);
void shards_visit(struct rank *rank, const struct op *op, visit_unit *visit, struct device_stream *stream);

/* --- the end of the step (update.c) */
void update_exchange_norm(struct rank *rank, const struct op *op, struct device_stream *stream);
/* What clipping needs before the update of a program whose stages do not wait for the norm (program.rolling): they update first
 * and undo and repeat it where the norm, which they learn during the next step, says so. Here steps do not roll into one another,
 * so the norm is exchanged first, in front of the operation and outside its time. Nothing otherwise. */
void update_settle_norm(struct rank *rank, struct device_stream *stream);
/* An operation of the optimizer: all of it; or the norm, what the device updates, what the host does, casts. */
void update_enqueue(struct rank *rank, const struct op *op, struct device_stream *stream);
/* Elements of a unit, counted from the first that is owned; what is owned of its elements [first, first + n). */
struct element_range {
    int64_t first, n;
};
struct element_range owned_range(const struct unit_state *unit, int64_t first, int64_t n);
struct clipping update_clipping(const struct rank *rank);
/* Adam, by the device, on a range whose second moments begin at v[second_moment]. */
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
    int forgets; /* modules whose tensors the backward pass will compute again; RECOMPUTE_FULL: those of none of them */
    const struct step *step;
    const struct piece_marks *marks; /* of the step's pieces, NULL: nobody asks */
};
void step_enqueue(struct step_context *context, const struct step *step);
void layer_forward_step(struct step_context *context, const struct step *step);
void layer_backward_step(struct step_context *context, const struct step *step);
void ends_step(struct step_context *context, const struct step *step);
/* The gradient of a linear layer's weights: added to what is there by the product itself, or (gradient_sum) by a step after it.
 */
void weight_gradient(struct step_context *context, struct linear_call call);
void gradient_sum_step(struct step_context *context);

/* --- pipelined.c: steps in pieces */
void pipeline_open(struct rank *rank);
void pipeline_close(struct rank *rank);
/* Around a step: an exchange in pieces runs on a stream of its own, whatever stream its operation is on. Returns that stream. */
struct device_stream *pipeline_enter(struct step_context *context, const struct step *step);
void pipeline_leave(struct step_context *context, const struct step *step);
/* Of the step under way: a linear layer's product; an all-gather or reduce-scatter of the tensor-parallel group's sequence, where
 * `call` is of the whole. */
void pipeline_launch(struct step_context *context, const struct kernel_call *call);
/* Around one piece of it, for what is divided otherwise. */
void pipeline_piece_begin(const struct step_context *context, int piece);
void pipeline_piece_end(const struct step_context *context, int piece);
void pipeline_exchange(struct step_context *context, const struct exchange_call *call);
/* The k-th of `slices` ranges of this rank's tokens: its first row among the micro-batch's. */
int64_t pipeline_row(const struct rank *rank, int k);

/* Exchanges of rows of hidden (_rows: `width`) elements over the tensor-parallel group. */
void tp_gather(struct step_context *context, struct tensor *in, struct tensor **out, const char *what);
/* Of operands in blocks of 8 bits what products read of it: along rows the forward pass and the input's gradient, along columns
 * the weights' gradient. */
enum gathered { GATHERED_ROWS, GATHERED_COLUMNS, GATHERED_BOTH };
void tp_gather_rows(struct step_context *context, struct tensor *in, struct tensor **out, int64_t width, enum gathered read,
                    const char *what);
/* Sum over the group: *tensor becomes what this rank keeps of it. */
void tp_reduce(struct step_context *context, struct tensor **tensor, const char *what);
void tp_reduce_rows(struct step_context *context, struct tensor **tensor, int64_t width, const char *what);
/* A norm of rows of this rank's tokens; its results are made. */
struct norm_tensors {
    enum parameter_kind gain;
    struct tensor *x, **mean, **rstd, **y;
};
void step_norm_forward(struct step_context *c, const struct unit_state *unit, struct norm_tensors n);
struct norm_gradients {
    enum parameter_kind gain;
    struct tensor *dy, *x, *mean, *rstd, *add, *dx; /* add: another gradient of x, NULL: none */
};
void step_norm_backward(struct step_context *c, const struct unit_state *unit, struct norm_gradients n);
/* The output of a chunk, when it is sent, travels. */
struct tensor *output_new(struct step_context *context, bool forward, bool last_of_chunk);

#endif
