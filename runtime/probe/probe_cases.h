/*
 * probe_cases.h - what a probe runs (private to the runtime). The first case does nothing: it is what an operation costs at
 * least.
 */
#ifndef MSIM_RUNTIME_PROBE_PROBE_CASES_H
#define MSIM_RUNTIME_PROBE_PROBE_CASES_H

#include "runtime/base/parameters.h"
#include "runtime/layer/casts.h"
#include "runtime/probe/probe.h"

enum { PROBE_BUFFERS = 8 };
enum { HOST_UPDATE_ARRAYS = 5 };      /* weights, two moments, gradients, weights of the device */
enum { PROBE_SHORT_EXCHANGE = 1024 }; /* elements: what an exchange costs whatever it carries */

/* An even spread of copies over experts, or of tokens over a vocabulary, as integers in device memory (probe_routing_fill). */
struct probe_routing {
    int64_t copies; /* 0: the case needs none */
    int experts;
};

struct probe_case {
    struct probe_row row;
    bool is_exchange;
    bool of_weights; /* an exchange of them, or of their gradients: nobody has just made what it carries */
    bool travels;    /* in that: weights are gathered in memory of their own, what gradients are reduced to is added to others */
    bool to_host;    /* a copy of the first operand to the memory of the host */
    bool by_host;    /* an update by the host's cores, in its memory */
    bool extras;     /* with what the kernel takes beside: a bias and its gradient, the gradient that went around a norm */
    struct kernel_call call; /* without buffers */
    struct exchange_call exchange;
    struct probe_routing routing;
};

struct probe_cases {
    struct device *device; /* whose kernels */
    struct probe_case *items;
    int n_items;
    size_t capacity;
    size_t buffer_bytes;         /* the largest operand of any case */
    size_t weight_bytes;         /* of all layers here: as much lies between two uses of a weight; 0: nothing does */
    size_t copied_bytes;         /* as much as lies between two uses of an operand that is copied to the host */
    size_t host_bytes;           /* that the host has for copies, or for an update; 0: there are none */
    size_t element_bytes;        /* of activations */
    struct narrow_recipe recipe; /* of the products that are added next */
};

void probe_cases_make(const struct probe_options *options, struct device *device, struct probe_cases *cases);
/* What that is made of: cases of a job (probe_job.c), and the parts of theirs. */
void probe_cases_of_job(const struct probe_options *options, struct probe_cases *cases);

/* --- probe_kernels.c */

/* A case of `op` whose largest operand has that many bytes; the caller fills in the rest. The pointer holds until the next. */
struct probe_case *probe_add(struct probe_cases *cases, const char *op, size_t bytes);
/* The three products of a linear layer, each executed that many times. */
void probe_add_products(struct probe_cases *cases, double times, bool biased, int64_t t, int64_t in, int64_t out);
void probe_add_attention(struct probe_cases *cases, const struct attention_call *shape);
/* The same by the kernels for ranges of queries: of whole sequences, whatever the call's strides. */
void probe_add_query_range(struct probe_cases *cases, const struct query_range_call *shape);
/* A kernel that streams: `passes` over an operand of that many elements, executed `times` in an operation of `part`. */
struct probe_case *probe_add_streaming(struct probe_cases *cases, struct kernel_call call, enum memory_kernel part, double times,
                                       const char *op, int64_t operand, double passes);
/* Integers that a case goes by. */
void probe_case_route(struct probe_cases *cases, struct probe_case *c, struct probe_routing routing);
void probe_add_copy(struct probe_cases *cases, int64_t operand);
/* A copy of that many elements to the memory of the host; the way back takes the same. */
void probe_add_host_copy(struct probe_cases *cases, int64_t operand);
/* An update of that many parameters by the host's cores, of the bytes that the cost model counts for it. */
void probe_add_host_update(struct probe_cases *cases, const struct job *job, int64_t parameters);
/* An operand of that many elements cast to 8 bits, by cases->recipe; nothing without one. */
void probe_add_casts(struct probe_cases *cases, int64_t rows, int64_t cols);

struct probe_layer {
    int64_t t, h;         /* rows where norms and residuals are */
    int64_t activated, f; /* rows and width of the activation */
    bool rms, gated;
};
void probe_add_norms(struct probe_cases *cases, const struct probe_layer *layer, double around);
void probe_add_activation(struct probe_cases *cases, const struct probe_layer *layer);
void probe_add_loss(struct probe_cases *cases, int64_t t, int64_t v);
void probe_add_optimizer(struct probe_cases *cases, enum optimizer optimizer, int64_t n);

/* One exchange of that many elements, executed `times` in a micro-batch; all kinds of them. */
struct probe_case *probe_add_exchange(struct probe_cases *cases, enum exchange exchange, double times, int ranks,
                                      int64_t elements);
void probe_add_exchanges(struct probe_cases *cases, int ranks, int64_t elements);

/* Experts, to which copies of tokens spread evenly. */
struct probe_experts {
    int64_t tokens, h, ffn, up; /* that are routed; of an expert here, of its first product */
    int n, local, top_k;
    int64_t copies; /* that the local ones work on */
};
void probe_add_experts(struct probe_cases *cases, double times, const struct probe_experts *experts);

/* Mixers with a state, of which this layer has one (probe_mixer.c). */
void probe_add_mixer(struct probe_cases *cases, double times, const struct layout *layout, const struct setting *setting,
                     const struct shape *shape, int layer);
void probe_place_mixer(struct kernel_call *call, void *const buffers[PROBE_BUFFERS]);

void probe_cases_free(struct probe_cases *cases);
/* Numbers in [-0.5, 0.5) of 4 bytes, or of 2 (bf16); positive ones in the buffer of second moments, zeros in that of tokens. */
void probe_buffer_fill(void *buffer, size_t bytes, size_t element_bytes, int which);
/* integers[probe_routing_integers]: what the first buffer holds while such a case runs; zeros otherwise. */
int64_t probe_routing_integers(const struct probe_routing *routing);
void probe_routing_fill(const struct probe_routing *routing, int32_t *integers);
/* Point the operands of a case's call to buffers. */
struct kernel_call probe_case_place(const struct probe_case *c, void *const buffers[PROBE_BUFFERS], size_t element_bytes);
/* Whether a buffer holds weights or what there is of each: gradients, moments. Then it has weight_bytes. */
bool probe_holds_weights(int buffer);
/* Give a product or an update the weights of the `turn`-th layer of those that fit the buffers. */
void probe_case_turn(struct kernel_call *call, size_t weight_bytes, size_t element_bytes, uint64_t turn);
/* The exchange of a case, of member `me`. */
struct exchange_call probe_exchange_place(const struct probe_case *c, int me, void *const buffers[PROBE_BUFFERS],
                                          size_t weight_bytes, uint64_t turn);

#endif
