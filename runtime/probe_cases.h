/*
 * probe_cases.h - what a probe runs (private to the runtime). The first case does nothing: it is what an operation costs at
 * least.
 */
#ifndef MSIM_RUNTIME_PROBE_CASES_H
#define MSIM_RUNTIME_PROBE_CASES_H

#include "runtime/comm.h"
#include "runtime/probe.h"

enum { PROBE_BUFFERS = 8 };

/* An even spread of copies over experts, as integers in device memory (probe_routing_fill). */
struct probe_routing {
    int64_t copies; /* 0: the case needs none */
    int experts;
};

struct probe_case {
    struct probe_row row;
    bool is_exchange;
    struct kernel_call call; /* without buffers */
    struct exchange_call exchange;
    struct probe_routing routing;
};

struct probe_cases {
    struct probe_case *items;
    int n_items;
    size_t capacity;
    size_t buffer_bytes;  /* the largest operand of any case */
    size_t element_bytes; /* of activations */
};

void probe_cases_make(const struct probe_options *options, size_t element_bytes, struct probe_cases *cases);
/* That Adam moves per parameter. */
double probe_adam_bytes(size_t element_bytes);
void probe_cases_free(struct probe_cases *cases);
/* Numbers in [-0.5, 0.5) of 4 bytes, or of 2 (bf16); positive ones in the buffer of second moments, zeros in that of tokens. */
void probe_buffer_fill(void *buffer, size_t bytes, size_t element_bytes, int which);
/* integers[probe_routing_integers]: what the first buffer holds while such a case runs; zeros otherwise. */
int64_t probe_routing_integers(const struct probe_routing *routing);
void probe_routing_fill(const struct probe_routing *routing, int32_t *integers);
/* Point the operands of a case's call to buffers. */
struct kernel_call probe_case_place(const struct probe_case *c, void *const buffers[PROBE_BUFFERS], size_t element_bytes);

#endif
