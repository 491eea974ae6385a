/* probe_mixer.c - the cases of mixers with a state: all kernels that layer_mixer.c launches between its products.
 *
 * Each case is called `scan`, except the gated norm. The first two cases, one per pass, carry the counts of the model for all of
 * them: FLOPs of products, bytes of streaming kernels, number of kernels. */
#include "model/base/memory.h"
#include "model/cost/work/work.h"
#include "runtime/probe/probe_cases.h"

/* The model's counts of a layer's work of class scan in one pass. */
static void count_scan(const struct layout *layout, const struct setting *setting, enum pass pass, int layer,
                       struct probe_row *row)
{
    struct layout once = *layout;
    struct work_table table = {0};
    once.recompute = (struct recompute){.what = RECOMPUTE_NONE};
    work_add_pass(&table, &once, setting, pass, (struct layer_range){layer, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++) {
        const struct work *work = &table.items[i];
        if (work->class != CLASS_SCAN || (work->kind != WORK_GEMM && work->kind != WORK_MEMORY_BOUND))
            continue;
        row->flops += work->kind == WORK_GEMM ? work->flops : 0;
        row->bytes += work->kind == WORK_GEMM ? 0 : work->memory.bytes;
        row->count += work->kind == WORK_GEMM ? 1 : work->memory.count;
    }
    work_table_free(&table);
}

static struct kernel_call scan_of(const struct shape *s)
{
    const struct mixer_shape *m = &s->mixer;
    return (struct kernel_call){.kernel = KERNEL_SCAN_FORWARD,
                                .scan = {.batch = s->micro_batch,
                                         .seq_len = s->seq_len,
                                         .chunk = m->chunk < s->seq_len ? m->chunk : s->seq_len,
                                         .heads = m->heads,
                                         .groups = m->groups,
                                         .state = m->state,
                                         .head_dim = m->head_dim,
                                         .rows = m->rows,
                                         .delta = m->form->delta,
                                         .scale = 1,
                                         .v_row = m->convolved,
                                         .k_row = m->convolved,
                                         .decay_row = m->form->decay == DECAY_CONSTANT ? 0 : (int64_t)m->heads * m->rows}};
}

/* Both ways, `forward` times as often forward. */
static void add_both(struct probe_cases *cases, struct kernel_call call, double times, double forward, int64_t operand)
{
    probe_add_streaming(cases, call, MEMORY_STREAM, times * forward, "scan", operand, 1);
    call.kernel = (enum kernel)(call.kernel + 1);
    probe_add_streaming(cases, call, MEMORY_STREAM, times, "scan", operand, 1);
}

/* Both ways; what it reads and writes of its width. */
static void add_gated_norm(struct probe_cases *cases, const struct shape *s)
{
    const struct mixer_shape *m = &s->mixer;
    int64_t gates = s->tokens * (m->rank ? m->values : m->in);
    struct kernel_call call = {.kernel = KERNEL_GATED_NORM_FORWARD, .gated_norm = mixer_gated_norm(m, s->tokens)};
    double share = (double)(s->tokens * m->values) / (double)gates;
    call.gated_norm.epsilon = NORM_EPSILON;
    probe_add_streaming(cases, call, MEMORY_GATED_NORM, 1, "gated_norm_forward", gates, 3 * share);
    call.kernel = KERNEL_GATED_NORM_BACKWARD;
    probe_add_streaming(cases, call, MEMORY_GATED_NORM_BACKWARD, 1, "gated_norm_backward", gates, 5 * share);
}

void probe_add_mixer(struct probe_cases *cases, double times, const struct layout *layout, const struct setting *setting,
                     const struct shape *s, int layer)
{
    const struct mixer_shape *m = &s->mixer;
    const int first = cases->n_items;
    struct kernel_call scan = scan_of(s);
    struct kernel_call convolution = {
        .kernel = KERNEL_CONVOLUTION_FORWARD,
        .convolution = {
            .batch = s->micro_batch, .seq_len = s->seq_len, .channels = m->convolved, .taps = m->taps, .x_row = m->in}};
    struct kernel_call gates = {.kernel = KERNEL_GATES_FORWARD,
                                .gates = {.t = s->tokens,
                                          .heads = m->heads,
                                          .rows = m->rows,
                                          .by_step = m->form->by_step,
                                          .steps_row = (int64_t)m->heads * m->rows,
                                          .strengths_row = m->heads}};
    struct kernel_call unit = {
        .kernel = KERNEL_UNIT_FORWARD,
        .unit = {.t = s->tokens, .n = 2 * m->groups, .width = m->state, .epsilon = UNIT_EPSILON, .x_row = m->convolved}};
    const size_t room[] = {cases->device->api->scan_workspace(cases->device, &scan.scan, false),
                           cases->device->api->scan_workspace(cases->device, &scan.scan, true)};
    const size_t workspace = room[room[0] < room[1]] / sizeof(float);
    const int64_t decays = s->tokens * m->heads * m->rows, in = s->tokens * m->in;
    int64_t operand = (int64_t)workspace > in ? (int64_t)workspace : in;
    operand = operand > decays ? operand : decays;
    add_both(cases, scan, times, 1, operand);
    add_both(cases, convolution, times, m->form->conv_again && m->taps ? 2 : 1, in);
    if (m->form->decay != DECAY_CONSTANT)
        add_both(cases, gates, times, 1, decays);
    if (m->form->unit)
        add_both(cases, unit, times, 1, in);
    for (int i = first; i < cases->n_items; i++)
        cases->items[i].row.bytes = 0;
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        count_scan(layout, setting, (enum pass)pass, layer, &cases->items[first + (pass == PASS_BACKWARD)].row);
    add_gated_norm(cases, s);
}

static void place_scan(struct scan_call *c, void *const b[PROBE_BUFFERS])
{
    c->decay = b[0]; /* zeros */
    c->v = b[1];
    c->k = c->q = b[2];
    c->strength = b[6]; /* positive */
    c->y = b[3];
    c->dy = b[4];
    c->dv = b[3];
    c->dk = c->dq = b[7];
    c->ddecay = c->decay_row ? b[4] : NULL;
    c->dstrength = b[7];
    c->workspace = b[5];
}

static void place_gated_norm(struct gated_norm_call *c, void *const b[PROBE_BUFFERS])
{
    c->x = b[1], c->gate = b[2], c->y = c->dx = b[3], c->dy = b[4], c->dgate = b[5];
    c->gain = b[6], c->dgain = b[7]; /* of a mixer without a norm, too */
}

void probe_place_mixer(struct kernel_call *call, void *const b[PROBE_BUFFERS])
{
    switch (call->kernel) {
    case KERNEL_SCAN_FORWARD:
    case KERNEL_SCAN_BACKWARD: place_scan(&call->scan, b); break;
    case KERNEL_CONVOLUTION_FORWARD:
    case KERNEL_CONVOLUTION_BACKWARD:
        call->convolution.x = b[1], call->convolution.w = call->convolution.bias = b[2], call->convolution.y = b[3];
        call->convolution.dy = b[4], call->convolution.dx = b[3], call->convolution.dw = call->convolution.dbias = b[7];
        break;
    case KERNEL_GATED_NORM_FORWARD:
    case KERNEL_GATED_NORM_BACKWARD: place_gated_norm(&call->gated_norm, b); break;
    case KERNEL_UNIT_FORWARD:
    case KERNEL_UNIT_BACKWARD: call->unit.x = b[1], call->unit.y = call->unit.dx = b[3], call->unit.dy = b[4]; break;
    default: /* gates */
        call->gates.steps = call->gates.strengths = b[1], call->gates.rates = call->gates.bias = b[2];
        call->gates.decay = b[3], call->gates.strength = b[5], call->gates.ddecay = call->gates.dstrength = b[4];
        call->gates.dsteps = b[3], call->gates.dstrengths = b[5], call->gates.drates = call->gates.dbias = b[7];
        break;
    }
}
