/* steps_mixer.c - a mixer with a state as steps, in the order of model/cost/work/work_mixer.c.
 *
 * The program counts some kernels of a mixer as several products; here each kernel is one step. */
#include "runtime/base/mixer_form.h"
#include "runtime/layer/steps/steps_internal.h"

/* The products that read the mixer's input: one matrix, or narrow ones that are followed by two others. */
struct column_group steps_mixer_inputs(const struct builder *b)
{
    struct column_group g = {.items = {{STEP_MIXER_IN, STEP_MIXER_IN_INPUT, STEP_MIXER_IN_WEIGHT, "mixer_in", true}},
                             .n = 1,
                             .gather = STEP_GATHER1,
                             .gather_again = STEP_GATHER1_AGAIN,
                             .reduce = STEP_REDUCE_QKV_GRADIENT};
    if (mixer_columns_of(&b->model->mixer).ranks == 0)
        return g;
    g.items[g.n++] = (struct column_product){STEP_MIXER_DOWN, STEP_MIXER_DOWN_INPUT, STEP_MIXER_DOWN_WEIGHT, "gates_down", true};
    g.items[g.n++] = (struct column_product){STEP_MIXER_DECAYS_UP, STEP_MIXER_DECAYS_UP_INPUT, STEP_MIXER_DECAYS_UP_WEIGHT,
                                             "decays_up", false};
    g.items[g.n++] =
        (struct column_product){STEP_MIXER_GATE_UP, STEP_MIXER_GATE_UP_INPUT, STEP_MIXER_GATE_UP_WEIGHT, "gate_up", false};
    return g;
}

static bool is_delta(const struct builder *b)
{
    return mixer_form_of(b->model->mixer.kind)->delta;
}

/* Labels of the products that the program counts for a scan; `repeated`: those that the backward pass repeats. */
static int product_labels(const struct builder *b, bool repeated, const char **labels)
{
    static const char *const shared[] = {"scan_scores", "scan_states", "scan_output"};
    static const char *const delta[] = {"scan_scores", "scan_inverse", "scan_updates", "scan_states", "scan_output"};
    int n = 0;
    for (int i = 0; i < (is_delta(b) ? 5 : 3) - repeated; i++)
        if (!repeated || !is_delta(b) || i != 1)
            labels[n++] = is_delta(b) ? delta[i] : shared[i];
    return n;
}

enum { SCAN_PRODUCTS_MAX = 5 };

/* The first of these steps launches the kernel. */
static void add_products(struct builder *b, enum step_kind kind, const char *const *labels, int n)
{
    for (int i = 0; i < n; i++)
        steps_add(b, i == 0 ? kind : STEP_NOTHING, labels[i]);
}

static void pass_states(struct builder *b)
{
    if (!is_delta(b))
        steps_add(b, STEP_NOTHING, "scan_passing");
}

static void convolution(struct builder *b, enum step_kind kind)
{
    if (b->model->mixer.conv > 0)
        steps_add(b, kind, "mixer_conv");
}

void steps_mixer(struct builder *b)
{
    const char *labels[SCAN_PRODUCTS_MAX];
    int n = product_labels(b, false, labels);
    convolution(b, STEP_MIXER_CONV);
    steps_add(b, STEP_MIXER_GATES, "mixer_gates");
    add_products(b, STEP_MIXER_SCAN, labels, n - 1);
    pass_states(b);
    steps_add(b, STEP_NOTHING, labels[n - 1]);
    steps_add(b, STEP_MIXER_NORM, "mixer_norm");
}

void steps_mixer_backward(struct builder *b)
{
    const char *labels[SCAN_PRODUCTS_MAX];
    int n = product_labels(b, true, labels);
    steps_add(b, STEP_MIXER_NORM_BACKWARD, "mixer_norm");
    if (mixer_form_of(b->model->mixer.kind)->conv_again)
        convolution(b, STEP_MIXER_CONV_AGAIN);
    add_products(b, STEP_MIXER_SCAN_BACKWARD, labels, n);
    pass_states(b);
    n = product_labels(b, false, labels);
    for (int i = n - 1; i >= 0; i--) {
        steps_add(b, STEP_NOTHING, labels[i]); /* two gradients of each */
        steps_add(b, STEP_NOTHING, labels[i]);
        if (i == n - 1)
            pass_states(b);
    }
    steps_add(b, STEP_MIXER_GATES_BACKWARD, "mixer_gates");
    convolution(b, STEP_MIXER_CONV_BACKWARD);
}
