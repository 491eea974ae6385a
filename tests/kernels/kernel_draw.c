#include "tests/kernels/kernel_draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

int64_t draw_between(struct draw *d, int64_t low, int64_t high)
{
    return low + (int64_t)random_below(d->random, (uint64_t)(high - low + 1));
}

bool draw_coin(struct draw *d)
{
    return random_below(d->random, 2) == 1;
}

int64_t draw_width(struct draw *d)
{
    int64_t n = draw_between(d, 1, d->size);
    return draw_between(d, 0, 3) == 0 ? n : (n + 7) / 8 * 8;
}

float draw_value(struct draw *d, double low, double high)
{
    return float_of_bf16(bf16_of_float((float)(low + (high - low) * random_uniform(d->random))));
}

struct operand *draw_operand(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot,
                             int64_t count)
{
    struct operand *operand = &d->c->operands[d->c->n_operands++];
    *operand = (struct operand){.name = name, .type = type, .role = role, .count = (size_t)count, .slots = {slot}, .n_slots = 1};
    operand->block = memory_new(1, 2 * GUARD_BYTES + operand->count * (type == OPERAND_DOUBLE    ? sizeof(double)
                                                                       : type == OPERAND_SCRATCH ? 1
                                                                                                 : sizeof(float)));
    void *data = operand_data(operand);
    memcpy((char *)&d->c->call + slot, &data, sizeof data);
    return operand;
}

float *draw_numbers(struct draw *d, const char *name, enum operand_type type, enum operand_role role, size_t slot, int64_t count,
                    double low, double high)
{
    float *data = operand_data(draw_operand(d, name, type, role, slot, count));
    for (int64_t i = 0; i < count; i++)
        data[i] = draw_value(d, low, high);
    return data;
}

void draw_alias(struct draw *d, const char *name, size_t slot)
{
    for (int i = 0; i < d->c->n_operands; i++) {
        struct operand *operand = &d->c->operands[i];
        if (strcmp(operand->name, name) != 0)
            continue;
        void *data = operand_data(operand);
        operand->role = ROLE_IN_OUT;
        operand->slots[operand->n_slots++] = slot;
        memcpy((char *)&d->c->call + slot, &data, sizeof data);
    }
}

void draw_text(struct draw *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->c->text, sizeof d->c->text, format, args);
    va_end(args);
}

int32_t *draw_indices(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below)
{
    int32_t *data = operand_data(draw_operand(d, name, OPERAND_INT32, ROLE_IN, slot, count));
    for (int64_t i = 0; i < count; i++)
        data[i] = (int32_t)draw_between(d, 0, below - 1);
    return data;
}

int32_t *draw_places(struct draw *d, const char *name, size_t slot, int64_t count, int64_t below)
{
    int32_t *data = operand_data(draw_operand(d, name, OPERAND_INT32, ROLE_IN, slot, count));
    int32_t *all = memory_new((size_t)below, sizeof *all);
    for (int64_t i = 0; i < below; i++)
        all[i] = (int32_t)i;
    for (int64_t i = 0; i < count; i++) {
        int64_t j = draw_between(d, i, below - 1);
        data[i] = all[j];
        all[j] = all[i];
    }
    free(all);
    return data;
}

void draw_clipping(struct draw *d, size_t square, float *most)
{
    if (draw_coin(d))
        return;
    *(float *)operand_data(draw_operand(d, "square", OPERAND_FLOAT, ROLE_IN, square, 1)) = 4;
    *most = draw_coin(d) ? 1.5f : 3;
}

/* Scales around 1. */
void draw_narrow(struct draw *d, const char *name, size_t slot, size_t as, int64_t rows, int64_t cols, struct narrow_operand how)
{
    uint8_t *bytes = operand_data(draw_operand(d, name, OPERAND_BYTE, ROLE_IN, slot, rows * cols));
    int64_t blocks = narrow_blocks(rows, cols, how.down);
    bool one = how.scale != NULL;
    for (int64_t i = 0; i < rows * cols; i++)
        bytes[i] = narrow_from_float((float)(random_uniform(d->random) * 2 - 1), how.format);
    how.scale = NULL;
    memcpy((char *)&d->c->call + as, &how, sizeof how);
    if (one) {
        float *scale =
            operand_data(draw_operand(d, "scale", OPERAND_FLOAT, ROLE_IN, as + offsetof(struct narrow_operand, scale), 1));
        *scale = draw_coin(d) ? 0.5f : 2;
        return;
    }
    uint8_t *powers =
        operand_data(draw_operand(d, "blocks", OPERAND_BYTE, ROLE_IN, as + offsetof(struct narrow_operand, blocks), blocks));
    for (int64_t i = 0; i < blocks; i++)
        powers[i] = (uint8_t)draw_between(d, 125, 129);
}

void draw_rounded(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        values[i] = float_of_bf16(bf16_of_float(values[i]));
}
