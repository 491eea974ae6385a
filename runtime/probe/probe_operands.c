/* probe_operands.c - places the operands of a probe's kernels and exchanges in its buffers. */
#include <string.h>

#include "runtime/probe/probe_cases.h"

enum {
    TOKENS = 0,
    WEIGHTS = 2,
    WEIGHT_GRADIENTS = 5,
    SECOND_MOMENTS = 6,
    BIAS_GRADIENTS = 7
}; /* buffers that not every number suits */

void probe_buffer_fill(void *buffer, size_t bytes, size_t element_bytes, int which)
{
    uint32_t state = 12345u + (uint32_t)which;
    for (size_t i = 0; i < bytes / element_bytes; i++) {
        state = state * 1664525u + 1013904223u;
        float value = which == TOKENS ? 0 : (float)(state >> 8) / 16777216.0f - (which == SECOND_MOMENTS ? 0 : 0.5f);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        uint16_t upper = (uint16_t)(bits >> 16);
        memcpy((char *)buffer + i * element_bytes, element_bytes == sizeof value ? (const void *)&value : &upper, element_bytes);
    }
}

void probe_routing_fill(const struct probe_routing *r, int32_t *integers)
{
    int64_t n = r->copies;
    int32_t *place = integers + n, *offsets = place + n, *counts = offsets + r->experts + 1;
    offsets[0] = 0;
    for (int e = 0; e < r->experts; e++) {
        counts[e] = (int32_t)((n + r->experts - 1 - e) / r->experts);
        offsets[e + 1] = offsets[e] + counts[e];
    }
    for (int64_t i = 0; i < n; i++) { /* copy i goes to expert i mod experts, as the i / experts-th */
        integers[i] = (int32_t)(i % r->experts);
        place[i] = offsets[i % r->experts] + (int32_t)(i / r->experts);
    }
}

typedef void *const buffers[PROBE_BUFFERS];

static void place_linear(struct linear_call *c, bool extras, buffers b)
{
    c->x = b[1];
    c->w = b[WEIGHTS];
    c->y = c->dx = b[3];
    c->dy = b[4];
    c->dw = b[WEIGHT_GRADIENTS];
    c->bias = extras ? b[2] : NULL;
    c->dbias = extras ? b[7] : NULL;
    c->scratch = b[SECOND_MOMENTS];
    c->x_as.scale = c->w_as.scale = c->dy_as.scale = b[BIAS_GRADIENTS];
}

static void place_casts(struct kernel_call *call, buffers b)
{
    if (call->kernel == KERNEL_LARGEST) {
        call->largest.x = b[1];
        call->largest.largest = b[4];
    } else if (call->kernel == KERNEL_QUANTISE) {
        call->quantise.x = b[1];
        call->quantise.largest = b[4];
        call->quantise.y = b[3];
        call->quantise.scale = b[5];
    } else {
        call->quantise_blocks.x = b[1];
        call->quantise_blocks.y = b[3];
        call->quantise_blocks.blocks = b[5];
    }
}

static void place_attention(struct attention_call *c, buffers b)
{
    c->qkv = b[1];
    c->out = b[2];
    c->log_sum_exp = b[3];
    c->dout = b[4];
    c->dqkv = b[5];
}

/* Queries, keys and values of a token one behind the other. */
static void place_query_range(struct query_range_call *c, buffers b, size_t element_bytes)
{
    int64_t keys = (int64_t)c->heads * c->head_dim, values = keys + (int64_t)c->kv_heads * c->head_dim;
    int64_t row = values + (int64_t)c->kv_heads * c->value_dim, out = (int64_t)c->heads * c->value_dim;
    c->q_at = c->k_at = c->v_at = (struct strided){row, c->queries * row};
    c->out_at = (struct strided){out, c->queries * out};
    c->q = b[1];
    c->k = (const char *)b[1] + (size_t)keys * element_bytes;
    c->v = (const char *)b[1] + (size_t)values * element_bytes;
    c->out = b[2];
    c->log_sum_exp = b[3];
    c->dout = b[4];
    c->dq = b[5];
    c->dk = (char *)b[5] + (size_t)keys * element_bytes;
    c->dv = (char *)b[5] + (size_t)values * element_bytes;
}

static void place_norm_forward(struct norm_forward_call *c, buffers b)
{
    c->x = b[1];
    c->gain = b[2];
    c->bias = c->rms ? NULL : b[2];
    c->y = b[3];
    c->mean = b[4];
    c->rstd = b[5];
}

static void place_norm_backward(struct norm_backward_call *c, bool extras, buffers b)
{
    c->dy = b[1];
    c->x = b[2];
    c->gain = b[1];
    c->mean = c->rstd = b[4];
    c->dx = b[3];
    c->dgain = b[5];
    c->dbias = c->rms ? NULL : b[7];
    c->add = extras ? b[SECOND_MOMENTS] : NULL;
}

static void place_add(struct add_call *c, bool extras, buffers b)
{
    c->a = b[1];
    c->b = b[2];
    c->bias = extras ? b[4] : NULL;
    c->y = b[3];
}

static void place_activation(struct activation_call *c, buffers b)
{
    c->u = b[1];
    c->a = c->du = b[3];
    c->da = b[2];
}

static void place_logits(struct logits_call *c, buffers b)
{
    c->targets = b[TOKENS];
    c->logits = b[3];
    c->max = b[4];
    c->sums = b[5];
}

static void place_dropout(struct dropout_call *c, bool extras, buffers b)
{
    c->x = c->dy = b[1];
    c->residual = b[2];
    c->bias = extras ? b[4] : NULL;
    c->y = c->dx = b[3];
}

static void place_embedding(struct embedding_call *c, bool extras, buffers b)
{
    c->tokens = b[TOKENS];
    c->table = b[1];
    c->positions = extras ? b[2] : NULL;
    c->x = b[3];
    c->dx = b[4];
    c->dtable = b[5];
    c->dpositions = extras ? b[7] : NULL;
}

static void place_lamb(struct lamb_part_call *c, buffers b, size_t element_bytes)
{
    c->p = b[3];
    c->m = b[4];
    c->v = b[SECOND_MOMENTS];
    c->g = b[1];
    c->update = b[2];
    c->norms = b[5];
    c->compute = element_bytes == sizeof(float) ? NULL : b[7];
}

static void place_sgd(struct sgd_call *c, buffers b, size_t element_bytes)
{
    c->p = b[3];
    c->m = b[4];
    c->g = b[1];
    c->compute = element_bytes == sizeof(float) ? NULL : b[7];
}

static void place_adam(struct adam_call *c, buffers b, size_t element_bytes)
{
    c->p = b[3];
    c->m = b[4];
    c->v = b[SECOND_MOMENTS];
    c->g = b[1];
    c->compute = element_bytes == sizeof(float) ? NULL : b[7];
}

static void place_grouped(struct grouped_call *c, const struct probe_routing *r, buffers b)
{
    c->offsets = (const int32_t *)b[TOKENS] + 2 * r->copies;
    c->x = b[1];
    c->w = b[2];
    c->y = c->dx = b[3];
    c->dy = b[4];
    c->dw = b[5];
    c->scratch = b[SECOND_MOMENTS];
    c->x_as.scale = c->w_as.scale = c->dy_as.scale = b[BIAS_GRADIENTS];
}

static void place_routing(struct kernel_call *call, const struct probe_routing *r, buffers b)
{
    int32_t *expert = b[TOKENS], *place = expert + r->copies, *counts = place + r->copies + r->experts + 1;
    switch (call->kernel) {
    case KERNEL_ROUTE_FORWARD:
        call->route.logits = b[1];
        call->route.gate = b[2];
        call->route.expert = b[3]; /* what it chooses is not what the even spread says */
        break;
    case KERNEL_EXPERT_SORT:
        call->expert_sort.expert = expert;
        call->expert_sort.counts = counts;
        call->expert_sort.place = b[3];
        break;
    case KERNEL_ROWS:
        call->rows.index = place;
        call->rows.from = b[1];
        call->rows.to = b[2];
        break;
    default: /* combine */
        call->combine.rows = b[1];
        call->combine.place = place;
        call->combine.gate = b[2];
        call->combine.y = b[3];
        call->combine.dy = b[4];
        call->combine.drows = b[5];
        call->combine.dgate = b[7];
        break;
    }
}

bool probe_holds_weights(int buffer)
{
    return buffer != TOKENS && buffer != BIAS_GRADIENTS;
}

/* Weights that a call uses; 0: none, or not for long. */
static size_t weights_of(const struct kernel_call *call)
{
    switch (call->kernel) {
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT: return (size_t)(call->linear.in * call->linear.out);
    case KERNEL_SQUARE_SUM: return (size_t)call->square_sum.n;
    case KERNEL_ADAM: return (size_t)call->adam.n;
    case KERNEL_SGD: return (size_t)call->sgd.n;
    case KERNEL_LAMB_UPDATE:
    case KERNEL_LAMB_APPLY: return (size_t)call->lamb_part.n;
    default: return 0;
    }
}

static size_t skipped(size_t elements, size_t weight_bytes, uint64_t turn)
{
    size_t places = elements ? weight_bytes / sizeof(float) / elements : 0;
    return places > 1 ? turn % places * elements : 0;
}

/* A buffer that has `weight_bytes`, where the `turn`-th tensor of that many elements is. */
static void *turned(const void *at, int64_t elements, size_t element, size_t weight_bytes, uint64_t turn)
{
    return (char *)at + skipped((size_t)elements, weight_bytes, turn) * element;
}

/* Of that many heads of all tokens. */
static int64_t attention_elements(const struct attention_call *call, int64_t heads)
{
    return call->batch * call->seq_len * heads * call->head_dim;
}

/* Activations that a forward pass leaves for the backward pass of its layer: written to memory, and read when they are in no
 * cache any more. */
static void turn_activations(struct kernel_call *call, size_t weight_bytes, size_t element, uint64_t turn)
{
    struct linear_call *linear = &call->linear;
    struct activation_call *act = &call->activation;
    struct attention_call *att = &call->attention;
    switch (call->kernel) {
    case KERNEL_LINEAR_FORWARD: linear->y = turned(linear->y, linear->t * linear->out, element, weight_bytes, turn); break;
    case KERNEL_LINEAR_BACKWARD_WEIGHT: linear->x = turned(linear->x, linear->t * linear->in, element, weight_bytes, turn); break;
    case KERNEL_ATTENTION_FORWARD:
        att->out = turned(att->out, attention_elements(att, att->heads), element, weight_bytes, turn);
        break;
    case KERNEL_ATTENTION_BACKWARD:
        att->qkv = turned(att->qkv, attention_elements(att, att->heads + 2 * att->kv_heads), element, weight_bytes, turn);
        att->out = turned(att->out, attention_elements(att, att->heads), element, weight_bytes, turn);
        break;
    case KERNEL_NORM_FORWARD:
        call->norm_forward.y =
            turned(call->norm_forward.y, call->norm_forward.t * call->norm_forward.h, element, weight_bytes, turn);
        break;
    case KERNEL_NORM_BACKWARD:
        call->norm_backward.x =
            turned(call->norm_backward.x, call->norm_backward.t * call->norm_backward.h, element, weight_bytes, turn);
        break;
    case KERNEL_ACTIVATION_FORWARD: act->a = turned(act->a, act->t * act->f, element, weight_bytes, turn); break;
    case KERNEL_ACTIVATION_BACKWARD:
        act->u = turned(act->u, act->t * act->f * (act->gated ? 2 : 1), element, weight_bytes, turn);
        break;
    default: break;
    }
}

/* fp32 but for what the device computes with. */
void probe_case_turn(struct kernel_call *call, size_t weight_bytes, size_t element_bytes, uint64_t turn)
{
    size_t n = skipped(weights_of(call), weight_bytes, turn);
    turn_activations(call, weight_bytes, element_bytes, turn);
    switch (n ? call->kernel : N_KERNELS) {
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT:
        call->linear.w = (const char *)call->linear.w + n * element_bytes;
        call->linear.dw += n;
        break;
    case KERNEL_SQUARE_SUM: call->square_sum.x += n; break;
    case KERNEL_ADAM: call->adam.p += n, call->adam.m += n, call->adam.v += n, call->adam.g += n; break;
    case KERNEL_SGD: call->sgd.p += n, call->sgd.m += n, call->sgd.g += n; break;
    case KERNEL_LAMB_UPDATE:
    case KERNEL_LAMB_APPLY: {
        struct lamb_part_call *c = &call->lamb_part;
        c->p += n, c->m += n, c->v += n, c->g += n, c->update += n;
        break;
    }
    default: break;
    }
}

/* Weights in place, one layer's after the other. */
static void place_weights(const struct probe_case *c, int me, buffers b, size_t skip, struct exchange_call *call)
{
    size_t part = (size_t)call->count * element_bytes(call->element);
    bool whole = call->exchange == EXCHANGE_ALL_REDUCE, gathers = call->exchange == EXCHANGE_ALL_GATHER;
    char *all = (char *)b[WEIGHT_GRADIENTS] + skip, *own = whole ? all : all + (size_t)me * part;
    call->in = gathers ? own : all;
    call->out = !gathers ? own : c->travels ? (char *)b[WEIGHTS] + skip : all;
}

struct exchange_call probe_exchange_place(const struct probe_case *c, int me, buffers b, size_t weight_bytes, uint64_t turn)
{
    struct exchange_call call = c->exchange;
    size_t size = element_bytes(call.element);
    call.in = b[1];
    call.out = b[2];
    if (c->of_weights)
        place_weights(c, me, b, skipped((size_t)c->row.bytes / size, weight_bytes, turn) * size, &call);
    return call;
}

struct kernel_call probe_case_place(const struct probe_case *c, void *const b[PROBE_BUFFERS], size_t element_bytes)
{
    struct kernel_call call = c->call;
    switch (call.kernel) {
    case KERNEL_LINEAR_FORWARD:
    case KERNEL_LINEAR_BACKWARD_INPUT:
    case KERNEL_LINEAR_BACKWARD_WEIGHT: place_linear(&call.linear, c->extras, b); break;
    case KERNEL_LARGEST:
    case KERNEL_QUANTISE:
    case KERNEL_QUANTISE_BLOCKS: place_casts(&call, b); break;
    case KERNEL_GROUPED_FORWARD:
    case KERNEL_GROUPED_BACKWARD_INPUT:
    case KERNEL_GROUPED_BACKWARD_WEIGHT: place_grouped(&call.grouped, &c->routing, b); break;
    case KERNEL_ATTENTION_FORWARD:
    case KERNEL_ATTENTION_BACKWARD: place_attention(&call.attention, b); break;
    case KERNEL_QUERY_RANGE_FORWARD:
    case KERNEL_QUERY_RANGE_BACKWARD: place_query_range(&call.query_range, b, element_bytes); break;
    case KERNEL_NORM_FORWARD: place_norm_forward(&call.norm_forward, b); break;
    case KERNEL_NORM_BACKWARD: place_norm_backward(&call.norm_backward, c->extras, b); break;
    case KERNEL_ACTIVATION_FORWARD:
    case KERNEL_ACTIVATION_BACKWARD: place_activation(&call.activation, b); break;
    case KERNEL_ROTARY: call.rotary.qkv = b[3]; break;
    case KERNEL_ADD: place_add(&call.add, c->extras, b); break;
    case KERNEL_DROPOUT_FORWARD:
    case KERNEL_DROPOUT_BACKWARD: place_dropout(&call.dropout, c->extras, b); break;
    case KERNEL_COLUMN_SUM: call.column_sum.x = b[1], call.column_sum.sum = b[5]; break;
    case KERNEL_EMBEDDING_FORWARD:
    case KERNEL_EMBEDDING_BACKWARD: place_embedding(&call.embedding, c->extras, b); break;
    case KERNEL_LOGITS_MAX:
    case KERNEL_LOGITS_SUM:
    case KERNEL_LOGITS_BACKWARD: place_logits(&call.logits, b); break;
    case KERNEL_SQUARE_SUM: call.square_sum.x = b[1], call.square_sum.sum = b[5]; break;
    case KERNEL_SGD: place_sgd(&call.sgd, b, element_bytes); break;
    case KERNEL_LAMB_UPDATE:
    case KERNEL_LAMB_APPLY: place_lamb(&call.lamb_part, b, element_bytes); break;
    case KERNEL_ADAM: place_adam(&call.adam, b, element_bytes); break;
    case KERNEL_CONVOLUTION_FORWARD:
    case KERNEL_CONVOLUTION_BACKWARD:
    case KERNEL_GATES_FORWARD:
    case KERNEL_GATES_BACKWARD:
    case KERNEL_UNIT_FORWARD:
    case KERNEL_UNIT_BACKWARD:
    case KERNEL_GATED_NORM_FORWARD:
    case KERNEL_GATED_NORM_BACKWARD:
    case KERNEL_SCAN_FORWARD:
    case KERNEL_SCAN_BACKWARD: probe_place_mixer(&call, b); break;
    case KERNEL_ZERO: call.zero.at = b[7]; break;
    case KERNEL_COPY: call.copy = (struct copy_call){b[2], b[1], call.copy.bytes}; break;
    default: place_routing(&call, &c->routing, b); break;
    }
    return call;
}
