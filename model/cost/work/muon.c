#include "model/cost/work/muon.h"

#include <math.h>
#include <string.h>

#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"

enum { N_TABLES = 2 };

/* How tensor parallelism divides a matrix. */
enum division { WHOLE, BY_ROWS, BY_COLUMNS };

struct collection {
    struct muon_matrices *to;
    const struct layout *layout;
    const struct job *job;
    int64_t layers; /* like the one at hand */
};

static int64_t at_least_one(int64_t n)
{
    return n < 1 ? 1 : n;
}

static struct muon_kind *kind_of(struct muon_matrices *to, struct muon_kind kind)
{
    for (int i = 0; i < to->n; i++) {
        struct muon_kind *k = &to->items[i];
        if (k->rows == kind.rows && k->cols == kind.cols && k->experts == kind.experts &&
            (k->gathered > 0) == (kind.gathered > 0) && strcmp(k->label, kind.label) == 0)
            return k;
    }
    to->items[to->n] = kind;
    return &to->items[to->n++];
}

/* Matrices of a layer, [rows, cols] in the model, of which a rank has one of `blocks` different blocks. */
static void add_blocks(const struct collection *c, struct muon_kind kind, enum division division, int blocks, int64_t each)
{
    int tp = kind.experts ? layout_expert_tp(c->layout) : c->layout->tp, parts = division == WHOLE ? 1 : blocks;
    bool gathers = parts > 1 && c->job->muon_tp == MUON_DUPLICATED;
    kind.held = (double)kind.rows * (double)kind.cols / parts;
    kind.gathered = gathers ? tp * kind.held : 0;
    kind.batch = kind.experts ? each : 1;
    if (!gathers && division == BY_ROWS)
        kind.rows = at_least_one(kind.rows / parts);
    if (!gathers && division == BY_COLUMNS)
        kind.cols = at_least_one(kind.cols / parts);
    if (kind.rows > 0 && kind.cols > 0 && each > 0 && c->layers > 0)
        kind_of(c->to, kind)->count += each * c->layers;
}

/* `each` of them; of experts those on this rank. */
static void add(const struct collection *c, const char *label, int64_t rows, int64_t cols, enum division division, int64_t each,
                bool experts)
{
    struct muon_kind kind = {.label = label, .rows = rows, .cols = cols, .experts = experts};
    add_blocks(c, kind, division, experts ? layout_expert_tp(c->layout) : c->layout->tp, each);
}

/* Of fewer heads than tp every rank has a whole one, which it makes orthogonal as those who have the same do. */
static void add_keys_values(const struct collection *c, const struct transformer *m)
{
    struct muon_kind kind = {.label = "key_value", .rows = (int64_t)m->kv_heads * m->head_dim, .cols = m->hidden};
    add_blocks(c, kind, BY_ROWS, m->kv_heads / layout_kv_heads(c->layout, m), 2);
}

static void add_attention(const struct collection *c, const struct transformer *m)
{
    const struct latent_attention *l = &m->latent;
    int64_t heads = m->heads, h = m->hidden, query = l->qk_nope_dim + l->qk_rope_dim;
    if (m->attention != ATTENTION_LATENT) {
        add(c, "query", heads * m->head_dim, h, BY_ROWS, m->output_gate ? 2 : 1, false);
        add_keys_values(c, m);
        add(c, "projection", h, heads * m->head_dim, BY_COLUMNS, 1, false);
        return;
    }
    if (l->q_lora_rank) {
        add(c, "q_down", l->q_lora_rank, h, WHOLE, 1, false);
        add(c, "q_up", heads * query, l->q_lora_rank, BY_ROWS, 1, false);
    } else {
        add(c, "query", heads * query, h, BY_ROWS, 1, false);
    }
    add(c, "kv_down", l->kv_lora_rank + l->qk_rope_dim, h, WHOLE, 1, false);
    add(c, "kv_up", heads * (l->qk_nope_dim + l->v_dim), l->kv_lora_rank, BY_ROWS, 1, false);
    add(c, "projection", h, heads * l->v_dim, BY_COLUMNS, 1, false);
}

static void add_mixture(const struct collection *c, const struct transformer *m)
{
    const struct mixture *moe = &m->moe;
    int64_t h = m->hidden, up = m->gated_mlp ? 2 : 1, local = moe->experts / c->layout->ep;
    int64_t shared = moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn;
    add(c, "router", moe->experts, h, WHOLE, 1, false);
    add(c, "shared_up", shared, h, BY_ROWS, up, false);
    add(c, "shared_down", h, shared, BY_COLUMNS, 1, false);
    add(c, "expert_up", moe->expert_ffn, h, BY_ROWS, up * local, true);
    add(c, "expert_down", h, moe->expert_ffn, BY_COLUMNS, local, true);
}

/* All that reads the layer's input is one matrix, as Mamba has it. */
static void add_mixer(const struct collection *c, const struct transformer *m)
{
    const struct state_mixer *mixer = &m->mixer;
    struct mixer_columns columns = mixer_columns_of(mixer);
    int64_t h = m->hidden, values = (int64_t)mixer_width_of(mixer).values, rank = mixer->head_dim;
    add(c, "mixer_in", (int64_t)(columns.mixed + columns.gate + columns.scalars), h, BY_ROWS, 1, false);
    add(c, "gates_down", rank, h, WHOLE, columns.ranks, false);
    add(c, "decays_up", (int64_t)mixer->heads * mixer->state, rank, BY_ROWS, columns.ranks / 2, false);
    add(c, "gate_up", values, rank, BY_ROWS, columns.ranks / 2, false);
    add(c, "mixer_out", h, values, BY_COLUMNS, 1, false);
}

static void add_layers(struct collection *c, const struct transformer *m, struct layer_kind kind, int64_t layers)
{
    c->layers = layers;
    if (kind.mixers & MIXES_BY_ATTENTION)
        add_attention(c, m);
    if (kind.mixers & MIXES_BY_STATE)
        add_mixer(c, m);
    if (kind.feed == FEEDS_EXPERTS)
        add_mixture(c, m);
    if (kind.feed != FEEDS_DENSE)
        return;
    add(c, "mlp_up", m->ffn_hidden, m->hidden, BY_ROWS, m->gated_mlp ? 2 : 1, false);
    add(c, "mlp_down", m->hidden, m->ffn_hidden, BY_COLUMNS, 1, false);
}

void muon_matrices_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                       struct layer_range range, bool head)
{
    const struct transformer *m = setting->model;
    struct collection c = {matrices, layout, setting->job, 0};
    if (setting->job->optimizer != OPTIMIZER_MUON)
        return;
    struct layer_kinds kinds = layer_kinds_of(m, range.first, range.count);
    for (int kind = 0; kind < N_LAYER_KINDS; kind++)
        if (kinds.count[kind] > 0)
            add_layers(&c, m, layer_kind_at(kind), kinds.count[kind]);
    if (!head || !m->mtp_layers)
        return;
    add_layers(&c, m, layer_kind_of(m, m->layers), m->mtp_layers);
    add(&c, "prediction", m->hidden, 2 * m->hidden, BY_ROWS, 1, false);
}

static void tables_add(struct muon_kind *kind, double held, int64_t count)
{
    kind->held = held;
    kind->count += count;
}

void muon_tables_add(struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting, bool embedding,
                     bool head)
{
    const struct transformer *m = setting->model;
    bool positions = embedding && m->position == POSITION_LEARNED;
    tables_add(&matrices->tables[0], work_table_parameters(layout, m), work_tables(layout, m, embedding, head));
    tables_add(&matrices->tables[1], (double)transformer_position_rows(m) * (double)m->hidden, positions);
}

struct muon_matrices muon_matrices_of_model(const struct setting *setting)
{
    const struct layout alone = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 1, .ep = 1};
    struct muon_matrices matrices = {.n = 0};
    muon_matrices_add(&matrices, &alone, setting, (struct layer_range){0, setting->model->layers}, false);
    return matrices;
}

struct stage_parameters muon_parameters(const struct muon_matrices *matrices)
{
    struct stage_parameters sum = {0};
    for (int i = 0; i < matrices->n; i++) {
        const struct muon_kind *k = &matrices->items[i];
        *(k->experts ? &sum.experts : &sum.dense) += (double)k->count * k->held;
    }
    return sum;
}

/* --- who owns what */

static double flops_of(const struct muon_kind *k)
{
    double a = fmin((double)k->rows, (double)k->cols), b = fmax((double)k->rows, (double)k->cols);
    return MUON_ITERATIONS * (4 * a * a * b + 2 * a * a * a);
}

static int owners_of(const struct layout *layout, bool experts)
{
    return layout->zero ? layout_group_size(layout, experts ? GROUP_EXPERT_DP : GROUP_DP) : 1;
}

/* States are divided, by whole parameters. */
static bool is_layer_wise(const struct layout *layout, const struct job *job)
{
    return layout->zero && work_reduces_whole(layout, job);
}

enum { DEALT_MAX = MUON_KINDS_MAX + N_TABLES };

/* A kind as it is dealt: the first of its `count` parameters is the `first` of all. */
struct dealt {
    const struct muon_kind *kind;
    int matrices; /* of its kind: its index; -1: tables */
    int64_t first, count;
    double flops, states; /* of one: bytes that are kept */
};

/* What is dealt, to how many, and how: in turn, or (layer-wise) every second round backward. */
struct dealing {
    struct dealt of[DEALT_MAX];
    int n;
    int64_t owners;
    bool alternates;
};

static void dealing_insert(struct dealing *d, const struct muon_kind *kind, int matrices, double flops, double state_bytes)
{
    int at = d->n++;
    for (; at > 0 && d->of[at - 1].kind->held < kind->held; at--)
        d->of[at] = d->of[at - 1];
    d->of[at] = (struct dealt){kind, matrices, 0, kind->count, flops, kind->held * state_bytes};
}

/* Of a matrix's parameter: master weight in fp32, and momentum. */
static double matrix_state_bytes(const struct job *job)
{
    return 4 + precision_bytes(job->moment_precision);
}

/* Of one group, the largest first. */
static struct dealing deal(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job, bool experts)
{
    struct dealing d = {.owners = owners_of(layout, experts), .alternates = is_layer_wise(layout, job)};
    for (int i = 0; i < matrices->n; i++)
        if (matrices->items[i].experts == experts)
            dealing_insert(&d, &matrices->items[i], i, flops_of(&matrices->items[i]), matrix_state_bytes(job));
    for (int i = 0; i < N_TABLES && d.alternates && !experts; i++)
        if (matrices->tables[i].count)
            dealing_insert(&d, &matrices->tables[i], -1, 0, optimizer_state_bytes(job));
    for (int i = 1; i < d.n; i++)
        d.of[i].first = d.of[i - 1].first + d.of[i - 1].count;
    return d;
}

/* Of the first n those that are dealt at one place of every `owners`. */
static int64_t dealt_at(int64_t n, int64_t place, int64_t every)
{
    return (n + every - 1 - place) / every;
}

/* Of the first n those that an owner has. */
static int64_t dealt_until(const struct dealing *d, int64_t n, int64_t owner)
{
    if (!d->alternates)
        return dealt_at(n, owner, d->owners);
    return dealt_at(n, owner, 2 * d->owners) + dealt_at(n, 2 * d->owners - 1 - owner, 2 * d->owners);
}

static int64_t dealt_to(const struct dealing *d, const struct dealt *of, int64_t owner)
{
    return dealt_until(d, of->first + of->count, owner) - dealt_until(d, of->first, owner);
}

/* The first owner who has another number of the first n than the one before; the round that is not full may go backward. */
static int64_t change_after(const struct dealing *d, int64_t n)
{
    int64_t over = n % d->owners;
    return d->alternates && n / d->owners % 2 ? (d->owners - over) % d->owners : over;
}

/* Of an owner. */
struct owned {
    int64_t counts[MUON_KINDS_MAX];
    double flops, held, states;
    double matrices, tables; /* parameters */
};

static struct owned owned_by(const struct dealing *d, int64_t owner)
{
    struct owned o = {.flops = 0};
    for (int i = 0; i < d->n; i++) {
        const struct dealt *of = &d->of[i];
        int64_t count = dealt_to(d, of, owner);
        if (of->matrices >= 0)
            o.counts[of->matrices] = count;
        *(of->matrices >= 0 ? &o.matrices : &o.tables) += (double)count * of->kind->held;
        o.flops += (double)count * of->flops;
        o.states += (double)count * of->states;
    }
    o.held = o.matrices + o.tables;
    return o;
}

/* The most of each that an owner has: counts are his who has most FLOPs, matrices and tables his who keeps most. */
static void take_most(struct owned *most, const struct owned *o)
{
    if (o->flops > most->flops) {
        memcpy(most->counts, o->counts, sizeof most->counts);
        most->flops = o->flops;
    }
    if (o->states > most->states)
        most->matrices = o->matrices, most->tables = o->tables, most->states = o->states;
    most->held = fmax(most->held, o->held);
}

/* What owners have changes where a kind begins in the dealing, or the last ends, so one of those has most. */
static struct owned fullest(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job,
                            bool experts)
{
    struct dealing d = deal(matrices, layout, job, experts);
    struct owned most = owned_by(&d, 0);
    for (int i = 0; i < d.n; i++) {
        struct owned o = owned_by(&d, change_after(&d, d.of[i].first + d.of[i].count));
        take_most(&most, &o);
    }
    return most;
}

struct muon_share muon_share_of(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job)
{
    struct owned dense = fullest(matrices, layout, job, false), experts = fullest(matrices, layout, job, true);
    struct muon_share share;
    for (int i = 0; i < MUON_KINDS_MAX; i++)
        share.counts[i] = dense.counts[i] + experts.counts[i];
    return share;
}

/* Matrices and tables one by one, the rest evenly. */
static struct muon_updated layer_wise_updated(const struct muon_matrices *matrices, const struct layout *layout,
                                              const struct job *job, struct stage_parameters all)
{
    struct owned dense = fullest(matrices, layout, job, false), experts = fullest(matrices, layout, job, true);
    struct stage_parameters rest = muon_parameters(matrices);
    rest.dense = fmax(0, all.dense - rest.dense), rest.experts = fmax(0, all.experts - rest.experts);
    for (int i = 0; i < N_TABLES; i++)
        rest.dense = fmax(0, rest.dense - (double)matrices->tables[i].count * matrices->tables[i].held);
    double own = dense.matrices + experts.matrices;
    return (struct muon_updated){own + dense.tables + work_own_parameters(layout, rest), own};
}

struct muon_updated muon_updated_of(const struct muon_matrices *matrices, const struct layout *layout,
                                    const struct setting *setting, struct stage_parameters all)
{
    if (is_layer_wise(layout, setting->job))
        return layer_wise_updated(matrices, layout, setting->job, all);
    double updated = work_own_parameters(layout, all);
    return (struct muon_updated){updated,
                                 matrices->n ? fmin(updated, work_own_parameters(layout, muon_parameters(matrices))) : 0};
}

double muon_state_bytes(const struct setting *setting, struct muon_updated updated)
{
    return optimizer_state_bytes(setting->job) * (updated.all - updated.matrices) +
           matrix_state_bytes(setting->job) * updated.matrices;
}

/* --- bytes */

/* bf16; a job in fp32 does all in that. */
static enum precision precision_of(const struct job *job)
{
    return job->precision == PRECISION_FP32 ? PRECISION_FP32 : PRECISION_BF16;
}

double muon_exchange_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                           enum group_kind group)
{
    bool experts = group == GROUP_EXPERT_DP;
    if (owners_of(layout, experts) == 1 || is_layer_wise(layout, setting->job))
        return 0;
    return fullest(matrices, layout, setting->job, experts).held * precision_bytes(precision_of(setting->job));
}

/* Matrices of a kind that are computed at once. */
static int64_t batch_of(const struct muon_kind *k, int64_t count)
{
    return count < k->batch ? count : k->batch;
}

/* Of what an owner computes with at once, the most of each: X twice, two Gram matrices, blocks before they are one matrix. */
struct work_space {
    double matrices, grams, blocks; /* elements */
    double together;                /* of one kind's, the most */
};

static struct work_space work_space_of(const struct muon_matrices *matrices, const struct layout *layout, const struct job *job,
                                       bool batched)
{
    struct muon_share share = muon_share_of(matrices, layout, job);
    struct work_space most = {0};
    for (int i = 0; i < matrices->n; i++) {
        const struct muon_kind *k = &matrices->items[i];
        double a = fmin((double)k->rows, (double)k->cols), b = fmax((double)k->rows, (double)k->cols);
        double n = batched ? (double)batch_of(k, share.counts[i]) : share.counts[i] > 0;
        most.matrices = fmax(most.matrices, n * 2 * a * b);
        most.grams = fmax(most.grams, n * 2 * a * a);
        most.blocks = fmax(most.blocks, n * k->gathered);
        most.together = fmax(most.together, n * (2 * a * b + 2 * a * a + k->gathered));
    }
    return most;
}

static double updates_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting)
{
    double owned = work_own_parameters(layout, muon_parameters(matrices)) * precision_bytes(precision_of(setting->job));
    return owned + muon_exchange_bytes(matrices, layout, setting, GROUP_DP) +
           muon_exchange_bytes(matrices, layout, setting, GROUP_EXPERT_DP);
}

/* Nobody else holds what has one owner. */
struct muon_gather muon_gather_of(const struct muon_matrices *matrices, const struct layout *layout,
                                  const struct setting *setting, struct stage_parameters all)
{
    struct muon_gather g = {0};
    if (!is_layer_wise(layout, setting->job))
        return g;
    g.dense = owners_of(layout, false) > 1 ? all.dense : 0;
    g.experts = owners_of(layout, true) > 1 ? all.experts : 0;
    double alone = all.dense - g.dense + all.experts - g.experts;
    g.own = muon_updated_of(matrices, layout, setting, all).all - alone;
    return g;
}

/* An owner's weights in one buffer, and all owners' beside them, of dense ones or of experts. */
static double gather_bytes(const struct muon_gather *g)
{
    return g->dense + g->experts > 0 ? (g->own + fmax(g->dense, g->experts)) * MUON_WEIGHT_BYTES : 0;
}

double muon_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout, const struct setting *setting,
                          struct stage_parameters all)
{
    struct work_space space = work_space_of(matrices, layout, setting->job, true);
    double products = space.together * precision_bytes(precision_of(setting->job));
    struct muon_gather gather = muon_gather_of(matrices, layout, setting, all);
    if (is_layer_wise(layout, setting->job))
        return fmax(products, gather_bytes(&gather));
    return products + updates_bytes(matrices, layout, setting);
}

double muon_executed_scratch_bytes(const struct muon_matrices *matrices, const struct layout *layout,
                                   const struct setting *setting)
{
    struct work_space space = work_space_of(matrices, layout, setting->job, false);
    double elements = space.matrices + space.grams + space.blocks;
    return elements * precision_bytes(precision_of(setting->job)) + updates_bytes(matrices, layout, setting) +
           0.5 * space.matrices * sizeof(float);
}

/* --- works */

static int32_t add_memory(struct work_table *table, const char *label, double bytes, int32_t kernels)
{
    return work_add(table, (struct work){.kind = WORK_MEMORY_BOUND,
                                         .class = CLASS_OPTIMIZER,
                                         .label = label,
                                         .memory = {.bytes = bytes, .count = kernels, .kernel = MEMORY_OPTIMIZER}});
}

/* A parameter of a matrix: its gradient is read for the norm, by the update, and zeroed; the momentum is read and written as it
 * is kept, the update written. The others have Adam's step whole. */
int32_t work_add_muon_update(struct work_table *table, const struct setting *setting, double updated, double muon)
{
    const struct job *job = setting->job;
    bool half = job->precision == PRECISION_FP16 && job->gradient_precision == PRECISION_FP16;
    double bytes = 3 * (half ? 2 : 4) + 2 * precision_bytes(job->moment_precision) + precision_bytes(precision_of(job));
    int32_t id = work_add_optimizer(table, setting, fmax(0, updated - muon), 0);
    table->items[id].memory.bytes += muon * bytes;
    return id;
}

/* Reads the master weight (4) and what came back, writes the master weight and the one that is computed with (4 + 2). */
int32_t work_add_muon_apply(struct work_table *table, const struct setting *setting, double muon, double cast)
{
    int32_t id = work_add_optimizer(table, setting, 0, cast);
    table->items[id].label = "muon_apply";
    table->items[id].memory.bytes += muon * (4 + precision_bytes(precision_of(setting->job)) + 4 + 2);
    return id;
}

int32_t work_add_muon_copy(struct work_table *table, const char *label, double parameters)
{
    return add_memory(table, label, 2 * parameters * MUON_WEIGHT_BYTES, 1);
}

struct products {
    struct work_table *table;
    enum precision precision;
    int32_t batch;
    double counted; /* FLOPs in the books for each executed */
};

/* C = alpha A B + beta C0 of [m, k] and [k, n]: `adds` reads C0. */
static int32_t add_product(const struct products *p, const char *label, int64_t m, int64_t n, int64_t k, bool adds)
{
    struct work_gemm gemm = {.m = m, .n = n, .k = k, .count = p->batch, .precision = p->precision};
    gemm.output_bytes = precision_bytes(p->precision) * (adds ? 2 : 1);
    return work_add(p->table, (struct work){.kind = WORK_GEMM,
                                            .class = CLASS_OPTIMIZER,
                                            .label = label,
                                            .flops = 2.0 * (double)m * (double)n * (double)k * p->batch * p->counted,
                                            .gemm = gemm});
}

/* Blocks of a batch to every rank of the tensor-parallel group. */
static int32_t add_gather(const struct products *p, const struct muon_kind *k)
{
    double bytes = k->gathered * p->batch * precision_bytes(p->precision);
    return work_add(p->table,
                    (struct work){.kind = WORK_COLLECTIVE,
                                  .class = CLASS_OPTIMIZER,
                                  .label = "muon_gather",
                                  .collective = {.collective = COLLECTIVE_ALL_GATHER, .group = GROUP_TP, .bytes = bytes}});
}

/* `count` matrices of a kind in batches. Before the iterations an update is read for its norm, read and written divided by it. */
static int32_t add_kind(struct products p, const struct muon_kind *k, int64_t count)
{
    int64_t a = k->rows < k->cols ? k->rows : k->cols, b = k->rows < k->cols ? k->cols : k->rows;
    int64_t batches = (count + batch_of(k, count) - 1) / batch_of(k, count);
    int32_t works[3], n = 0;
    p.batch = (int32_t)((count + batches - 1) / batches);
    p.counted *= (double)count / ((double)batches * p.batch);
    if (k->gathered > 0)
        works[n++] = add_gather(&p, k);
    works[n++] = add_memory(p.table, "muon_normalise", 3.0 * (double)a * (double)b * p.batch * precision_bytes(p.precision), 2);
    const int32_t products[] = {add_product(&p, "gram", a, a, b, false), add_product(&p, "gram_squared", a, a, a, true),
                                add_product(&p, "polynomial", a, b, a, true)};
    works[n++] = work_add_sequence(p.table, CLASS_OPTIMIZER, "newton_schulz", products, 3, MUON_ITERATIONS);
    return work_add_sequence(p.table, CLASS_OPTIMIZER, k->label, works, n, (int32_t)batches);
}

int32_t work_add_newton_schulz(struct work_table *table, const struct layout *layout, const struct setting *setting,
                               const struct muon_matrices *matrices)
{
    struct muon_share share = muon_share_of(matrices, layout, setting->job);
    double mean = 0, most = 0;
    int32_t kinds[MUON_KINDS_MAX], n = 0;
    for (int i = 0; i < matrices->n; i++) {
        const struct muon_kind *k = &matrices->items[i];
        mean += (double)k->count / owners_of(layout, k->experts) * flops_of(k);
        most += (double)share.counts[i] * flops_of(k);
    }
    struct products p = {table, precision_of(setting->job), 1, most > 0 ? mean / most : 0};
    for (int i = 0; i < matrices->n; i++)
        if (share.counts[i] > 0)
            kinds[n++] = add_kind(p, &matrices->items[i], share.counts[i]);
    return n > 0 ? work_add_sequence(table, CLASS_OPTIMIZER, "muon", kinds, n, 1) : -1;
}
