/* layer_cast.c - casts one operand of a layer to 8 bits. */
#include "runtime/layer/layer_mixture.h"

static bool is_narrow(const struct layer_context *c)
{
    return c->rank->recipe.activations != NARROW_NONE;
}

struct tensor *layer_cast_of(const struct layer_context *c, const struct tensor *wide, int64_t cols, struct cast cast)
{
    size_t row = (size_t)cols * device_element_bytes(c->rank->device);
    enum narrow_format format = cast.gradient ? c->rank->recipe.gradients : c->rank->recipe.activations;
    struct tensor *narrow = narrow_new(c->rank, (int64_t)(wide->bytes / row), cols, format);
    narrow_cast(c->rank, wide->data, cast.count, cast.shared, narrow, c->step->stream);
    return narrow;
}

void layer_cast(const struct layer_context *c, struct tensor **at, int64_t cols, struct cast cast)
{
    if (!is_narrow(c) || !*at || (*at)->format != NARROW_NONE)
        return;
    struct tensor *narrow = layer_cast_of(c, *at, cols, cast);
    layer_drop(c, at);
    *at = narrow;
}

/* A bias has the sums of the gradient before it is rounded. */
void layer_cast_gradient(const struct layer_context *c, struct product p, struct tensor **at)
{
    if (!is_narrow(c) || !*at || (*at)->format != NARROW_NONE)
        return;
    float *sum = p.biased ? unit_gradients(c->unit, p.bias) : NULL;
    struct kernel_call call = {.kernel = KERNEL_COLUMN_SUM,
                               .column_sum = {.t = p.tokens, .h = p.out, .x = (*at)->data, .sum = sum ? sum + p.first : NULL}};
    if (sum)
        layer_launch(c, &call);
    layer_cast(c, at, p.out, (struct cast){.gradient = true});
}
