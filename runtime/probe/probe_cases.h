/*
 * probe_cases.h - the cases of a probe: which kernels and exchanges it runs, with which operands (private to runtime/probe).
 *
 * Example: the cases of a linear layer from 64 to 256 elements, for 128 tokens.
 *
 *     probe_cases_make(&options, device, &cases);               items[0] does nothing: the least time of an operation
 *     probe_add_products(&cases, 1, true, 128, 64, 256);        forward, input gradient, weight gradient
 *     call = probe_case_place(&cases.items[1], buffers, cases.element_bytes);        the kernel call, with operands
 *     probe_cases_free(&cases);
 */
#ifndef MSIM_RUNTIME_PROBE_PROBE_CASES_H
#define MSIM_RUNTIME_PROBE_PROBE_CASES_H

#include "runtime/base/parameters.h"
#include "runtime/layer/casts.h"
#include "runtime/probe/probe.h"

enum { PROBE_BUFFERS = 8 };
enum { HOST_UPDATE_ARRAYS = 5 };      /* weights, two moments, gradients, weights of the device */
enum { PROBE_SHORT_EXCHANGE = 1024 }; /* elements: an exchange whose time is its constant part */

/* An even spread of copies over experts, or of tokens over a vocabulary, as integers in device memory (probe_routing_fill). */
struct probe_routing {
    int64_t copies; /* 0: the case needs none */
    int experts;
};

struct probe_case {
    struct probe_row row;
    bool is_exchange;
    bool of_weights;         /* an exchange of weights or their gradients: no kernel has just written the data */
    bool travels;            /* of_weights: weights are gathered in separate memory, and reduced gradients are added to others */
    bool to_host;            /* a copy of the first operand to the memory of the host */
    bool by_host;            /* an update by the host's cores, in the memory of the host */
    bool extras;             /* with the optional operands: a bias and its gradient, the gradient that bypassed a norm */
    struct kernel_call call; /* without buffers */
    struct exchange_call exchange;
    struct probe_routing routing;
};

struct probe_cases {
    struct device *device; /* the probed one */
    struct probe_case *items;
    int n_items;
    size_t capacity;
    size_t buffer_bytes;         /* the largest operand of any case */
    size_t weight_bytes;         /* weights of all layers here, used between two uses of one weight; 0: none */
    size_t copied_bytes;         /* bytes used between two uses of an operand that is copied to the host */
    size_t host_bytes;           /* host memory for copies or for an update; 0: none */
    size_t element_bytes;        /* of activations */
    struct narrow_recipe recipe; /* of the products that are added next */
};

void probe_cases_make(const struct probe_options *options, struct device *device, struct probe_cases *cases);
/* The cases of a job (probe_job.c). */
void probe_cases_of_job(const struct probe_options *options, struct probe_cases *cases);

/* --- probe_kernels.c */

/* A case of `op` whose largest operand has that many bytes; the caller fills in the rest. The pointer holds until the next. */
struct probe_case *probe_add(struct probe_cases *cases, const char *op, size_t bytes);
/* The three products of a linear layer, each executed `times` times. */
void probe_add_products(struct probe_cases *cases, double times, bool biased, int64_t t, int64_t in, int64_t out);
void probe_add_attention(struct probe_cases *cases, const struct attention_call *shape);
/* The same with query_range_call: whole sequences; strides are replaced by those of the buffers. */
void probe_add_query_range(struct probe_cases *cases, const struct query_range_call *shape);
/* A streaming kernel: `passes` passes over an operand of `operand` elements, executed `times` times in an operation of `part`. */
struct probe_case *probe_add_streaming(struct probe_cases *cases, struct kernel_call call, enum memory_kernel part, double times,
                                       const char *op, int64_t operand, double passes);
/* Sets the routing that a case reads as integers. */
void probe_case_route(struct probe_cases *cases, struct probe_case *c, struct probe_routing routing);
void probe_add_copy(struct probe_cases *cases, int64_t operand);
/* A copy of that many elements to the memory of the host; a copy back is assumed to have the same time. */
void probe_add_host_copy(struct probe_cases *cases, int64_t operand);
/* An update of that many parameters by the host's cores; the row's bytes are those that the cost model counts. */
void probe_add_host_update(struct probe_cases *cases, const struct job *job, int64_t parameters);
/* Casts of an operand [rows, cols] to 8 bits, by cases->recipe; adds nothing without one. */
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

/* One exchange of that many elements, executed `times` times per micro-batch; probe_add_exchanges: one of each kind. */
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

/* The kernels of this layer's mixer with a state (probe_mixer.c). */
void probe_add_mixer(struct probe_cases *cases, double times, const struct layout *layout, const struct setting *setting,
                     const struct shape *shape, int layer);
void probe_place_mixer(struct kernel_call *call, void *const buffers[PROBE_BUFFERS]);

void probe_cases_free(struct probe_cases *cases);
/* Numbers in [-0.5, 0.5) of 4 bytes, or of 2 (bf16); positive ones in the buffer of second moments, zeros in that of tokens. */
void probe_buffer_fill(void *buffer, size_t bytes, size_t element_bytes, int which);
/* integers[probe_routing_integers]: what the first buffer holds while such a case runs; zeros otherwise. */
int64_t probe_routing_integers(const struct probe_routing *routing);
void probe_routing_fill(const struct probe_routing *routing, int32_t *integers);
/* The call of a case, with its operands in the buffers. */
struct kernel_call probe_case_place(const struct probe_case *c, void *const buffers[PROBE_BUFFERS], size_t element_bytes);
/* Whether a buffer holds weights, their gradients or moments. Such buffers have weight_bytes. */
bool probe_holds_weights(int buffer);
/* Lets a product or an update use the weights of layer number `turn`, modulo the layers that fit the buffers. */
void probe_case_turn(struct kernel_call *call, size_t weight_bytes, size_t element_bytes, uint64_t turn);
/* The exchange of a case, for member `me`. */
struct exchange_call probe_exchange_place(const struct probe_case *c, int me, void *const buffers[PROBE_BUFFERS],
                                          size_t weight_bytes, uint64_t turn);

#endif
