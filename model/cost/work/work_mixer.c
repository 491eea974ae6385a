/*
 * work_mixer.c - a mixer with a state (struct state_mixer): input projections, a convolution over time, gates, the scan, a
 * gated norm and the output projection.
 *
 * The scan is computed in chunks of C tokens (arXiv:2405.21060, section 6; the delta rule arXiv:2406.06484, section 3). The
 * influence of tokens of a chunk on each other is a product of matrices, as in attention. The contribution of a chunk to the
 * state is one more product, and states are passed on from chunk to chunk. A chunk counts as batched products of the GEMM
 * model, so the kernels are assumed to be as good as a library's; decays, masks and exponentials are assumed to hide in them.
 * Backward each product has two gradients, and values that are cheaper to recompute than to keep are recomputed, as in the
 * Triton kernels of mamba_ssm (ssd_combined.py) and of flash-linear-attention (chunk_gated_delta_rule).
 *
 * Tensor parallelism divides groups of heads. Context parallelism divides the sequence, except between the exchanges here,
 * which turn sequence parts into heads and back (Megatron-LM, mamba_context_parallel.py). If there are fewer groups than ranks,
 * each group is sent to all ranks that need it.
 */
#include <math.h>
#include <string.h>

#include "model/cost/work/work_layer.h"

enum { BF16 = 2, FP32 = 4, CHUNK_PRODUCTS_MAX = 5 };
/* Rows of a kernel's block: a masked product stops behind the block on the diagonal. */
enum { SCAN_BLOCK = 128 };

/* --- shapes */

/* Of a rank between the exchanges of context parallelism: whole sequences of some heads. */
struct scan_shape {
    int64_t chunk, rows, columns; /* C, N, P */
    double sequences, chunks;     /* chunks of a sequence */
    double heads, groups;
    double score_bytes; /* of a score in memory between two kernels */
    bool delta;
};

static struct scan_shape scan_shape_of(const struct layer_builder *b)
{
    const struct state_mixer *m = &b->model->mixer;
    double ranks = (double)b->layout->tp * b->layout->cp;
    int64_t chunk = m->chunk < b->job->seq_len ? m->chunk : b->job->seq_len;
    return (struct scan_shape){
        .chunk = chunk,
        .rows = m->state,
        .columns = m->head_dim,
        .sequences = b->layout->micro_batch,
        .chunks = ceil((double)b->job->seq_len / (double)chunk),
        .heads = m->heads / ranks,
        .groups = fmax(1, m->groups / ranks),
        .score_bytes = m->kind == MIXER_MAMBA2 ? FP32 : BF16, /* ssd_combined.py: output_dtype=torch.float32 */
        .delta = m->kind == MIXER_GATED_DELTA || m->kind == MIXER_KIMI_DELTA,
    };
}

static struct linear_group mixer_inputs_of(const struct layer_builder *b)
{
    const struct state_mixer *m = &b->model->mixer;
    struct mixer_columns columns = mixer_columns_of(m);
    int tp = b->layout->tp;
    int64_t h = b->model->hidden, whole = (int64_t)(columns.mixed + columns.gate + columns.scalars), rank = m->head_dim;
    struct linear_group g = {.items = {linear_of("mixer_in", h, whole / tp, LINEAR_COLUMNS)}, .n = 1};
    if (columns.ranks) { /* the down-projections are on every rank, as latent attention's */
        g.items[g.n++] = linear_of("gates_down", h, columns.ranks * rank, LINEAR_WHOLE);
        g.items[g.n++] = linear_of("decays_up", rank, (int64_t)m->heads * m->state / tp, LINEAR_COLUMNS);
        g.items[g.n++] = linear_of("gate_up", rank, (int64_t)mixer_width_of(m).values / tp, LINEAR_COLUMNS);
    }
    return g;
}

static struct linear mixer_output_of(const struct layer_builder *b)
{
    int64_t values = (int64_t)mixer_width_of(&b->model->mixer).values;
    return linear_of("mixer_out", values / b->layout->tp, b->model->hidden, LINEAR_ROWS);
}

/* --- passes that memory bounds, of all tokens of a rank's heads */

static void scan_pass(struct layer_builder *b, const char *label, double width, double bytes, int kernels)
{
    builder_memory(b, CLASS_SCAN, MEMORY_STREAM, label, b->tokens * width / b->layout->tp * bytes, kernels);
}

/* The convolution and its SiLU in one kernel: read and written; backward reads the input and the gradient and writes one. */
static void convolution(struct layer_builder *b, bool backward)
{
    if (b->model->mixer.conv > 0)
        scan_pass(b, "mixer_conv", mixer_width_of(&b->model->mixer).convolved, (backward ? 3 : 2) * BF16, 1);
}

/*
 * Bytes of a token between the convolution and the scan. Mamba-2: the step's softplus and the sum of decays (2 + 4 + 4 a head).
 * Lightning: SiLU of values, keys and queries. Delta rule: decay and strength (2 + 2 read, 4 + 4 written, the sum over a chunk 4
 * + 4); keys and queries normalised, and repeated for the heads of a group; Kimi's decays are of each row of a state.
 */
static double gate_bytes(const struct state_mixer *m)
{
    struct mixer_width width = mixer_width_of(m);
    double heads = m->heads, rows = heads * m->state, normalised = 2 * width.keys * 2 * BF16;
    double repeated = m->heads > m->groups ? 2 * BF16 * (width.keys + rows) : 0;
    switch (m->kind) {
    case MIXER_MAMBA2: return heads * (BF16 + 2 * FP32);
    case MIXER_LIGHTNING: return width.convolved * 2 * BF16;
    case MIXER_GATED_DELTA: return heads * (2 * BF16 + 4 * FP32) + normalised + repeated;
    default: return heads * (BF16 + FP32) + rows * (BF16 + 3 * FP32) + normalised + repeated;
    }
}

/* Backward a gradient is read beside the input: three passes for two. */
static void gates(struct layer_builder *b, bool backward)
{
    const struct state_mixer *m = &b->model->mixer;
    bool delta = m->kind == MIXER_GATED_DELTA || m->kind == MIXER_KIMI_DELTA;
    scan_pass(b, "mixer_gates", 1, gate_bytes(m) * (backward ? 1.5 : 1), delta ? 4 : 1);
}

/*
 * What the heads give is normed and multiplied by the gate's activation, in one kernel each way whatever the stack does with
 * other norms (mamba_ssm's layernorm_gated.py, flash-linear-attention's FusedRMSNormGated): of an element forward reads x and the
 * gate and writes y; backward reads dy, x and the gate, makes the activation and the norm again, and writes dx and the gate's
 * gradient. Nothing between is written; an inverse length a row and the gain are too little to count. Beside a plain norm's these
 * bytes take exponentials and divisions, so where a rate is measured it is one of its own. The second kernel backward adds up the
 * gain's gradient.
 */
static void gated_norm(struct layer_builder *b, bool backward)
{
    double elements = b->tokens * mixer_width_of(&b->model->mixer).values / b->layout->tp;
    builder_memory(b, CLASS_MEMORY_BOUND, backward ? MEMORY_GATED_NORM_BACKWARD : MEMORY_GATED_NORM, "mixer_norm",
                   elements * BF16 * (backward ? 5 : 3), backward ? 2 : 1);
}

/* --- the scan */

/* `count` products C[m,n] = A[m,k] B[k,n]. */
struct chunk_product {
    const char *label;
    int64_t m, n, k;
    double count, output_bytes;
    bool repeated; /* in the backward pass */
    bool serial;   /* one head's chunks, one after the other */
};

/*
 * Of linear attention and SSD, where heads of a group share keys and queries, so that their values are one matrix: scores Q K^T
 * [C, C]; what a chunk adds to the state, K^T V [N, W]; what it gives, [scores | Q] [V; S] [C, W], in one kernel. W = P H / G.
 */
static int shared_products(const struct scan_shape *s, struct chunk_product *out)
{
    int64_t c = s->chunk, wide = (int64_t)((double)s->columns * s->heads / s->groups);
    int64_t seen = (c + (c < SCAN_BLOCK ? c : SCAN_BLOCK)) / 2;
    double count = s->sequences * s->chunks * s->groups;
    const struct chunk_product products[] = {
        {"scan_scores", c, c, s->rows, count, s->score_bytes, true, false},
        {"scan_states", s->rows, wide, c, count, FP32, true, false},
        {"scan_output", c, wide, s->rows + seen, count, BF16, false, false},
    };
    memcpy(out, products, sizeof products);
    return sizeof products / sizeof products[0];
}

/*
 * Of the delta rule, whose strengths differ by head: scores [Q; K] K^T [2C, C]; the inverse of the triangle of the latter; by it
 * what each key and value really adds, T [K | V] [C, N + P]; the state, which goes from chunk to chunk and takes away what it had
 * for the chunk's keys before it adds the chunk's values, two products of C tokens; and what a chunk gives, [scores | Q] [V; S].
 */
static int delta_products(const struct scan_shape *s, struct chunk_product *out)
{
    int64_t c = s->chunk, n = s->rows, p = s->columns;
    double heads = s->sequences * s->heads, count = heads * s->chunks;
    const struct chunk_product products[] = {
        {"scan_scores", 2 * c, c, n, count, BF16, true, false},
        {"scan_inverse", c, c, c, count, BF16, false, false},
        {"scan_updates", c, n + p, c, count, BF16, true, false},
        {"scan_states", n, p, (int64_t)(2 * s->chunks) * c, heads, s->chunks * BF16, true, true},
        {"scan_output", c, p, c + n, count, BF16, false, false},
    };
    memcpy(out, products, sizeof products);
    return sizeof products / sizeof products[0];
}

static void add_product(struct layer_builder *b, const struct chunk_product *p)
{
    struct work_gemm gemm = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .count = (int32_t)fmax(1, p->count),
                             .serial = p->serial,
                             .scan = true,
                             .output_bytes = p->output_bytes,
                             .precision = PRECISION_BF16};
    struct work work = {.kind = WORK_GEMM,
                        .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_SCAN,
                        .label = p->label,
                        .flops = 2.0 * gemm.count * (double)p->m * (double)p->n * (double)p->k,
                        .gemm = gemm};
    builder_append(b, work_add(b->table, work));
}

/* Where states are sums, which each chunk's part is added to: read in fp32, written in bf16; the gradients the other way, beside
 * the states. */
static void pass_states(struct layer_builder *b, const struct scan_shape *s, bool backward)
{
    double elements = s->sequences * s->chunks * s->heads * (double)(s->rows * s->columns);
    if (!s->delta)
        builder_memory(b, CLASS_SCAN, MEMORY_STREAM, "scan_passing", elements * (backward ? 2 * FP32 + BF16 : FP32 + BF16), 1);
}

/* dA = dC B^T and dB = A^T dC. The gradient of a state goes from chunk to chunk as the state does, the other way. */
static void add_gradients(struct layer_builder *b, const struct chunk_product *p)
{
    struct chunk_product a = *p, other = *p;
    other.serial = false;
    other.output_bytes = BF16;
    if (!p->serial) {
        a.output_bytes = BF16;
        a.n = p->k, a.k = p->n;
        other.m = p->k, other.k = p->m;
    } else {
        other.n = p->k, other.k = p->n;
    }
    add_product(b, &a);
    add_product(b, &other);
}

static int products_of(const struct scan_shape *s, struct chunk_product *out)
{
    return s->delta ? delta_products(s, out) : shared_products(s, out);
}

static void scan_forward(struct layer_builder *b)
{
    struct scan_shape s = scan_shape_of(b);
    struct chunk_product products[CHUNK_PRODUCTS_MAX];
    int n = products_of(&s, products);
    for (int i = 0; i < n; i++) {
        if (i == n - 1)
            pass_states(b, &s, false);
        add_product(b, &products[i]);
    }
}

static void scan_backward(struct layer_builder *b)
{
    struct scan_shape s = scan_shape_of(b);
    struct chunk_product products[CHUNK_PRODUCTS_MAX];
    int n = products_of(&s, products);
    for (int i = 0; i < n; i++)
        if (products[i].repeated)
            add_product(b, &products[i]);
    pass_states(b, &s, false);
    for (int i = n - 1; i >= 0; i--) {
        add_gradients(b, &products[i]);
        if (i == n - 1)
            pass_states(b, &s, true);
    }
}

/* --- context parallelism */

/* Bytes that a rank sends of its tokens' inputs of the scan: all of them, and groups' keys and queries to each rank with a head
 * of theirs; of outputs, what the heads give and the gate, which went there with the rest. */
static void turn(struct layer_builder *b, bool to_heads)
{
    const struct state_mixer *m = &b->model->mixer;
    const struct layout *l = b->layout;
    struct mixer_columns columns = mixer_columns_of(m);
    struct mixer_width width = mixer_width_of(m);
    double groups = fmax(m->groups, (double)l->tp * l->cp), copies = 2 * (groups - m->groups) * m->state;
    double gate = columns.ranks ? width.values : columns.gate, decays = columns.ranks ? (double)m->heads * m->state : 0;
    double sent = to_heads ? columns.mixed + gate + columns.scalars + copies + decays : width.values + gate;
    const char *label = to_heads ? "sequence_to_heads" : "heads_to_sequence";
    const enum group_kind groups_of_ranks[] = {GROUP_CP_HEADS, GROUP_CP};
    for (int i = 0; i < 2; i++)
        if (layout_group_size(l, groups_of_ranks[i]) > 1)
            builder_append(b, builder_exchange(b, CLASS_CP_COMM, label, COLLECTIVE_ALL_TO_ALL, groups_of_ranks[i],
                                               b->tokens * sent / l->tp * BF16));
}

/* --- the whole */

static void mixer_core(struct layer_builder *b)
{
    turn(b, true);
    convolution(b, false);
    gates(b, false);
    scan_forward(b);
    turn(b, false);
    gated_norm(b, false);
}

void mixer_forward(struct layer_builder *b, int32_t gather, int32_t reduce, bool ends)
{
    struct linear_group inputs = mixer_inputs_of(b);
    struct linear output = mixer_output_of(b);
    group_forward(b, &inputs, gather);
    mixer_core(b);
    if (!ends)
        row_forward(b, &output, reduce);
}

/* Mamba's kernel keeps what the convolution reads and repeats that. */
static void core_backward(struct layer_builder *b)
{
    gated_norm(b, true);
    turn(b, false);
    if (b->model->mixer.kind == MIXER_MAMBA2)
        convolution(b, false);
    scan_backward(b);
    gates(b, true);
    convolution(b, true);
    turn(b, true);
}

void mixer_backward(struct layer_builder *b, bool gathers, bool exchanges, bool input, bool weight)
{
    struct linear_group inputs = mixer_inputs_of(b);
    struct linear output = mixer_output_of(b);
    row_backward(b, &output, gathers, input, weight);
    if (input)
        core_backward(b);
    group_backward(b, &inputs, exchanges, input, weight);
}
