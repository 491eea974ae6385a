/* Linear layers of bytes. */
#include "tests/kernels/kernel_draw.h"

static void draw_sizes(struct draw *d)
{
    struct linear_call *call = &d->c->call.linear;
    *call = (struct linear_call){.t = 32 * draw_between(d, 1, 6),
                                 .in = 32 * draw_between(d, 1, 6),
                                 .out = 32 * draw_between(d, 1, 6),
                                 .accumulate = draw_coin(d)};
    draw_text(d, "t %lld in %lld out %lld", (long long)call->t, (long long)call->in, (long long)call->out);
}

void kernel_case_draw_bytes(struct kernel_case *c, enum kernel kernel, bool in_blocks,
                            size_t (*scratch_bytes)(enum kernel kernel, const struct linear_call *call),
                            struct random_stream *random)
{
    static const float scaled;
    struct draw draw = {.c = c, .random = random, .size = 6}, *d = &draw;
    struct linear_call *call = &c->call.linear;
    bool forward = kernel == KERNEL_LINEAR_FORWARD, weight = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT;
    *c = (struct kernel_case){.call.kernel = kernel};
    draw_sizes(d);
    struct narrow_operand how = {.format = NARROW_E4M3, .scale = in_blocks ? NULL : &scaled, .down = weight}, turned = how;
    turned.down = !forward;
    if (!weight)
        draw_narrow(d, "w", SLOT(linear.w), SLOT(linear.w_as), call->out, call->in, turned);
    if (forward || weight)
        draw_narrow(d, "x", SLOT(linear.x), SLOT(linear.x_as), call->t, call->in, how);
    how.format = NARROW_E5M2;
    if (!forward)
        draw_narrow(d, "dy", SLOT(linear.dy), SLOT(linear.dy_as), call->t, call->out, how);
    if (forward)
        draw_numbers(d, "y", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(linear.y), call->t * call->out, -1, 1);
    else if (weight)
        FLOATS("dw", ROLE_IN_OUT, linear.dw, call->in * call->out);
    else
        draw_numbers(d, "dx", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(linear.dx), call->t * call->in, -1, 1);
    if (forward && draw_coin(d))
        IN("bias", linear.bias, call->out);
    size_t host = linear_reference_scratch(&c->call), device = scratch_bytes(kernel, call);
    draw_operand(d, "scratch", OPERAND_SCRATCH, ROLE_OUT, SLOT(linear.scratch), (int64_t)(host > device ? host : device));
}
