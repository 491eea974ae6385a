/*
 * kernel_draw.h - how cases are drawn (private to kernel_case.c's library): numbers, operands, and one function per kind of call.
 */
#ifndef MSIM_TESTS_KERNELS_KERNEL_DRAW_H
#define MSIM_TESTS_KERNELS_KERNEL_DRAW_H

#include "model/base/status.h"
#include "tests/kernels/kernel_case.h"

struct draw {
    enum kernel kernel;
    struct kernel_case *c;
    struct random_stream *random;
    int64_t size;
};

int64_t draw_between(struct draw *d, int64_t low, int64_t high);
bool draw_coin(struct draw *d);
/* A width: mostly multiples of 8 (the vector path), sometimes not. */
int64_t draw_width(struct draw *d);
/* Exact in bf16. */
float draw_value(struct draw *d, double low, double high);
/* A buffer of the case whose pointer stands at `slot` of the call. */
struct operand *draw_operand(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot,
                             int64_t count);
float *draw_numbers(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot, int64_t count,
                    double low, double high);
/* The operand is in and out at once: its pointer stands in a second place. */
void draw_alias(struct draw *d, const char *name, size_t slot);
/* Sizes and switches, for messages. */
void draw_text(struct draw *d, const char *format, ...) PRINTF_LIKE(2, 3);
int32_t *draw_indices(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below);
/* Distinct places: a permutation of `count` out of `below`. */
int32_t *draw_places(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below);
/* Sometimes a norm of 2 that has to become shorter, or need not. */
void draw_clipping(struct draw *d, size_t square, float *most);
/* An operand [rows, cols] of bytes at `slot`, `as` says what they mean in the call: none of them infinite or no number, with one
 * scale, or in blocks. */
void draw_narrow(struct draw *d, const char *name, size_t slot, size_t as, int64_t rows, int64_t cols, struct narrow_operand how);
/* As a device would have left them. */
void draw_rounded(float *values, int64_t n);

#define SLOT(field)                   offsetof(struct kernel_call, field)
#define IN(name, slot, n)             draw_numbers(d, name, OPERAND_ACTIVATION, ROLE_IN, SLOT(slot), n, -1, 1)
#define OUT(name, slot, n)            draw_numbers(d, name, OPERAND_ACTIVATION, ROLE_OUT, SLOT(slot), n, -1, 1)
#define FLOATS(name, role, slot, n)   draw_numbers(d, name, OPERAND_FLOAT, role, SLOT(slot), n, -1, 1)
#define POSITIVE(name, role, slot, n) draw_numbers(d, name, OPERAND_FLOAT, role, SLOT(slot), n, 0.01, 1)

/* One function per struct of a call, named like its member of kernel_call: draw_norm_forward, draw_linear, ... They stand in
 * kernel_draw_dense.c, kernel_draw_mixture.c and kernel_draw_mixer.c. */
#define X(ID, stem, of) void draw_##of(struct draw *d);
KERNELS(X, X)
#undef X
/* Of calls whose sizes are there. */
void draw_query_range_operands(struct draw *d);
void draw_scan_operands(struct draw *d);

#endif
