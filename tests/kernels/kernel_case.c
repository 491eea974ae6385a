#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_draw.h"

enum { GUARD_PATTERN = 0x5a };

float float_of_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t bf16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static size_t host_element_bytes(enum operand_type type)
{
    return type == OPERAND_DOUBLE ? 8 : type == OPERAND_SCRATCH || type == OPERAND_BYTE ? 1 : 4;
}

size_t operand_element_bytes(const struct operand *operand, bool device)
{
    return device && operand->type == OPERAND_ACTIVATION ? 2 : host_element_bytes(operand->type);
}

void *operand_data(const struct operand *operand)
{
    return operand->block + GUARD_BYTES;
}

/* --- drawing */

static void draw_operands(struct draw *d)
{
    switch (d->kernel) {
#define X(ID, stem, of)                                                                                                          \
    case KERNEL_##ID: draw_##of(d); break;
        KERNELS(X, X) /* NOLINT(bugprone-branch-clone): a row for each kernel; some draw alike */
#undef X
    case N_KERNELS: break;
    }
}

/* A few elements on, so that kernels' vectors have to notice. Scratch is as aligned as it is promised to be. */
static void displace(struct draw *d)
{
    if (draw_between(d, 0, 2) > 0)
        return;
    for (int i = 0; i < d->c->n_operands; i++) {
        struct operand *operand = &d->c->operands[i];
        if (operand->type != OPERAND_SCRATCH)
            operand->displaced = operand_element_bytes(operand, true) * (size_t)draw_between(d, 0, 7);
    }
}

void kernel_case_align(struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++)
        c->operands[i].displaced = 0;
}

void kernel_case_draw(struct kernel_case *c, enum kernel kernel, struct random_stream *random, int64_t size)
{
    struct draw d = {.kernel = kernel, .c = c, .random = random, .size = size};
    memset(c, 0, sizeof *c);
    draw_operands(&d);
    displace(&d); /* last: sizes do not depend on it */
    c->call.kernel = kernel;
    kernel_case_poison(c);
}

void kernel_case_free(struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++)
        free(c->operands[i].block);
    c->n_operands = 0;
}

/* --- running and comparing */

static size_t data_bytes(const struct operand *operand)
{
    return operand->count * host_element_bytes(operand->type);
}

void kernel_case_poison(struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        struct operand *operand = &c->operands[i];
        memset(operand->block, GUARD_PATTERN, GUARD_BYTES);
        memset(operand->block + GUARD_BYTES + data_bytes(operand), GUARD_PATTERN, GUARD_BYTES);
        if (operand->role == ROLE_OUT)
            memset(operand_data(operand), 0xff, data_bytes(operand)); /* NaN as fp32, fp64 and bf16 */
    }
}

static bool is_pattern(const char *bytes)
{
    for (int i = 0; i < GUARD_BYTES; i++)
        if (bytes[i] != GUARD_PATTERN)
            return false;
    return true;
}

const char *kernel_case_guards(const struct kernel_case *c)
{
    for (int i = 0; i < c->n_operands; i++) {
        const struct operand *operand = &c->operands[i];
        if (!is_pattern(operand->block) || !is_pattern(operand->block + GUARD_BYTES + data_bytes(operand)))
            return operand->name;
    }
    return NULL;
}

void kernel_case_bind(const struct kernel_case *c, struct kernel_call *call, void *const *buffers)
{
    *call = c->call;
    for (int i = 0; i < c->n_operands; i++)
        for (int j = 0; j < c->operands[i].n_slots; j++)
            memcpy((char *)call + c->operands[i].slots[j], &buffers[i], sizeof buffers[i]);
}

void kernel_case_reference(struct kernel_case *c)
{
    kernel_reference_run(&c->call);
}

static double element(const struct operand *operand, const void *data, size_t i, bool device)
{
    switch (operand->type) {
    case OPERAND_ACTIVATION: return (double)(device ? float_of_bf16(((const uint16_t *)data)[i]) : ((const float *)data)[i]);
    case OPERAND_FLOAT: return (double)((const float *)data)[i];
    case OPERAND_DOUBLE: return ((const double *)data)[i];
    case OPERAND_INT32: return ((const int32_t *)data)[i];
    case OPERAND_BYTE: return ((const uint8_t *)data)[i];
    case OPERAND_SCRATCH: return 0;
    }
    return 0;
}

double operand_error(const struct operand *expected, const void *got)
{
    double square = 0, scale = 0;
    for (size_t i = 0; i < expected->count; i++) {
        double want = element(expected, operand_data(expected), i, false), have = element(expected, got, i, true);
        double difference = have - want;
        if (have == want) /* infinite, too */
            difference = 0;
        if (isinf(want))
            want = 0;
        if (isnan(difference))
            return INFINITY;
        square += difference * difference;
        scale += want * want;
    }
    if (square == 0)
        return 0;
    return scale > 0 ? sqrt(square / scale) : INFINITY;
}

/* One rounding to bf16 is a relative error of at most 2^-9, about 2e-3 on average. */
double kernel_tolerance(enum kernel kernel)
{
    switch (kernel) {
    case KERNEL_LARGEST:
    case KERNEL_QUANTISE:
    case KERNEL_QUANTISE_BLOCKS:
    case KERNEL_ZERO:
    case KERNEL_COPY:
    case KERNEL_EXPERT_SORT:
    case KERNEL_EXPERT_ARRIVALS: return 0;
    case KERNEL_ATTENTION_FORWARD: return 8e-3;
    case KERNEL_QUERY_RANGE_BACKWARD:
    case KERNEL_ATTENTION_BACKWARD: return 2e-2; /* p and ds are rounded before the products that sum them */
    case KERNEL_LOGITS_MAX: return 0;
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_LOSS:
    case KERNEL_SQUARE_SUM:
    case KERNEL_COLUMN_SUM:
    case KERNEL_EMBEDDING_BACKWARD: return 1e-5;
    default: return 4e-3;
    }
}
