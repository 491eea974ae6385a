#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/kernels/kernel_device.h"

enum { GUARD_PATTERN = 0xa5 };

static void *host_new(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 256, bytes) != 0)
        abort();
    return memory;
}

static void host_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

const struct kernel_device kernel_device_host = {
    .memory_new = host_new, .memory_free = free, .copy_in = host_copy, .copy_out = host_copy};

static size_t device_bytes(const struct operand *operand)
{
    return operand->count * operand_element_bytes(operand, true);
}

/* Bytes of the guard in front of it, and of all with both guards. */
static size_t front_bytes(const struct operand *operand)
{
    return GUARD_BYTES + operand->displaced;
}

static size_t block_bytes(const struct operand *operand)
{
    return front_bytes(operand) + device_bytes(operand) + GUARD_BYTES;
}

/* Guard, elements as the device holds them, guard. */
static void pack(const struct operand *operand, char *block)
{
    size_t bytes = device_bytes(operand);
    char *data = block + front_bytes(operand);
    memset(block, GUARD_PATTERN, front_bytes(operand));
    memset(data + bytes, GUARD_PATTERN, GUARD_BYTES);
    if (operand->role == ROLE_OUT) {
        memset(data, 0xff, bytes);
    } else if (operand->type == OPERAND_ACTIVATION) {
        uint16_t *to = (uint16_t *)data;
        for (size_t i = 0; i < operand->count; i++)
            to[i] = bf16_of_float(((const float *)operand_data(operand))[i]);
    } else {
        memcpy(data, operand_data(operand), bytes);
    }
}

void kernel_run_prepare(struct kernel_run *run, const struct kernel_case *c, const struct kernel_device *device)
{
    void *buffers[MAX_OPERANDS];
    memset(run, 0, sizeof *run);
    run->device = device;
    run->c = c;
    for (int i = 0; i < c->n_operands; i++) {
        size_t bytes = block_bytes(&c->operands[i]);
        run->fetched[i] = memory_new(1, bytes);
        run->blocks[i] = device->memory_new(bytes);
        pack(&c->operands[i], run->fetched[i]);
        device->copy_in(run->blocks[i], run->fetched[i], bytes);
        buffers[i] = (char *)run->blocks[i] + front_bytes(&c->operands[i]);
    }
    kernel_case_bind(c, &run->call, buffers);
}

void kernel_run_fetch(struct kernel_run *run)
{
    for (int i = 0; i < run->c->n_operands; i++)
        run->device->copy_out(run->fetched[i], run->blocks[i], block_bytes(&run->c->operands[i]));
}

static bool guarded(const struct operand *operand, const char *block)
{
    const unsigned char *before = (const unsigned char *)block, *after = before + front_bytes(operand) + device_bytes(operand);
    for (size_t i = 0; i < front_bytes(operand); i++)
        if (before[i] != GUARD_PATTERN)
            return false;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (after[i] != GUARD_PATTERN)
            return false;
    return true;
}

bool kernel_run_check(const struct kernel_run *run, char *why, size_t size)
{
    for (int i = 0; i < run->c->n_operands; i++) {
        const struct operand *operand = &run->c->operands[i];
        if (!guarded(operand, run->fetched[i])) {
            snprintf(why, size, "wrote beside %s", operand->name);
            return false;
        }
        double error = operand_error(operand, run->fetched[i] + front_bytes(operand));
        double allowed = operand->role == ROLE_IN ? 0 : kernel_tolerance(run->c->call.kernel) * fmax(1, run->c->amplification);
        if (!isfinite(allowed)) {
            snprintf(why, size, "%s has no bound: terms are %g times sums", operand->name, run->c->amplification);
            return false;
        }
        if (!(error <= allowed)) {
            snprintf(why, size, "%s is off by %.2e, allowed %.0e", operand->name, error, allowed);
            return false;
        }
    }
    return true;
}

double kernel_run_error(const struct kernel_run *run)
{
    double most = 0;
    for (int i = 0; i < run->c->n_operands; i++) {
        double error = operand_error(&run->c->operands[i], run->fetched[i] + front_bytes(&run->c->operands[i]));
        most = error > most ? error : most;
    }
    return most;
}

double kernel_run_error_of(const struct kernel_run *run, const char *operand)
{
    for (int i = 0; i < run->c->n_operands; i++)
        if (strcmp(run->c->operands[i].name, operand) == 0)
            return operand_error(&run->c->operands[i], run->fetched[i] + front_bytes(&run->c->operands[i]));
    return INFINITY;
}

bool kernel_run_equal(const struct kernel_run *a, const struct kernel_run *b)
{
    for (int i = 0; i < a->c->n_operands; i++)
        if (memcmp(a->fetched[i], b->fetched[i], block_bytes(&a->c->operands[i])) != 0)
            return false;
    return true;
}

void kernel_run_free(struct kernel_run *run)
{
    for (int i = 0; i < run->c->n_operands; i++) {
        run->device->memory_free(run->blocks[i]);
        free(run->fetched[i]);
    }
}
