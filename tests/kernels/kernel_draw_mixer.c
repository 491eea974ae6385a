/* kernel_draw_mixer.c - calls of mixers with a state. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/kernel_draw.h"

/* Elements from one token to the next: sometimes more than there are, and what lies between is nobody's to write. */
static int64_t draw_row(struct draw *d, int64_t width)
{
    return width + (draw_coin(d) ? draw_between(d, 1, 3) * 8 : 0);
}

static void draw_strided(struct draw *d, const char *name, bool written, size_t slot, int64_t t, int64_t row)
{
    draw_numbers(d, name, OPERAND_ACTIVATION, written ? ROLE_IN_OUT : ROLE_IN, slot, t * row, -1, 1);
}

void draw_convolution(struct draw *d)
{
    struct convolution_call *call = &d->c->call.convolution;
    *call = (struct convolution_call){.batch = draw_between(d, 1, 3),
                                      .seq_len = draw_between(d, 1, d->size),
                                      .channels = draw_width(d),
                                      .taps = (int)draw_between(d, 0, 5)};
    int64_t t = call->batch * call->seq_len;
    call->x_row = draw_row(d, call->channels);
    bool backward = d->kernel == KERNEL_CONVOLUTION_BACKWARD, biased = call->taps > 0 && draw_coin(d);
    draw_text(d, "batch %lld seq_len %lld channels %lld taps %d x_row %lld", (long long)call->batch, (long long)call->seq_len,
              (long long)call->channels, call->taps, (long long)call->x_row);
    draw_strided(d, "x", false, SLOT(convolution.x), t, call->x_row);
    if (call->taps)
        IN("w", convolution.w, call->channels * call->taps);
    if (biased)
        IN("bias", convolution.bias, call->channels);
    if (!backward) {
        OUT("y", convolution.y, t * call->channels);
        return;
    }
    IN("dy", convolution.dy, t * call->channels);
    draw_strided(d, "dx", true, SLOT(convolution.dx), t, call->x_row);
    if (call->taps)
        FLOATS("dw", ROLE_IN_OUT, convolution.dw, call->channels * call->taps);
    if (biased)
        FLOATS("dbias", ROLE_IN_OUT, convolution.dbias, call->channels);
}

void draw_gates(struct draw *d)
{
    struct gates_call *call = &d->c->call.gates;
    *call = (struct gates_call){.t = draw_between(d, 1, d->size),
                                .heads = (int)draw_between(d, 1, 9),
                                .rows = draw_coin(d) ? 1 : (int)draw_between(d, 2, 20)};
    call->by_step = call->rows == 1 && draw_coin(d);
    int64_t numbers = (int64_t)call->heads * call->rows;
    call->steps_row = draw_row(d, numbers);
    call->strengths_row = draw_row(d, call->heads);
    bool backward = d->kernel == KERNEL_GATES_BACKWARD;
    draw_text(d, "t %lld heads %d rows %d%s", (long long)call->t, call->heads, call->rows, call->by_step ? " by step" : "");
    draw_strided(d, "steps", false, SLOT(gates.steps), call->t, call->steps_row);
    if (!call->by_step)
        draw_strided(d, "strengths", false, SLOT(gates.strengths), call->t, call->strengths_row);
    IN("rates", gates.rates, call->heads);
    IN("bias", gates.bias, numbers);
    if (!backward) {
        FLOATS("decay", ROLE_OUT, gates.decay, call->t * numbers);
        FLOATS("strength", ROLE_OUT, gates.strength, call->t * call->heads);
        return;
    }
    FLOATS("ddecay", ROLE_IN, gates.ddecay, call->t * numbers);
    FLOATS("dstrength", ROLE_IN, gates.dstrength, call->t * call->heads);
    draw_strided(d, "dsteps", true, SLOT(gates.dsteps), call->t, call->steps_row);
    if (!call->by_step)
        draw_strided(d, "dstrengths", true, SLOT(gates.dstrengths), call->t, call->strengths_row);
    FLOATS("drates", ROLE_IN_OUT, gates.drates, call->heads);
    FLOATS("dbias", ROLE_IN_OUT, gates.dbias, numbers);
}

void draw_unit(struct draw *d)
{
    struct unit_call *call = &d->c->call.unit;
    *call = (struct unit_call){
        .t = draw_between(d, 1, d->size), .n = draw_between(d, 1, 9), .width = draw_width(d), .epsilon = 1e-6f};
    int64_t width = call->n * call->width;
    call->x_row = draw_row(d, width);
    draw_text(d, "t %lld n %lld width %lld", (long long)call->t, (long long)call->n, (long long)call->width);
    draw_strided(d, "x", false, SLOT(unit.x), call->t, call->x_row);
    if (d->kernel == KERNEL_UNIT_FORWARD) {
        OUT("y", unit.y, call->t * width);
        return;
    }
    IN("dy", unit.dy, call->t * width);
    draw_strided(d, "dx", true, SLOT(unit.dx), call->t, call->x_row);
}

static void draw_scan_sizes(struct draw *d, struct scan_call *call)
{
    int groups = (int)draw_between(d, 1, 3);
    *call = (struct scan_call){.batch = draw_between(d, 1, 2),
                               .seq_len = draw_between(d, 1, d->size),
                               .chunk = draw_between(d, 1, 24),
                               .heads = groups * (int)draw_between(d, 1, 3),
                               .groups = groups,
                               .state = (int)draw_between(d, 1, 24),
                               .head_dim = (int)draw_between(d, 1, 40),
                               .delta = draw_coin(d)};
    call->rows = draw_coin(d) ? 1 : call->state;
    call->scale = draw_coin(d) ? 1 : 0.25f;
    call->v_row = draw_row(d, (int64_t)call->heads * call->head_dim);
    call->k_row = draw_row(d, (int64_t)groups * call->state);
    call->decay_row = draw_between(d, 0, 3) ? (int64_t)call->heads * call->rows : 0;
}

/* Keys short enough for the delta rule to remove no more than there is: of average length 1, over many rows. */
static void draw_keys(struct draw *d, const struct scan_call *call, int64_t t)
{
    const double most = call->delta ? fmin(0.4, sqrt(3.0 / call->state)) : 0.4;
    draw_numbers(d, "k", OPERAND_ACTIVATION, ROLE_IN, SLOT(scan.k), t * call->k_row, -most, most);
    draw_numbers(d, "q", OPERAND_ACTIVATION, ROLE_IN, SLOT(scan.q), t * call->k_row, -1, 1);
}

/* Bytes that are enough for the reference and for a device that keeps states of all heads at once, of 32, 128 or 256 rows and
 * columns in groups of up to 16, or in bf16 by chunks of 64 tokens, rows up to 256 and columns in groups of up to 64, of the
 * delta rule also 64 by 64 numbers and 64 tokens' values of each chunk. */
static int64_t workspace_of_any(const struct scan_call *call, bool backward)
{
    const int64_t reference = (int64_t)scan_reference_workspace(call, backward), heads = call->batch * call->heads;
    const int64_t rows = call->state <= 32 ? 32 : call->state <= 128 ? 128 : 256, columns = (call->head_dim + 15) / 16 * 16;
    const int64_t states = call->seq_len / call->chunk + 1 + call->chunk + 1, sums = call->chunk * (3 * rows + 1) + 1;
    const int64_t all = heads * (states * rows * columns + columns / 16 * sums) * (int64_t)sizeof(float);
    const int64_t wide = (call->head_dim + 63) / 64 * 64, high = call->state <= 64 ? 64 : call->state <= 128 ? 128 : 256;
    const int64_t delta = call->delta ? 64 * (64 + wide) : 0;
    const int64_t chunked = heads * ((call->seq_len / 64 + 1) * (high * wide + delta) * 2 +
                                     (high * wide + wide / 32 * (256 * (2 * call->state + 2) + 1)) * 4);
    const int64_t device = all > chunked ? all : chunked;
    return reference > device ? reference : device;
}

void draw_scan_operands(struct draw *d)
{
    struct scan_call *call = &d->c->call.scan;
    draw_text(d, "batch %lld seq_len %lld chunk %lld heads %d groups %d state %d head_dim %d rows %d%s", (long long)call->batch,
              (long long)call->seq_len, (long long)call->chunk, call->heads, call->groups, call->state, call->head_dim,
              call->rows, call->delta ? " delta" : "");
    bool backward = d->kernel == KERNEL_SCAN_BACKWARD, strong = draw_coin(d), skips = draw_coin(d);
    int64_t t = call->batch * call->seq_len, numbers = (int64_t)call->heads * call->rows;
    int64_t values = (int64_t)call->heads * call->head_dim;
    draw_strided(d, "v", false, SLOT(scan.v), t, call->v_row);
    draw_keys(d, call, t);
    draw_numbers(d, "decay", OPERAND_FLOAT, ROLE_IN, SLOT(scan.decay), call->decay_row ? t * numbers : numbers, -0.5, 0);
    if (strong)
        POSITIVE("strength", ROLE_IN, scan.strength, t * call->heads);
    if (skips)
        IN("skip", scan.skip, call->heads);
    if (!backward)
        OUT("y", scan.y, t * values);
    else {
        IN("dy", scan.dy, t * values);
        draw_strided(d, "dv", true, SLOT(scan.dv), t, call->v_row);
        draw_strided(d, "dk", true, SLOT(scan.dk), t, call->k_row);
        draw_strided(d, "dq", true, SLOT(scan.dq), t, call->k_row);
        if (call->decay_row)
            FLOATS("ddecay", ROLE_OUT, scan.ddecay, t * numbers);
        if (strong)
            FLOATS("dstrength", ROLE_OUT, scan.dstrength, t * call->heads);
        if (skips)
            FLOATS("dskip", ROLE_IN_OUT, scan.dskip, call->heads);
    }
    draw_operand(d, "workspace", OPERAND_SCRATCH, ROLE_OUT, SLOT(scan.workspace), workspace_of_any(call, backward));
}

void draw_scan(struct draw *d)
{
    draw_scan_sizes(d, &d->c->call.scan);
    draw_scan_operands(d);
}

void kernel_case_draw_scan(struct kernel_case *c, enum kernel kernel, struct scan_call scan, bool packed,
                           struct random_stream *random)
{
    struct draw draw = {.kernel = kernel, .c = c, .random = random, .size = scan.seq_len};
    const int64_t between = packed ? 0 : 8;
    scan.heads = scan.heads ? scan.heads : 2 * scan.groups;
    scan.rows = 1;
    scan.scale = 0.5f;
    scan.v_row = (int64_t)scan.heads * scan.head_dim + between;
    scan.k_row = (int64_t)scan.groups * scan.state + between;
    scan.decay_row = draw_between(&draw, 0, 2) ? scan.heads : 0;
    *c = (struct kernel_case){.call = {.kernel = kernel, .scan = scan}};
    draw_scan_operands(&draw);
    kernel_case_poison(c);
}

void kernel_case_draw_chunked(struct kernel_case *c, enum kernel kernel, int number, bool delta, struct random_stream *random)
{
    static const struct scan_call sizes[N_CHUNKED] = {
        {.batch = 1, .seq_len = 64, .groups = 1, .state = 16, .head_dim = 16},
        {.batch = 2, .seq_len = 65, .groups = 2, .state = 64, .head_dim = 64},
        {.batch = 1, .seq_len = 200, .groups = 1, .state = 72, .head_dim = 40},
        {.batch = 2, .seq_len = 127, .groups = 1, .state = 128, .head_dim = 64},
        {.batch = 1, .seq_len = 193, .groups = 1, .state = 128, .head_dim = 128},
        {.batch = 1, .seq_len = 256, .groups = 1, .state = 24, .head_dim = 72},
        {.batch = 1, .seq_len = 130, .groups = 1, .state = 136, .head_dim = 40},
        {.batch = 1, .seq_len = 320, .groups = 1, .state = 256, .head_dim = 32},
        {.batch = 1, .seq_len = 150, .groups = 2, .state = 13, .head_dim = 7},
        {.batch = 1, .seq_len = 99, .groups = 1, .state = 1, .head_dim = 65},
        {.batch = 1, .seq_len = 140, .heads = 1, .groups = 1, .state = 40, .head_dim = 56},
        {.batch = 1, .seq_len = 161, .heads = 1, .groups = 1, .state = 128, .head_dim = 64},
    };
    const int way = number / N_CHUNKED % CHUNKED_WAYS;
    struct scan_call scan = sizes[number % N_CHUNKED];
    scan.chunk = 16 + 37 * way;
    scan.delta = delta;
    kernel_case_draw_scan(c, kernel, scan, way % 2, random);
    c->amplification = delta ? scan_amplification(&c->call.scan) : 1;
    if (!(c->amplification <= CHUNKED_AMPLIFICATION)) {
        fprintf(stderr, "%s %s: terms are %g times sums, drawn to be at most %d\n", kernel_name(kernel), c->text,
                c->amplification, CHUNKED_AMPLIFICATION);
        abort();
    }
}

void draw_gated_norm(struct draw *d)
{
    struct gated_norm_call *call = &d->c->call.gated_norm;
    *call = (struct gated_norm_call){.t = draw_between(d, 1, d->size),
                                     .n = draw_between(d, 1, 4),
                                     .width = draw_width(d),
                                     .gate_first = draw_coin(d),
                                     .sigmoid = draw_coin(d),
                                     .shared = draw_coin(d),
                                     .epsilon = 1e-5f};
    int64_t width = call->n * call->width, gains = call->shared ? call->width : width;
    bool backward = d->kernel == KERNEL_GATED_NORM_BACKWARD, gain = draw_between(d, 0, 3) > 0;
    call->gate_row = draw_row(d, width);
    draw_text(d, "t %lld n %lld width %lld%s%s%s", (long long)call->t, (long long)call->n, (long long)call->width,
              call->gate_first ? " gate first" : "", call->sigmoid ? " sigmoid" : "", call->shared ? " shared" : "");
    IN("x", gated_norm.x, call->t * width);
    draw_strided(d, "gate", false, SLOT(gated_norm.gate), call->t, call->gate_row);
    if (gain)
        IN("gain", gated_norm.gain, gains);
    if (!backward) {
        OUT("y", gated_norm.y, call->t * width);
        return;
    }
    IN("dy", gated_norm.dy, call->t * width);
    OUT("dx", gated_norm.dx, call->t * width);
    draw_strided(d, "dgate", true, SLOT(gated_norm.dgate), call->t, call->gate_row);
    if (gain)
        FLOATS("dgain", ROLE_IN_OUT, gated_norm.dgain, gains);
}
