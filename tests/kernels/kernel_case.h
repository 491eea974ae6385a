/*
 * kernel_case.h - a random but valid call of any kernel, with every buffer described, so that one loop can check them all.
 *
 * Values are drawn so that they are exact in bf16 where the operand is an activation: the reference and the device then start
 * from the same numbers. What a kernel expects of an earlier one (statistics of a norm, log-sum-exp of attention, sums of the
 * loss) is computed by the references.
 *
 * Life of a case: draw it; run the reference on it; place copies of the operands elsewhere (a device), run there, compare. A case
 * owns its buffers.
 */
#ifndef MSIM_TESTS_KERNELS_KERNEL_CASE_H
#define MSIM_TESTS_KERNELS_KERNEL_CASE_H

#include "kernels/kernels.h"
#include "model/base/random.h"

enum operand_type { OPERAND_ACTIVATION, OPERAND_FLOAT, OPERAND_DOUBLE, OPERAND_INT32, OPERAND_BYTE, OPERAND_SCRATCH };
enum operand_role { ROLE_IN, ROLE_OUT, ROLE_IN_OUT };

enum { MAX_OPERANDS = 16, MAX_SLOTS = 2, GUARD_BYTES = 256 };

struct operand {
    const char *name;
    enum operand_type type;
    enum operand_role role;
    size_t count;            /* elements; bytes of scratch */
    size_t slots[MAX_SLOTS]; /* where in the call its pointer stands: offsets into struct kernel_call */
    int n_slots;
    size_t displaced; /* bytes from a multiple of 256 to where it begins on the device, whole elements */
    char *block;      /* guard, elements (fp32 for activations), guard */
};

struct kernel_case {
    struct kernel_call call;
    struct operand operands[MAX_OPERANDS];
    int n_operands;
    /* How much larger terms are than the sums that results are, where not 0: so much larger is what they may be off by. */
    double amplification;
    char text[160]; /* sizes and switches, for messages */
};

/* Sizes up to about `size` (tokens, widths), attention's heads up to 256 whatever it is. */
void kernel_case_draw(struct kernel_case *c, enum kernel kernel, struct random_stream *random, int64_t size);
void kernel_case_free(struct kernel_case *c);
/* KERNEL_LINEAR_* of bytes, with one scale or scales of blocks, in sizes that tensor cores take. `scratch_bytes`: what the device
 * needs (linear_narrow_scratch). */
void kernel_case_draw_bytes(struct kernel_case *c, enum kernel kernel, bool in_blocks,
                            size_t (*scratch_bytes)(enum kernel kernel, const struct linear_call *call),
                            struct random_stream *random);

/* KERNEL_SCAN_* with one decay a head, of these sizes, with the delta rule or without; with `heads` 0 two for each of `groups`
 * keys. `packed`: nothing lies between tokens. A third have constant decays. */
void kernel_case_draw_scan(struct kernel_case *c, enum kernel kernel, struct scan_call scan, bool packed,
                           struct random_stream *random);
/* One of N_CHUNKED sizes of those that a device does by chunks of tokens, in CHUNKED_WAYS each: states of every width of tiles,
 * just held and just not, columns of several blocks and of a part of one, single heads, no vectors, ends anywhere in one. */
enum { N_CHUNKED = 12, CHUNKED_WAYS = 4 };
/* The most by which terms may exceed sums in these: of the delta rule up to 1.9 in 9,600 draws. A program that draws more ends:
 * so large a bound, or none where outputs cancel to nothing, would pass what is wrong. */
#define CHUNKED_AMPLIFICATION 3
void kernel_case_draw_chunked(struct kernel_case *c, enum kernel kernel, int number, bool delta, struct random_stream *random);

/*
 * Of the delta rule with one decay a head: how much larger the terms of outputs by chunks of 64 tokens are than outputs, sqrt(sum
 * of terms^2 / sum of y^2), at least 1. What tokens write are differences from what was there. Where the same keys come again and
 * little is forgotten they cancel one another, and the error of each that is rounded stays: a rounding to bf16 is 1.6e-3 of the
 * terms on average, not of the outputs. There are six (kernels/scan_chunks.cu: weights, what is written, X, what X multiplies,
 * keys on their way to the state, the state), so 3.9e-3 of terms.
 */
double scan_amplification(const struct scan_call *call);

/* Every operand begins at a multiple of 256 on the device, as the runtime's do; of drawn ones a third begin anywhere. */
void kernel_case_align(struct kernel_case *c);

/* Fills outputs with NaN and guards with a pattern. */
void kernel_case_poison(struct kernel_case *c);
/* Sets the pointers of `call` (a copy of c->call) to `buffers`, one per operand. */
void kernel_case_bind(const struct kernel_case *c, struct kernel_call *call, void *const *buffers);
/* Runs the reference on the case's own buffers. */
void kernel_case_reference(struct kernel_case *c);
/* Name of the first operand whose guards changed, or NULL. */
const char *kernel_case_guards(const struct kernel_case *c);

void *operand_data(const struct operand *operand);
size_t operand_element_bytes(const struct operand *operand, bool device);

/* ||got - expected|| / ||expected|| over an operand; `got` in the device's format (bf16 for activations); NaN counts as infinite.
 */
double operand_error(const struct operand *expected, const void *got);
/* What the error may be: 2^-8 per rounding to bf16, times what the kernel's sums make of it. */
double kernel_tolerance(enum kernel kernel);

float float_of_bf16(uint16_t bits);
uint16_t bf16_of_float(float value);

#endif
